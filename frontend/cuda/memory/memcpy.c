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

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
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
};

bool fgv_memcpy_side(const void *ptr, size_t count, bool wanted, enum fgv_side *side, bool *ask)
{
	uint64_t address = (uint64_t)(uintptr_t)ptr;
	struct fgv_range_view view = {0};
	enum fgv_range_fit fit = fgv_addrmap_look(address, count, &view);

	*side = fgv_range_is_host(view.kind) ? FGV_SIDE_SHARED : FGV_SIDE_DEVICE;
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
			     &copy->ask) ||
	    !fgv_memcpy_side(copy->src, copy->count, wanted & FGV_MEMCPY_FROM_DEVICE, &copy->from,
			     &copy->ask))
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

static CUresult copy_on(struct fgv_lane *lane, struct copy *copy, unsigned wanted, CUstream stream)
{
	uint32_t handle;
	CUresult res = find_sides(copy, wanted);

	if (!res)
		res = fgv_stream_handle(lane, stream, &handle);
	if (res)
		return res;
	res = run(lane, copy, handle);
	if (!res && copy->ask && !lane->recorder)
		res = fgv_sync_stream(lane, handle);
	return res;
}

CUresult fgv_memcpy_run(void *dst, const void *src, size_t count, unsigned wanted, CUstream stream,
			bool wait)
{
	struct copy copy = {.dst = dst, .src = src, .count = count, .wait = wait};
	struct fgv_lane *lane;
	CUresult res;

	if (!count)
		return CUDA_SUCCESS;
	res = fgv_context_enter(&lane);
	if (res)
		return res;
	res = copy_on(lane, &copy, wanted, stream);
	fgv_lane_leave(lane);
	return res;
}
