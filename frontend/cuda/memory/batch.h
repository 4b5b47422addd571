/*
 * Many copies, prefetches or discards by one call. Nothing says that those of a batch happen in any
 * order, so they happen in theirs.
 *
 * CUDA_ERROR_INVALID_VALUE for an empty batch, for one in the legacy stream, and for what the
 * single calls refuse.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_BATCH_H
#define FGV_CUDA_BATCH_H

#include <cuda.h>
#include <stddef.h>

/* @attributes are those of the copies from @indices on. */
CUresult fgv_batch_copy(void *const *to, const void *const *from, const size_t *sizes, size_t count,
			const CUmemcpyAttributes *attributes, const size_t *indices,
			size_t attribute_count, CUstream stream);
CUresult fgv_batch_copy_boxes(const CUDA_MEMCPY3D_BATCH_OP *copies, size_t count,
			      unsigned long long flags, CUstream stream);

/* @locations are those of the ranges from @indices on. */
CUresult fgv_batch_prefetch(const CUdeviceptr *ranges, const size_t *sizes, size_t count,
			    const CUmemLocation *locations, const size_t *indices,
			    size_t location_count, unsigned long long flags, CUstream stream);
CUresult fgv_batch_discard(const CUdeviceptr *ranges, const size_t *sizes, size_t count,
			   unsigned long long flags, CUstream stream);

#endif
