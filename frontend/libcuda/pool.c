/*
 * Memory in the order of streams, and the pools that it comes from.
 */
#include "frontend/cuda/memory/mempool.h"

#include "frontend/cuda/stream/ordered.h"
#include "frontend/libcuda/driver.h"

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_ordered_alloc(address, bytes, pool, stream);
}

FGV_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return FGV_CALL(allocate(dptr, bytesize, NULL, hStream));
}

FGV_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
					    CUstream hStream)
{
	return FGV_CALL(pool ? allocate(dptr, bytesize, pool, hStream) : CUDA_ERROR_INVALID_VALUE);
}

FGV_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	return FGV_CALL(fgv_ordered_free(dptr, hStream));
}

FGV_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_create(pool, poolProps));
}

FGV_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_destroy(pool));
}

FGV_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_trim(pool, minBytesToKeep));
}

FGV_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_get_attribute(pool, attr, value));
}

FGV_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_set_attribute(pool, attr, value));
}

FGV_EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
				       CUmemLocation *location)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_get_access(flags, memPool, location));
}

FGV_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_set_access(pool, map, count));
}

FGV_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_get_default(pool_out, dev));
}

FGV_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_get_current(pool, dev));
}

FGV_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_set_current(dev, pool));
}

FGV_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
					   CUmemAllocationType type)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_get_default_at(pool_out, location, type));
}

FGV_EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
				    CUmemAllocationType type)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_get_current_at(pool, location, type));
}

FGV_EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
				    CUmemoryPool pool)
{
	return FGV_CALL_ANYWHERE(fgv_mempool_set_current_at(location, type, pool));
}
