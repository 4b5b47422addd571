/*
 * What nodes of graphs do, in the runtime's terms, for the functions that make, change and describe
 * nodes of one kind.
 */
#ifndef FGV_LIBCUDART_GRAPH_PARAMS_H
#define FGV_LIBCUDART_GRAPH_PARAMS_H

#include <cuda_runtime_api.h>

/* A new node with @params, which may be NULL; the address of an allocation is written there. */
cudaError_t fgv_params_add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
			   const cudaGraphEdgeData *edges, size_t count,
			   struct cudaGraphNodeParams *params);

/* Gives @node, or what was made of it in @exec, other parameters of its kind. */
cudaError_t fgv_params_set(cudaGraphNode_t node, const struct cudaGraphNodeParams *params);
cudaError_t fgv_params_set_exec(cudaGraphExec_t exec, cudaGraphNode_t node,
				const struct cudaGraphNodeParams *params);

/* cudaErrorInvalidValue for what is no node of @type. */
cudaError_t fgv_params_get(cudaGraphNode_t node, enum cudaGraphNodeType type,
			   struct cudaGraphNodeParams *params);

#endif
