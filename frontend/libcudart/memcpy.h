/*
 * Copying, for the functions that copy to and from pointers and symbols.
 */
#ifndef FGV_LIBCUDART_MEMCPY_H
#define FGV_LIBCUDART_MEMCPY_H

#include <cuda_runtime_api.h>

/*
 * Copies as cudaMemcpyAsync() does: to or from pageable memory, which is all that
 * there is, that has copied or staged everything when it returns. Between two places on
 * the device it returns at once, as does cudaMemcpy().
 */
cudaError_t fgv_memcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
		       cudaStream_t stream);

#endif
