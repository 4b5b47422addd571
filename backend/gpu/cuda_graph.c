/*
 * Graphs of the driver's. What they were instantiated from is kept with them, as the driver names
 * nodes that are to be changed by those.
 *
 * A condition belongs to a graph of the driver's that is not instantiated yet: the home. What
 * chooses by its conditions is added there, and taken out again when it is destroyed.
 */
#include "backend/gpu/cuda_internal.h"

#include <stdlib.h>
#include <string.h>

/* A node as the driver has it. */
struct made_node {
	CUgraphNode handle;
	bool is_disabled;
	enum fgv_gpu_node_kind kind;
	CUgraph *bodies; /* of a choice: the driver's */
	/* What of a kernel no update changes. */
	bool in_clusters, has_priority;
	int priority;
	struct fgv_gpu_clusters how;
};

struct fgv_gpu_graph {
	CUgraph source;
	bool is_at_home; /* the source is the home's */
	CUgraphExec ready;
	bool has_priorities; /* nodes run with their own, not the stream's */
	const struct fgv_gpu_node *nodes;
	uint32_t count;
	struct made_node made[];
};

/* --- One node ------------------------------------------------------------------ */

static void describe_kernel(const struct fgv_gpu_node *node, CUgraphNodeParams *params)
{
	params->type = CU_GRAPH_NODE_TYPE_KERNEL;
	params->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = (CUfunction)node->kernel.function,
		.gridDimX = node->kernel.grid[0],
		.gridDimY = node->kernel.grid[1],
		.gridDimZ = node->kernel.grid[2],
		.blockDimX = node->kernel.block[0],
		.blockDimY = node->kernel.block[1],
		.blockDimZ = node->kernel.block[2],
		.sharedMemBytes = node->kernel.shared_bytes,
		.kernelParams = node->kernel.params,
	};
}

static void describe(struct cuda *cuda, const struct fgv_gpu_node *node, CUgraphNodeParams *params)
{
	memset(params, 0, sizeof(*params));
	switch (node->kind) {
	case FGV_GPU_NODE_NOTHING:
		params->type = CU_GRAPH_NODE_TYPE_EMPTY;
		break;
	case FGV_GPU_NODE_KERNEL:
		describe_kernel(node, params);
		break;
	case FGV_GPU_NODE_COPY:
		params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
		params->memcpy.copyCtx = cuda->context;
		params->memcpy.copyParams = node->copy;
		break;
	case FGV_GPU_NODE_FILL:
		params->type = CU_GRAPH_NODE_TYPE_MEMSET;
		params->memset.dst = node->fill.address;
		params->memset.pitch = node->fill.pitch;
		params->memset.value = node->fill.value;
		params->memset.elementSize = node->fill.width;
		params->memset.width = node->fill.count;
		params->memset.height = node->fill.rows;
		params->memset.ctx = cuda->context;
		break;
	case FGV_GPU_NODE_CHOICE:
		params->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
		params->conditional.handle = node->choice.condition;
		params->conditional.type = node->choice.type;
		params->conditional.size = node->choice.bodies;
		params->conditional.ctx = cuda->context;
		break;
	case FGV_GPU_NODE_RECORD:
		params->type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
		params->eventRecord.event = (CUevent)node->event;
		break;
	case FGV_GPU_NODE_WAIT:
		params->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
		params->eventWait.event = (CUevent)node->event;
		break;
	}
}

/* What the kernel is allowed, before the driver sees it in a graph. */
static CUresult allow(struct cuda *cuda, const struct fgv_gpu_node *node)
{
	if (node->kind != FGV_GPU_NODE_KERNEL)
		return CUDA_SUCCESS;
	if (node->kernel.in_clusters)
		return fgv_cuda_allow_clusters(cuda, node->kernel.function,
					       node->kernel.shared_bytes,
					       node->kernel.how.any_size);
	return fgv_cuda_allow_shared(cuda, node->kernel.function, node->kernel.shared_bytes);
}

static CUresult set_clusters(struct cuda *cuda, CUgraphNode handle,
			     const struct fgv_gpu_clusters *how)
{
	CUlaunchAttributeValue value = {.clusterDim = {how->size[0], how->size[1], how->size[2]}};
	CUresult status = CUDA_SUCCESS;

	if (how->size[0] || how->size[1] || how->size[2])
		status = cuda->driver->graph_set_attribute(
			handle, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
	if (status != CUDA_SUCCESS || how->policy == CU_CLUSTER_SCHEDULING_POLICY_DEFAULT)
		return status;
	value = (CUlaunchAttributeValue){.clusterSchedulingPolicyPreference = how->policy};
	return cuda->driver->graph_set_attribute(
		handle, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &value);
}

static CUresult set_attributes(struct cuda *cuda, CUgraphNode handle,
			       const struct fgv_gpu_node *node)
{
	const CUlaunchAttributeValue cooperative = {.cooperative = 1};
	const CUlaunchAttributeValue priority = {.priority = node->kernel.priority};
	CUresult status = CUDA_SUCCESS;

	if (node->kind != FGV_GPU_NODE_KERNEL)
		return CUDA_SUCCESS;
	if (node->kernel.how.cooperative)
		status = cuda->driver->graph_set_attribute(handle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
							   &cooperative);
	if (status == CUDA_SUCCESS && node->kernel.in_clusters)
		status = set_clusters(cuda, handle, &node->kernel.how);
	if (status == CUDA_SUCCESS && node->kernel.has_priority)
		status = cuda->driver->graph_set_attribute(handle, CU_LAUNCH_ATTRIBUTE_PRIORITY,
							   &priority);
	return status;
}

static CUgraph place_of(const struct fgv_gpu_graph *graph, const struct fgv_gpu_node *node)
{
	return node->inside ? graph->made[node->inside - 1].bodies[node->body] : graph->source;
}

/* @before: room for the handles of what any node waits for. */
static CUresult add_node(struct cuda *cuda, struct fgv_gpu_graph *graph, uint32_t number,
			 CUgraphNode *before)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];
	struct made_node *made = &graph->made[number];
	CUgraphNodeParams params;
	CUresult status = allow(cuda, node);

	if (status != CUDA_SUCCESS)
		return status;
	for (uint32_t i = 0; i < node->before_count; i++)
		before[i] = graph->made[node->before[i]].handle;
	describe(cuda, node, &params);
	status = cuda->driver->graph_add_node(&made->handle, place_of(graph, node), before, NULL,
					      node->before_count, &params);
	if (status != CUDA_SUCCESS)
		return status;
	made->kind = node->kind;
	if (node->kind == FGV_GPU_NODE_CHOICE)
		made->bodies = params.conditional.phGraph_out;
	if (node->kind == FGV_GPU_NODE_KERNEL) {
		made->in_clusters = node->kernel.in_clusters;
		made->how = node->kernel.how;
		made->has_priority = node->kernel.has_priority;
		made->priority = node->kernel.priority;
		graph->has_priorities |= made->has_priority;
	}
	return set_attributes(cuda, made->handle, node);
}

/* The driver switches kernels, copies and fills. */
static CUresult enable(struct cuda *cuda, struct fgv_gpu_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];
	struct made_node *made = &graph->made[number];

	if (made->is_disabled == node->is_disabled ||
	    (node->kind != FGV_GPU_NODE_KERNEL && node->kind != FGV_GPU_NODE_COPY &&
	     node->kind != FGV_GPU_NODE_FILL))
		return CUDA_SUCCESS;
	made->is_disabled = node->is_disabled;
	return cuda->driver->graph_set_enabled(graph->ready, made->handle, !node->is_disabled);
}

/* --- All of them --------------------------------------------------------------- */

static CUresult add_nodes(struct cuda *cuda, struct fgv_gpu_graph *graph)
{
	CUresult status = CUDA_SUCCESS;
	CUgraphNode *before;
	uint32_t most = 0;

	for (uint32_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i].before_count > most)
			most = graph->nodes[i].before_count;
	}
	before = calloc((size_t)most + 1, sizeof(CUgraphNode));
	if (!before)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < graph->count && status == CUDA_SUCCESS; i++)
		status = add_node(cuda, graph, i, before);
	free(before);
	return status;
}

static CUresult make(struct cuda *cuda, struct fgv_gpu_graph *graph)
{
	CUresult status = CUDA_SUCCESS;

	if (!graph->is_at_home)
		status = cuda->driver->graph_create(&graph->source, 0);
	if (status == CUDA_SUCCESS)
		status = add_nodes(cuda, graph);
	if (status == CUDA_SUCCESS)
		status = cuda->driver->graph_instantiate(
			&graph->ready, graph->source,
			graph->has_priorities ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0);
	for (uint32_t i = 0; i < graph->count && status == CUDA_SUCCESS; i++)
		status = enable(cuda, graph, i);
	return status;
}

/* Conditions are in the driver's graph from the start. */
struct fgv_gpu_home {
	CUgraph source;
};

CUresult fgv_cuda_graph_create_in(struct fgv_gpu *gpu, struct fgv_gpu_home *home,
				  const struct fgv_gpu_node *nodes, uint32_t count,
				  struct fgv_gpu_graph **graph)
{
	struct fgv_gpu_graph *made =
		calloc(1, sizeof(*made) + (size_t)count * sizeof(struct made_node));
	CUresult status;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->nodes = nodes;
	made->count = count;
	made->is_at_home = home != NULL;
	if (home)
		made->source = home->source;
	status = make(cuda_of(gpu), made);
	if (status == CUDA_SUCCESS)
		*graph = made;
	else
		fgv_cuda_graph_destroy(gpu, made);
	return status;
}

CUresult fgv_cuda_graph_create(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes,
			       uint32_t count, struct fgv_gpu_graph **graph)
{
	return fgv_cuda_graph_create_in(gpu, NULL, nodes, count, graph);
}

CUresult fgv_cuda_home_create(struct fgv_gpu *gpu, struct fgv_gpu_home **home)
{
	struct fgv_gpu_home *made = calloc(1, sizeof(*made));
	CUresult status;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = cuda_of(gpu)->driver->graph_create(&made->source, 0);
	if (status == CUDA_SUCCESS)
		*home = made;
	else
		free(made);
	return status;
}

CUresult fgv_cuda_home_condition(struct fgv_gpu *gpu, struct fgv_gpu_home *home, uint32_t value,
				 uint32_t flags, uint64_t *condition)
{
	struct cuda *cuda = cuda_of(gpu);
	CUgraphConditionalHandle made;
	CUresult status =
		cuda->driver->graph_condition(&made, home->source, cuda->context, value, flags);

	if (status == CUDA_SUCCESS)
		*condition = made;
	return status;
}

CUresult fgv_cuda_home_destroy(struct fgv_gpu *gpu, struct fgv_gpu_home *home)
{
	CUresult status = cuda_of(gpu)->driver->graph_destroy(home->source);

	free(home);
	return status;
}

/* Whether the driver changes what was made into @node at all. */
static bool can_follow(const struct made_node *made, const struct fgv_gpu_node *node)
{
	const struct fgv_gpu_clusters *how = &node->kernel.how;

	if (made->kind != node->kind || node->kind == FGV_GPU_NODE_CHOICE)
		return false;
	if (node->kind != FGV_GPU_NODE_KERNEL)
		return true;
	return made->in_clusters == node->kernel.in_clusters &&
	       made->has_priority == node->kernel.has_priority &&
	       made->priority == node->kernel.priority &&
	       made->how.cooperative == how->cooperative && made->how.policy == how->policy &&
	       !memcmp(made->how.size, how->size, sizeof(how->size));
}

CUresult fgv_cuda_graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];
	struct made_node *made = &graph->made[number];
	struct cuda *cuda = cuda_of(gpu);
	CUgraphNodeParams params;
	CUresult status;

	if (!can_follow(made, node))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (node->kind == FGV_GPU_NODE_NOTHING)
		return CUDA_SUCCESS;
	status = allow(cuda, node);
	if (status != CUDA_SUCCESS)
		return status;
	describe(cuda, node, &params);
	status = cuda->driver->graph_set_node(graph->ready, made->handle, &params);
	return status == CUDA_SUCCESS ? enable(cuda, graph, number) : status;
}

CUresult fgv_cuda_graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			       struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status;

	stream = stream_of(cuda, stream);
	status = fgv_cuda_before_work(cuda, stream);
	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->graph_launch(graph->ready, stream->handle);
}

/* The nodes in bodies go with the choices. */
static CUresult leave_home(const struct fgv_cuda_driver *driver, const struct fgv_gpu_graph *graph)
{
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = graph->count; i > 0; i--) {
		const struct made_node *made = &graph->made[i - 1];
		CUresult destroyed = CUDA_SUCCESS;

		if (made->handle && !graph->nodes[i - 1].inside)
			destroyed = driver->graph_destroy_node(made->handle);
		if (status == CUDA_SUCCESS)
			status = destroyed;
	}
	return status;
}

/* The driver keeps what is in flight until it is done. */
CUresult fgv_cuda_graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph)
{
	const struct fgv_cuda_driver *driver = cuda_of(gpu)->driver;
	CUresult status = CUDA_SUCCESS, destroyed = CUDA_SUCCESS;

	if (graph->ready)
		status = driver->graph_exec_destroy(graph->ready);
	if (graph->is_at_home)
		destroyed = leave_home(driver, graph);
	else if (graph->source)
		destroyed = driver->graph_destroy(graph->source);
	free(graph);
	return status != CUDA_SUCCESS ? status : destroyed;
}
