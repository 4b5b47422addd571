/*
 * Copying and filling, for the functions that do so in one stream or another. Those with
 * _wait do what CUDA's functions without Async do: when they return, the program may use
 * its memory, of whatever kind.
 */
#ifndef FGV_LIBCUDART_MEMCPY_H
#define FGV_LIBCUDART_MEMCPY_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "frontend/cuda/memory/memcpy.h"

static inline bool fgv_memcpy_is_to_device(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

static inline bool fgv_memcpy_is_from_device(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

/*
 * Copies as cudaMemcpyAsync() does: to or from pageable memory, that has copied or staged
 * everything when it returns. Between two places on the device, or of host memory that
 * it sees, it returns at once.
 */
cudaError_t fgv_memcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
		       cudaStream_t stream);

cudaError_t fgv_memcpy_wait(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream);

/* The address of a part of a variable, as the target or the source of a copy of @kind. */
cudaError_t fgv_symbol_target(const void *symbol, size_t count, size_t offset,
			      enum cudaMemcpyKind kind, void **part);
cudaError_t fgv_symbol_source(const void *symbol, size_t count, size_t offset,
			      enum cudaMemcpyKind kind, void **part);

cudaError_t fgv_memcpy_to_symbol_wait(const void *symbol, const void *src, size_t count,
				      size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t fgv_memcpy_from_symbol_wait(void *dst, const void *symbol, size_t count, size_t offset,
					enum cudaMemcpyKind kind, cudaStream_t stream);

/* The first @width bytes of @height rows, @pitch apart. */
cudaError_t fgv_memset_wait(void *ptr, size_t pitch, int value, size_t width, size_t height,
			    cudaStream_t stream);

#endif
