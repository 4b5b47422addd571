/*
 * Graphs of the soft GPU: it does one thing at a time, so a launch queues what the nodes do in the
 * order of their numbers, in which none comes before what it waits for.
 */
#include "backend/gpu/soft_internal.h"

#include <stdlib.h>

struct fgv_gpu_graph {
	const struct fgv_gpu_node *nodes;
	uint32_t count;
	enum fgv_gpu_node_kind kinds[]; /* as they were made, which no change changes */
};

CUresult fgv_soft_graph_create(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes,
			       uint32_t count, struct fgv_gpu_graph **graph)
{
	struct fgv_gpu_graph *made = malloc(sizeof(*made) + count * sizeof(enum fgv_gpu_node_kind));

	(void)gpu;
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->nodes = nodes;
	made->count = count;
	for (uint32_t i = 0; i < count; i++)
		made->kinds[i] = nodes[i].kind;
	*graph = made;
	return CUDA_SUCCESS;
}

/* Launches look at the nodes themselves; but what the driver does not do is not done here either.
 */
CUresult fgv_soft_graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number)
{
	(void)gpu;
	return graph->kinds[number] == graph->nodes[number].kind ? CUDA_SUCCESS
								 : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult run_kernel(struct fgv_gpu *gpu, const struct fgv_gpu_node *node,
			   struct fgv_gpu_stream *stream)
{
	__typeof__(fgv_gpu_soft.launch) launch = node->kernel.how.cooperative
							 ? fgv_gpu_soft.launch_cooperative
							 : fgv_gpu_soft.launch;

	return launch(gpu, node->kernel.function, node->kernel.grid, node->kernel.block,
		      node->kernel.shared_bytes, stream, node->kernel.params);
}

static CUresult run(struct fgv_gpu *gpu, const struct fgv_gpu_node *node,
		    struct fgv_gpu_stream *stream)
{
	switch (node->kind) {
	case FGV_GPU_NODE_NOTHING:
		return CUDA_SUCCESS;
	case FGV_GPU_NODE_KERNEL:
		return run_kernel(gpu, node, stream);
	case FGV_GPU_NODE_COPY:
		return fgv_soft_copy_box(gpu, &node->copy, stream);
	case FGV_GPU_NODE_FILL:
		return softgpu_fill(gpu_of(gpu), node->fill.address, node->fill.pitch,
				    node->fill.value, node->fill.width, node->fill.count,
				    node->fill.rows, stream_of(stream));
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_soft_graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			       struct fgv_gpu_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = 0; i < graph->count && status == CUDA_SUCCESS; i++) {
		if (!graph->nodes[i].is_disabled)
			status = run(gpu, &graph->nodes[i], stream);
	}
	return status;
}

CUresult fgv_soft_graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph)
{
	(void)gpu;
	free(graph);
	return CUDA_SUCCESS;
}
