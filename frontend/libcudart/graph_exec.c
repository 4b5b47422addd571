/*
 * Instantiating and launching graphs. A launch posts what its nodes have recorded, one
 * node after another, into the stream that it is launched in, and waits for nothing; but for
 * copies between the device and the program's pageable memory, as in a stream.
 *
 * Two launches of one executable graph never overlap: what it is launched in waits for
 * where it was launched before.
 */
#include "frontend/client/record.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/graph_exec.h"

#include <stdlib.h>

#include "frontend/client/sync.h"
#include "frontend/libcudart/capture.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/cuda/stream/host_func.h"

#define KNOWN_FLAGS                                                                                \
	(cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |               \
	 cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority)

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

/* The graph may have another now, if it could not have two. */
static void leave_origin(const struct fgv_exec *exec)
{
	struct fgv_graph *graph = fgv_graph_of(exec->origin);

	if (graph)
		graph->executables--;
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
	exec->has_memory = fgv_graph_has_memory(exec->graph);
	exec->name = fgv_object_create_for(FGV_OBJECT_EXEC, exec);
	return exec->name ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t instantiate(cudaGraphExec_t *name, cudaGraph_t graph, unsigned long long flags)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	struct fgv_exec *exec;
	cudaError_t error;

	if (!name || !found || found->is_moved || (flags & ~(unsigned long long)KNOWN_FLAGS))
		return cudaErrorInvalidValue;
	if (flags & cudaGraphInstantiateFlagDeviceLaunch)
		return FGV_NOT_SUPPORTED("cudaGraphInstantiateFlagDeviceLaunch");
	if (found->executables && fgv_graph_has_memory(found))
		return cudaErrorNotSupported;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return cudaErrorMemoryAllocation;
	pthread_mutex_init(&exec->mutex, NULL);
	exec->flags = flags;
	error = prepare(exec, found);
	if (error) {
		destroy(exec);
		return error;
	}
	exec->origin = graph;
	found->executables++;
	*name = exec->name;
	return cudaSuccess;
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
	const struct fgv_exec *exec = fgv_exec_of(graphExec);

	if (!exec || !flags)
		return fgv_error_set(cudaErrorInvalidValue);
	*flags = exec->flags;
	return cudaSuccess;
}

/* --- Launching ----------------------------------------------------------------- */

/* All that is in @earlier now is done once the event, newly recorded, has happened. */
static cudaError_t wait_for(struct fgv_lane *lane, struct fgv_exec *exec,
			    const struct fgv_graph_place *earlier, uint32_t stream)
{
	uint32_t handle;
	bool blocking;
	CUresult res = CUDA_SUCCESS;

	/* Streams that are gone can't be waited for alone. */
	if (fgv_stream_find(lane, earlier->stream, &handle, &blocking) || handle != earlier->handle)
		return fgv_error_from(fgv_sync_device(lane));
	if (!exec->event)
		res = fgv_call_event_create(lane, cudaEventDisableTiming, &exec->event);
	if (!res)
		res = fgv_post_event_record(lane, exec->event, handle);
	if (!res)
		res = fgv_post_stream_wait_event(lane, stream, exec->event);
	return fgv_error_from(res);
}

/* Memory may have been used or freed elsewhere since, and before by an executable of then. */
static cudaError_t wait_for_memory(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream)
{
	struct fgv_graph_place earlier;
	cudaError_t error = cudaSuccess;

	for (uint32_t i = 0; i < exec->count && !error; i++) {
		const struct fgv_graph_memory *memory = exec->order[i]->work.memory;

		if (memory && fgv_graph_memory_last(memory, &earlier) && earlier.handle != stream)
			error = wait_for(lane, exec, &earlier, stream);
	}
	return error;
}

static cudaError_t wait_for_earlier(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream)
{
	cudaError_t error = cudaSuccess;

	if (exec->was_launched && exec->last.handle != stream)
		error = wait_for(lane, exec, &exec->last, stream);
	return error || !exec->has_memory ? error : wait_for_memory(lane, exec, stream);
}

static cudaError_t post(struct fgv_lane *lane, struct fgv_exec *exec,
			const struct fgv_graph_place *place)
{
	bool auto_free = exec->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch;
	cudaError_t error = wait_for_earlier(lane, exec, place->handle);

	if (!error && exec->has_memory)
		error = fgv_graph_memory_launch(exec->order, exec->count, place, auto_free);
	if (error)
		return error;
	exec->last = *place;
	exec->was_launched = true;
	for (uint32_t i = 0; i < exec->count && !error; i++) {
		if (!exec->order[i]->disabled)
			error = fgv_error_from(
				fgv_records_run(lane, exec->order[i]->work.records, place->handle));
	}
	return error;
}

static cudaError_t launch(struct fgv_exec *exec, cudaStream_t stream)
{
	struct fgv_graph_place place = {.stream = stream};
	struct fgv_lane *lane;
	cudaError_t error;

	if (!exec)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_error_from(fgv_stream_handle(lane, stream, &place.handle));
	if (!error && lane->recorder) {
		/* The graph would have to be the captured one's node, which CUDA does not do. */
		error = cudaErrorStreamCaptureUnsupported;
		fgv_recorder_fail(lane->recorder, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	} else if (!error) {
		pthread_mutex_lock(&exec->mutex);
		error = post(lane, exec, &place);
		pthread_mutex_unlock(&exec->mutex);
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return fgv_error_set(launch(fgv_exec_of(graphExec), stream));
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
	error = fgv_error_from(fgv_stream_find(lane, stream, &handle, &blocking));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return fgv_error_set(upload(fgv_exec_of(graphExec), stream));
}

static bool has_held(const struct fgv_graph *graph)
{
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->work.child && has_held(each->work.child))
			return true;
	}
	return graph->held;
}

static void destroy_graph(void *graph)
{
	fgv_graph_destroy(graph);
}

/* The program's objects stay until what was launched, which has been posted, is done. */
static void keep_held(struct fgv_lane *lane, struct fgv_exec *exec)
{
	uint32_t handle;
	bool blocking;

	if (!exec->was_launched || !has_held(exec->graph))
		return;
	if (fgv_stream_find(lane, exec->last.stream, &handle, &blocking) ||
	    handle != exec->last.handle)
		fgv_sync_device(lane);
	else if (!fgv_host_func_start(lane, handle, destroy_graph, exec->graph))
		exec->graph = NULL;
}

static void leave_host(struct fgv_exec *exec)
{
	struct fgv_lane *lane;

	if ((!exec->was_launched && !exec->event) || fgv_context_enter(&lane))
		return;
	keep_held(lane, exec);
	if (exec->event)
		fgv_post_event_destroy(lane, exec->event);
	fgv_lane_leave(lane);
}

FGV_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	struct fgv_exec *exec = fgv_exec_of(graphExec);
	bool has_memory;

	if (!exec)
		return fgv_error_set(cudaErrorInvalidValue);
	has_memory = exec->has_memory;
	leave_origin(exec);
	leave_host(exec);
	destroy(exec);
	if (has_memory)
		fgv_graph_sweep();
	return cudaSuccess;
}
