/*
 * Memory in rows: allocating and filling it. Rows begin ROW_ALIGN apart, as NVIDIA's driver
 * has them, which suits textures on every GPU.
 */
#include "common/util.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"
#include "frontend/libcudart/memcpy_box.h"

#define ROW_ALIGN 512

static cudaError_t allocate(void **ptr, size_t *pitch, size_t width, size_t rows)
{
	size_t row_bytes, bytes;

	if (width > SIZE_MAX - ROW_ALIGN)
		return cudaErrorInvalidValue;
	row_bytes = fgv_align_up(width, ROW_ALIGN);
	if (__builtin_mul_overflow(row_bytes, rows, &bytes))
		return cudaErrorMemoryAllocation;
	*pitch = row_bytes;
	return cudaMalloc(ptr, bytes);
}

FGV_EXPORT cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	size_t row_bytes;
	cudaError_t error;

	if (!devPtr || !pitch)
		return fgv_error_set(cudaErrorInvalidValue);
	error = allocate(devPtr, &row_bytes, width, height);
	if (!error)
		*pitch = row_bytes;
	return fgv_error_set(error);
}

static cudaError_t allocate_slices(struct cudaPitchedPtr *memory, struct cudaExtent extent)
{
	struct cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
	size_t rows;
	cudaError_t error;

	if (!memory)
		return cudaErrorInvalidValue;
	if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudaErrorMemoryAllocation;
	error = allocate(&made.ptr, &made.pitch, extent.width, rows);
	if (!error)
		*memory = made;
	return error;
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
