/*
 * What a program says of managed memory (host.h allocates it). The program and the GPU use the same
 * pages at any time, so nothing ever moves between them: advice and prefetching are checked,
 * remembered and told when asked for.
 *
 * CUDA_ERROR_INVALID_VALUE for memory that is not managed, and for unknown flags and attributes;
 * CUDA_ERROR_INVALID_DEVICE for a prefetch to a device that the session does not have.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_MANAGED_H
#define FGV_CUDA_MANAGED_H

#include <cuda.h>
#include <stddef.h>

CUresult fgv_managed_advise(CUdeviceptr address, size_t bytes, CUmem_advise advice,
			    CUmemLocation location);
/* @flags: none are known. */
CUresult fgv_managed_prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location,
			      unsigned flags, CUstream stream);
/* What is said to be forgotten is kept. */
CUresult fgv_managed_discard(CUdeviceptr address, size_t bytes);
/* @flags: of CUmemAttach_flags. */
CUresult fgv_managed_attach(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags);

/* What all pages have in common: @count attributes, each into @data of @sizes bytes. */
CUresult fgv_managed_get_attributes(void **data, const size_t *sizes,
				    const CUmem_range_attribute *attributes, size_t count,
				    CUdeviceptr address, size_t bytes);

#endif
