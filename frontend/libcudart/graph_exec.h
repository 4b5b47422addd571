/*
 * Graphs that are ready to be launched: a copy of the graph, and the order in which its nodes'
 * requests are posted.
 */
#ifndef FGV_LIBCUDART_GRAPH_EXEC_H
#define FGV_LIBCUDART_GRAPH_EXEC_H

#include "frontend/libcudart/graph.h"
#include "frontend/libcudart/graph_memory.h"

struct fgv_exec {
	cudaGraphExec_t name;
	cudaGraph_t origin; /* what it was made of, which may be gone */
	struct fgv_graph *graph;
	struct fgv_node **order; /* all nodes that do something, also those of child graphs */
	uint32_t count;
	bool has_memory; /* nodes that allocate or free */
	unsigned long long flags;
	pthread_mutex_t mutex; /* guards what follows, and the nodes' work */
	bool was_launched;
	struct fgv_graph_place last; /* that it was launched in */
	uint32_t event;		     /* the host's handle; 0 until needed */
};

static inline struct fgv_exec *fgv_exec_of(cudaGraphExec_t name)
{
	return fgv_object_address(FGV_OBJECT_EXEC, name);
}

/* Gives the node that was made from @node other parameters, of the same kind. */
cudaError_t fgv_exec_set(cudaGraphExec_t exec, cudaGraphNode_t node,
			 const struct cudaGraphNodeParams *params);

/* A new node with @params, which may be NULL. */
cudaError_t fgv_graph_add_node(cudaGraphNode_t *name, cudaGraph_t graph,
			       const cudaGraphNode_t *before, size_t count,
			       const struct cudaGraphNodeParams *params);

/* As fgv_exec_set(), for @node itself. cudaErrorInvalidValue for NULL or another kind. */
cudaError_t fgv_node_set(struct fgv_node *node, const struct cudaGraphNodeParams *params);

/* Gives @node other parameters, of its kind, and other attributes. */
cudaError_t fgv_node_remake(struct fgv_node *node, const struct cudaGraphNodeParams *params,
			    const struct fgv_attributes *attributes);

/* The parameters of a node of this kind; NULL if it is none. */
const struct cudaGraphNodeParams *fgv_node_params(cudaGraphNode_t name,
						  enum cudaGraphNodeType type);

#endif
