/*
 * Instantiating and launching graphs. Where the host has built the graph, a launch is one request.
 * Of a graph that is cut (exec_text.h) it is one for each part that the host has built; of the
 * others it posts what their nodes have recorded, one node after another, into the stream that the
 * graph is launched in. It waits for nothing; but for copies between the device and the program's
 * pageable memory, as in a stream.
 *
 * Two launches of one executable graph never overlap: what it is launched in waits for
 * where it was launched before.
 */
#include "frontend/cuda/graph/exec.h"

#include <stdlib.h>

#include "frontend/client/record.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/graph/choice.h"
#include "frontend/cuda/graph/exec_host.h"
#include "frontend/cuda/graph/home.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/host_func.h"
#include "frontend/cuda/stream/stream.h"

#define KNOWN_FLAGS                                                                                \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |    \
	 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |                                               \
	 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static void destroy(struct fgv_exec *exec)
{
	struct fgv_object_info info;

	fgv_exec_host_drop(NULL, exec);
	if (exec->name)
		fgv_object_destroy(FGV_OBJECT_EXEC, exec->name, &info);
	fgv_graph_free(exec->graph);
	pthread_mutex_destroy(&exec->mutex);
	fgv_exec_host_free(exec);
	free(exec->order);
	free(exec->by_origin);
	free(exec->uses);
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

/* A child graph's nodes take the place of the node that it is. */
static CUresult append(struct fgv_exec *exec, struct fgv_graph *graph)
{
	struct fgv_node **sorted;
	CUresult res = fgv_graph_sort(graph, &sorted);

	if (res)
		return res;
	for (uint32_t i = 0; i < graph->count && !res; i++) {
		if (sorted[i]->work.child)
			res = append(exec, sorted[i]->work.child);
		else
			exec->order[exec->count++] = sorted[i];
	}
	free(sorted);
	return res;
}

/* What the nodes do to memory, which no update changes. */
static CUresult list_uses(struct fgv_exec *exec)
{
	exec->uses = calloc(exec->count + 1, sizeof(*exec->uses));
	if (!exec->uses)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < exec->count; i++) {
		const struct fgv_work *work = &exec->order[i]->work;

		if (work->memory)
			exec->uses[exec->use_count++] = (struct fgv_graph_memory_use){
				work->memory,
				work->task->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	}
	return CUDA_SUCCESS;
}

/* On the host, if it is for it. A graph that does nothing asks for no context. */
static CUresult build(struct fgv_exec *exec)
{
	struct fgv_lane *lane;
	CUresult res;

	if (!exec->count)
		return CUDA_SUCCESS;
	res = fgv_context_enter_on(exec->device, &lane);
	if (res)
		return res;
	res = fgv_exec_host_build(lane, exec);
	fgv_lane_leave(lane);
	return res;
}

static CUresult prepare(struct fgv_exec *exec, struct fgv_graph *graph)
{
	CUresult res = fgv_choice_check(graph);

	if (!res)
		res = fgv_graph_copy(graph, false, &exec->graph);
	if (res)
		return res;
	exec->graph->home = fgv_home_get(graph->home);
	exec->device = (uint32_t)fgv_context_get_device();
	res = fgv_graph_find_device(exec->graph, &exec->device);
	if (res)
		return res;
	exec->order = calloc(fgv_graph_count_all(exec->graph) + 1, sizeof(struct fgv_node *));
	res = exec->order ? append(exec, exec->graph) : CUDA_ERROR_OUT_OF_MEMORY;
	if (res)
		return res;
	res = fgv_graph_has_memory(exec->graph) ? list_uses(exec) : CUDA_SUCCESS;
	if (res)
		return res;
	res = build(exec);
	if (res)
		return res;
	exec->name = fgv_object_create_for(FGV_OBJECT_EXEC, exec);
	return exec->name ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_exec_create(CUgraphExec *name, CUgraph graph, unsigned long long flags)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	struct fgv_exec *exec;
	CUresult res;

	if (!name || !found || found->is_moved || (flags & ~(unsigned long long)KNOWN_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return FGV_UNSUPPORTED("launches of graphs by the device");
	if (found->executables && (fgv_graph_has_memory(found) || found->home))
		return CUDA_ERROR_NOT_SUPPORTED;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&exec->mutex, NULL);
	exec->flags = flags;
	res = prepare(exec, found);
	if (res) {
		destroy(exec);
		return res;
	}
	exec->origin = graph;
	found->executables++;
	*name = exec->name;
	return CUDA_SUCCESS;
}

/* The driver says all but that nodes' priorities are used. */
CUresult fgv_exec_get_flags(CUgraphExec name, unsigned long long *flags)
{
	const struct fgv_exec *exec = fgv_exec_of(name);

	if (!exec || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	return CUDA_SUCCESS;
}

/* --- Launching ----------------------------------------------------------------- */

/* All that is in @earlier now is done once the event, newly recorded, has happened. */
static CUresult wait_for(struct fgv_lane *lane, struct fgv_exec *exec,
			 const struct fgv_graph_place *earlier, uint32_t stream)
{
	uint32_t handle;
	bool blocking;
	CUresult res = CUDA_SUCCESS;

	/* Streams that are gone can't be waited for alone. */
	if (fgv_stream_find(lane, earlier->stream, &handle, &blocking) || handle != earlier->handle)
		return fgv_sync_device(lane);
	if (!exec->event)
		res = fgv_event_make(lane, CU_EVENT_DISABLE_TIMING, &exec->event);
	if (!res)
		res = fgv_post_event_record(lane, exec->event, handle);
	if (!res)
		res = fgv_post_stream_wait_event(lane, stream, exec->event);
	return res;
}

/* Memory may have been used or freed elsewhere since, and before by an executable of then. */
static CUresult wait_for_memory(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream)
{
	struct fgv_graph_place earlier;
	CUresult res = CUDA_SUCCESS;

	for (uint32_t i = 0; i < exec->use_count && !res; i++) {
		if (fgv_graph_memory_last(exec->uses[i].memory, &earlier) &&
		    earlier.handle != stream)
			res = wait_for(lane, exec, &earlier, stream);
	}
	return res;
}

static CUresult wait_for_earlier(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream)
{
	CUresult res = CUDA_SUCCESS;

	if (exec->was_launched && exec->last.handle != stream)
		res = wait_for(lane, exec, &exec->last, stream);
	return res || !exec->use_count ? res : wait_for_memory(lane, exec, stream);
}

static CUresult post_nodes(struct fgv_lane *lane, const struct fgv_exec *exec, uint32_t first,
			   uint32_t end, uint32_t stream)
{
	CUresult res = CUDA_SUCCESS;

	for (uint32_t i = first; i < end && !res; i++) {
		if (!exec->order[i]->disabled)
			res = fgv_records_run(lane, exec->order[i]->work.task->records, stream);
	}
	return res;
}

static CUresult post_launches(struct fgv_lane *lane, const struct fgv_exec *exec, uint32_t stream)
{
	uint32_t first = 0;
	CUresult res = CUDA_SUCCESS;

	for (uint32_t i = 0; i < exec->host.count && !res; i++) {
		const struct fgv_exec_launch *launch = &exec->host.launches[i];

		res = launch->graph ? fgv_post_graph_launch(lane, launch->graph, stream)
				    : post_nodes(lane, exec, first, launch->end, stream);
		first = launch->end;
	}
	return res;
}

static CUresult post(struct fgv_lane *lane, struct fgv_exec *exec,
		     const struct fgv_graph_place *place)
{
	bool auto_free = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	CUresult res = exec->host.was_kept ? fgv_exec_host_settle(lane, exec, place->handle)
					   : CUDA_SUCCESS;

	if (!res && exec->host.changed)
		res = fgv_exec_host_refresh(lane, exec);
	if (!res)
		res = wait_for_earlier(lane, exec, place->handle);
	if (!res && exec->use_count)
		res = fgv_graph_memory_launch(exec->uses, exec->use_count, place, auto_free);
	if (res)
		return res;
	exec->last = *place;
	exec->was_launched = true;
	return post_launches(lane, exec, place->handle);
}

/* Enters the device of @stream, which is to be that of @exec. */
static CUresult enter(const struct fgv_exec *exec, CUstream stream, struct fgv_lane **lane)
{
	if (exec->count && fgv_stream_device(stream) != exec->device)
		return FGV_UNSUPPORTED("launches of graphs in a stream of another device");
	return fgv_context_enter_on(fgv_stream_device(stream), lane);
}

CUresult fgv_exec_launch(CUgraphExec name, CUstream stream)
{
	struct fgv_exec *exec = fgv_exec_of(name);
	struct fgv_graph_place place = {.stream = stream};
	struct fgv_lane *lane;
	CUresult res;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	res = enter(exec, stream, &lane);
	if (res)
		return res;
	res = fgv_stream_handle(lane, stream, &place.handle);
	if (!res && lane->recorder) {
		/* The graph would have to be the captured one's node, which CUDA does not do. */
		res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		fgv_recorder_fail(lane->recorder, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	} else if (!res) {
		pthread_mutex_lock(&exec->mutex);
		res = post(lane, exec, &place);
		pthread_mutex_unlock(&exec->mutex);
	}
	fgv_lane_leave(lane);
	return res;
}

/* There is nothing that would have to be on the device before the launch. */
CUresult fgv_exec_upload(CUgraphExec name, CUstream stream)
{
	const struct fgv_exec *exec = fgv_exec_of(name);
	struct fgv_lane *lane;
	uint32_t handle;
	bool blocking;
	CUresult res;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	res = enter(exec, stream, &lane);
	if (res)
		return res;
	res = fgv_stream_find(lane, stream, &handle, &blocking);
	fgv_lane_leave(lane);
	return res;
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
	fgv_graph_free(graph);
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

	if ((!exec->was_launched && !exec->event && !exec->host.is_there) ||
	    fgv_context_enter_on(exec->device, &lane))
		return;
	keep_held(lane, exec);
	fgv_exec_host_drop(lane, exec);
	if (exec->event)
		fgv_event_unmake(lane, exec->event);
	fgv_lane_leave(lane);
}

CUresult fgv_exec_destroy(CUgraphExec name)
{
	struct fgv_exec *exec = fgv_exec_of(name);
	bool has_memory;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	has_memory = exec->use_count;
	leave_origin(exec);
	leave_host(exec);
	destroy(exec);
	if (has_memory)
		fgv_graph_sweep();
	return CUDA_SUCCESS;
}
