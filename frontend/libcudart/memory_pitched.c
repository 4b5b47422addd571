/*
 * Memory in rows: allocating and filling it.
 */
#include "frontend/cuda/memory/pitched.h"

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"
#include "frontend/libcudart/memcpy_box.h"

FGV_EXPORT cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	return FGV_RESULT(fgv_pitched_alloc((CUdeviceptr *)(void *)devPtr, pitch, width, height));
}

static cudaError_t allocate_slices(struct cudaPitchedPtr *memory, struct cudaExtent extent)
{
	struct cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
	size_t rows;
	CUresult res;

	if (!memory)
		return cudaErrorInvalidValue;
	if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudaErrorMemoryAllocation;
	res = fgv_pitched_alloc((CUdeviceptr *)(void *)&made.ptr, &made.pitch, extent.width, rows);
	if (!res)
		*memory = made;
	return fgv_error_from(res);
}

FGV_EXPORT cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	return fgv_error_set(allocate_slices(pitchedDevPtr, extent));
}

static cudaError_t fill_rows(void *ptr, size_t pitch, int value, size_t width, size_t rows,
			     struct fgv_when when)
{
	if (when.wait)
		return fgv_memset_wait(ptr, pitch, value, width, rows, when.stream);
	return cudaMemset2DAsync(ptr, pitch, value, width, rows, when.stream);
}

/* All rows are one sequence where the slices have no others; else slice by slice. */
cudaError_t fgv_memset_3d(struct cudaPitchedPtr memory, int value, struct cudaExtent extent,
			  struct fgv_when when)
{
	size_t slice_bytes, rows;
	cudaError_t error = cudaSuccess;

	if (!extent.width || !extent.height || !extent.depth)
		return cudaSuccess;
	if (__builtin_mul_overflow(memory.pitch, memory.ysize, &slice_bytes) ||
	    __builtin_mul_overflow(extent.height, extent.depth, &rows) ||
	    (extent.depth > 1 && memory.ysize < extent.height))
		return cudaErrorInvalidValue;
	if (extent.depth == 1 || memory.ysize == extent.height)
		return fill_rows(memory.ptr, memory.pitch, value, extent.width, rows, when);
	for (size_t z = 0; z < extent.depth && !error; z++)
		error = fill_rows((char *)memory.ptr + z * slice_bytes, memory.pitch, value,
				  extent.width, extent.height, when);
	return error;
}

FGV_EXPORT cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
				    struct cudaExtent extent)
{
	return fgv_error_set(
		fgv_memset_3d(pitchedDevPtr, value, extent, (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
					 struct cudaExtent extent, cudaStream_t stream)
{
	return fgv_error_set(
		fgv_memset_3d(pitchedDevPtr, value, extent, (struct fgv_when){stream, false}));
}
