/*
 * Pools of memory as programs ask for them. They are of the device's own memory; what CUDA has of
 * host and managed memory, and pools that can be exported, are CUDA_ERROR_NOT_SUPPORTED, counted.
 *
 * CUDA_ERROR_INVALID_VALUE for what is no pool, and for a missing out-parameter;
 * CUDA_ERROR_INVALID_DEVICE for an ordinal that the session does not have.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_MEMPOOL_H
#define FGV_CUDA_MEMPOOL_H

#include <cuda.h>
#include <stddef.h>

CUresult fgv_mempool_create(CUmemoryPool *pool, const CUmemPoolProps *props);
/* What it keeps goes at once, what is in use when it is freed. Not the default one. */
CUresult fgv_mempool_destroy(CUmemoryPool pool);
CUresult fgv_mempool_trim(CUmemoryPool pool, size_t keep_bytes);

/* The one that there always is, and the one that allocations come from that name none. */
CUresult fgv_mempool_get_default(CUmemoryPool *pool, int ordinal);
CUresult fgv_mempool_get_current(CUmemoryPool *pool, int ordinal);
CUresult fgv_mempool_set_current(int ordinal, CUmemoryPool pool);

/* The same for memory of @type at @location. */
CUresult fgv_mempool_get_default_at(CUmemoryPool *pool, const CUmemLocation *location,
				    CUmemAllocationType type);
CUresult fgv_mempool_get_current_at(CUmemoryPool *pool, const CUmemLocation *location,
				    CUmemAllocationType type);
CUresult fgv_mempool_set_current_at(const CUmemLocation *location, CUmemAllocationType type,
				    CUmemoryPool pool);

/* @value: an int for the rules of reuse, 64 bits for the rest. */
CUresult fgv_mempool_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult fgv_mempool_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				   const void *value);

/*
 * The device has a pool's memory always, and can't be denied it; the processor never has. Other
 * devices of the session have it where they were given access and reach the device's memory. What
 * is taken back is forgotten, though their kernels may still reach it: CUDA_ERROR_ILLEGAL_ADDRESS
 * is not promised.
 */
CUresult fgv_mempool_get_access(CUmemAccess_flags *flags, CUmemoryPool pool,
				const CUmemLocation *location);
CUresult fgv_mempool_set_access(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count);

/* For the core: whether memory of a pool or a graph can be as they say; and has it be so. */
CUresult fgv_mempool_check_props(const CUmemPoolProps *props);
CUresult fgv_mempool_give_access(uint32_t device, const CUmemAccessDesc *list, size_t count);

#endif
