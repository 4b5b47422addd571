/*
 * What of a graph the host can launch, and what the program has to.
 *
 * Threads: the graph is the caller's.
 */
#ifndef FGV_CUDA_EXEC_WAY_H
#define FGV_CUDA_EXEC_WAY_H

#include "frontend/client/stats.h"
#include "frontend/cuda/graph/graph_priv.h"

enum fgv_exec_side {
	FGV_EXEC_ANY, /* it does nothing */
	FGV_EXEC_HOST,
	FGV_EXEC_PROGRAM,
};

/* Whose @node is, which does not stand for a child graph; @node->moved becomes what it moves. */
enum fgv_exec_side fgv_exec_side_of(struct fgv_node *node);

/*
 * FGV_STATS_GRAPH_HOST: it is all for the host; else why not, for the first node that is not.
 * Nodes learn what they move.
 */
enum fgv_stats_graph fgv_exec_way_of(struct fgv_graph *graph);

#endif
