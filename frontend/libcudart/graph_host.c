/*
 * Nodes that call a function of the program.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_exec.h"

static const struct cudaGraphNodeParams *of_host(const struct cudaHostNodeParams *p,
						 struct cudaGraphNodeParams *params)
{
	if (!p)
		return NULL;
	*params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeHost};
	params->host = (struct cudaHostNodeParamsV2){p->fn, p->userData};
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					    const cudaGraphNode_t *pDependencies,
					    size_t numDependencies,
					    const struct cudaHostNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies,
						of_host(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
						  const struct cudaHostNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_node_set(fgv_node_of(node), of_host(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec,
						      cudaGraphNode_t node,
						      const struct cudaHostNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_exec_set(hGraphExec, node, of_host(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
						  struct cudaHostNodeParams *pNodeParams)
{
	const struct fgv_node *found = fgv_node_of(node);

	if (!found || found->work.params.type != cudaGraphNodeTypeHost || !pNodeParams)
		return fgv_error_set(cudaErrorInvalidValue);
	pNodeParams->fn = found->work.params.host.fn;
	pNodeParams->userData = found->work.params.host.userData;
	return cudaSuccess;
}
