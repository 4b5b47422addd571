/*
 * The text of a graph (api/wire.h), which the host builds it from.
 *
 * Threads: the graph is the caller's.
 */
#ifndef FGV_CUDA_EXEC_TEXT_H
#define FGV_CUDA_EXEC_TEXT_H

#include "frontend/client/stats.h"
#include "frontend/cuda/graph/graph_priv.h"

/* All zero: an empty one. */
struct fgv_exec_text {
	uint8_t *bytes;
	size_t len, room;
	uint32_t count; /* of nodes */
	uint64_t moved; /* bytes, by copies and fills */
};

/*
 * All of @graph, which has no circle; child graphs as nodes between two that do nothing. Its nodes
 * learn their numbers. *@way: whether it is for the host; the text is only written if it is.
 */
CUresult fgv_exec_text_write(struct fgv_exec_text *text, struct fgv_graph *graph,
			     enum fgv_stats_graph *way);

/*
 * What @node does now, for an update of a graph that moves *@moved bytes, which follows.
 * CUDA_ERROR_NOT_SUPPORTED where that is not for the host, or takes another number of nodes there.
 */
CUresult fgv_exec_text_change(struct fgv_exec_text *text, struct fgv_node *node, uint64_t *moved);

void fgv_exec_text_free(struct fgv_exec_text *text);

#endif
