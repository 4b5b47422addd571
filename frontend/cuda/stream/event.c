/*
 * Events.
 */
#include "frontend/cuda/stream/event.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/stream/capturing.h"
#include "frontend/cuda/stream/ipc_event.h"
#include "frontend/cuda/stream/own.h"
#include "frontend/cuda/stream/remote.h"
#include "frontend/cuda/stream/stream.h"

#define KNOWN_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

bool fgv_event_find(CUevent event, struct fgv_object_info *info)
{
	return fgv_object_find(FGV_OBJECT_EVENT, event, info);
}

/* The thread's where it is none. */
static uint32_t device_of(CUevent event)
{
	struct fgv_object_info info;

	return fgv_event_find(event, &info) ? info.device : fgv_thread_self.device;
}

CUresult fgv_event_make(struct fgv_lane *lane, unsigned flags, uint32_t *handle)
{
	CUresult res = fgv_own_take(lane, FGV_OWN_EVENT, handle);

	return res ? res : fgv_post_event_make(lane, *handle, flags);
}

void fgv_event_unmake(struct fgv_lane *lane, uint32_t handle)
{
	fgv_post_event_destroy(lane, handle);
	fgv_own_give(lane, FGV_OWN_EVENT, handle);
}

static CUresult create_on(struct fgv_lane *lane, CUevent *event, struct fgv_object_info *info)
{
	CUresult res = fgv_event_make(lane, info->flags, &info->handle);

	if (res)
		return res;
	*event = fgv_object_create(FGV_OBJECT_EVENT, info);
	if (*event)
		return CUDA_SUCCESS;
	fgv_event_unmake(lane, info->handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Of a session's devices the first one alone has events for other programs. */
static CUresult enter_first(struct fgv_lane **lane)
{
	if (fgv_thread_self.device)
		return FGV_UNSUPPORTED("CU_EVENT_INTERPROCESS on another device than the first");
	return fgv_context_enter_on(0, lane);
}

static CUresult create_shared_on(struct fgv_lane *lane, CUevent *event,
				 struct fgv_object_info *info)
{
	struct fgv_ipc_event *made = NULL;
	CUresult res = fgv_ipc_event_make(lane, &made);

	if (res)
		return res == CUDA_ERROR_NOT_SUPPORTED ? FGV_UNSUPPORTED("CU_EVENT_INTERPROCESS")
						       : res;
	info->data = made;
	/* To the host it is one as any other. */
	info->flags &= ~(uint32_t)CU_EVENT_INTERPROCESS;
	res = create_on(lane, event, info);
	if (res)
		fgv_ipc_event_free(made);
	return res;
}

CUresult fgv_event_create(CUevent *event, unsigned flags)
{
	struct fgv_object_info info = {.flags = flags};
	struct fgv_lane *lane;
	CUresult res;

	if (!event || (flags & ~(unsigned)KNOWN_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		res = enter_first(&lane);
	else
		res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	if (flags & CU_EVENT_INTERPROCESS)
		res = create_shared_on(lane, event, &info);
	else
		res = create_on(lane, event, &info);
	fgv_lane_leave(lane);
	return res;
}

/* --- Handles --- */

CUresult fgv_event_get_handle(CUipcEventHandle *handle, CUevent event)
{
	struct fgv_object_info info;
	CUresult res = handle ? fgv_context_need() : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	if (!fgv_event_find(event, &info) || !info.data)
		return CUDA_ERROR_INVALID_HANDLE;
	return fgv_ipc_event_get(info.data, handle);
}

CUresult fgv_event_open_handle(CUevent *event, const CUipcEventHandle *handle)
{
	struct fgv_object_info info = {.flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING};
	struct fgv_ipc_event *opened = NULL;
	struct fgv_lane *lane;
	CUresult res;

	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	res = enter_first(&lane);
	if (res)
		return res;
	res = fgv_ipc_event_open(lane, handle, &opened);
	fgv_lane_leave(lane);
	if (res)
		return res == CUDA_ERROR_NOT_SUPPORTED ? FGV_UNSUPPORTED("CU_EVENT_INTERPROCESS")
						       : res;
	info.data = opened;
	*event = fgv_object_create(FGV_OBJECT_EVENT, &info);
	if (*event)
		return CUDA_SUCCESS;
	fgv_ipc_event_free(opened);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Another program's, of which the host has no event. */
static bool is_others(const struct fgv_object_info *info)
{
	return info->data && fgv_ipc_event_is_others(info->data);
}

static void unmake(struct fgv_lane *lane, const struct fgv_object_info *info)
{
	if (!is_others(info))
		fgv_event_unmake(lane, info->handle);
	fgv_ipc_event_free(info->data);
}

static uint64_t name_of(const struct fgv_object_info *info)
{
	return fgv_capturing_name(info->device, info->handle);
}

static void forget(const struct fgv_object_info *info)
{
	const struct fgv_capturing *now = fgv_capturing_now();

	if (now)
		now->forget_event(name_of(info));
}

CUresult fgv_event_destroy(CUevent event)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device_of(event), &lane);

	if (res)
		return res;
	if (fgv_object_destroy(FGV_OBJECT_EVENT, event, &info)) {
		if (!is_others(&info))
			forget(&info);
		unmake(lane, &info);
		res = fgv_lane_status(lane);
	} else {
		res = CUDA_ERROR_INVALID_HANDLE;
	}
	fgv_lane_leave(lane);
	return res;
}

static void drain_one(const struct fgv_object_info *info, void *lane)
{
	unmake(lane, info);
}

void fgv_event_drain(struct fgv_lane *lane)
{
	fgv_object_drain(FGV_OBJECT_EVENT, lane->client->device, drain_one, lane);
}

static CUresult check_captured(const struct fgv_object_info *info)
{
	const struct fgv_capturing *now = fgv_capturing_now();

	return now ? now->check_event(name_of(info)) : CUDA_SUCCESS;
}

/* Of a capture, if any; else it is for the host to record. */
static CUresult capture(struct fgv_lane *lane, uint32_t event, const CUgraphEdgeData *edge,
			bool *captured)
{
	const struct fgv_capturing *now = fgv_capturing_now();

	*captured = false;
	return now ? now->record_event(lane, event, edge, captured) : CUDA_SUCCESS;
}

/* Of one that other programs may have. */
static CUresult record_shared(struct fgv_lane *lane, const struct fgv_object_info *event,
			      uint32_t stream)
{
	uint64_t number;
	CUresult res = fgv_ipc_event_begin(lane, event->data, stream, &number);

	if (!res)
		res = fgv_post_event_record(lane, event->handle, stream);
	return res ? res : fgv_ipc_event_end(lane, event->data, stream, number);
}

/* In a stream that is being captured an event is no node, unless it is external. */
static CUresult record_on(struct fgv_lane *lane, CUevent event, const struct fgv_object_info *info,
			  CUstream stream, bool external)
{
	bool captured = false;
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, stream, &handle);

	if (res)
		return res;
	if (is_others(info))
		return FGV_UNSUPPORTED("recording an event of another program");
	if (external && !lane->recorder)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (external && info->data)
		return FGV_UNSUPPORTED("CU_EVENT_INTERPROCESS as a node of a graph");
	if (external)
		lane->recorder->subject = event;
	else
		res = capture(lane, info->handle, NULL, &captured);
	if (res || captured)
		return res;
	return info->data ? record_shared(lane, info, handle)
			  : fgv_post_event_record(lane, info->handle, handle);
}

CUresult fgv_event_record(CUevent event, CUstream stream, unsigned flags)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	CUresult res;

	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_on(fgv_stream_device(stream), &lane);
	if (res)
		return res;
	if (fgv_event_find(event, &info) && info.device == lane->client->device)
		res = record_on(lane, event, &info, stream, flags);
	else
		res = CUDA_ERROR_INVALID_HANDLE;
	fgv_lane_leave(lane);
	return res;
}

/* Only a stream that is being captured knows external events. */
static CUresult wait_external(struct fgv_lane *lane, CUstream stream, CUevent event,
			      uint32_t event_handle)
{
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, stream, &handle);

	if (res || !lane->recorder)
		return res ? res : CUDA_ERROR_ILLEGAL_STATE;
	lane->recorder->subject = event;
	return fgv_post_stream_wait_event(lane, handle, event_handle);
}

static CUresult wait_on(struct fgv_lane *lane, CUstream stream, uint32_t event)
{
	const struct fgv_capturing *now = fgv_capturing_now();
	bool blocking, captured = false;
	uint32_t handle;
	CUresult res = fgv_stream_find(lane, stream, &handle, &blocking);

	if (!res && now)
		res = now->wait_event(fgv_capturing_name(lane->client->device, handle), blocking,
				      fgv_capturing_name(lane->client->device, event), &captured);
	if (res || captured)
		return res;
	res = fgv_stream_handle(lane, stream, &handle);
	return res ? res : fgv_post_stream_wait_event(lane, handle, event);
}

/* A capture is of one device, and knows nothing of what another one does. */
static CUresult check_uncaptured(CUstream stream, const struct fgv_object_info *event)
{
	const struct fgv_capturing *now = fgv_capturing_now();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	uint32_t handle;
	CUresult res = now ? fgv_stream_number(stream, &handle) : CUDA_SUCCESS;

	if (!res && now)
		res = now->status(fgv_capturing_name(fgv_stream_device(stream), handle), &status);
	if (res)
		return res;
	return status || check_captured(event) ? FGV_UNSUPPORTED("captures of several devices")
					       : CUDA_SUCCESS;
}

static CUresult wait_remote(CUstream stream, const struct fgv_object_info *event)
{
	struct fgv_remote signal;
	struct fgv_lane *lane;
	uint32_t handle;
	CUresult res = check_uncaptured(stream, event);

	if (!res)
		res = fgv_remote_signal(event->device, event->handle, &signal);
	if (!res)
		res = fgv_context_enter_on(fgv_stream_device(stream), &lane);
	if (res)
		return res;
	res = fgv_stream_handle(lane, stream, &handle);
	if (!res)
		res = fgv_remote_wait(lane, handle, &signal);
	fgv_lane_leave(lane);
	return res;
}

/* An event that another program records. */
static CUresult wait_others(struct fgv_lane *lane, CUstream stream,
			    const struct fgv_object_info *event)
{
	uint32_t handle;
	CUresult res = check_uncaptured(stream, event);

	if (!res)
		res = fgv_stream_handle(lane, stream, &handle);
	return res ? res : fgv_ipc_event_wait(lane, event->data, handle);
}

CUresult fgv_event_wait(CUstream stream, CUevent event, unsigned flags)
{
	struct fgv_object_info info;
	bool is_remote = false;
	struct fgv_lane *lane;
	CUresult res;

	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_on(fgv_stream_device(stream), &lane);
	if (res)
		return res;
	if (!fgv_event_find(event, &info))
		res = CUDA_ERROR_INVALID_HANDLE;
	else if (info.device != lane->client->device)
		is_remote = true;
	else if (is_others(&info))
		res = wait_others(lane, stream, &info);
	else if (flags)
		res = wait_external(lane, stream, event, info.handle);
	else
		res = wait_on(lane, stream, info.handle);
	fgv_lane_leave(lane);
	if (is_remote && is_others(&info))
		return FGV_UNSUPPORTED("waiting for an event of another program on another device");
	if (is_remote)
		return flags ? CUDA_ERROR_ILLEGAL_STATE : wait_remote(stream, &info);
	return res;
}

CUresult fgv_event_check(CUevent event, int flags)
{
	struct fgv_object_info info;

	if (!fgv_event_find(event, &info))
		return CUDA_ERROR_INVALID_HANDLE;
	if (info.data)
		return FGV_UNSUPPORTED("CU_EVENT_INTERPROCESS in a launch");
	if (flags & ~CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags && fgv_capturing_now())
		return FGV_UNSUPPORTED("external events of launches in a capture");
	if (flags)
		return CUDA_ERROR_ILLEGAL_STATE;
	return info.flags & CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fgv_event_record_behind(CUevent event, CUstream stream, const CUgraphEdgeData *edge)
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	bool captured = false;
	uint32_t handle;
	CUresult res = fgv_context_enter_on(fgv_stream_device(stream), &lane);

	if (res)
		return res;
	res = fgv_event_find(event, &info) && info.device == lane->client->device
		      ? fgv_stream_handle(lane, stream, &handle)
		      : CUDA_ERROR_INVALID_HANDLE;
	if (!res)
		res = capture(lane, info.handle, edge, &captured);
	if (!res && !captured)
		res = fgv_post_event_record(lane, info.handle, handle);
	fgv_lane_leave(lane);
	return res;
}

/* One of the calls that ask about an event; @others: the same of another program's. */
static CUresult ask(CUevent event, CUresult (*call)(struct fgv_lane *, uint32_t),
		    CUresult (*others)(struct fgv_lane *, const struct fgv_ipc_event *))
{
	struct fgv_object_info info;
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device_of(event), &lane);

	if (res)
		return res;
	if (!fgv_event_find(event, &info))
		res = CUDA_ERROR_INVALID_HANDLE;
	else if (!is_others(&info))
		res = check_captured(&info);
	if (!res)
		res = is_others(&info) ? others(lane, info.data) : call(lane, info.handle);
	fgv_lane_leave(lane);
	return res;
}

static CUresult synchronize(struct fgv_lane *lane, uint32_t handle)
{
	CUresult res = fgv_call_event_sync(lane, handle);

	if (!res)
		fgv_pool_settle(lane);
	return res;
}

CUresult fgv_event_synchronize(CUevent event)
{
	return ask(event, synchronize, fgv_ipc_event_synchronize);
}

CUresult fgv_event_query(CUevent event)
{
	return ask(event, fgv_call_event_query, fgv_ipc_event_query);
}

CUresult fgv_event_elapsed(float *ms, CUevent start, CUevent end)
{
	struct fgv_object_info first, last;
	struct fgv_lane *lane;
	CUresult res;

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_on(device_of(start), &lane);
	if (res)
		return res;
	if (!fgv_event_find(start, &first) || !fgv_event_find(end, &last) ||
	    first.device != last.device || ((first.flags | last.flags) & CU_EVENT_DISABLE_TIMING))
		res = CUDA_ERROR_INVALID_HANDLE;
	else
		res = fgv_call_event_elapsed(lane, first.handle, last.handle, ms);
	fgv_lane_leave(lane);
	return res;
}
