/*
 * Copying between pointers. Under unified addressing the pointers themselves say where
 * they point; the kind only has to be possible: the device's side of a copy must
 * be a device pointer, the program's side may be (then the copy is one on the device).
 *
 * Host memory that the GPU sees goes to it, or comes from it, by its address and without a
 * copy in between. Then a call that is not asynchronous has to wait, as the program sees, or
 * changes, the memory afterwards. Not even a little of it is sent along with the request:
 * work that was queued before may write to it yet.
 */
#include "frontend/cuda/memory/memcpy.h"

#include <stdlib.h>

#include "common/util.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/peer.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/copy.h"
#include "frontend/cuda/memory/vmem.h"
#include "frontend/cuda/stream/stream.h"

struct copy {
	void *dst;
	const void *src;
	size_t count;
	enum fgv_side to, from;
	bool ask;  /* as fgv_memcpy_side() says */
	bool wait; /* the call is not asynchronous */
	/* The devices of the two ends; the stream's, of an end that is on none. */
	uint32_t to_device, from_device;
};

/* What a copy from one device to another has in the program at a time. */
#define PEER_CHUNK (4u << 20)

/* Managed variables are shown to the first device alone: for others they are the program's. */
bool fgv_memcpy_side(const void *ptr, size_t count, bool wanted, enum fgv_side *side, bool *ask,
		     uint32_t *device)
{
	uint64_t address = (uint64_t)(uintptr_t)ptr;
	struct fgv_range_view view = {0};
	enum fgv_range_fit fit = fgv_addrmap_look(address, count, &view);

	if (fit != FGV_FIT_UNKNOWN && !fgv_range_is_host(view.kind))
		*device = view.kind == FGV_RANGE_MAPPED ? fgv_vmem_user(address, *device)
							: view.device;

	*side = fgv_range_is_host(view.kind) ? FGV_SIDE_SHARED : FGV_SIDE_DEVICE;
	if (view.kind == FGV_RANGE_MANAGED_VARIABLE && *device)
		*side = FGV_SIDE_HOST;
	if (fit != FGV_FIT_UNKNOWN)
		return fit == FGV_FIT_INSIDE;
	if (!wanted && !fgv_addrmap_is_reserved(address)) {
		*side = FGV_SIDE_HOST;
		return true;
	}
	*ask = true;
	return !fgv_vmem_is_reserved(address);
}

static CUresult find_sides(struct copy *copy, unsigned wanted)
{
	if (!copy->dst || !copy->src)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fgv_memcpy_side(copy->dst, copy->count, wanted & FGV_MEMCPY_TO_DEVICE, &copy->to,
			     &copy->ask, &copy->to_device) ||
	    !fgv_memcpy_side(copy->src, copy->count, wanted & FGV_MEMCPY_FROM_DEVICE, &copy->from,
			     &copy->ask, &copy->from_device))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult run(struct fgv_lane *lane, const struct copy *copy, uint32_t stream)
{
	uint64_t to = (uint64_t)(uintptr_t)copy->dst;
	uint64_t from = (uint64_t)(uintptr_t)copy->src;
	CUresult res;

	if (copy->to == FGV_SIDE_DEVICE && copy->from == FGV_SIDE_HOST) {
		res = copy->wait ? fgv_sync_stream_seen(lane, stream) : CUDA_SUCCESS;
		if (!res)
			res = fgv_copy_in(lane, to, copy->src, copy->count, stream);
		if (!res && copy->wait && copy->count > FGV_DATA_MAX)
			res = fgv_sync_stream(lane, stream);
		return res;
	}
	if (copy->to == FGV_SIDE_HOST && copy->from == FGV_SIDE_DEVICE) {
		uint64_t then = fgv_sync_now(lane);

		res = fgv_copy_out(lane, copy->dst, from, copy->count, stream);
		if (!res)
			fgv_sync_note(lane, stream, then);
		return res;
	}
	if (copy->to == FGV_SIDE_DEVICE || copy->from == FGV_SIDE_DEVICE) {
		res = fgv_post_copy_device(lane, to, from, copy->count, stream);
		if (!res && copy->wait && copy->to != copy->from)
			res = fgv_sync_stream(lane, stream);
		return res;
	}
	/* Within host memory CUDA's copies are never asynchronous. */
	return fgv_copy_host(lane, copy->dst, copy->src, copy->count, stream);
}

static CUresult run_on(struct fgv_lane *lane, const struct copy *copy, CUstream stream)
{
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, stream, &handle);

	if (res)
		return res;
	res = run(lane, copy, handle);
	if (!res && copy->ask && !lane->recorder)
		res = fgv_sync_stream(lane, handle);
	return res;
}

static CUresult copy_on(struct fgv_lane *lane, struct copy *copy, unsigned wanted, CUstream stream)
{
	CUresult res = find_sides(copy, wanted);

	return res ? res : run_on(lane, copy, stream);
}

/* --- With several devices ---------------------------------------------------- */

static CUresult enter_and_run(uint32_t device, struct copy *copy, CUstream stream)
{
	struct fgv_lane *lane;
	CUresult res;

	res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = run_on(lane, copy, stream);
	fgv_lane_leave(lane);
	return res;
}

/* The legacy stream of @device, with all that comes before it. */
static CUresult await_legacy(uint32_t device)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device, &lane);

	if (res)
		return res;
	res = fgv_sync_stream(lane, 0);
	fgv_lane_leave(lane);
	return res;
}

/* Behind all that its device has in streams that wait for the legacy one; done on return. */
static CUresult run_alone(uint32_t device, void *dst, enum fgv_side to, const void *src,
			  enum fgv_side from, size_t count)
{
	struct copy copy = {dst, src, count, to, from, false, true, device, device};
	CUresult res = enter_and_run(device, &copy, CU_STREAM_LEGACY);

	return res ? res : await_legacy(device);
}

/* Whether the stream's device has one of two ends, and reaches the other as a peer's memory. */
static bool is_direct(uint32_t device, const struct copy *copy)
{
	bool is_to = copy->to_device == device;
	uint64_t far = (uint64_t)(uintptr_t)(is_to ? copy->src : copy->dst);

	return (is_to || copy->from_device == device) && !fgv_vmem_is_reserved(far) &&
	       fgv_peer_is_enabled(device, is_to ? copy->from_device : copy->to_device);
}

/*
 * By the stream's device alone. A copy that is not asynchronous comes behind what the other device
 * has, too, and is done on return, so that it is before what that gets next.
 */
static CUresult run_direct(uint32_t device, struct copy *copy, CUstream stream)
{
	uint32_t other = copy->to_device == device ? copy->from_device : copy->to_device;
	CUresult res = copy->wait ? await_legacy(other) : CUDA_SUCCESS;

	if (!res)
		res = enter_and_run(device, copy, stream);
	if (!res && copy->wait)
		res = fgv_stream_synchronize(stream);
	return res;
}

static CUresult run_between(const struct copy *copy)
{
	size_t room = fgv_min_u64(copy->count, PEER_CHUNK);
	uint8_t *chunk = malloc(room);
	CUresult res = chunk ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t done = 0; done < copy->count && !res; done += room) {
		size_t len = fgv_min_u64(room, copy->count - done);

		res = run_alone(copy->from_device, chunk, FGV_SIDE_HOST,
				(const uint8_t *)copy->src + done, FGV_SIDE_DEVICE, len);
		if (!res)
			res = run_alone(copy->to_device, (uint8_t *)copy->dst + done,
					FGV_SIDE_DEVICE, chunk, FGV_SIDE_HOST, len);
	}
	free(chunk);
	return res;
}

/*
 * What is not all of the stream's device comes behind what the stream has, and is done on return:
 * CUDA lets a copy be as slow as it likes. Between two devices it goes through the program, unless
 * the stream's device reaches the other one's memory.
 */
static CUresult run_anywhere(struct copy *copy, unsigned wanted, CUstream stream)
{
	uint32_t device = fgv_stream_device(stream);
	bool is_between;
	CUresult res;

	copy->to_device = copy->from_device = device;
	res = find_sides(copy, wanted);
	if (res)
		return res;
	if (copy->to_device == device && copy->from_device == device)
		return enter_and_run(device, copy, stream);
	is_between = copy->to == FGV_SIDE_DEVICE && copy->from == FGV_SIDE_DEVICE &&
		     copy->to_device != copy->from_device;
	if (is_between && is_direct(device, copy))
		return run_direct(device, copy, stream);
	res = fgv_stream_synchronize(stream);
	if (res)
		return res;
	if (is_between)
		return run_between(copy);
	return run_alone(copy->to_device != device ? copy->to_device : copy->from_device, copy->dst,
			 copy->to, copy->src, copy->from, copy->count);
}

CUresult fgv_memcpy_run(void *dst, const void *src, size_t count, unsigned wanted, CUstream stream,
			bool wait)
{
	struct copy copy = {.dst = dst, .src = src, .count = count, .wait = wait};
	struct fgv_lane *lane;
	CUresult res;

	if (!count)
		return CUDA_SUCCESS;
	res = fgv_context_enter_on(fgv_stream_device(stream), &lane);
	if (res)
		return res;
	if (fgv_session_count() > 1) {
		fgv_lane_leave(lane);
		return run_anywhere(&copy, wanted, stream);
	}
	res = copy_on(lane, &copy, wanted, stream);
	fgv_lane_leave(lane);
	return res;
}
