/*
 * Nodes that call a function of the program.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_params.h"

static struct cudaGraphNodeParams *of_host(const struct cudaHostNodeParams *p,
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

	return fgv_error_set(fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
					    of_host(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
						  const struct cudaHostNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set(node, of_host(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec,
						      cudaGraphNode_t node,
						      const struct cudaHostNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set_exec(hGraphExec, node, of_host(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
						  struct cudaHostNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = pNodeParams ? fgv_params_get(node, cudaGraphNodeTypeHost, &params)
					: cudaErrorInvalidValue;

	if (!error)
		*pNodeParams = (struct cudaHostNodeParams){params.host.fn, params.host.userData};
	return fgv_error_set(error);
}
