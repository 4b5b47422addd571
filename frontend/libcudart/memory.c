/*
 * Device memory: allocating, filling, asking.
 *
 * What CUDA says about a bad pointer is found out here, from the address map, so that
 * the operation can be posted. An address that the map does not know may still be
 * right (addrmap.h): then the GPU is asked, by waiting.
 */
#include "frontend/libcudart/cudart.h"

#include "frontend/cuda/memory/devmem.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/stream/capturing.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/graph_memory.h"
#include "frontend/libcudart/memcpy.h"

static cudaError_t allocate(void **ptr, size_t size)
{
	struct fgv_lane *lane;
	uint64_t address = 0;
	cudaError_t error;

	if (!ptr)
		return cudaErrorInvalidValue;
	error = fgv_error_from(fgv_capturing_check_unsafe());
	if (!error)
		error = fgv_enter(&lane);
	if (error)
		return error;
	if (size)
		error = fgv_error_from(fgv_devmem_alloc(lane, size, FGV_RANGE_MEMORY, &address));
	fgv_lane_leave(lane);
	if (!error)
		*ptr = (void *)(uintptr_t)address;
	return error;
}

FGV_EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	return fgv_error_set(allocate(devPtr, size));
}

static CUresult free_graphs(struct fgv_lane *lane, uint64_t address)
{
	if (fgv_graph_memory_free(address, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	fgv_graph_memory_sweep(lane);
	return CUDA_SUCCESS;
}

/* The memory goes after the work that uses it, and CUDA waits for all. */
static CUresult free_memory(struct fgv_lane *lane, uint64_t address)
{
	CUresult done = fgv_sync_device_seen(lane);
	CUresult res = fgv_post_mem_free(lane, address);

	return done ? done : res;
}

/*
 * What another stream may yet be using of a pool or a graph is waited for in any case, as that
 * gives it out again.
 */
static CUresult release_on(struct fgv_lane *lane, uint64_t address)
{
	struct fgv_range_view view;
	CUresult res;

	/* Off the map before the host may give the same address to another thread. */
	if (!fgv_addrmap_remove(address, FGV_RANGE_MEMORY))
		return free_memory(lane, address);
	if (fgv_addrmap_look(address, 1, &view) == FGV_FIT_UNKNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	if (view.kind != FGV_RANGE_POOLED && view.kind != FGV_RANGE_GRAPH)
		return fgv_hostmem_free(lane, address, FGV_RANGE_MANAGED);
	res = fgv_sync_device(lane);
	if (res)
		return res;
	return view.kind == FGV_RANGE_POOLED ? fgv_pool_free(lane, address, 0)
					     : free_graphs(lane, address);
}

static cudaError_t release(void *ptr)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_error_from(fgv_capturing_check_unsafe());

	if (!error)
		error = fgv_enter(&lane);
	if (error)
		return error;
	if (ptr)
		error = fgv_error_from(release_on(lane, (uint64_t)(uintptr_t)ptr));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaFree(void *devPtr)
{
	return fgv_error_set(release(devPtr));
}

static cudaError_t memory_info(size_t *free_bytes, size_t *total)
{
	struct fgv_lane *lane;
	uint64_t free_now, all;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_call_mem_info(lane, &free_now, &all));
	fgv_lane_leave(lane);
	if (error)
		return error;
	if (free_bytes)
		*free_bytes = free_now;
	if (total)
		*total = all;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	return fgv_error_set(memory_info(free, total));
}

/* The first @width bytes of @height rows, @pitch apart; @span from the first to the last. */
struct rows {
	uint64_t address;
	size_t pitch;
	size_t width;
	size_t height;
	size_t span;
	bool wait; /* for the end, where the program sees the memory, as cudaMemset() does */
};

static CUresult post_fill(struct fgv_lane *lane, const struct rows *rows, int value,
			  uint32_t stream)
{
	if (rows->height == 1)
		return fgv_post_fill(lane, rows->address, rows->width, (uint8_t)value, 1, stream);
	return fgv_post_fill_rows(lane, rows->address, rows->pitch, rows->width, rows->height,
				  (uint8_t)value, stream);
}

static cudaError_t fill_on(struct fgv_lane *lane, const struct rows *rows, int value,
			   cudaStream_t stream)
{
	struct fgv_range_view view = {0};
	enum fgv_range_fit fit = fgv_addrmap_look(rows->address, rows->span, &view);
	bool wait = fit == FGV_FIT_UNKNOWN || (rows->wait && fgv_range_is_host(view.kind));
	uint32_t handle;
	cudaError_t error = fgv_error_from(fgv_stream_handle(lane, stream, &handle));

	if (!error && (!rows->address || fit == FGV_FIT_BEYOND))
		error = cudaErrorInvalidValue;
	if (error)
		return error;
	error = fgv_error_from(post_fill(lane, rows, value, handle));
	if (!error && wait && !lane->recorder)
		error = fgv_error_from(fgv_sync_stream(lane, handle));
	return error;
}

static cudaError_t fill(void *ptr, size_t pitch, int value, size_t width, size_t height,
			cudaStream_t stream, bool wait)
{
	struct rows rows = {(uint64_t)(uintptr_t)ptr, pitch, width, height, 0, wait};
	struct fgv_lane *lane;
	cudaError_t error;

	if (!width || !height)
		return cudaSuccess;
	if (width > pitch || __builtin_mul_overflow(pitch, height - 1, &rows.span) ||
	    __builtin_add_overflow(rows.span, width, &rows.span))
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fill_on(lane, &rows, value, stream);
	fgv_lane_leave(lane);
	return error;
}

cudaError_t fgv_memset_wait(void *ptr, size_t pitch, int value, size_t width, size_t height,
			    cudaStream_t stream)
{
	return fill(ptr, pitch, value, width, height, stream, true);
}

FGV_EXPORT cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	return fgv_error_set(fgv_memset_wait(devPtr, count, value, count, 1, NULL));
}

FGV_EXPORT cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return fgv_error_set(fill(devPtr, count, value, count, 1, stream, false));
}

FGV_EXPORT cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width,
				    size_t height)
{
	return fgv_error_set(fgv_memset_wait(devPtr, pitch, value, width, height, NULL));
}

FGV_EXPORT cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width,
					 size_t height, cudaStream_t stream)
{
	return fgv_error_set(fill(devPtr, pitch, value, width, height, stream, false));
}
