/*
 * Events.
 */
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/libcudart/capture.h"
#include "frontend/libcudart/cudart.h"

#define KNOWN_FLAGS (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)

static bool find(cudaEvent_t event, struct fgv_object_info *info)
{
	return fgv_object_find(FGV_OBJECT_EVENT, event, info);
}

static cudaError_t create(cudaEvent_t *event, unsigned flags)
{
	struct fgv_object_info info = {.flags = flags};
	struct fgv_lane *lane;
	cudaError_t error;

	if (!event || (flags & ~(unsigned)KNOWN_FLAGS))
		return cudaErrorInvalidValue;
	if ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming))
		return cudaErrorInvalidValue;
	if (flags & cudaEventInterprocess)
		return FGV_NOT_SUPPORTED("cudaEventInterprocess");
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_error_from(fgv_call_event_create(lane, flags, &info.handle));
	if (!error) {
		*event = fgv_object_create(FGV_OBJECT_EVENT, &info);
		if (!*event) {
			fgv_post_event_destroy(lane, info.handle);
			error = cudaErrorMemoryAllocation;
		}
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return fgv_error_set(create(event, cudaEventDefault));
}

FGV_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return fgv_error_set(create(event, flags));
}

static cudaError_t destroy(cudaEvent_t event)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	if (fgv_object_destroy(FGV_OBJECT_EVENT, event, &info)) {
		fgv_capture_forget_event(info.handle);
		error = fgv_error_from(fgv_post_event_destroy(lane, info.handle));
	} else {
		error = cudaErrorInvalidResourceHandle;
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return fgv_error_set(destroy(event));
}

/* In a stream that is being captured an event is no node, unless it is external. */
static cudaError_t record_on(struct fgv_lane *lane, cudaEvent_t event, uint32_t event_handle,
			     cudaStream_t stream, bool external)
{
	bool captured = false;
	uint32_t handle;
	cudaError_t error = fgv_stream_handle(lane, stream, &handle);

	if (error)
		return error;
	if (external && !lane->recorder)
		return cudaErrorIllegalState;
	if (external)
		lane->recorder->subject = event;
	else
		error = fgv_capture_record_event(lane, event_handle, NULL, &captured);
	if (error || captured)
		return error;
	return fgv_error_from(fgv_post_event_record(lane, event_handle, handle));
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	cudaError_t error;

	if (flags & ~(unsigned)cudaEventRecordExternal)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	if (find(event, &info))
		error = record_on(lane, event, info.handle, stream, flags);
	else
		error = cudaErrorInvalidResourceHandle;
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return fgv_error_set(record(event, stream, cudaEventRecordDefault));
}

FGV_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
						unsigned int flags)
{
	return fgv_error_set(record(event, stream, flags));
}

cudaError_t fgv_event_check(cudaEvent_t event, int flags)
{
	struct fgv_object_info info;

	if (!find(event, &info))
		return cudaErrorInvalidResourceHandle;
	if (flags & ~cudaEventRecordExternal)
		return cudaErrorInvalidValue;
	if (flags && fgv_capture_is_used())
		return FGV_NOT_SUPPORTED("external events of launches in a capture");
	if (flags)
		return cudaErrorIllegalState;
	return info.flags & cudaEventDisableTiming ? cudaSuccess : cudaErrorNotSupported;
}

cudaError_t fgv_event_record_behind(cudaEvent_t event, cudaStream_t stream,
				    const cudaGraphEdgeData *edge)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	bool captured = false;
	uint32_t handle;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = find(event, &info) ? fgv_stream_handle(lane, stream, &handle)
				   : cudaErrorInvalidResourceHandle;
	if (!error)
		error = fgv_capture_record_event(lane, info.handle, edge, &captured);
	if (!error && !captured)
		error = fgv_error_from(fgv_post_event_record(lane, info.handle, handle));
	fgv_lane_leave(lane);
	return error;
}

/* One of the calls that ask about an event. */
static cudaError_t ask(cudaEvent_t event, CUresult (*call)(struct fgv_lane *, uint32_t))
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	if (find(event, &info))
		error = fgv_capture_check_event(info.handle);
	else
		error = cudaErrorInvalidResourceHandle;
	if (!error)
		error = fgv_error_from(call(lane, info.handle));
	fgv_lane_leave(lane);
	return error;
}

static CUresult synchronize(struct fgv_lane *lane, uint32_t handle)
{
	CUresult res = fgv_call_event_sync(lane, handle);

	if (!res)
		fgv_pool_settle(lane);
	return res;
}

FGV_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return fgv_error_set(ask(event, synchronize));
}

FGV_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return fgv_error_set(ask(event, fgv_call_event_query));
}

static cudaError_t elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	struct fgv_object_info first, last;
	struct fgv_lane *lane;
	cudaError_t error;

	if (!ms)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	if (!find(start, &first) || !find(end, &last) ||
	    ((first.flags | last.flags) & cudaEventDisableTiming))
		error = cudaErrorInvalidResourceHandle;
	else
		error = fgv_error_from(fgv_call_event_elapsed(lane, first.handle, last.handle, ms));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return fgv_error_set(elapsed(ms, start, end));
}
