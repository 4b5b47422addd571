/*
 * Nodes that allocate and free memory, and how much of it there is.
 */
#include <string.h>

#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_params.h"

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(struct cudaMemAllocNodeParamsV2),
	       "both are the same");
_Static_assert((int)cudaGraphMemAttrReservedMemHigh == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
	       "attributes of graphs' memory");

static cudaError_t add_alloc(cudaGraphNode_t *node, cudaGraph_t graph,
			     const cudaGraphNode_t *before, size_t count,
			     struct cudaMemAllocNodeParams *wanted)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemAlloc};
	cudaError_t error;

	if (!wanted)
		return cudaErrorInvalidValue;
	memcpy(&params.alloc, wanted, sizeof(*wanted));
	error = fgv_params_add(node, graph, before, NULL, count, &params);
	if (!error)
		wanted->dptr = params.alloc.dptr;
	return error;
}

FGV_EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						const cudaGraphNode_t *pDependencies,
						size_t numDependencies,
						struct cudaMemAllocNodeParams *nodeParams)
{
	return fgv_error_set(
		add_alloc(pGraphNode, graph, pDependencies, numDependencies, nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
						      struct cudaMemAllocNodeParams *params_out)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = params_out ? fgv_params_get(node, cudaGraphNodeTypeMemAlloc, &params)
				       : cudaErrorInvalidValue;

	if (!error)
		memcpy(params_out, &params.alloc, sizeof(*params_out));
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					       const cudaGraphNode_t *pDependencies,
					       size_t numDependencies, void *dptr)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemFree};

	params.free.dptr = dptr;
	return fgv_error_set(
		fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = dptr_out ? fgv_params_get(node, cudaGraphNodeTypeMemFree, &params)
				     : cudaErrorInvalidValue;

	if (!error)
		*(void **)dptr_out = params.free.dptr;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaDeviceGraphMemTrim(int device)
{
	return FGV_RESULT(fgv_graph_memory_trim(device));
}

FGV_EXPORT cudaError_t cudaDeviceGetGraphMemAttribute(int device,
						      enum cudaGraphMemAttributeType attr,
						      void *value)
{
	return FGV_RESULT(
		fgv_graph_memory_get_attribute(device, (CUgraphMem_attribute)attr, value));
}

FGV_EXPORT cudaError_t cudaDeviceSetGraphMemAttribute(int device,
						      enum cudaGraphMemAttributeType attr,
						      void *value)
{
	return FGV_RESULT(
		fgv_graph_memory_set_attribute(device, (CUgraphMem_attribute)attr, value));
}
