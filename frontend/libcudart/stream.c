/*
 * Streams.
 */
#include <stdlib.h>

#include "frontend/cuda/context/object.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/client/sync.h"
#include "frontend/libcudart/attribute.h"
#include "frontend/libcudart/capture.h"
#include "frontend/libcudart/cudart.h"

/* Higher priorities are lower numbers; CUDA's range on every GPU since Volta. */
#define PRIORITY_LEAST	  0
#define PRIORITY_GREATEST (-5)

static bool is_legacy(cudaStream_t stream)
{
	return !stream || stream == cudaStreamLegacy;
}

static bool find(cudaStream_t stream, struct fgv_object_info *info)
{
	return fgv_object_find(FGV_OBJECT_STREAM, stream, info);
}

/* The host's handle of this thread's own default stream; 0: none yet. */
static __thread uint32_t default_stream;

static void destroy_default_stream(void)
{
	struct fgv_lane *lane = fgv_thread_self.lane;

	/* A session that has ended has given it back, and a thread without a lane has none. */
	if (!lane || fgv_lane_enter(&lane))
		return;
	if (default_stream)
		fgv_post_stream_destroy(lane, default_stream);
	fgv_lane_leave(lane);
	default_stream = 0;
}

static __thread struct fgv_thread_part part = {.end = destroy_default_stream};

/* An ordinary stream, which waits for the legacy one and it for this. */
static cudaError_t own_default_stream(struct fgv_lane *lane, uint32_t *handle)
{
	CUresult res = CUDA_SUCCESS;

	if (!default_stream && fgv_thread_add(&part))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!default_stream)
		res = fgv_call_stream_create(lane, cudaStreamDefault, PRIORITY_LEAST,
					     &default_stream);
	*handle = default_stream;
	return fgv_error_from(res);
}

cudaError_t fgv_stream_find(struct fgv_lane *lane, cudaStream_t stream, uint32_t *handle,
			    bool *blocking)
{
	struct fgv_object_info info;

	*blocking = true;
	if (is_legacy(stream)) {
		*handle = 0;
		return cudaSuccess;
	}
	if (stream == cudaStreamPerThread)
		return own_default_stream(lane, handle);
	if (!find(stream, &info))
		return cudaErrorInvalidResourceHandle;
	*handle = info.handle;
	*blocking = !(info.flags & cudaStreamNonBlocking);
	return cudaSuccess;
}

cudaError_t fgv_stream_handle(struct fgv_lane *lane, cudaStream_t stream, uint32_t *handle)
{
	bool blocking;
	cudaError_t error = fgv_stream_find(lane, stream, handle, &blocking);

	return fgv_capture_is_used() && !error ? fgv_capture_enter(lane, *handle) : error;
}

static cudaError_t create_on(struct fgv_lane *lane, cudaStream_t *stream,
			     struct fgv_object_info *info)
{
	cudaError_t error = fgv_error_from(
		fgv_call_stream_create(lane, info->flags, info->priority, &info->handle));

	if (error)
		return error;
	*stream = fgv_object_create(FGV_OBJECT_STREAM, info);
	if (*stream)
		return cudaSuccess;
	fgv_post_stream_destroy(lane, info->handle);
	return cudaErrorMemoryAllocation;
}

static int clamp(int priority)
{
	if (priority > PRIORITY_LEAST)
		return PRIORITY_LEAST;
	return priority < PRIORITY_GREATEST ? PRIORITY_GREATEST : priority;
}

static cudaError_t create(cudaStream_t *stream, unsigned flags, int priority)
{
	struct fgv_object_info info = {.flags = flags, .priority = clamp(priority)};
	struct fgv_lane *lane;
	cudaError_t error;

	if (!stream || (flags & ~(unsigned)cudaStreamNonBlocking))
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	if (flags & cudaStreamNonBlocking)
		fgv_sync_split(lane->client);
	info.data = fgv_attributes_create(info.priority);
	error = info.data ? create_on(lane, stream, &info) : cudaErrorMemoryAllocation;
	fgv_lane_leave(lane);
	if (error)
		free(info.data);
	return error;
}

FGV_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	return fgv_error_set(create(pStream, cudaStreamDefault, PRIORITY_LEAST));
}

FGV_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	return fgv_error_set(create(pStream, flags, PRIORITY_LEAST));
}

FGV_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
						    int priority)
{
	return fgv_error_set(create(pStream, flags, priority));
}

static cudaError_t destroy(cudaStream_t stream)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	if (fgv_object_destroy(FGV_OBJECT_STREAM, stream, &info)) {
		fgv_capture_forget_stream(info.handle);
		free(info.data);
		error = fgv_error_from(fgv_post_stream_destroy(lane, info.handle));
	} else {
		error = cudaErrorInvalidResourceHandle;
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return fgv_error_set(destroy(stream));
}

/* One of the calls that ask about a stream. */
static cudaError_t ask(cudaStream_t stream, CUresult (*call)(struct fgv_lane *, uint32_t))
{
	struct fgv_lane *lane;
	uint32_t handle;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_stream_handle(lane, stream, &handle);
	if (!error)
		error = fgv_error_from(call(lane, handle));
	fgv_lane_leave(lane);
	return error;
}

static CUresult synchronize(struct fgv_lane *lane, uint32_t handle)
{
	CUresult res = fgv_sync_stream(lane, handle);

	if (!res)
		fgv_pool_settle(lane);
	return res;
}

FGV_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return fgv_error_set(ask(stream, synchronize));
}

FGV_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return fgv_error_set(ask(stream, fgv_call_stream_query));
}

/* Only a stream that is being captured knows external events. */
static cudaError_t wait_external(struct fgv_lane *lane, cudaStream_t stream, cudaEvent_t event,
				 uint32_t event_handle)
{
	uint32_t handle;
	cudaError_t error = fgv_stream_handle(lane, stream, &handle);

	if (error || !lane->recorder)
		return error ? error : cudaErrorIllegalState;
	lane->recorder->subject = event;
	return fgv_error_from(fgv_post_stream_wait_event(lane, handle, event_handle));
}

static cudaError_t wait_on(struct fgv_lane *lane, cudaStream_t stream, uint32_t event)
{
	bool blocking, captured = false;
	uint32_t handle;
	cudaError_t error = fgv_stream_find(lane, stream, &handle, &blocking);

	if (!error && fgv_capture_is_used())
		error = fgv_capture_wait_event(handle, blocking, event, &captured);
	if (error || captured)
		return error;
	error = fgv_stream_handle(lane, stream, &handle);
	return error ? error : fgv_error_from(fgv_post_stream_wait_event(lane, handle, event));
}

static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	cudaError_t error;

	if (flags & ~(unsigned)cudaEventWaitExternal)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	if (!fgv_object_find(FGV_OBJECT_EVENT, event, &info))
		error = cudaErrorInvalidResourceHandle;
	else if (flags)
		error = wait_external(lane, stream, event, info.handle);
	else
		error = wait_on(lane, stream, info.handle);
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
					   unsigned int flags)
{
	return fgv_error_set(wait_event(stream, event, flags));
}

/* How @stream was created; the default streams are as cudaStreamCreate() makes them. */
static cudaError_t describe(cudaStream_t stream, struct fgv_object_info *info)
{
	if (is_legacy(stream) || stream == cudaStreamPerThread)
		*info = (struct fgv_object_info){.priority = PRIORITY_LEAST};
	else if (!find(stream, info))
		return cudaErrorInvalidResourceHandle;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
	struct fgv_object_info info;
	cudaError_t error = flags ? describe(hStream, &info) : cudaErrorInvalidValue;

	if (!error)
		*flags = info.flags;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
	struct fgv_object_info info;
	cudaError_t error = priority ? describe(hStream, &info) : cudaErrorInvalidValue;

	if (!error)
		*priority = info.priority;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return fgv_error_set(error);
	fgv_lane_leave(lane);
	if (leastPriority)
		*leastPriority = PRIORITY_LEAST;
	if (greatestPriority)
		*greatestPriority = PRIORITY_GREATEST;
	return cudaSuccess;
}
