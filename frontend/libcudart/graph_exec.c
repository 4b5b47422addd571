/*
 * Instantiating, launching and updating graphs. A launch posts what its nodes have recorded, one
 * node after another, into the stream that it is launched in, and waits for nothing; but for
 * copies between the device and the program's pageable memory, as in a stream.
 *
 * Two launches of one executable graph never overlap: what it is launched in waits for
 * where it was launched before.
 */
#include "frontend/libcudart/graph_exec.h"

#include <stdlib.h>

#include "frontend/libcudart/capture.h"
#include "frontend/libcudart/cudart.h"

#define KNOWN_FLAGS                                                                                \
	(cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |               \
	 cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority)

struct fgv_exec {
	cudaGraphExec_t name;
	struct fgv_graph *graph;
	struct fgv_node **order; /* all nodes that do something, also those of child graphs */
	uint32_t count;
	unsigned long long flags;
	pthread_mutex_t mutex; /* guards what follows, and the nodes' work */
	cudaStream_t stream;   /* that it was launched in last, and the host's handle of that */
	uint32_t stream_handle;
	bool was_launched;
	uint32_t event; /* the host's handle; 0 until needed */
};

static struct fgv_exec *exec_of(cudaGraphExec_t name)
{
	return fgv_object_address(FGV_OBJECT_EXEC, name);
}

static void destroy(struct fgv_exec *exec)
{
	struct fgv_object_info info;

	if (exec->name)
		fgv_object_destroy(FGV_OBJECT_EXEC, exec->name, &info);
	fgv_graph_destroy(exec->graph);
	pthread_mutex_destroy(&exec->mutex);
	free(exec->order);
	free(exec);
}

/* --- Instantiating ------------------------------------------------------------- */

static size_t count_all(const struct fgv_graph *graph)
{
	size_t count = graph->count;

	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->work.child)
			count += count_all(each->work.child);
	}
	return count;
}

/* A child graph's nodes take the place of the node that it is. */
static cudaError_t append(struct fgv_exec *exec, struct fgv_graph *graph)
{
	struct fgv_node **sorted;
	cudaError_t error = fgv_graph_sort(graph, &sorted);

	if (error)
		return error;
	for (uint32_t i = 0; i < graph->count && !error; i++) {
		if (sorted[i]->work.child)
			error = append(exec, sorted[i]->work.child);
		else
			exec->order[exec->count++] = sorted[i];
	}
	free(sorted);
	return error;
}

static cudaError_t prepare(struct fgv_exec *exec, struct fgv_graph *graph)
{
	cudaError_t error = fgv_graph_copy(graph, false, &exec->graph);

	if (error)
		return error;
	exec->order = calloc(count_all(exec->graph) + 1, sizeof(struct fgv_node *));
	error = exec->order ? append(exec, exec->graph) : cudaErrorMemoryAllocation;
	if (error)
		return error;
	exec->name = fgv_object_create_for(FGV_OBJECT_EXEC, exec);
	return exec->name ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t instantiate(cudaGraphExec_t *name, cudaGraph_t graph, unsigned long long flags)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	struct fgv_exec *exec;
	cudaError_t error;

	if (!name || !found || (flags & ~(unsigned long long)KNOWN_FLAGS))
		return cudaErrorInvalidValue;
	if (flags & cudaGraphInstantiateFlagDeviceLaunch)
		return FGV_NOT_SUPPORTED("cudaGraphInstantiateFlagDeviceLaunch");
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return cudaErrorMemoryAllocation;
	pthread_mutex_init(&exec->mutex, NULL);
	exec->flags = flags;
	error = prepare(exec, found);
	if (error)
		destroy(exec);
	else
		*name = exec->name;
	return error;
}

FGV_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
					    unsigned long long flags)
{
	return fgv_error_set(instantiate(pGraphExec, graph, flags));
}

FGV_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
						     unsigned long long flags)
{
	return fgv_error_set(instantiate(pGraphExec, graph, flags));
}

FGV_EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec,
						      cudaGraph_t graph,
						      cudaGraphInstantiateParams *instantiateParams)
{
	cudaError_t error;

	if (!instantiateParams)
		return fgv_error_set(cudaErrorInvalidValue);
	error = instantiate(pGraphExec, graph, instantiateParams->flags);
	instantiateParams->errNode_out = NULL;
	instantiateParams->result_out =
		error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
	const struct fgv_exec *exec = exec_of(graphExec);

	if (!exec || !flags)
		return fgv_error_set(cudaErrorInvalidValue);
	*flags = exec->flags;
	return cudaSuccess;
}

/* --- Launching ----------------------------------------------------------------- */

/* Everything that was launched before is done once the event, newly recorded, has happened. */
static cudaError_t wait_for_earlier(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream)
{
	uint32_t earlier;
	bool blocking;
	CUresult res = CUDA_SUCCESS;

	/* Streams that are gone can't be waited for alone. */
	if (fgv_stream_find(lane, exec->stream, &earlier, &blocking) ||
	    earlier != exec->stream_handle)
		return fgv_error_from(fgv_lane_sync(lane));
	if (!exec->event)
		res = fgv_call_event_create(lane, cudaEventDisableTiming, &exec->event);
	if (!res)
		res = fgv_post_event_record(lane, exec->event, earlier);
	if (!res)
		res = fgv_post_stream_wait_event(lane, stream, exec->event);
	return fgv_error_from(res);
}

static cudaError_t post(struct fgv_lane *lane, struct fgv_exec *exec, cudaStream_t stream,
			uint32_t handle)
{
	cudaError_t error = cudaSuccess;

	if (exec->was_launched && exec->stream_handle != handle)
		error = wait_for_earlier(lane, exec, handle);
	if (error)
		return error;
	exec->stream = stream;
	exec->stream_handle = handle;
	exec->was_launched = true;
	for (uint32_t i = 0; i < exec->count && !error; i++) {
		if (!exec->order[i]->disabled)
			error = fgv_error_from(
				fgv_records_run(lane, exec->order[i]->work.records, handle));
	}
	return error;
}

/* A stream that is being captured gets the graph as one node. */
static cudaError_t capture(struct fgv_lane *lane, const struct fgv_exec *exec)
{
	struct fgv_work work = {.params.type = cudaGraphNodeTypeGraph};
	cudaError_t error = fgv_graph_copy(exec->graph, true, &work.child);

	if (error)
		return error;
	error = fgv_capture_add(lane, &work);
	if (error)
		fgv_work_free(&work);
	return error;
}

static cudaError_t launch(struct fgv_exec *exec, cudaStream_t stream)
{
	struct fgv_lane *lane;
	uint32_t handle;
	cudaError_t error;

	if (!exec)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_stream_handle(lane, stream, &handle);
	if (!error) {
		pthread_mutex_lock(&exec->mutex);
		error = lane->recorder ? capture(lane, exec) : post(lane, exec, stream, handle);
		pthread_mutex_unlock(&exec->mutex);
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return fgv_error_set(launch(exec_of(graphExec), stream));
}

/* There is nothing that would have to be on the device before the launch. */
static cudaError_t upload(const struct fgv_exec *exec, cudaStream_t stream)
{
	struct fgv_lane *lane;
	uint32_t handle;
	bool blocking;
	cudaError_t error;

	if (!exec)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_stream_find(lane, stream, &handle, &blocking);
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return fgv_error_set(upload(exec_of(graphExec), stream));
}

/* What was launched has been posted. */
FGV_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	struct fgv_exec *exec = exec_of(graphExec);
	struct fgv_lane *lane;

	if (!exec)
		return fgv_error_set(cudaErrorInvalidValue);
	if (exec->event && !fgv_lane_enter(&lane)) {
		fgv_post_event_destroy(lane, exec->event);
		fgv_lane_leave(lane);
	}
	destroy(exec);
	return cudaSuccess;
}

/* --- Updating ------------------------------------------------------------------ */

/* What was made from node @origin, in @graph or its child graphs. */
static struct fgv_node *find_copy(const struct fgv_graph *graph, cudaGraphNode_t origin)
{
	struct fgv_node *found = NULL;

	for (struct fgv_node *each = graph->first; each && !found; each = each->next) {
		if (each->origin == origin)
			return each;
		if (each->work.child)
			found = find_copy(each->work.child, origin);
	}
	return found;
}

static bool have_same_shape(struct fgv_graph *mine, struct fgv_graph *other,
			    cudaGraphExecUpdateResultInfo *info);

static bool refuse(cudaGraphExecUpdateResultInfo *info, enum cudaGraphExecUpdateResult result,
		   const struct fgv_node *node)
{
	info->result = result;
	info->errorNode = node ? node->name : NULL;
	return false;
}

/* @other's twin is the node that takes its place. */
static bool are_alike(const struct fgv_node *mine, const struct fgv_node *other,
		      cudaGraphExecUpdateResultInfo *info)
{
	if (mine->work.params.type != other->work.params.type)
		return refuse(info, cudaGraphExecUpdateErrorNodeTypeChanged, other);
	if (mine->before_count != other->before_count)
		return refuse(info, cudaGraphExecUpdateErrorTopologyChanged, other);
	for (uint32_t i = 0; i < other->before_count; i++) {
		if (!fgv_node_waits_for(mine, other->before[i]->twin))
			return refuse(info, cudaGraphExecUpdateErrorTopologyChanged, other);
	}
	return !mine->work.child || have_same_shape(mine->work.child, other->work.child, info);
}

/* Nodes are paired in the order in which they were made. */
static bool have_same_shape(struct fgv_graph *mine, struct fgv_graph *other,
			    cudaGraphExecUpdateResultInfo *info)
{
	struct fgv_node *node = mine->first;

	if (mine->count != other->count)
		return refuse(info, cudaGraphExecUpdateErrorTopologyChanged, NULL);
	for (struct fgv_node *each = other->first; each; each = each->next) {
		each->twin = node;
		node = node->next;
	}
	for (const struct fgv_node *each = other->first; each; each = each->next) {
		if (!are_alike(each->twin, each, info))
			return false;
	}
	return true;
}

/* Child graphs stay, as the order has their nodes. */
static cudaError_t take_work(const struct fgv_graph *other)
{
	struct fgv_work work;
	cudaError_t error = cudaSuccess;

	for (const struct fgv_node *each = other->first; each && !error; each = each->next) {
		if (each->work.child) {
			error = take_work(each->work.child);
			continue;
		}
		error = fgv_work_copy(&each->work, &work);
		if (error)
			break;
		fgv_work_free(&each->twin->work);
		each->twin->work = work;
	}
	return error;
}

static cudaError_t update(struct fgv_exec *exec, struct fgv_graph *mine, struct fgv_graph *other,
			  cudaGraphExecUpdateResultInfo *info)
{
	cudaError_t error = cudaErrorGraphExecUpdateFailure;

	pthread_mutex_lock(&exec->mutex);
	if (have_same_shape(mine, other, info)) {
		error = take_work(other);
		info->result = error ? cudaGraphExecUpdateError : cudaGraphExecUpdateSuccess;
	}
	pthread_mutex_unlock(&exec->mutex);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
					   cudaGraphExecUpdateResultInfo *resultInfo)
{
	struct fgv_exec *exec = exec_of(hGraphExec);
	struct fgv_graph *graph = fgv_graph_of(hGraph);

	if (!exec || !graph || !resultInfo)
		return fgv_error_set(cudaErrorInvalidValue);
	*resultInfo = (cudaGraphExecUpdateResultInfo){0};
	return fgv_error_set(update(exec, exec->graph, graph, resultInfo));
}

cudaError_t fgv_exec_set(cudaGraphExec_t name, cudaGraphNode_t node,
			 const struct cudaGraphNodeParams *params)
{
	struct fgv_exec *exec = exec_of(name);
	cudaError_t error;

	if (!exec || !params || params->type == cudaGraphNodeTypeGraph)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&exec->mutex);
	error = fgv_node_set(find_copy(exec->graph, node), params);
	pthread_mutex_unlock(&exec->mutex);
	return error;
}

static cudaError_t set_child(struct fgv_exec *exec, cudaGraphNode_t node, struct fgv_graph *graph)
{
	cudaGraphExecUpdateResultInfo info = {0};
	struct fgv_node *found;

	if (!exec || !graph)
		return cudaErrorInvalidValue;
	found = find_copy(exec->graph, node);
	if (!found || !found->work.child)
		return cudaErrorInvalidValue;
	return update(exec, found->work.child, graph, &info);
}

FGV_EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec,
							    cudaGraphNode_t node,
							    cudaGraph_t childGraph)
{
	return fgv_error_set(set_child(exec_of(hGraphExec), node, fgv_graph_of(childGraph)));
}

/* Kernels, copies and fills may be left out. */
static struct fgv_node *find_optional(const struct fgv_exec *exec, cudaGraphNode_t name)
{
	struct fgv_node *node = exec ? find_copy(exec->graph, name) : NULL;

	return node && node->work.params.type <= cudaGraphNodeTypeMemset ? node : NULL;
}

FGV_EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
					       unsigned int isEnabled)
{
	struct fgv_node *node = find_optional(exec_of(hGraphExec), hNode);

	if (!node)
		return fgv_error_set(cudaErrorInvalidValue);
	node->disabled = !isEnabled;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
					       unsigned int *isEnabled)
{
	const struct fgv_node *node = find_optional(exec_of(hGraphExec), hNode);

	if (!node || !isEnabled)
		return fgv_error_set(cudaErrorInvalidValue);
	*isEnabled = !node->disabled;
	return cudaSuccess;
}
