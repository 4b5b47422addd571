/*
 * Graphs that are ready to be launched: a copy of the graph, and the order in which its nodes'
 * requests are posted.
 */
#ifndef FGV_CUDA_EXEC_PRIV_H
#define FGV_CUDA_EXEC_PRIV_H

#include <pthread.h>

#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/memory/graph_memory.h"

struct fgv_exec {
	CUgraphExec name;
	CUgraph origin; /* what it was made of, which may be gone */
	struct fgv_graph *graph;
	struct fgv_node **order; /* all nodes that do something, also those of child graphs */
	uint32_t count;
	struct fgv_graph_memory_use *uses; /* of the nodes that allocate or free, in their order */
	uint32_t use_count;
	unsigned long long flags;
	pthread_mutex_t mutex; /* guards what follows, and the nodes' work */
	bool was_launched;
	struct fgv_graph_place last; /* that it was launched in */
	uint32_t event;		     /* the host's handle; 0 until needed */
};

static inline struct fgv_exec *fgv_exec_of(CUgraphExec name)
{
	return fgv_object_address(FGV_OBJECT_EXEC, name);
}

#endif
