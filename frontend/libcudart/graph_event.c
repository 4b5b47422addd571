/*
 * Nodes that record an event, or wait for one.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_exec.h"

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
		fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						 const cudaGraphNode_t *pDependencies,
						 size_t numDependencies, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return fgv_error_set(
		fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies, &params));
}

static cudaError_t get_event(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *event)
{
	const struct cudaGraphNodeParams *params = fgv_node_params(node, type);

	if (!params || !event)
		return cudaErrorInvalidValue;
	*event = type == cudaGraphNodeTypeEventRecord ? params->eventRecord.event
						      : params->eventWait.event;
	return cudaSuccess;
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

	return fgv_error_set(fgv_node_set(fgv_node_of(node), &params));
}

FGV_EXPORT cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return fgv_error_set(fgv_node_set(fgv_node_of(node), &params));
}

FGV_EXPORT cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec,
							    cudaGraphNode_t hNode,
							    cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return fgv_error_set(fgv_exec_set(hGraphExec, hNode, &params));
}

FGV_EXPORT cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec,
							  cudaGraphNode_t hNode, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return fgv_error_set(fgv_exec_set(hGraphExec, hNode, &params));
}
