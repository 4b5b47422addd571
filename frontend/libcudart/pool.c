/*
 * Stream-ordered allocation, and the pools that it comes from.
 */
#include "frontend/cuda/memory/mempool.h"
#include "frontend/cuda/stream/ordered.h"
#include "frontend/libcudart/cudart.h"

/* The same numbers and the same layout by other names. */
_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps) &&
		       sizeof(struct cudaMemLocation) == sizeof(CUmemLocation) &&
		       sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc) &&
		       (int)cudaMemLocationTypeHostNumaCurrent ==
			       (int)CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT &&
		       (int)cudaMemPoolAttrUsedMemHigh == (int)CU_MEMPOOL_ATTR_USED_MEM_HIGH,
	       "pools");

FGV_EXPORT cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	return FGV_RESULT(fgv_ordered_alloc((CUdeviceptr *)(void *)devPtr, size, NULL, hStream));
}

FGV_EXPORT cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
					       cudaStream_t stream)
{
	if (!memPool)
		return fgv_error_set(cudaErrorInvalidValue);
	return FGV_RESULT(fgv_ordered_alloc((CUdeviceptr *)(void *)ptr, size, memPool, stream));
}

FGV_EXPORT cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	return FGV_RESULT(fgv_ordered_free((CUdeviceptr)(uintptr_t)devPtr, hStream));
}

FGV_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
	return FGV_RESULT(fgv_mempool_get_default(memPool, device));
}

FGV_EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
	return FGV_RESULT(fgv_mempool_get_current(memPool, device));
}

FGV_EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
	return FGV_RESULT(fgv_mempool_set_current(device, memPool));
}

FGV_EXPORT cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *memPool,
						struct cudaMemLocation *location,
						enum cudaMemAllocationType type)
{
	return FGV_RESULT(fgv_mempool_get_default_at(memPool, (const CUmemLocation *)location,
						     (CUmemAllocationType)type));
}

FGV_EXPORT cudaError_t cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
					 enum cudaMemAllocationType type)
{
	return FGV_RESULT(fgv_mempool_get_current_at(memPool, (const CUmemLocation *)location,
						     (CUmemAllocationType)type));
}

FGV_EXPORT cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location,
					 enum cudaMemAllocationType type, cudaMemPool_t memPool)
{
	return FGV_RESULT(fgv_mempool_set_current_at((const CUmemLocation *)location,
						     (CUmemAllocationType)type, memPool));
}

FGV_EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool,
					 const struct cudaMemPoolProps *poolProps)
{
	return FGV_RESULT(fgv_mempool_create(memPool, (const CUmemPoolProps *)poolProps));
}

FGV_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
	return FGV_RESULT(fgv_mempool_destroy(memPool));
}

FGV_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
	return FGV_RESULT(fgv_mempool_trim(memPool, minBytesToKeep));
}

FGV_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr,
					       void *value)
{
	return FGV_RESULT(fgv_mempool_set_attribute(memPool, (CUmemPool_attribute)attr, value));
}

FGV_EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr,
					       void *value)
{
	return FGV_RESULT(fgv_mempool_get_attribute(memPool, (CUmemPool_attribute)attr, value));
}

FGV_EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool,
					    const struct cudaMemAccessDesc *descList, size_t count)
{
	return FGV_RESULT(
		fgv_mempool_set_access(memPool, (const CUmemAccessDesc *)descList, count));
}

FGV_EXPORT cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
					    struct cudaMemLocation *location)
{
	return FGV_RESULT(fgv_mempool_get_access((CUmemAccess_flags *)flags, memPool,
						 (const CUmemLocation *)location));
}
