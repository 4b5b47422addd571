/*
 * The handlers of the operations on streams and events; see handlers.c. Nothing here
 * waits: a request to be told when the GPU is there gets a fence in the list of waits.
 */
#include "backend/vgpu/session.h"

static struct fgv_gpu_stream *stream_of(const struct fgv_object *object)
{
	return object ? object->stream : NULL;
}

/* What the driver may be asked for. Events for other processes are not among it. */
#define STREAM_FLAGS CU_STREAM_NON_BLOCKING
#define EVENT_FLAGS  (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)

/* What @object, new and without it, stands for; or no object. */
static CUresult make_stream(struct fgv_session *session, struct fgv_object *object, uint32_t flags,
			    int32_t priority)
{
	struct fgv_gpu *gpu = session->gpu;
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (!(flags & ~(uint32_t)STREAM_FLAGS))
		status = gpu->ops->stream_create(gpu, flags, priority, &object->stream);
	if (status != CUDA_SUCCESS) {
		fgv_session_abandon(session, object);
		return status;
	}
	object->is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
	object->is_urgent = priority < 0;
	return CUDA_SUCCESS;
}

static CUresult make_event(struct fgv_session *session, struct fgv_object *object, uint32_t flags)
{
	struct fgv_gpu *gpu = session->gpu;
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	if (!(flags & ~(uint32_t)EVENT_FLAGS))
		status = gpu->ops->event_create(gpu, flags, &object->event);
	if (status != CUDA_SUCCESS)
		fgv_session_abandon(session, object);
	return status;
}

CUresult fgv_do_stream_make(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_stream_make_in *in)
{
	struct fgv_object *object;
	CUresult status = fgv_own_add(session, FGV_KIND_STREAM, in->handle, &object);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	return make_stream(session, object, in->flags, in->priority);
}

CUresult fgv_do_event_make(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_event_make_in *in)
{
	struct fgv_object *object;
	CUresult status = fgv_own_add(session, FGV_KIND_EVENT, in->handle, &object);

	(void)request;
	return status == CUDA_SUCCESS ? make_event(session, object, in->flags) : status;
}

CUresult fgv_do_stream_create(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_stream_create_in *in,
			      struct fgv_stream_create_out *out)
{
	struct fgv_object *object;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = fgv_session_add(session, FGV_KIND_STREAM, session->costs.stream, &object);
	if (status != CUDA_SUCCESS)
		return status;
	out->stream = object->handle;
	return make_stream(session, object, in->flags, in->priority);
}

CUresult fgv_do_stream_destroy(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_stream_destroy_in *in)
{
	(void)request;
	if (!in->stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return fgv_session_remove(session, in->stream);
}

CUresult fgv_do_stream_sync(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_stream_sync_in *in)
{
	struct fgv_gpu_fence *fence;
	CUresult status = session->gpu->ops->fence(session->gpu, stream_of(in->stream), &fence);

	if (status != CUDA_SUCCESS)
		return status;
	return fgv_session_await_fence(session, request, fence, 0);
}

CUresult fgv_do_stream_query(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_stream_query_in *in)
{
	(void)request;
	return session->gpu->ops->stream_query(session->gpu, stream_of(in->stream));
}

CUresult fgv_do_device_sync(struct fgv_session *session, struct fgv_request *request)
{
	struct fgv_gpu_fence *fence;
	CUresult status = session->gpu->ops->fence_all(session->gpu, &fence);

	if (status != CUDA_SUCCESS)
		return status;
	return fgv_session_await_fence(session, request, fence, session->gate.submitted);
}

CUresult fgv_do_stream_wait_event(struct fgv_session *session, struct fgv_request *request,
				  const struct fgv_stream_wait_event_in *in)
{
	(void)request;
	return session->gpu->ops->stream_wait_event(session->gpu, stream_of(in->stream),
						    in->event->event);
}

CUresult fgv_do_value_write(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_value_write_in *in)
{
	(void)request;
	if ((in->width != 4 && in->width != 8) || in->address % in->width ||
	    in->flags != CU_STREAM_WRITE_VALUE_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	return session->gpu->ops->value_write(session->gpu, in->address, in->value, in->width,
					      in->flags, stream_of(in->stream));
}

CUresult fgv_do_event_create(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_event_create_in *in, struct fgv_event_create_out *out)
{
	struct fgv_object *object;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = fgv_session_add(session, FGV_KIND_EVENT, session->costs.event, &object);
	if (status != CUDA_SUCCESS)
		return status;
	out->event = object->handle;
	return make_event(session, object, in->flags);
}

CUresult fgv_do_event_destroy(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_event_destroy_in *in)
{
	(void)request;
	return fgv_session_remove(session, in->event);
}

CUresult fgv_do_event_record(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_event_record_in *in)
{
	(void)request;
	return session->gpu->ops->event_record(session->gpu, in->event->event,
					       stream_of(in->stream));
}

/*
 * Looks at the event itself: where another thread records it anew meanwhile, the wait is
 * for that too, which CUDA's is not.
 */
CUresult fgv_do_event_sync(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_event_sync_in *in)
{
	return fgv_session_await_event(session, request, in->event);
}

CUresult fgv_do_event_query(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_event_query_in *in)
{
	(void)request;
	return session->gpu->ops->event_query(session->gpu, in->event->event);
}

CUresult fgv_do_event_elapsed(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_event_elapsed_in *in,
			      struct fgv_event_elapsed_out *out)
{
	(void)request;
	return session->gpu->ops->event_elapsed(session->gpu, in->start->event, in->end->event,
						&out->ms);
}
