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
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/memcpy.h"

#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/copy.h"
#include "frontend/client/sync.h"
#include "frontend/libcudart/cudart.h"

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
	if (wanted || fgv_addrmap_is_reserved(address))
		*ask = true;
	else
		*side = FGV_SIDE_HOST;
	return true;
}

static cudaError_t find_sides(struct copy *copy, enum cudaMemcpyKind kind)
{
	bool to_device = fgv_memcpy_is_to_device(kind);
	bool from_device = fgv_memcpy_is_from_device(kind);

	if ((unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!copy->dst || !copy->src)
		return cudaErrorInvalidValue;
	if (!fgv_memcpy_side(copy->dst, copy->count, to_device, &copy->to, &copy->ask) ||
	    !fgv_memcpy_side(copy->src, copy->count, from_device, &copy->from, &copy->ask))
		return cudaErrorInvalidValue;
	return cudaSuccess;
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

static cudaError_t copy_on(struct fgv_lane *lane, struct copy *copy, enum cudaMemcpyKind kind,
			   cudaStream_t stream)
{
	uint32_t handle;
	cudaError_t error = find_sides(copy, kind);
	CUresult res;

	if (!error)
		error = fgv_error_from(fgv_stream_handle(lane, stream, &handle));
	if (error)
		return error;
	res = run(lane, copy, handle);
	if (!res && copy->ask && !lane->recorder)
		res = fgv_sync_stream(lane, handle);
	return fgv_error_from(res);
}

static cudaError_t enter_and_copy(struct copy *copy, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct fgv_lane *lane;
	cudaError_t error;

	if (!copy->count)
		return cudaSuccess;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = copy_on(lane, copy, kind, stream);
	fgv_lane_leave(lane);
	return error;
}

cudaError_t fgv_memcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
		       cudaStream_t stream)
{
	struct copy copy = {.dst = dst, .src = src, .count = count};

	return enter_and_copy(&copy, kind, stream);
}

cudaError_t fgv_memcpy_wait(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	struct copy copy = {.dst = dst, .src = src, .count = count, .wait = true};

	return enter_and_copy(&copy, kind, stream);
}

FGV_EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
				  enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_wait(dst, src, count, kind, NULL));
}

FGV_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
				       enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy(dst, src, count, kind, stream));
}
