/*
 * Pending functions and values, the requests that wait for them, and the operations of all.
 */
#include "backend/vgpu/stall.h"

#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"

void fgv_stall_init(struct fgv_stall *stall)
{
	memset(stall, 0, sizeof(*stall));
	fgv_held_init(&stall->waiting);
	STAILQ_INIT(&stall->funcs);
	stall->generation = 1;
}

static void drop(struct fgv_session *session, struct fgv_host_func *func)
{
	struct fgv_stall *stall = &session->stall;

	STAILQ_REMOVE(&stall->funcs, func, fgv_host_func, link);
	stall->func_count--;
	stall->value_count -= func->width > 0;
	if (func->fence) {
		session->gpu->ops->fence_put(session->gpu, func->fence);
		session->waits.on_gpu--;
		stall->fences--;
	}
	if (func->stream)
		fgv_session_put(session, func->stream);
	free(func);
}

void fgv_stall_fini(struct fgv_session *session)
{
	struct fgv_stall *stall = &session->stall;

	fgv_values_fini(session);
	while (!STAILQ_EMPTY(&stall->funcs))
		drop(session, STAILQ_FIRST(&stall->funcs));
	fgv_held_fini(&stall->waiting);
}

/* --- Marks ------------------------------------------------------------------- */

static void mark_stream(struct fgv_stall *stall, struct fgv_object *stream)
{
	if (!stream)
		stall->legacy_mark = stall->generation;
	else
		stream->stalled = stall->generation;
	if (stream && stream->is_blocking)
		stall->blocking_mark = stall->generation;
}

/* The legacy stream and those that are blocking wait for each other. */
static bool is_stream_marked(const struct fgv_stall *stall, const struct fgv_object *stream)
{
	bool legacy = stall->legacy_mark == stall->generation;

	if (!stream)
		return legacy || stall->blocking_mark == stall->generation;
	return stream->stalled == stall->generation || (stream->is_blocking && legacy);
}

/* What a message, not checked yet, names at @off. False: nothing that there is. */
static bool find_object(struct fgv_session *session, enum fgv_kind kind, const uint8_t *message,
			uint32_t len, size_t off, struct fgv_object **object)
{
	uint32_t handle = fgv_held_handle_at(message, len, off);

	*object = handle ? fgv_session_lookup(session, kind, handle) : NULL;
	return *object || (kind == FGV_KIND_STREAM && !handle);
}

/* Where operations on events have theirs; the second one only event_elapsed. */
static bool event_offsets(uint16_t op, size_t offs[2])
{
	switch (op) {
	case FGV_OP_EVENT_RECORD:
		offs[0] = offs[1] = offsetof(struct fgv_event_record_request, event);
		return true;
	case FGV_OP_STREAM_WAIT_EVENT:
		offs[0] = offs[1] = offsetof(struct fgv_stream_wait_event_request, event);
		return true;
	case FGV_OP_EVENT_SYNC:
		offs[0] = offs[1] = offsetof(struct fgv_event_sync_request, event);
		return true;
	case FGV_OP_EVENT_QUERY:
		offs[0] = offs[1] = offsetof(struct fgv_event_query_request, event);
		return true;
	case FGV_OP_EVENT_DESTROY:
		offs[0] = offs[1] = offsetof(struct fgv_event_destroy_request, event);
		return true;
	case FGV_OP_EVENT_ELAPSED:
		offs[0] = offsetof(struct fgv_event_elapsed_request, start);
		offs[1] = offsetof(struct fgv_event_elapsed_request, end);
		return true;
	default:
		return false;
	}
}

/* A record that waits holds up queries of the event; a wait that waits, the next record. */
static bool is_event_marked(const struct fgv_stall *stall, const struct fgv_object *event,
			    uint16_t op)
{
	if (event->stalled == stall->generation)
		return true;
	return (op == FGV_OP_EVENT_RECORD || op == FGV_OP_EVENT_DESTROY) &&
	       event->awaited == stall->generation;
}

static bool is_any_event_marked(struct fgv_session *session, uint16_t op, const uint8_t *message,
				uint32_t len)
{
	struct fgv_object *event;
	size_t offs[2];

	if (!event_offsets(op, offs))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		if (find_object(session, FGV_KIND_EVENT, message, len, offs[i], &event) &&
		    is_event_marked(&session->stall, event, op))
			return true;
	}
	return false;
}

/* Where operations on graphs have theirs. */
static bool graph_offset(uint16_t op, size_t *off)
{
	switch (op) {
	case FGV_OP_GRAPH_UPDATE:
		*off = offsetof(struct fgv_graph_update_request, graph);
		return true;
	case FGV_OP_GRAPH_LAUNCH:
		*off = offsetof(struct fgv_graph_launch_request, graph);
		return true;
	case FGV_OP_GRAPH_DESTROY:
		*off = offsetof(struct fgv_graph_destroy_request, graph);
		return true;
	default:
		return false;
	}
}

/* A launch does with its events what requests would that record them or wait for them. */
static bool is_event_in_marked(const struct fgv_stall *stall, const struct fgv_object *object)
{
	const struct fgv_graph *graph = object->graph;
	uint16_t op;

	for (uint32_t i = 0; graph->events && i < graph->count; i++) {
		const struct fgv_object *event = fgv_graph_event(graph, i, &op);

		if (event && is_event_marked(stall, event, op))
			return true;
	}
	return false;
}

static void mark_event(struct fgv_stall *stall, struct fgv_object *event, uint16_t op)
{
	if (op == FGV_OP_EVENT_RECORD)
		event->stalled = stall->generation;
	else
		event->awaited = stall->generation;
}

static void mark_graph(struct fgv_stall *stall, struct fgv_object *object, uint16_t op)
{
	const struct fgv_graph *graph = object->graph;
	struct fgv_object *event;
	uint16_t event_op;

	object->stalled = stall->generation;
	for (uint32_t i = 0; op == FGV_OP_GRAPH_LAUNCH && graph->events && i < graph->count; i++) {
		event = fgv_graph_event(graph, i, &event_op);
		if (event)
			mark_event(stall, event, event_op);
	}
}

/* What is done with a graph is done in its order, whatever the streams of its launches. */
static bool is_graph_marked(struct fgv_session *session, uint16_t op, const uint8_t *message,
			    uint32_t len, size_t off)
{
	struct fgv_object *graph;

	if (!find_object(session, FGV_KIND_GRAPH, message, len, off, &graph))
		return false;
	return graph->stalled == session->stall.generation ||
	       (op == FGV_OP_GRAPH_LAUNCH && is_event_in_marked(&session->stall, graph));
}

/* What has no stream, event or graph has to do with all work before it. */
static bool must_wait(struct fgv_session *session, uint16_t op, const uint8_t *message,
		      uint32_t len)
{
	const struct fgv_op_info *info = fgv_held_info(op);
	struct fgv_object *stream;
	size_t offs[2], off;
	bool has_graph = graph_offset(op, &off);

	if (is_any_event_marked(session, op, message, len) ||
	    (has_graph && is_graph_marked(session, op, message, len, off)))
		return true;
	if (info->stream_off == FGV_OP_NO_STREAM)
		return info->name && !event_offsets(op, offs) && !has_graph &&
		       (session->stall.func_count || session->stall.earlier);
	return find_object(session, FGV_KIND_STREAM, message, len, info->stream_off, &stream) &&
	       is_stream_marked(&session->stall, stream);
}

enum fgv_held_way fgv_stall_judge(struct fgv_session *session, const struct fgv_request *request,
				  const uint8_t *message, uint32_t len)
{
	struct fgv_stall *stall = &session->stall;
	uint16_t op = request->op;

	if (!fgv_stall_is_used(stall))
		return FGV_HELD_RUN;
	if (fgv_held_info(op)->call && stall->lane_marks[request->lane] == stall->generation)
		return FGV_HELD_HOLD;
	if (op == FGV_OP_MEM_ALLOC || op == FGV_OP_MEM_INFO)
		return stall->earlier_frees ? FGV_HELD_HOLD : FGV_HELD_RUN;
	if (fgv_held_info(op)->apart || !must_wait(session, op, message, len))
		return FGV_HELD_RUN;
	return op == FGV_OP_STREAM_QUERY || op == FGV_OP_EVENT_QUERY ? FGV_HELD_NOT_READY
								     : FGV_HELD_HOLD;
}

static void mark_request(struct fgv_session *session, const struct fgv_request *request,
			 const uint8_t *message, uint32_t len)
{
	const struct fgv_op_info *info = fgv_held_info(request->op);
	struct fgv_stall *stall = &session->stall;
	struct fgv_object *object;
	size_t offs[2], off;

	if (info->call)
		stall->lane_marks[request->lane] = stall->generation;
	if (graph_offset(request->op, &off) &&
	    find_object(session, FGV_KIND_GRAPH, message, len, off, &object))
		mark_graph(stall, object, request->op);
	if (info->work && info->stream_off != FGV_OP_NO_STREAM &&
	    find_object(session, FGV_KIND_STREAM, message, len, info->stream_off, &object))
		mark_stream(stall, object);
	if (!info->work || !event_offsets(request->op, offs) ||
	    !find_object(session, FGV_KIND_EVENT, message, len, offs[0], &object))
		return;
	mark_event(stall, object, request->op);
}

int fgv_stall_add(struct fgv_session *session, const struct fgv_request *request,
		  const uint8_t *message, uint32_t len)
{
	mark_request(session, request, message, len);
	session->stall.earlier++;
	session->stall.earlier_frees += request->op == FGV_OP_MEM_FREE;
	return fgv_held_add(&session->stall.waiting, request, message, len);
}

uint32_t fgv_stall_begin_look(struct fgv_stall *stall)
{
	struct fgv_host_func *func;

	stall->look = false;
	stall->earlier = 0;
	stall->earlier_frees = 0;
	stall->generation++;
	STAILQ_FOREACH(func, &stall->funcs, link)
	{
		mark_stream(stall, func->stream);
	}
	return stall->waiting.count;
}

/* --- Functions --------------------------------------------------------------- */

/* One more, behind the work of @stream that there is. */
static CUresult begin(struct fgv_session *session, struct fgv_object *stream,
		      struct fgv_host_func **begun)
{
	struct fgv_stall *stall = &session->stall;
	struct fgv_host_func *func;
	CUresult status;

	if (stall->func_count >= FGV_FUNCTIONS_PENDING_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	func = calloc(1, sizeof(*func));
	if (!func)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = session->gpu->ops->fence(session->gpu, stream ? stream->stream : NULL,
					  &func->fence);
	if (status != CUDA_SUCCESS) {
		free(func);
		return status;
	}
	func->stream = stream;
	if (stream)
		fgv_object_get(stream);
	STAILQ_INSERT_TAIL(&stall->funcs, func, link);
	stall->func_count++;
	stall->fences++;
	session->waits.on_gpu++;
	mark_stream(stall, stream);
	*begun = func;
	return CUDA_SUCCESS;
}

CUresult fgv_do_host_func(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_host_func_in *in)
{
	struct fgv_host_func *func;
	CUresult status = begin(session, in->stream, &func);

	(void)request;
	if (status == CUDA_SUCCESS)
		func->number = in->number;
	return status;
}

CUresult fgv_do_value_wait(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_value_wait_in *in)
{
	struct fgv_host_func *value;
	CUresult status;

	(void)request;
	if ((in->width != 4 && in->width != 8) || !in->address || in->address % in->width ||
	    in->flags > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	status = begin(session, in->stream, &value);
	if (status != CUDA_SUCCESS)
		return status;
	value->width = in->width;
	value->how = in->flags;
	value->address = in->address;
	value->value = in->value;
	value->is_on_gpu = !fgv_mapped_find(&session->mapped, in->address, in->width);
	session->stall.value_count++;
	return CUDA_SUCCESS;
}

static void finish(struct fgv_session *session, uint64_t number)
{
	struct fgv_host_func *func;

	STAILQ_FOREACH(func, &session->stall.funcs, link)
	{
		if (func->told && func->number == number) {
			drop(session, func);
			session->stall.look = true;
			return;
		}
	}
}

CUresult fgv_do_host_func_next(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_host_func_next_in *in,
			       struct fgv_host_func_next_out *out)
{
	struct fgv_stall *stall = &session->stall;

	(void)out;
	if (stall->is_asked)
		return CUDA_ERROR_INVALID_VALUE;
	if (in->done)
		finish(session, in->done);
	stall->is_asked = true;
	stall->asked = *request;
	return FGV_PENDING;
}

static void look_at_fences(struct fgv_session *session)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_host_func *func;

	STAILQ_FOREACH(func, &session->stall.funcs, link)
	{
		if (!func->fence)
			continue;
		func->status = ops->fence_query(session->gpu, func->fence);
		if (func->status == CUDA_ERROR_NOT_READY)
			continue;
		ops->fence_put(session->gpu, func->fence);
		func->fence = NULL;
		session->waits.on_gpu--;
		session->stall.fences--;
	}
}

static int tell(struct fgv_session *session, struct fgv_host_func *func)
{
	struct fgv_stall *stall = &session->stall;
	struct fgv_host_func_next_reply data = {.number = func->number};
	struct fgv_reply reply = {
		.op = stall->asked.op,
		.call = stall->asked.call,
		.status = func->status,
		.data = &data,
		.len = sizeof(data),
	};

	func->told = true;
	stall->is_asked = false;
	return fgv_session_reply(session, stall->asked.lane, &reply);
}

/* How many have come; after a fault none is waited for. */
static int look_at_values(struct fgv_session *session)
{
	struct fgv_host_func *value, *next;
	int come = 0;

	STAILQ_FOREACH_SAFE(value, &session->stall.funcs, link, next)
	{
		if (!value->width || value->fence ||
		    (value->status == CUDA_SUCCESS && !fgv_value_has_come(session, value)))
			continue;
		drop(session, value);
		session->stall.look = true;
		come++;
	}
	return come;
}

int fgv_stall_poll(struct fgv_session *session)
{
	struct fgv_stall *stall = &session->stall;
	struct fgv_host_func *func;
	int err, come = 0;

	if (stall->fences)
		look_at_fences(session);
	if (stall->value_count)
		come = look_at_values(session);
	if (!stall->is_asked)
		return come;
	STAILQ_FOREACH(func, &stall->funcs, link)
	{
		if (func->fence || func->told || func->width)
			continue;
		err = tell(session, func);
		return err < 0 ? err : come + 1;
	}
	return come;
}
