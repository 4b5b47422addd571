/*
 * Streams.
 */
#include "frontend/cuda/stream/stream.h"

#include <stdlib.h>

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/ctx.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/stream/attributes.h"
#include "frontend/cuda/stream/capturing.h"
#include "frontend/cuda/stream/own.h"

static bool find(CUstream stream, struct fgv_object_info *info)
{
	return fgv_object_find(FGV_OBJECT_STREAM, stream, info);
}

/* A stream that the host makes when it comes to it. */
static CUresult make(struct fgv_lane *lane, unsigned flags, int priority, uint32_t *handle)
{
	CUresult res = fgv_own_take(lane, FGV_OWN_STREAM, handle);

	return res ? res : fgv_post_stream_make(lane, *handle, flags, priority);
}

static void destroy(struct fgv_lane *lane, uint32_t handle)
{
	fgv_post_stream_destroy(lane, handle);
	fgv_own_give(lane, FGV_OWN_STREAM, handle);
}

/* The host's handles of this thread's own default streams, one of each device; 0: none yet. */
static __thread uint32_t default_streams[FGV_DEVICES_MAX];

/* A session that has ended has given it back. */
static void destroy_default_stream(uint32_t device)
{
	struct fgv_lane *lane;

	if (!default_streams[device] || fgv_lane_enter_on(device, &lane))
		return;
	destroy(lane, default_streams[device]);
	fgv_lane_leave(lane);
	default_streams[device] = 0;
}

static void destroy_default_streams(void)
{
	for (uint32_t i = 0; i < FGV_DEVICES_MAX; i++)
		destroy_default_stream(i);
}

static __thread struct fgv_thread_part part = {.end = destroy_default_streams};

/* An ordinary stream, which waits for the legacy one and it for this. */
static CUresult own_default_stream(struct fgv_lane *lane, uint32_t *handle)
{
	uint32_t *own = &default_streams[lane->client->device];
	CUresult res = CUDA_SUCCESS;

	if (!*own && fgv_thread_add(&part))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!*own)
		res = make(lane, CU_STREAM_DEFAULT, FGV_STREAM_PRIORITY_LEAST, own);
	*handle = *own;
	return res;
}

/* By itself, so that the legacy stream does not pay for its room on the stack. */
static __attribute__((noinline)) CUresult find_made(const struct fgv_lane *lane, CUstream stream,
						    uint32_t *handle, bool *blocking)
{
	struct fgv_object_info info;

	if (!find(stream, &info) || info.device != lane->client->device)
		return CUDA_ERROR_INVALID_HANDLE;
	*handle = info.handle;
	*blocking = !(info.flags & CU_STREAM_NON_BLOCKING);
	return CUDA_SUCCESS;
}

CUresult fgv_stream_find(struct fgv_lane *lane, CUstream stream, uint32_t *handle, bool *blocking)
{
	*blocking = true;
	if (fgv_stream_is_legacy(stream)) {
		*handle = 0;
		return CUDA_SUCCESS;
	}
	if (stream == CU_STREAM_PER_THREAD)
		return own_default_stream(lane, handle);
	return find_made(lane, stream, handle, blocking);
}

/* Where it is captured, its priority becomes that of its kernels. */
static CUresult enter_captures(const struct fgv_capturing *now, struct fgv_lane *lane,
			       CUstream stream, uint32_t handle)
{
	int priority;
	CUresult res = now->enter(lane, handle);

	if (!res && lane->recorder && !fgv_stream_get_priority(stream, &priority))
		lane->recorder->priority = priority;
	return res;
}

CUresult fgv_stream_handle(struct fgv_lane *lane, CUstream stream, uint32_t *handle)
{
	const struct fgv_capturing *now = fgv_capturing_now();
	bool blocking;
	CUresult res = fgv_stream_find(lane, stream, handle, &blocking);

	return __builtin_expect(now != NULL, 0) && !res ? enter_captures(now, lane, stream, *handle)
							: res;
}

uint32_t fgv_stream_device(CUstream stream)
{
	struct fgv_object_info info;

	if (fgv_stream_is_legacy(stream) || stream == CU_STREAM_PER_THREAD || !find(stream, &info))
		return fgv_thread_self.device;
	return info.device;
}

CUresult fgv_stream_number(CUstream stream, uint32_t *handle)
{
	struct fgv_lane *lane;
	bool blocking;
	CUresult res = fgv_context_enter_on(fgv_stream_device(stream), &lane);

	if (res)
		return res;
	res = fgv_stream_find(lane, stream, handle, &blocking);
	fgv_lane_leave(lane);
	return res;
}

static CUresult create_on(struct fgv_lane *lane, CUstream *stream, struct fgv_object_info *info)
{
	CUresult res = make(lane, info->flags, info->priority, &info->handle);

	if (res)
		return res;
	*stream = fgv_object_create(FGV_OBJECT_STREAM, info);
	if (*stream)
		return CUDA_SUCCESS;
	destroy(lane, info->handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_stream_create(CUstream *stream, unsigned flags, int priority)
{
	struct fgv_object_info info = {.flags = flags,
				       .priority = fgv_stream_clamp_priority(priority)};
	struct fgv_lane *lane;
	CUresult res;

	if (!stream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	if (flags & CU_STREAM_NON_BLOCKING)
		fgv_sync_split(lane->client);
	info.data = fgv_attributes_create(info.priority);
	res = info.data ? create_on(lane, stream, &info) : CUDA_ERROR_OUT_OF_MEMORY;
	fgv_lane_leave(lane);
	if (res)
		free(info.data);
	return res;
}

static void forget(const struct fgv_object_info *info)
{
	const struct fgv_capturing *now = fgv_capturing_now();

	if (now)
		now->forget_stream(fgv_capturing_name(info->device, info->handle));
}

CUresult fgv_stream_destroy(CUstream stream)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(fgv_stream_device(stream), &lane);

	if (res)
		return res;
	if (fgv_object_destroy(FGV_OBJECT_STREAM, stream, &info)) {
		forget(&info);
		free(info.data);
		destroy(lane, info.handle);
		res = fgv_lane_status(lane);
	} else {
		res = CUDA_ERROR_INVALID_HANDLE;
	}
	fgv_lane_leave(lane);
	return res;
}

static void drain_one(const struct fgv_object_info *info, void *lane)
{
	destroy(lane, info->handle);
	free(info->data);
}

void fgv_stream_drain(struct fgv_lane *lane)
{
	fgv_object_drain(FGV_OBJECT_STREAM, lane->client->device, drain_one, lane);
}

/* One of the calls that ask about a stream. */
static CUresult ask(CUstream stream, CUresult (*call)(struct fgv_lane *, uint32_t))
{
	struct fgv_lane *lane;
	uint32_t handle;
	CUresult res = fgv_context_enter_on(fgv_stream_device(stream), &lane);

	if (res)
		return res;
	res = fgv_stream_handle(lane, stream, &handle);
	if (!res)
		res = call(lane, handle);
	fgv_lane_leave(lane);
	return res;
}

static CUresult synchronize(struct fgv_lane *lane, uint32_t handle)
{
	CUresult res = fgv_sync_stream(lane, handle);

	if (!res)
		fgv_pool_settle(lane);
	return res;
}

CUresult fgv_stream_synchronize(CUstream stream)
{
	return ask(stream, synchronize);
}

CUresult fgv_stream_query(CUstream stream)
{
	return ask(stream, fgv_call_stream_query);
}

/* How @stream was created; the default streams are as cudaStreamCreate() makes them. */
static CUresult describe(CUstream stream, struct fgv_object_info *info)
{
	if (fgv_stream_is_legacy(stream) || stream == CU_STREAM_PER_THREAD)
		*info = (struct fgv_object_info){.priority = FGV_STREAM_PRIORITY_LEAST,
						 .device = fgv_thread_self.device};
	else if (!find(stream, info))
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

CUresult fgv_stream_get_flags(CUstream stream, unsigned *flags)
{
	struct fgv_object_info info;
	CUresult res = flags ? describe(stream, &info) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*flags = info.flags;
	return res;
}

CUresult fgv_stream_get_priority(CUstream stream, int *priority)
{
	struct fgv_object_info info;
	CUresult res = priority ? describe(stream, &info) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*priority = info.priority;
	return res;
}

CUresult fgv_stream_get_id(CUstream stream, unsigned long long *id)
{
	uint32_t handle;
	CUresult res = id ? fgv_stream_number(stream, &handle) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*id = handle;
	return res;
}

CUresult fgv_stream_get_context(CUstream stream, CUcontext *context)
{
	struct fgv_object_info info;
	CUresult res = context ? fgv_stream_check(stream) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*context = find(stream, &info) && info.context ? info.context : fgv_ctx_top();
	return res;
}

CUresult fgv_stream_get_device(CUstream stream, int *ordinal)
{
	struct fgv_object_info info;
	CUresult res = ordinal ? describe(stream, &info) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*ordinal = (int)info.device;
	return res;
}
