/*
 * Graphs that are ready to be launched: a copy of the graph, the host's graphs that were built of
 * it, and the order in which its nodes' requests are posted where there is none.
 */
#ifndef FGV_CUDA_EXEC_PRIV_H
#define FGV_CUDA_EXEC_PRIV_H

#include <pthread.h>
#include <sys/queue.h>

#include "frontend/cuda/graph/exec_kept.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/memory/graph_memory.h"

/* What is launched at once, by one request where the host has a graph of it. */
struct fgv_exec_launch {
	uint32_t graph;	 /* the host's handle; 0: what the nodes do is posted one by one */
	uint32_t end;	 /* where in the order the next one's nodes begin */
	uint64_t moved;	 /* bytes, by copies and fills of the host's graph */
	bool is_program; /* its nodes are not for the host */
	bool is_refused; /* by the host */
	struct fgv_exec_source source;
};

struct fgv_exec {
	CUgraphExec name;
	CUgraph origin; /* what it was made of, which may be gone */
	struct fgv_graph *graph;
	uint32_t device;	 /* that all of it is done on */
	struct fgv_node **order; /* all nodes but those that are child graphs, part by part */
	uint32_t count;
	struct fgv_node **by_origin; /* all nodes; NULL: nobody has asked for one yet */
	uint32_t by_origin_count;
	struct fgv_graph_memory_use *uses; /* of the nodes that allocate or free, in their order */
	uint32_t use_count;
	unsigned long long flags;
	pthread_mutex_t mutex; /* guards what follows, and the nodes' work */
	bool was_launched;
	struct fgv_graph_place last; /* that it was launched in */
	uint32_t event;		     /* the host's handle; 0 until needed */
	struct {
		struct fgv_exec_launch *launches; /* by the numbers of parts */
		uint32_t count;
		bool is_there; /* there is a graph of its on the host */
		bool was_kept; /* some graph was another's, and was not launched since */
		/* NULL: where it is launched is not known; else none is to be that ran elsewhere.
		 */
		const uint32_t *stream;
		struct fgv_node *changed; /* since the host was told what they do; NULL: none */
	} host;
	LIST_ENTRY(fgv_exec) hosted; /* with those that have a graph there */
};

/* What was made from node @origin, in the graph or its child graphs; NULL: nothing. */
struct fgv_node *fgv_exec_find(struct fgv_exec *exec, CUgraphNode origin);

static inline struct fgv_exec *fgv_exec_of(CUgraphExec name)
{
	return fgv_object_address(FGV_OBJECT_EXEC, name);
}

#endif
