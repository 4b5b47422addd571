/*
 * Nodes that launch a kernel.
 */
#include "frontend/cuda/graph/node.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_params.h"

static struct cudaGraphNodeParams *of_kernel(const struct cudaKernelNodeParams *p,
					     struct cudaGraphNodeParams *params)
{
	if (!p)
		return NULL;
	*params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeKernel};
	params->kernel = (struct cudaKernelNodeParamsV2){
		.func = p->func,
		.gridDim = p->gridDim,
		.blockDim = p->blockDim,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					      const cudaGraphNode_t *pDependencies,
					      size_t numDependencies,
					      const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
					    of_kernel(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
						    const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set(node, of_kernel(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
				 const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(
		fgv_params_set_exec(hGraphExec, node, of_kernel(pNodeParams, &params)));
}

static cudaError_t get_kernel(cudaGraphNode_t node, struct cudaKernelNodeParams *to)
{
	struct cudaGraphNodeParams params;
	cudaError_t error =
		to ? fgv_params_get(node, cudaGraphNodeTypeKernel, &params) : cudaErrorInvalidValue;

	if (error)
		return error;
	*to = (struct cudaKernelNodeParams){
		.func = params.kernel.func,
		.gridDim = params.kernel.gridDim,
		.blockDim = params.kernel.blockDim,
		.sharedMemBytes = params.kernel.sharedMemBytes,
		.kernelParams = params.kernel.kernelParams,
	};
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
						    struct cudaKernelNodeParams *pNodeParams)
{
	return fgv_error_set(get_kernel(node, pNodeParams));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode,
						       cudaKernelNodeAttrID attr,
						       const cudaKernelNodeAttrValue *value)
{
	return FGV_RESULT(fgv_node_set_attribute(hNode, (CUkernelNodeAttrID)attr,
						 (const CUkernelNodeAttrValue *)value));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode,
						       cudaKernelNodeAttrID attr,
						       cudaKernelNodeAttrValue *value_out)
{
	return FGV_RESULT(fgv_node_get_attribute(hNode, (CUkernelNodeAttrID)attr,
						 (CUkernelNodeAttrValue *)value_out));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc)
{
	return FGV_RESULT(fgv_node_copy_attributes(hDst, hSrc));
}
