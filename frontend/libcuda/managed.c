/*
 * Managed memory: advice, prefetching, and what is known of ranges.
 */
#include "frontend/cuda/memory/managed.h"

#include "frontend/cuda/memory/batch.h"
#include "frontend/libcuda/driver.h"

/* How CUDA before 12.2 named places: the processor is no device. */
static CUmemLocation place_of(CUdevice device)
{
	if (device == CU_DEVICE_CPU)
		return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
	return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

FGV_EXPORT CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
				CUdevice device)
{
	return FGV_CALL(fgv_managed_advise(devPtr, count, advice, place_of(device)));
}

FGV_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
				   CUmemLocation location)
{
	return FGV_CALL(fgv_managed_advise(devPtr, count, advice, location));
}

FGV_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
				       CUstream hStream)
{
	return FGV_CALL(fgv_managed_prefetch(devPtr, count, place_of(dstDevice), 0, hStream));
}

FGV_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
					  unsigned int flags, CUstream hStream)
{
	return FGV_CALL(fgv_managed_prefetch(devPtr, count, location, flags, hStream));
}

FGV_EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t dataSize,
					   CUmem_range_attribute attribute, CUdeviceptr devPtr,
					   size_t count)
{
	return FGV_CALL(fgv_managed_get_attributes(&data, &dataSize, &attribute, 1, devPtr, count));
}

FGV_EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes,
					    CUmem_range_attribute *attributes, size_t numAttributes,
					    CUdeviceptr devPtr, size_t count)
{
	return FGV_CALL(fgv_managed_get_attributes(data, dataSizes, attributes, numAttributes,
						   devPtr, count));
}

FGV_EXPORT CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
					   unsigned int flags)
{
	return FGV_CALL(fgv_managed_attach(hStream, dptr, length, flags));
}

FGV_EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
					    CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
					    size_t numPrefetchLocs, unsigned long long flags,
					    CUstream hStream)
{
	return FGV_CALL(fgv_batch_prefetch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
					   numPrefetchLocs, flags, hStream));
}

FGV_EXPORT CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
					   unsigned long long flags, CUstream hStream)
{
	return FGV_CALL(fgv_batch_discard(dptrs, sizes, count, flags, hStream));
}

static CUresult discard_and_prefetch(CUdeviceptr *ranges, size_t *sizes, size_t count,
				     CUmemLocation *locations, size_t *indices,
				     size_t location_count, unsigned long long flags,
				     CUstream stream)
{
	CUresult res = fgv_batch_discard(ranges, sizes, count, flags, stream);

	return res ? res
		   : fgv_batch_prefetch(ranges, sizes, count, locations, indices, location_count,
					flags, stream);
}

FGV_EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes,
						      size_t count, CUmemLocation *prefetchLocs,
						      size_t *prefetchLocIdxs,
						      size_t numPrefetchLocs,
						      unsigned long long flags, CUstream hStream)
{
	return FGV_CALL(discard_and_prefetch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
					     numPrefetchLocs, flags, hStream));
}

FGV_EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
					  size_t count, CUmemcpyAttributes *attrs,
					  size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	return FGV_CALL(fgv_batch_copy((void *const *)dsts, (const void *const *)srcs, sizes, count,
				       attrs, attrsIdxs, numAttrs, hStream));
}

/* Forms of CUDA 12.8, which tell what copy was at fault; which it was is not known afterwards. */
FGV_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
				       size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs,
				       size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	if (failIdx)
		*failIdx = SIZE_MAX;
	return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}

FGV_EXPORT CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
					    unsigned long long flags, CUstream hStream)
{
	return FGV_CALL(fgv_batch_copy_boxes(opList, numOps, flags, hStream));
}

FGV_EXPORT CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
					 size_t *failIdx, unsigned long long flags,
					 CUstream hStream)
{
	if (failIdx)
		*failIdx = SIZE_MAX;
	return cuMemcpy3DBatchAsync_v2(numOps, opList, flags, hStream);
}
