/*
 * What the lanes have sent of the texts of graphs.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/vgpu/graph.h"
#include "common/util.h"

void fgv_graphs_drop_parts(struct fgv_graphs *graphs, uint32_t lane)
{
	struct fgv_graph_parts *parts = &graphs->parts[lane];

	graphs->parts_bytes -= parts->room;
	free(parts->bytes);
	*parts = (struct fgv_graph_parts){0};
}

void fgv_graphs_fini(struct fgv_graphs *graphs)
{
	for (uint32_t i = 0; i < FGV_LANES_MAX; i++)
		fgv_graphs_drop_parts(graphs, i);
}

static CUresult grow(struct fgv_graphs *graphs, struct fgv_graph_parts *parts, uint64_t len)
{
	uint64_t room = fgv_max_u64(2 * parts->room, parts->len + len);
	uint8_t *grown;

	if (parts->len + len <= parts->room)
		return CUDA_SUCCESS;
	if (graphs->parts_bytes - parts->room + room > FGV_GRAPH_TEXT_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	grown = realloc(parts->bytes, room);
	if (!grown)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graphs->parts_bytes += room - parts->room;
	parts->bytes = grown;
	parts->room = room;
	return CUDA_SUCCESS;
}

CUresult fgv_graphs_add_part(struct fgv_graphs *graphs, uint32_t lane, uint64_t offset,
			     const void *text, uint32_t len)
{
	struct fgv_graph_parts *parts = &graphs->parts[lane];
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (!offset)
		fgv_graphs_drop_parts(graphs, lane);
	if (offset == parts->len)
		status = grow(graphs, parts, len);
	if (status != CUDA_SUCCESS) {
		fgv_graphs_drop_parts(graphs, lane);
		return status;
	}
	if (len > 0)
		memcpy(parts->bytes + parts->len, text, len);
	parts->len += len;
	return CUDA_SUCCESS;
}
