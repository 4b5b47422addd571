/*
 * Graphs, what is asked about them, and the objects that they keep. Forms before CUDA 12.3 know of
 * no data of edges.
 */
#include "frontend/cuda/graph/graph.h"

#include "frontend/cuda/graph/condition.h"
#include "frontend/cuda/graph/node.h"
#include "frontend/cuda/graph/user_object.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	return FGV_CALL_ANYWHERE(fgv_graph_create(phGraph, flags));
}

FGV_EXPORT CUresult cuGraphDestroy(CUgraph hGraph)
{
	return FGV_CALL_ANYWHERE(fgv_graph_destroy(hGraph));
}

FGV_EXPORT CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	return FGV_CALL_ANYWHERE(fgv_graph_clone(phGraphClone, originalGraph));
}

/* All work of a process is in one context. */
FGV_EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out,
						   CUgraph hGraph, CUcontext ctx,
						   unsigned int defaultLaunchValue,
						   unsigned int flags)
{
	(void)ctx;
	return FGV_CALL_ANYWHERE(
		fgv_condition_create(pHandle_out, hGraph, defaultLaunchValue, flags));
}

FGV_EXPORT CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	return FGV_CALL_ANYWHERE(fgv_graph_print_dot(hGraph, path, flags));
}

FGV_EXPORT CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	return FGV_CALL_ANYWHERE(fgv_graph_get_nodes(hGraph, nodes, numNodes));
}

FGV_EXPORT CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes,
					size_t *numRootNodes)
{
	return FGV_CALL_ANYWHERE(fgv_graph_get_roots(hGraph, rootNodes, numRootNodes));
}

FGV_EXPORT CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
				    size_t *numEdges)
{
	return FGV_CALL_ANYWHERE(fgv_graph_get_edges(hGraph, from, to, NULL, numEdges));
}

FGV_EXPORT CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
				       CUgraphEdgeData *edgeData, size_t *numEdges)
{
	return FGV_CALL_ANYWHERE(fgv_graph_get_edges(hGraph, from, to, edgeData, numEdges));
}

FGV_EXPORT CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
					   const CUgraphNode *to, size_t numDependencies)
{
	return FGV_CALL_ANYWHERE(fgv_graph_add_edges(hGraph, from, to, NULL, numDependencies));
}

FGV_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
					      const CUgraphNode *to,
					      const CUgraphEdgeData *edgeData,
					      size_t numDependencies)
{
	return FGV_CALL_ANYWHERE(fgv_graph_add_edges(hGraph, from, to, edgeData, numDependencies));
}

FGV_EXPORT CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
					      const CUgraphNode *to, size_t numDependencies)
{
	return FGV_CALL_ANYWHERE(fgv_graph_remove_edges(hGraph, from, to, numDependencies));
}

FGV_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
						 const CUgraphNode *to,
						 const CUgraphEdgeData *edgeData,
						 size_t numDependencies)
{
	(void)edgeData; /* which edge it is, its ends say */
	return FGV_CALL_ANYWHERE(fgv_graph_remove_edges(hGraph, from, to, numDependencies));
}

FGV_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
					       size_t *numDependencies)
{
	return FGV_CALL_ANYWHERE(fgv_node_get_before(hNode, dependencies, NULL, numDependencies));
}

FGV_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
						  CUgraphEdgeData *edgeData,
						  size_t *numDependencies)
{
	return FGV_CALL_ANYWHERE(
		fgv_node_get_before(hNode, dependencies, edgeData, numDependencies));
}

FGV_EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
						 size_t *numDependentNodes)
{
	return FGV_CALL_ANYWHERE(
		fgv_node_get_after(hNode, dependentNodes, NULL, numDependentNodes));
}

FGV_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
						    CUgraphEdgeData *edgeData,
						    size_t *numDependentNodes)
{
	return FGV_CALL_ANYWHERE(
		fgv_node_get_after(hNode, dependentNodes, edgeData, numDependentNodes));
}

FGV_EXPORT CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
				       unsigned int initialRefcount, unsigned int flags)
{
	return FGV_CALL_ANYWHERE(
		fgv_user_object_create(object_out, ptr, destroy, initialRefcount, flags));
}

FGV_EXPORT CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	return FGV_CALL_ANYWHERE(fgv_user_object_retain(object, count));
}

FGV_EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	return FGV_CALL_ANYWHERE(fgv_user_object_release(object, count));
}

FGV_EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
					    unsigned int flags)
{
	return FGV_CALL_ANYWHERE(fgv_graph_retain_object(graph, object, count, flags));
}

FGV_EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	return FGV_CALL_ANYWHERE(fgv_graph_release_object(graph, object, count));
}

FGV_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return FGV_CALL_ANYWHERE(fgv_graph_memory_trim(device));
}

FGV_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
						 void *value)
{
	return FGV_CALL_ANYWHERE(fgv_graph_memory_get_attribute(device, attr, value));
}

FGV_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
						 void *value)
{
	return FGV_CALL_ANYWHERE(fgv_graph_memory_set_attribute(device, attr, value));
}
