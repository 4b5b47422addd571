/*
 * Nodes that record an event, or wait for one.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_params.h"

static struct cudaGraphNodeParams of_event(enum cudaGraphNodeType type, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = {.type = type};

	if (type == cudaGraphNodeTypeEventRecord)
		params.eventRecord.event = event;
	else
		params.eventWait.event = event;
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						   const cudaGraphNode_t *pDependencies,
						   size_t numDependencies, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return fgv_error_set(
		fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						 const cudaGraphNode_t *pDependencies,
						 size_t numDependencies, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return fgv_error_set(
		fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies, &params));
}

static cudaError_t get_event(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *event)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = event ? fgv_params_get(node, type, &params) : cudaErrorInvalidValue;

	if (!error)
		*event = type == cudaGraphNodeTypeEventRecord ? params.eventRecord.event
							      : params.eventWait.event;
	return error;
}

FGV_EXPORT cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node,
							cudaEvent_t *event_out)
{
	return fgv_error_set(get_event(node, cudaGraphNodeTypeEventRecord, event_out));
}

FGV_EXPORT cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
	return fgv_error_set(get_event(node, cudaGraphNodeTypeWaitEvent, event_out));
}

FGV_EXPORT cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return fgv_error_set(fgv_params_set(node, &params));
}

FGV_EXPORT cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return fgv_error_set(fgv_params_set(node, &params));
}

FGV_EXPORT cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec,
							    cudaGraphNode_t hNode,
							    cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return fgv_error_set(fgv_params_set_exec(hGraphExec, hNode, &params));
}

FGV_EXPORT cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec,
							  cudaGraphNode_t hNode, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return fgv_error_set(fgv_params_set_exec(hGraphExec, hNode, &params));
}
