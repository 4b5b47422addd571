/*
 * Parameters of nodes. Most kinds have the driver's layout; kernels and copies are converted.
 */
#include "frontend/libcudart/graph_params.h"

#include <stddef.h>
#include <string.h>

#include "frontend/cuda/graph/exec.h"
#include "frontend/cuda/graph/node.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy_box.h"

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams) &&
		       offsetof(struct cudaGraphNodeParams, memset) ==
			       offsetof(CUgraphNodeParams, memset) &&
		       sizeof(struct cudaMemAllocNodeParamsV2) ==
			       sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) &&
		       offsetof(struct cudaMemsetParamsV2, height) ==
			       offsetof(CUDA_MEMSET_NODE_PARAMS_v2, height) &&
		       offsetof(struct cudaGraphNodeParams, conditional.phGraph_out) ==
			       offsetof(CUgraphNodeParams, conditional.phGraph_out) &&
		       (int)cudaGraphNodeTypeConditional == CU_GRAPH_NODE_TYPE_CONDITIONAL,
	       "parameters of nodes");
_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edges");

static cudaError_t convert_kernel(const struct cudaKernelNodeParamsV2 *from,
				  CUDA_KERNEL_NODE_PARAMS_v3 *to)
{
	struct fgv_kernel *kernel;
	cudaError_t error = fgv_kernel_of(from->func, &kernel);

	if (error)
		return error;
	*to = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = (CUfunction)kernel,
		.gridDimX = from->gridDim.x,
		.gridDimY = from->gridDim.y,
		.gridDimZ = from->gridDim.z,
		.blockDimX = from->blockDim.x,
		.blockDimY = from->blockDim.y,
		.blockDimZ = from->blockDim.z,
		.sharedMemBytes = from->sharedMemBytes,
		.kernelParams = from->kernelParams,
		.extra = from->extra,
	};
	return cudaSuccess;
}

/* To the driver's. */
static cudaError_t convert(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
	if (!from)
		return cudaErrorInvalidValue;
	memset(to, 0, sizeof(*to));
	to->type = (CUgraphNodeType)from->type;
	switch (from->type) {
	case cudaGraphNodeTypeKernel:
		return convert_kernel(&from->kernel, &to->kernel);
	case cudaGraphNodeTypeMemcpy:
		return fgv_box_convert(&from->memcpy.copyParams, &to->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		memcpy(&to->memset, &from->memset, sizeof(from->memset));
		return cudaSuccess;
	default:
		memcpy(to, from, sizeof(*to));
		return cudaSuccess;
	}
}

/* And back. A kernel has the name that it was registered with, if it was. */
static void describe(const CUgraphNodeParams *from, struct cudaGraphNodeParams *to)
{
	const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &from->kernel;
	const struct fgv_kernel *found;

	memset(to, 0, sizeof(*to));
	to->type = (enum cudaGraphNodeType)from->type;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		found = fgv_registry_kernel(kernel->func);
		to->kernel = (struct cudaKernelNodeParamsV2){
			.func = found && found->host ? (void *)found->host : (void *)kernel->func,
			.gridDim = {kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ},
			.blockDim = {kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ},
			.sharedMemBytes = kernel->sharedMemBytes,
			.kernelParams = kernel->kernelParams,
		};
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		to->memcpy.copyParams = fgv_box_describe(&from->memcpy.copyParams);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&to->memset, &from->memset, sizeof(to->memset));
		break;
	default:
		memcpy(to, from, sizeof(*to));
	}
}

/* What a node of this kind ends with, as the runtime says it. */
static cudaError_t result(const CUgraphNodeParams *params, CUresult res)
{
	return params->type == CU_GRAPH_NODE_TYPE_KERNEL ? fgv_kernel_error(res)
							 : fgv_error_from(res);
}

cudaError_t fgv_params_add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
			   const cudaGraphEdgeData *edges, size_t count,
			   struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams converted;
	cudaError_t error = convert(params, &converted);

	if (error)
		return error;
	error = result(&converted, fgv_node_add(node, graph, before, (const CUgraphEdgeData *)edges,
						count, &converted));
	if (!error && params->type == cudaGraphNodeTypeMemAlloc)
		params->alloc.dptr = (void *)(uintptr_t)converted.alloc.dptr;
	if (!error && params->type == cudaGraphNodeTypeConditional)
		params->conditional.phGraph_out = converted.conditional.phGraph_out;
	return error;
}

cudaError_t fgv_params_set(cudaGraphNode_t node, const struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams converted;
	cudaError_t error = convert(params, &converted);

	return error ? error : result(&converted, fgv_node_set_params(node, &converted));
}

cudaError_t fgv_params_set_exec(cudaGraphExec_t exec, cudaGraphNode_t node,
				const struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams converted;
	cudaError_t error = convert(params, &converted);

	return error ? error : result(&converted, fgv_exec_set_params(exec, node, &converted));
}

cudaError_t fgv_params_get(cudaGraphNode_t node, enum cudaGraphNodeType type,
			   struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams found;
	CUresult res = fgv_node_get_params(node, (CUgraphNodeType)type, &found);

	/* Its module has been unloaded. */
	if (type == cudaGraphNodeTypeKernel && res == CUDA_ERROR_INVALID_HANDLE)
		return cudaErrorInvalidDeviceFunction;
	if (!res)
		describe(&found, params);
	return fgv_error_from(res);
}

/* --- Nodes of any kind -------------------------------------------------------------------- */

FGV_EXPORT cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					const cudaGraphNode_t *pDependencies,
					const cudaGraphEdgeData *dependencyData,
					size_t numDependencies,
					struct cudaGraphNodeParams *nodeParams)
{
	return fgv_error_set(fgv_params_add(pGraphNode, graph, pDependencies, dependencyData,
					    numDependencies, nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node,
					      struct cudaGraphNodeParams *nodeParams)
{
	return fgv_error_set(fgv_params_set(node, nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
						  struct cudaGraphNodeParams *nodeParams)
{
	return fgv_error_set(fgv_params_set_exec(graphExec, node, nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					     const cudaGraphNode_t *pDependencies,
					     size_t numDependencies)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeEmpty};

	return fgv_error_set(
		fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						  const cudaGraphNode_t *pDependencies,
						  size_t numDependencies, cudaGraph_t childGraph)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeGraph};

	params.graph.graph = childGraph;
	return fgv_error_set(
		fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = pGraph ? fgv_params_get(node, cudaGraphNodeTypeGraph, &params)
				   : cudaErrorInvalidValue;

	if (!error)
		*pGraph = params.graph.graph;
	return fgv_error_set(error);
}
