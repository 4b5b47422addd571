/*
 * Rows of kernel nodes; see batch_row.h.
 */
#include "backend/vgpu/batch_row.h"

#include <stdlib.h>

#include "backend/vgpu/session.h"

static struct fgv_batch_row *allocate(uint32_t count)
{
	struct fgv_batch_row *row = calloc(1, sizeof(*row) + count * sizeof(row->nodes[0]));

	if (!row)
		return NULL;
	row->count = count;
	row->kept = calloc(count, sizeof(*row->kept));
	if (!row->kept) {
		free(row);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		row->nodes[i].kind = FGV_GPU_NODE_KERNEL;
		row->nodes[i].kernel.params = row->kept[i].params;
		row->nodes[i].before_count = i > 0;
		row->nodes[i].before = &row->kept[i].before;
		row->kept[i].before = i - 1;
	}
	return row;
}

void fgv_batch_row_destroy(struct fgv_session *session, struct fgv_batch_row *row)
{
	if (row->graph)
		session->gpu->ops->graph_destroy(session->gpu, row->graph);
	free(row->kept);
	free(row);
}

struct fgv_batch_row *fgv_batch_row_create(struct fgv_session *session,
					   const struct fgv_batch_launch *launches, uint32_t count)
{
	struct fgv_batch_row *row = allocate(count);

	if (!row)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		fgv_batch_row_put(row, i, &launches[i]);
		row->kept[i].is_stale = false;
	}
	if (session->gpu->ops->graph_create(session->gpu, row->nodes, count, &row->graph) ==
	    CUDA_SUCCESS)
		return row;
	row->graph = NULL;
	fgv_batch_row_destroy(session, row);
	return NULL;
}

void fgv_batch_row_put(struct fgv_batch_row *row, uint32_t number,
		       const struct fgv_batch_launch *launch)
{
	struct fgv_gpu_node *node = &row->nodes[number];
	struct fgv_batch_kept *kept = &row->kept[number];

	node->kernel.function = launch->shape.function;
	node->kernel.shared_bytes = launch->shape.shared_bytes;
	memcpy(node->kernel.grid, launch->shape.grid, sizeof(launch->shape.grid));
	memcpy(node->kernel.block, launch->shape.block, sizeof(launch->shape.block));
	kept->shape = launch->shape;
	kept->is_stale = true;
	kept->args_len = launch->args_len;
	kept->param_count = launch->param_count;
	memcpy(kept->args, launch->args, launch->args_len);
	for (uint32_t i = 0; i < launch->param_count; i++)
		kept->params[i] = kept->args + launch->offsets[i];
}

void fgv_batch_row_get(const struct fgv_batch_row *row, uint32_t number,
		       struct fgv_batch_launch *launch)
{
	const struct fgv_batch_kept *kept = &row->kept[number];

	launch->shape = kept->shape;
	launch->args_len = kept->args_len;
	launch->param_count = kept->param_count;
	memcpy(launch->args, kept->args, kept->args_len);
	for (uint32_t i = 0; i < kept->param_count; i++)
		launch->offsets[i] = (uint16_t)((const uint8_t *)kept->params[i] - kept->args);
}

void fgv_batch_copy(struct fgv_batch_launch *to, const struct fgv_batch_launch *from)
{
	memcpy(to, from, offsetof(struct fgv_batch_launch, args) + from->args_len);
	memcpy(to->offsets, from->offsets, from->param_count * sizeof(from->offsets[0]));
}

CUresult fgv_batch_row_launch(struct fgv_session *session, struct fgv_batch_row *row,
			      struct fgv_gpu_stream *stream)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = 0; i < row->count && status == CUDA_SUCCESS; i++) {
		if (!row->kept[i].is_stale)
			continue;
		status = ops->graph_update(session->gpu, row->graph, i);
		row->kept[i].is_stale = false;
	}
	if (status == CUDA_SUCCESS)
		status = ops->graph_launch(session->gpu, row->graph, stream);
	return status;
}
