/*
 * What nodes do: asking for it and changing it, kind by kind.
 */
#include "frontend/libcuda/graph_node.h"

#include <string.h>

#include "frontend/cuda/graph/node.h"
#include "frontend/libcuda/driver.h"

static CUresult get(CUgraphNode node, CUgraphNodeType type, void *what, size_t bytes)
{
	CUgraphNodeParams params = {0};
	CUresult res = what ? fgv_node_get_params(node, type, &params) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		memcpy(what, params.reserved1, bytes);
	return res;
}

static CUresult set(CUgraphNode node, CUgraphNodeType type, const void *what, size_t bytes)
{
	CUgraphNodeParams params;
	CUresult res = fgv_driver_node_read(&params, type, what, bytes);

	return res ? res : fgv_node_set_params(node, &params);
}

FGV_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode,
					       CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
					       const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		set(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode,
						  CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
						  const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		set(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode,
					       CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode,
					       const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		set(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode hNode,
					     const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		set(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, sizeof(*nodeParams)));
}

static CUresult get_copy(CUgraphNode node, CUDA_MEMCPY3D *copy)
{
	CUgraphNodeParams params = {0};
	CUresult res = copy ? fgv_node_get_params(node, CU_GRAPH_NODE_TYPE_MEMCPY, &params)
			    : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*copy = params.memcpy.copyParams;
	return res;
}

static CUresult set_copy(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	CUgraphNodeParams params;
	CUresult res = fgv_driver_node_read_copy(&params, copy, NULL);

	return res ? res : fgv_node_set_params(node, &params);
}

FGV_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	return FGV_CALL_ANYWHERE(get_copy(hNode, nodeParams));
}

FGV_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	return FGV_CALL_ANYWHERE(set_copy(hNode, nodeParams));
}

FGV_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	return FGV_CALL_ANYWHERE(get(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, sizeof(*phGraph)));
}

FGV_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, sizeof(*event_out)));
}

FGV_EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return FGV_CALL_ANYWHERE(
		set(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event)));
}

FGV_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, sizeof(*event_out)));
}

FGV_EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return FGV_CALL_ANYWHERE(set(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event)));
}

FGV_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
						 CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out, sizeof(*params_out)));
}

FGV_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	return FGV_CALL_ANYWHERE(
		get(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, sizeof(*dptr_out)));
}

FGV_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
						  CUkernelNodeAttrValue *value_out)
{
	return FGV_CALL_ANYWHERE(fgv_node_get_attribute(hNode, attr, value_out));
}

FGV_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
						  const CUkernelNodeAttrValue *value)
{
	return FGV_CALL_ANYWHERE(fgv_node_set_attribute(hNode, attr, value));
}

FGV_EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	return FGV_CALL_ANYWHERE(fgv_node_copy_attributes(dst, src));
}
