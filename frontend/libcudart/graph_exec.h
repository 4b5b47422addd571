/*
 * Graphs that are ready to be launched: a copy of the graph, and the order in which its nodes'
 * requests are posted.
 */
#ifndef FGV_LIBCUDART_GRAPH_EXEC_H
#define FGV_LIBCUDART_GRAPH_EXEC_H

#include "frontend/libcudart/graph.h"

/* Gives the node that was made from @node other parameters, of the same kind. */
cudaError_t fgv_exec_set(cudaGraphExec_t exec, cudaGraphNode_t node,
			 const struct cudaGraphNodeParams *params);

/* A new node with @params, which may be NULL. */
cudaError_t fgv_graph_add_node(cudaGraphNode_t *name, cudaGraph_t graph,
			       const cudaGraphNode_t *before, size_t count,
			       const struct cudaGraphNodeParams *params);

/* As fgv_exec_set(), for @node itself. cudaErrorInvalidValue for NULL or another kind. */
cudaError_t fgv_node_set(struct fgv_node *node, const struct cudaGraphNodeParams *params);

#endif
