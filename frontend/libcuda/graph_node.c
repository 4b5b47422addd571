/*
 * Nodes of graphs: adding them, asking what they do and changing it. All kinds go one way.
 */
#include "frontend/libcuda/graph_node.h"

#include <string.h>

#include "frontend/cuda/graph/node.h"
#include "frontend/libcuda/driver.h"

CUresult fgv_driver_node_read(CUgraphNodeParams *params, CUgraphNodeType type, const void *what,
			      size_t bytes)
{
	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	memset(params, 0, sizeof(*params));
	params->type = type;
	memcpy(params->reserved1, what, bytes);
	return CUDA_SUCCESS;
}

CUresult fgv_driver_node_read_copy(CUgraphNodeParams *params, const CUDA_MEMCPY3D *copy,
				   CUcontext context)
{
	CUDA_MEMCPY_NODE_PARAMS made = {.copyCtx = context};

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	made.copyParams = *copy;
	return fgv_driver_node_read(params, CU_GRAPH_NODE_TYPE_MEMCPY, &made, sizeof(made));
}

/* Where a new node goes. */
struct place {
	CUgraphNode *node;
	CUgraph graph;
	const CUgraphNode *before;
	size_t count;
};

static CUresult add(const struct place *place, CUgraphNodeType type, const void *what, size_t bytes)
{
	CUgraphNodeParams params;
	CUresult res = fgv_driver_node_read(&params, type, what, bytes);

	return res ? res
		   : fgv_node_add(place->node, place->graph, place->before, NULL, place->count,
				  &params);
}

FGV_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					 const CUgraphNode *dependencies, size_t numDependencies,
					 const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(
		add(&place, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
					    const CUgraphNode *dependencies, size_t numDependencies,
					    const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(
		add(&place, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				       const CUgraphNode *dependencies, size_t numDependencies,
				       const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(
		add(&place, CU_GRAPH_NODE_TYPE_HOST, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					const CUgraphNode *dependencies, size_t numDependencies)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(add(&place, CU_GRAPH_NODE_TYPE_EMPTY, &place, 0));
}

FGV_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					     const CUgraphNode *dependencies,
					     size_t numDependencies, CUgraph childGraph)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};
	const CUDA_CHILD_GRAPH_NODE_PARAMS child = {.graph = childGraph};

	return FGV_CALL_ANYWHERE(add(&place, CU_GRAPH_NODE_TYPE_GRAPH, &child, sizeof(child)));
}

FGV_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					      const CUgraphNode *dependencies,
					      size_t numDependencies, CUevent event)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(
		add(&place, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event)));
}

FGV_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					    const CUgraphNode *dependencies, size_t numDependencies,
					    CUevent event)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(add(&place, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event)));
}

FGV_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					  const CUgraphNode *dependencies, size_t numDependencies,
					  CUdeviceptr dptr)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(add(&place, CU_GRAPH_NODE_TYPE_MEM_FREE, &dptr, sizeof(dptr)));
}

/* A context that is named must be one; they share what runs in them. */
static CUresult check_context(CUcontext context)
{
	struct fgv_ctx *found;

	return context ? fgv_ctx_find(context, &found) : CUDA_SUCCESS;
}

static CUresult add_fill(const struct place *place, const CUDA_MEMSET_NODE_PARAMS *what,
			 CUcontext context)
{
	CUresult res = check_context(context);

	return res ? res : add(place, CU_GRAPH_NODE_TYPE_MEMSET, what, sizeof(*what));
}

FGV_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					 const CUgraphNode *dependencies, size_t numDependencies,
					 const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(add_fill(&place, memsetParams, ctx));
}

static CUresult add_copy(const struct place *place, const CUDA_MEMCPY3D *what, CUcontext context)
{
	CUgraphNodeParams params;
	CUresult res = check_context(context);

	if (!res)
		res = fgv_driver_node_read_copy(&params, what, context);
	return res ? res
		   : fgv_node_add(place->node, place->graph, place->before, NULL, place->count,
				  &params);
}

FGV_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					 const CUgraphNode *dependencies, size_t numDependencies,
					 const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(add_copy(&place, copyParams, ctx));
}

/* The program learns the address. */
static CUresult add_alloc(const struct place *place, CUDA_MEM_ALLOC_NODE_PARAMS *what)
{
	CUgraphNodeParams params;
	CUresult res =
		fgv_driver_node_read(&params, CU_GRAPH_NODE_TYPE_MEM_ALLOC, what, sizeof(*what));

	if (!res)
		res = fgv_node_add(place->node, place->graph, place->before, NULL, place->count,
				   &params);
	if (!res)
		what->dptr = params.alloc.dptr;
	return res;
}

FGV_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
					   const CUgraphNode *dependencies, size_t numDependencies,
					   CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	const struct place place = {phGraphNode, hGraph, dependencies, numDependencies};

	return FGV_CALL_ANYWHERE(add_alloc(&place, nodeParams));
}

FGV_EXPORT CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
				   const CUgraphNode *dependencies, size_t numDependencies,
				   CUgraphNodeParams *nodeParams)
{
	return FGV_CALL_ANYWHERE(
		fgv_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams));
}

FGV_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
				      const CUgraphNode *dependencies,
				      const CUgraphEdgeData *dependencyData, size_t numDependencies,
				      CUgraphNodeParams *nodeParams)
{
	return FGV_CALL_ANYWHERE(fgv_node_add(phGraphNode, hGraph, dependencies, dependencyData,
					      numDependencies, nodeParams));
}

FGV_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	return FGV_CALL_ANYWHERE(fgv_node_set_params(hNode, nodeParams));
}

FGV_EXPORT CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	return FGV_CALL_ANYWHERE(fgv_node_destroy(hNode));
}

FGV_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
					   CUgraph hClonedGraph)
{
	return FGV_CALL_ANYWHERE(fgv_node_find_in_clone(phNode, hOriginalNode, hClonedGraph));
}

FGV_EXPORT CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	return FGV_CALL_ANYWHERE(fgv_node_get_type(hNode, type));
}
