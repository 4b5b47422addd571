/*
 * The captures there are, and what happens to the work of their streams.
 *
 * Lock: state.mutex guards all of it. It may be taken while a lane is held; while holding it
 * nothing is taken but the lock of graphs' memory.
 */
#include "frontend/libcudart/capture_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_memory.h"

__thread struct fgv_capture_thread fgv_capture_self;

static struct {
	pthread_mutex_t mutex;
	struct capture *captures;
	struct captured_stream *streams;
	struct captured_event *events;
	unsigned long long last_id;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* What is put into a stream between two calls of the runtime's. */
struct stream_recorder {
	struct fgv_recorder recorder; /* first: finish() gets it */
	uint32_t stream;
};

void fgv_capture_lock(void)
{
	pthread_mutex_lock(&state.mutex);
}

void fgv_capture_unlock(void)
{
	pthread_mutex_unlock(&state.mutex);
}

static const struct fgv_capturing table;

static void count_use(int change)
{
	if (change > 0)
		fgv_capturing_begin(&table);
	else
		fgv_capturing_end();
}

void fgv_capture_divert(struct fgv_recorder *recorder)
{
	count_use(recorder ? 1 : -1);
	fgv_capture_self.recorder = recorder;
}

/* --- Captures and their streams ------------------------------------------------ */

struct captured_stream *fgv_capture_find_stream(uint32_t handle)
{
	struct captured_stream *each = state.streams;

	while (each && each->handle != handle)
		each = each->next;
	return each;
}

static void free_stream(struct captured_stream *stream)
{
	fgv_nodes_fini(&stream->last);
	free(stream->names);
	free(stream);
}

/* Calls that wait are judged only while there is a capture that may mind. */
static CUresult judge(void)
{
	return fgv_capture_check_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

struct capture *fgv_capture_create(struct fgv_graph *graph, bool owns_graph)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return NULL;
	capture->graph = graph;
	capture->owns_graph = owns_graph;
	capture->first_node = graph->count;
	capture->thread = &fgv_capture_self;
	capture->id = ++state.last_id;
	capture->next = state.captures;
	state.captures = capture;
	count_use(1);
	fgv_record_forbid(judge);
	return capture;
}

struct captured_stream *fgv_capture_join(struct capture *capture, uint32_t handle, bool blocking)
{
	struct captured_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->capture = capture;
	stream->handle = handle;
	stream->blocking = blocking;
	stream->next = state.streams;
	state.streams = stream;
	return stream;
}

static void leave(struct captured_stream *stream)
{
	struct captured_stream **link = &state.streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	free_stream(stream);
}

static void leave_all(const struct capture *capture)
{
	for (struct captured_stream *each = state.streams, *next; each; each = next) {
		next = each->next;
		if (each->capture == capture)
			leave(each);
	}
}

void fgv_capture_destroy(struct capture *capture)
{
	struct capture **link = &state.captures;

	leave_all(capture);
	for (struct captured_event *each = state.events; each; each = each->next) {
		if (each->capture == capture)
			each->capture = NULL;
	}
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	free(capture);
	count_use(-1);
	if (!state.captures)
		fgv_record_forbid(NULL);
}

bool fgv_capture_has_blocking(void)
{
	for (const struct captured_stream *each = state.streams; each; each = each->next) {
		if (each->blocking && !each->capture->is_invalid)
			return true;
	}
	return false;
}

static void capture_forget_stream(uint32_t handle)
{
	struct captured_stream *stream;
	struct capture *capture;

	if (!fgv_capture_is_used())
		return;
	fgv_capture_lock();
	stream = fgv_capture_find_stream(handle);
	capture = stream ? stream->capture : NULL;
	if (capture && capture->origin == handle) {
		if (capture->owns_graph)
			fgv_graph_destroy(capture->graph);
		fgv_capture_destroy(capture);
	} else if (capture) {
		/* What it has captured and nobody waits for is missed when the capture ends. */
		leave(stream);
	}
	fgv_capture_unlock();
}

/* --- What is not allowed ------------------------------------------------------- */

static bool minds(const struct capture *capture)
{
	const struct fgv_capture_thread *self = &fgv_capture_self;

	if (capture->thread == self)
		return capture->mode != cudaStreamCaptureModeRelaxed;
	return capture->mode == cudaStreamCaptureModeGlobal &&
	       self->mode == cudaStreamCaptureModeGlobal;
}

cudaError_t fgv_capture_check_unsafe(void)
{
	cudaError_t error = cudaSuccess;

	if (!fgv_capture_is_used() || fgv_capture_self.mode == cudaStreamCaptureModeRelaxed)
		return cudaSuccess;
	fgv_capture_lock();
	for (struct capture *each = state.captures; each; each = each->next) {
		if (!minds(each))
			continue;
		each->is_invalid = true;
		error = cudaErrorStreamCaptureUnsupported;
	}
	fgv_capture_unlock();
	return error;
}

/* The legacy stream is used, which blocking streams wait for and it for them. */
static cudaError_t enter_legacy(void)
{
	if (!fgv_capture_has_blocking())
		return cudaSuccess;
	for (struct captured_stream *each = state.streams; each; each = each->next) {
		if (each->blocking)
			each->capture->is_invalid = true;
	}
	return cudaErrorStreamCaptureImplicit;
}

/* --- Work ---------------------------------------------------------------------- */

/* @early: a kernel that need not wait for the end of those right before it. */
static cudaError_t add(struct captured_stream *stream, const struct fgv_work *work, bool early)
{
	struct nodes *last = &stream->last;
	struct fgv_node *node;
	cudaError_t error;

	if (early)
		fgv_nodes_hasten(last);
	error = fgv_graph_add(stream->capture->graph, last->list, last->edges, last->count, work,
			      &node);
	if (!error && fgv_nodes_set(last, &node, NULL, 1))
		error = cudaErrorMemoryAllocation;
	if (error)
		stream->capture->is_invalid = true;
	else
		fgv_graph_memory_note(node);
	return error;
}

/* What was recorded is a node now, unless there is nobody who wants it any more. */
static void finish(struct fgv_recorder *recorder)
{
	struct stream_recorder *made = (struct stream_recorder *)recorder;
	bool is_early = recorder->is_early;
	struct captured_stream *stream;
	struct fgv_work work;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(made->stream);
	if (stream && recorder->failed) {
		stream->capture->is_invalid = true;
	} else if (stream && recorder->first) {
		fgv_work_take(recorder, &work);
		if (add(stream, &work, is_early))
			fgv_work_free(&work);
	}
	fgv_capture_unlock();
	fgv_records_free(recorder->first);
	free(made);
}

static cudaError_t start_recording(struct fgv_lane *lane, uint32_t handle)
{
	struct stream_recorder *made = malloc(sizeof(*made));

	if (!made)
		return cudaErrorMemoryAllocation;
	fgv_recorder_init(&made->recorder);
	made->recorder.finish = finish;
	made->stream = handle;
	lane->recorder = &made->recorder;
	return cudaSuccess;
}

static CUresult capture_enter(struct fgv_lane *lane, uint32_t handle)
{
	struct captured_stream *stream;
	cudaError_t error = cudaSuccess;

	if (lane->recorder)
		return CUDA_SUCCESS;
	if (fgv_capture_self.recorder) {
		lane->recorder = fgv_capture_self.recorder;
		return CUDA_SUCCESS;
	}
	fgv_capture_lock();
	stream = fgv_capture_find_stream(handle);
	if (stream)
		error = stream->capture->is_invalid ? cudaErrorStreamCaptureInvalidated
						    : start_recording(lane, handle);
	else if (!handle)
		error = enter_legacy();
	fgv_capture_unlock();
	return (CUresult)error;
}

cudaError_t fgv_capture_add(struct fgv_lane *lane, const struct fgv_work *work)
{
	const struct stream_recorder *made = (const struct stream_recorder *)lane->recorder;
	struct captured_stream *stream;
	cudaError_t error = cudaErrorStreamCaptureInvalidated;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(made->stream);
	if (stream)
		error = add(stream, work, false);
	fgv_capture_unlock();
	return error;
}

cudaError_t fgv_capture_visit(struct fgv_lane *lane,
			      cudaError_t (*visit)(struct fgv_graph *graph,
						   struct fgv_node *const *last, size_t count,
						   void *arg),
			      void *arg)
{
	const struct stream_recorder *made = (const struct stream_recorder *)lane->recorder;
	const struct captured_stream *stream;
	cudaError_t error = cudaErrorStreamCaptureInvalidated;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(made->stream);
	if (stream)
		error = visit(stream->capture->graph, stream->last.list, stream->last.count, arg);
	fgv_capture_unlock();
	return error;
}

/* --- Events -------------------------------------------------------------------- */

static struct captured_event *find_event(uint32_t handle)
{
	struct captured_event *each = state.events;

	while (each && each->handle != handle)
		each = each->next;
	return each;
}

static void forget_event(uint32_t handle)
{
	struct captured_event **link = &state.events;
	struct captured_event *event;

	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	event = *link;
	if (!event)
		return;
	*link = event->next;
	fgv_nodes_fini(&event->last);
	free(event);
	count_use(-1);
}

static void capture_forget_event(uint32_t handle)
{
	if (!fgv_capture_is_used())
		return;
	fgv_capture_lock();
	forget_event(handle);
	fgv_capture_unlock();
}

static struct captured_event *note_event(uint32_t handle)
{
	struct captured_event *event = find_event(handle);

	if (event)
		return event;
	event = calloc(1, sizeof(*event));
	if (!event)
		return NULL;
	event->handle = handle;
	event->next = state.events;
	state.events = event;
	count_use(1);
	return event;
}

static cudaError_t record_event(uint32_t stream_handle, uint32_t event_handle,
				const cudaGraphEdgeData *edge)
{
	struct captured_stream *stream = fgv_capture_find_stream(stream_handle);
	struct captured_event *event = stream ? note_event(event_handle) : NULL;

	if (!stream)
		return cudaErrorStreamCaptureInvalidated;
	if (!event || fgv_nodes_set(&event->last, stream->last.list,
				    edge ? edge : stream->last.edges, stream->last.count))
		return cudaErrorMemoryAllocation;
	event->capture = stream->capture;
	return cudaSuccess;
}

static CUresult capture_record_event(struct fgv_lane *lane, uint32_t event,
				     const CUgraphEdgeData *edge, bool *captured)
{
	cudaError_t error = cudaSuccess;

	*captured = lane->recorder != NULL;
	if (!fgv_capture_is_used())
		return CUDA_SUCCESS;
	fgv_capture_lock();
	if (*captured)
		error = record_event(((struct stream_recorder *)lane->recorder)->stream, event,
				     (const cudaGraphEdgeData *)edge);
	else
		forget_event(event);
	fgv_capture_unlock();
	return (CUresult)error;
}

/* @stream, NULL if it is not being captured, waits for what @event has captured. */
static cudaError_t wait_captured(struct captured_stream *stream, uint32_t handle, bool blocking,
				 const struct captured_event *event)
{
	if (!event->capture)
		return stream ? cudaErrorStreamCaptureIsolation : cudaErrorCapturedEvent;
	if (event->capture->is_invalid)
		return cudaErrorStreamCaptureInvalidated;
	if (stream && stream->capture != event->capture) {
		stream->capture->is_invalid = event->capture->is_invalid = true;
		return cudaErrorStreamCaptureMerge;
	}
	if (!stream && !handle) {
		event->capture->is_invalid = true;
		return cudaErrorStreamCaptureImplicit;
	}
	if (!stream)
		stream = fgv_capture_join(event->capture, handle, blocking);
	if (!stream || fgv_nodes_merge(&stream->last, &event->last))
		return cudaErrorMemoryAllocation;
	return cudaSuccess;
}

static CUresult capture_wait_event(uint32_t stream_handle, bool blocking, uint32_t event_handle,
				   bool *captured)
{
	const struct captured_event *event;
	struct captured_stream *stream;
	cudaError_t error = cudaSuccess;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(stream_handle);
	event = find_event(event_handle);
	*captured = stream || event;
	if (event) {
		error = wait_captured(stream, stream_handle, blocking, event);
	} else if (stream) {
		stream->capture->is_invalid = true;
		error = cudaErrorStreamCaptureIsolation;
	}
	fgv_capture_unlock();
	return (CUresult)error;
}

static CUresult capture_check_event(uint32_t event)
{
	bool found;

	if (!fgv_capture_is_used())
		return CUDA_SUCCESS;
	fgv_capture_lock();
	found = find_event(event);
	fgv_capture_unlock();
	return found ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* --- What streams and events ask ----------------------------------------------- */

static CUresult capture_status(uint32_t handle, CUstreamCaptureStatus *status)
{
	const struct captured_stream *stream;
	CUresult res = CUDA_SUCCESS;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(handle);
	if (!handle && fgv_capture_has_blocking())
		res = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	else if (!stream)
		*status = CU_STREAM_CAPTURE_STATUS_NONE;
	else
		*status = stream->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
						      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	fgv_capture_unlock();
	return res;
}

static const struct fgv_capturing table = {
	.enter = capture_enter,
	.status = capture_status,
	.check_unsafe = judge,
	.record_event = capture_record_event,
	.wait_event = capture_wait_event,
	.check_event = capture_check_event,
	.forget_stream = capture_forget_stream,
	.forget_event = capture_forget_event,
};
