/*
 * Graphs, their edges, objects that they keep, and what is launched of them.
 */
#include "frontend/cuda/graph/graph.h"

#include "frontend/cuda/graph/condition.h"
#include "frontend/cuda/graph/exec.h"
#include "frontend/cuda/graph/node.h"
#include "frontend/cuda/graph/user_object.h"
#include "frontend/libcudart/cudart.h"

/* The same numbers and the same layout by other names. */
_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData) &&
		       (int)cudaGraphKernelNodePortLaunchCompletion ==
			       (int)CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
	       "edges");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo) &&
		       (int)cudaGraphExecUpdateErrorAttributesChanged ==
			       CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
	       "results of updates");
_Static_assert((int)cudaGraphInstantiateFlagUseNodePriority ==
			       CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY &&
		       (int)cudaGraphDebugDotFlagsConditionalNodeParams ==
			       CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS &&
		       (int)cudaGraphUserObjectMove == CU_GRAPH_USER_OBJECT_MOVE &&
		       (int)cudaUserObjectNoDestructorSync == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC,
	       "flags");

FGV_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	return FGV_RESULT(fgv_graph_create(pGraph, flags));
}

FGV_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return FGV_RESULT(fgv_graph_destroy(graph));
}

FGV_EXPORT cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
	return FGV_RESULT(fgv_graph_clone(pGraphClone, originalGraph));
}

FGV_EXPORT cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path,
					      unsigned int flags)
{
	return FGV_RESULT(fgv_graph_print_dot(graph, path, flags));
}

FGV_EXPORT cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
							cudaGraph_t graph,
							unsigned int defaultLaunchValue,
							unsigned int flags)
{
	CUgraphConditionalHandle condition;
	CUresult res = pHandle_out
			       ? fgv_condition_create(&condition, graph, defaultLaunchValue, flags)
			       : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*pHandle_out = condition;
	return FGV_RESULT(res);
}

/* --- Nodes and edges ----------------------------------------------------------------------- */

FGV_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
					 size_t *numNodes)
{
	return FGV_RESULT(fgv_graph_get_nodes(graph, nodes, numNodes));
}

FGV_EXPORT cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes,
					     size_t *pNumRootNodes)
{
	return FGV_RESULT(fgv_graph_get_roots(graph, pRootNodes, pNumRootNodes));
}

FGV_EXPORT cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
					 cudaGraphNode_t *to, cudaGraphEdgeData *edgeData,
					 size_t *numEdges)
{
	return FGV_RESULT(
		fgv_graph_get_edges(graph, from, to, (CUgraphEdgeData *)edgeData, numEdges));
}

FGV_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
						const cudaGraphNode_t *to,
						const cudaGraphEdgeData *edgeData,
						size_t numDependencies)
{
	return FGV_RESULT(fgv_graph_add_edges(graph, from, to, (const CUgraphEdgeData *)edgeData,
					      numDependencies));
}

/* Two nodes have one edge at most, so its data is not needed to find it. */
FGV_EXPORT cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
						   const cudaGraphNode_t *to,
						   const cudaGraphEdgeData *edgeData,
						   size_t numDependencies)
{
	(void)edgeData;
	return FGV_RESULT(fgv_graph_remove_edges(graph, from, to, numDependencies));
}

FGV_EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
						    cudaGraphNode_t *pDependencies,
						    cudaGraphEdgeData *edgeData,
						    size_t *pNumDependencies)
{
	return FGV_RESULT(fgv_node_get_before(node, pDependencies, (CUgraphEdgeData *)edgeData,
					      pNumDependencies));
}

FGV_EXPORT cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
						      cudaGraphNode_t *pDependentNodes,
						      cudaGraphEdgeData *edgeData,
						      size_t *pNumDependentNodes)
{
	return FGV_RESULT(fgv_node_get_after(node, pDependentNodes, (CUgraphEdgeData *)edgeData,
					     pNumDependentNodes));
}

FGV_EXPORT cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *pNode,
						cudaGraphNode_t originalNode,
						cudaGraph_t clonedGraph)
{
	return FGV_RESULT(fgv_node_find_in_clone(pNode, originalNode, clonedGraph));
}

FGV_EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
	return FGV_RESULT(fgv_node_get_type(node, (CUgraphNodeType *)pType));
}

FGV_EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	return FGV_RESULT(fgv_node_destroy(node));
}

/* --- Objects of the program ------------------------------------------------------------------ */

FGV_EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr,
					    cudaHostFn_t destroy, unsigned int initialRefcount,
					    unsigned int flags)
{
	return FGV_RESULT(fgv_user_object_create(object_out, ptr, destroy, initialRefcount, flags));
}

FGV_EXPORT cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	return FGV_RESULT(fgv_user_object_retain(object, count));
}

FGV_EXPORT cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	return FGV_RESULT(fgv_user_object_release(object, count));
}

FGV_EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
						 unsigned int count, unsigned int flags)
{
	return FGV_RESULT(fgv_graph_retain_object(graph, object, count, flags));
}

FGV_EXPORT cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
						  unsigned int count)
{
	return FGV_RESULT(fgv_graph_release_object(graph, object, count));
}

/* --- What is ready to be launched --------------------------------------------------------------
 */

FGV_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
					    unsigned long long flags)
{
	return FGV_RESULT(fgv_exec_create(pGraphExec, graph, flags));
}

FGV_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
						     unsigned long long flags)
{
	return FGV_RESULT(fgv_exec_create(pGraphExec, graph, flags));
}

FGV_EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec,
						      cudaGraph_t graph,
						      cudaGraphInstantiateParams *instantiateParams)
{
	CUresult res;

	if (!instantiateParams)
		return fgv_error_set(cudaErrorInvalidValue);
	res = fgv_exec_create(pGraphExec, graph, instantiateParams->flags);
	instantiateParams->errNode_out = NULL;
	instantiateParams->result_out =
		res ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
	return FGV_RESULT(res);
}

FGV_EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
	return FGV_RESULT(fgv_exec_get_flags(graphExec, flags));
}

FGV_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return FGV_RESULT(fgv_exec_launch(graphExec, stream));
}

FGV_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return FGV_RESULT(fgv_exec_upload(graphExec, stream));
}

FGV_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	return FGV_RESULT(fgv_exec_destroy(graphExec));
}

FGV_EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
					   cudaGraphExecUpdateResultInfo *resultInfo)
{
	return FGV_RESULT(
		fgv_exec_update(hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo));
}

FGV_EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec,
							    cudaGraphNode_t node,
							    cudaGraph_t childGraph)
{
	return FGV_RESULT(fgv_exec_set_child(hGraphExec, node, childGraph));
}

FGV_EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
					       unsigned int isEnabled)
{
	return FGV_RESULT(fgv_exec_set_enabled(hGraphExec, hNode, isEnabled));
}

FGV_EXPORT cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
					       unsigned int *isEnabled)
{
	return FGV_RESULT(fgv_exec_get_enabled(hGraphExec, hNode, isEnabled));
}
