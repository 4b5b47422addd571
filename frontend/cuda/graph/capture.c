/*
 * The captures there are, and what happens to the work of their streams.
 *
 * Lock: state.mutex guards all of it. It may be taken while a lane is held; while holding it
 * nothing is taken but the lock of graphs' memory.
 */
#include "frontend/cuda/graph/capture_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/client/lane.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/stream/capturing.h"

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
	uint64_t stream;
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

void fgv_capture_divert(struct fgv_recorder *recorder, uint32_t device)
{
	count_use(recorder ? 1 : -1);
	fgv_capture_self.device = device;
	fgv_capture_self.recorder = recorder;
}

/* --- Captures and their streams ------------------------------------------------ */

static bool is_on(const struct captured_stream *stream, uint32_t device)
{
	return stream->name >> 32 == device;
}

struct captured_stream *fgv_capture_find_stream(uint64_t name)
{
	struct captured_stream *each = state.streams;

	while (each && each->name != name)
		each = each->next;
	return each;
}

static void free_stream(struct captured_stream *stream)
{
	fgv_nodes_fini(&stream->last);
	free(stream->names);
	free(stream);
}

static CUresult check_unsafe(void);

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
	fgv_record_forbid(check_unsafe); /* asked while there is a capture that may mind */
	return capture;
}

struct captured_stream *fgv_capture_join(struct capture *capture, uint64_t name, bool blocking)
{
	struct captured_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->capture = capture;
	stream->name = name;
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

bool fgv_capture_has_blocking(uint32_t device)
{
	for (const struct captured_stream *each = state.streams; each; each = each->next) {
		if (each->blocking && is_on(each, device) && !each->capture->is_invalid)
			return true;
	}
	return false;
}

static void forget_stream_now(uint64_t name)
{
	struct captured_stream *stream;
	struct capture *capture;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(name);
	capture = stream ? stream->capture : NULL;
	if (capture && capture->origin == name) {
		if (capture->owns_graph)
			fgv_graph_free(capture->graph);
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
		return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       self->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/* Fails the captures that a call disturbs which is not allowed during them. */
static CUresult check_unsafe(void)
{
	CUresult res = CUDA_SUCCESS;

	if (fgv_capture_self.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	fgv_capture_lock();
	for (struct capture *each = state.captures; each; each = each->next) {
		if (!minds(each))
			continue;
		each->is_invalid = true;
		res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	fgv_capture_unlock();
	return res;
}

/* The device's legacy stream is used, which blocking streams wait for and it for them. */
static CUresult enter_legacy(uint32_t device)
{
	if (!fgv_capture_has_blocking(device))
		return CUDA_SUCCESS;
	for (struct captured_stream *each = state.streams; each; each = each->next) {
		if (each->blocking && is_on(each, device))
			each->capture->is_invalid = true;
	}
	return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* --- Work ---------------------------------------------------------------------- */

/* @early: a kernel that need not wait for the end of those right before it. */
static CUresult add(struct captured_stream *stream, const struct fgv_work *work, bool early)
{
	struct nodes *last = &stream->last;
	struct fgv_node *node;
	CUresult res;

	if (early)
		fgv_nodes_hasten(last);
	res = fgv_graph_add(stream->capture->graph, last->list, last->edges, last->count, work,
			    &node);
	if (!res && fgv_nodes_set(last, &node, NULL, 1))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	if (res)
		stream->capture->is_invalid = true;
	else
		fgv_node_note_memory(node);
	return res;
}

/* What was recorded is a node now, unless nobody wants it any more. */
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
		if (fgv_work_take(recorder, (uint32_t)(made->stream >> 32), &work))
			stream->capture->is_invalid = true;
		else if (add(stream, &work, is_early))
			fgv_work_free(&work);
	}
	fgv_capture_unlock();
	fgv_records_free(recorder->first);
	free(made);
}

static CUresult start_recording(struct fgv_lane *lane, uint64_t name)
{
	struct stream_recorder *made = malloc(sizeof(*made));

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fgv_recorder_init(&made->recorder);
	made->recorder.finish = finish;
	made->stream = name;
	lane->recorder = &made->recorder;
	return CUDA_SUCCESS;
}

/* What is recorded names things by the handles of one device. */
static CUresult enter_diverted(struct fgv_lane *lane)
{
	if (lane->client->device != fgv_capture_self.device)
		return FGV_UNSUPPORTED("nodes of graphs that use two devices");
	lane->recorder = fgv_capture_self.recorder;
	return CUDA_SUCCESS;
}

static CUresult enter(struct fgv_lane *lane, uint32_t handle)
{
	uint64_t name = fgv_capturing_name(lane->client->device, handle);
	struct captured_stream *stream;
	CUresult res = CUDA_SUCCESS;

	if (lane->recorder)
		return CUDA_SUCCESS;
	if (fgv_capture_self.recorder)
		return enter_diverted(lane);
	fgv_capture_lock();
	stream = fgv_capture_find_stream(name);
	if (stream)
		res = stream->capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
						  : start_recording(lane, name);
	else if (!handle)
		res = enter_legacy(lane->client->device);
	fgv_capture_unlock();
	return res;
}

CUresult fgv_capture_add(struct fgv_lane *lane, const struct fgv_work *work)
{
	const struct stream_recorder *made = (const struct stream_recorder *)lane->recorder;
	struct captured_stream *stream;
	CUresult res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(made->stream);
	if (stream)
		res = add(stream, work, false);
	fgv_capture_unlock();
	return res;
}

CUresult fgv_capture_visit(struct fgv_lane *lane,
			   CUresult (*visit)(struct fgv_graph *graph, struct fgv_node *const *last,
					     size_t count, void *arg),
			   void *arg)
{
	const struct stream_recorder *made = (const struct stream_recorder *)lane->recorder;
	const struct captured_stream *stream;
	CUresult res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(made->stream);
	if (stream)
		res = visit(stream->capture->graph, stream->last.list, stream->last.count, arg);
	fgv_capture_unlock();
	return res;
}

/* --- Events -------------------------------------------------------------------- */

static struct captured_event *find_event(uint64_t name)
{
	struct captured_event *each = state.events;

	while (each && each->name != name)
		each = each->next;
	return each;
}

static void forget_event(uint64_t name)
{
	struct captured_event **link = &state.events;
	struct captured_event *event;

	while (*link && (*link)->name != name)
		link = &(*link)->next;
	event = *link;
	if (!event)
		return;
	*link = event->next;
	fgv_nodes_fini(&event->last);
	free(event);
	count_use(-1);
}

static void forget_event_now(uint64_t name)
{
	fgv_capture_lock();
	forget_event(name);
	fgv_capture_unlock();
}

static struct captured_event *note_event(uint64_t name)
{
	struct captured_event *event = find_event(name);

	if (event)
		return event;
	event = calloc(1, sizeof(*event));
	if (!event)
		return NULL;
	event->name = name;
	event->next = state.events;
	state.events = event;
	count_use(1);
	return event;
}

static CUresult record_event(uint64_t stream_name, uint64_t event_name, const CUgraphEdgeData *edge)
{
	struct captured_stream *stream = fgv_capture_find_stream(stream_name);
	struct captured_event *event = stream ? note_event(event_name) : NULL;

	if (!stream)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!event || fgv_nodes_set(&event->last, stream->last.list,
				    edge ? edge : stream->last.edges, stream->last.count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->capture = stream->capture;
	return CUDA_SUCCESS;
}

static CUresult record_event_now(struct fgv_lane *lane, uint32_t event, const CUgraphEdgeData *edge,
				 bool *captured)
{
	uint64_t name = fgv_capturing_name(lane->client->device, event);
	CUresult res = CUDA_SUCCESS;

	*captured = lane->recorder != NULL;
	fgv_capture_lock();
	if (*captured)
		res = record_event(((struct stream_recorder *)lane->recorder)->stream, name, edge);
	else
		forget_event(name);
	fgv_capture_unlock();
	return res;
}

/* @stream, NULL if it is not being captured, waits for what @event has captured. */
static CUresult wait_captured(struct captured_stream *stream, uint64_t name, bool blocking,
			      const struct captured_event *event)
{
	if (!event->capture)
		return stream ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_CAPTURED_EVENT;
	if (event->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream && stream->capture != event->capture) {
		stream->capture->is_invalid = event->capture->is_invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (!stream && !(uint32_t)name) {
		event->capture->is_invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (!stream)
		stream = fgv_capture_join(event->capture, name, blocking);
	if (!stream || fgv_nodes_merge(&stream->last, &event->last))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult wait_event(uint64_t stream_name, bool blocking, uint64_t event_name, bool *captured)
{
	const struct captured_event *event;
	struct captured_stream *stream;
	CUresult res = CUDA_SUCCESS;

	fgv_capture_lock();
	stream = fgv_capture_find_stream(stream_name);
	event = find_event(event_name);
	*captured = stream || event;
	if (event) {
		res = wait_captured(stream, stream_name, blocking, event);
	} else if (stream) {
		stream->capture->is_invalid = true;
		res = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	fgv_capture_unlock();
	return res;
}

static CUresult check_event(uint64_t event)
{
	bool found;

	fgv_capture_lock();
	found = find_event(event);
	fgv_capture_unlock();
	return found ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* --- What streams and events ask ----------------------------------------------- */

CUstreamCaptureStatus fgv_capture_status(const struct captured_stream *stream)
{
	if (!stream)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return stream->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult get_status(uint64_t name, CUstreamCaptureStatus *status)
{
	CUresult res = CUDA_SUCCESS;

	fgv_capture_lock();
	if (!(uint32_t)name && fgv_capture_has_blocking((uint32_t)(name >> 32)))
		res = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	else
		*status = fgv_capture_status(fgv_capture_find_stream(name));
	fgv_capture_unlock();
	return res;
}

static const struct fgv_capturing table = {
	.enter = enter,
	.status = get_status,
	.check_unsafe = check_unsafe,
	.record_event = record_event_now,
	.wait_event = wait_event,
	.check_event = check_event,
	.forget_stream = forget_stream_now,
	.forget_event = forget_event_now,
	.alloc = fgv_capture_alloc,
	.free = fgv_capture_free,
};
