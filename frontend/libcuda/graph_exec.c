/*
 * Graphs that are ready to be launched.
 */
#include "frontend/cuda/graph/exec.h"

#include <string.h>

#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/graph_node.h"

FGV_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
						unsigned long long flags)
{
	return FGV_CALL(fgv_exec_create(phGraphExec, hGraph, flags));
}

/* Forms that tell which node was at fault; none ever is, as all are checked when they are made. */
static CUresult create_with_log(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
				size_t bytes)
{
	if (node)
		*node = NULL;
	if (log && bytes)
		*log = '\0';
	return fgv_exec_create(exec, graph, 0);
}

FGV_EXPORT CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
				       CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	return FGV_CALL(create_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize));
}

FGV_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
					  CUgraphNode *phErrorNode, char *logBuffer,
					  size_t bufferSize)
{
	return FGV_CALL(create_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize));
}

static CUresult create_with_params(CUgraphExec *exec, CUgraph graph,
				   CUDA_GRAPH_INSTANTIATE_PARAMS *params, CUstream upload)
{
	CUresult res =
		params ? fgv_exec_create(exec, graph, params->flags) : CUDA_ERROR_INVALID_VALUE;

	if (!params)
		return res;
	params->hErrNode_out = NULL;
	params->result_out = res ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	if (!res && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
		res = fgv_exec_upload(*exec, upload);
	return res;
}

FGV_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
						 CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	return FGV_CALL(
		create_with_params(phGraphExec, hGraph, instantiateParams,
				   instantiateParams ? instantiateParams->hUploadStream : NULL));
}

FGV_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	return FGV_CALL(create_with_params(
		phGraphExec, hGraph, instantiateParams,
		instantiateParams ? fgv_driver_per_thread(instantiateParams->hUploadStream)
				  : NULL));
}

FGV_EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	return FGV_CALL_ANYWHERE(fgv_exec_destroy(hGraphExec));
}

FGV_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	return FGV_CALL_ANYWHERE(fgv_exec_get_flags(hGraphExec, (unsigned long long *)flags));
}

FGV_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	return FGV_CALL(fgv_exec_launch(hGraph, hStream));
}

FGV_EXPORT CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
	return FGV_CALL(fgv_exec_upload(hGraph, hStream));
}

FGV_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
					 CUgraphExecUpdateResultInfo *resultInfo)
{
	return FGV_CALL(fgv_exec_update(hGraphExec, hGraph, resultInfo));
}

static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
		       CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = {0};
	CUresult res = fgv_exec_update(exec, graph, &info);

	if (node)
		*node = info.errorNode;
	if (result)
		*result = info.result;
	return res;
}

FGV_EXPORT CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
				      CUgraphNode *hErrorNode_out,
				      CUgraphExecUpdateResult *updateResult_out)
{
	return FGV_CALL(update(hGraphExec, hGraph, hErrorNode_out, updateResult_out));
}

static CUresult set(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, const void *what,
		    size_t bytes)
{
	CUgraphNodeParams params;
	CUresult res = fgv_driver_node_read(&params, type, what, bytes);

	return res ? res : fgv_exec_set_params(exec, node, &params);
}

FGV_EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						   const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	return FGV_CALL(
		set(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
						      const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return FGV_CALL(
		set(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						 const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return FGV_CALL(
		set(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, sizeof(*nodeParams)));
}

FGV_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						   const CUDA_MEMSET_NODE_PARAMS *nodeParams,
						   CUcontext ctx)
{
	(void)ctx; /* contexts share what runs in them */
	return FGV_CALL(
		set(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, sizeof(*nodeParams)));
}

static CUresult set_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy,
			 CUcontext context)
{
	CUgraphNodeParams params;
	CUresult res = fgv_driver_node_read_copy(&params, copy, context);

	return res ? res : fgv_exec_set_params(exec, node, &params);
}

FGV_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						   const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	return FGV_CALL(set_copy(hGraphExec, hNode, copyParams, ctx));
}

FGV_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						       CUgraph childGraph)
{
	return FGV_CALL(fgv_exec_set_child(hGraphExec, hNode, childGraph));
}

FGV_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
						       CUevent event)
{
	return FGV_CALL(
		set(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event)));
}

FGV_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
						     CUevent event)
{
	return FGV_CALL(
		set(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event)));
}

FGV_EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
					     CUgraphNodeParams *nodeParams)
{
	return FGV_CALL(fgv_exec_set_params(hGraphExec, hNode, nodeParams));
}

FGV_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
					  unsigned int isEnabled)
{
	return FGV_CALL(fgv_exec_set_enabled(hGraphExec, hNode, isEnabled));
}

FGV_EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
					  unsigned int *isEnabled)
{
	return FGV_CALL(fgv_exec_get_enabled(hGraphExec, hNode, isEnabled));
}
