/*
 * Copying and filling. Under unified addressing the pointers themselves say where they point; the
 * kind only has to be possible: the device's side of a copy must be a device pointer, the
 * program's side may be (then the copy is one on the device).
 */
#include "frontend/libcudart/memcpy.h"

#include "frontend/cuda/memory/fill.h"
#include "frontend/libcudart/cudart.h"

static cudaError_t copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			cudaStream_t stream, bool wait)
{
	unsigned wanted = (fgv_memcpy_is_to_device(kind) ? FGV_MEMCPY_TO_DEVICE : 0) |
			  (fgv_memcpy_is_from_device(kind) ? FGV_MEMCPY_FROM_DEVICE : 0);
	CUresult res;

	if (__builtin_expect((unsigned)kind > cudaMemcpyDefault, 0)) {
		res = count ? fgv_context_need() : CUDA_SUCCESS;
		return !count || res ? fgv_error_from(res) : cudaErrorInvalidMemcpyDirection;
	}
	return fgv_error_from(fgv_memcpy_run(dst, src, count, wanted, stream, wait));
}

cudaError_t fgv_memcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
		       cudaStream_t stream)
{
	return copy(dst, src, count, kind, stream, false);
}

cudaError_t fgv_memcpy_wait(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	return copy(dst, src, count, kind, stream, true);
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

static cudaError_t fill(void *ptr, size_t pitch, int value, size_t width, size_t height,
			cudaStream_t stream, bool wait)
{
	const struct fgv_fill rows = {
		.address = (CUdeviceptr)(uintptr_t)ptr,
		.pitch = pitch,
		.value = (uint8_t)value,
		.element = 1,
		.count = width,
		.rows = height,
	};

	return fgv_error_from(fgv_fill_run(&rows, stream, wait));
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
