/*
 * What a program says of managed memory, and many copies or hints by one call.
 */
#include "frontend/cuda/memory/managed.h"

#include "frontend/cuda/memory/batch.h"
#include "frontend/libcudart/cudart.h"

/* The same numbers and the same layout by other names. */
_Static_assert((int)cudaMemAdviseUnsetAccessedBy == CU_MEM_ADVISE_UNSET_ACCESSED_BY &&
		       (int)cudaMemRangeAttributeLastPrefetchLocationId ==
			       CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID &&
		       cudaMemAttachSingle == CU_MEM_ATTACH_SINGLE,
	       "hints");
_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes) &&
		       sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP) &&
		       sizeof(struct cudaMemLocation) == sizeof(CUmemLocation),
	       "batches");

static CUmemLocation location_of(struct cudaMemLocation location)
{
	return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

FGV_EXPORT cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
				     struct cudaMemLocation location)
{
	return FGV_RESULT(fgv_managed_advise((CUdeviceptr)(uintptr_t)devPtr, count,
					     (CUmem_advise)advice, location_of(location)));
}

FGV_EXPORT cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count,
					    struct cudaMemLocation location, unsigned int flags,
					    cudaStream_t stream)
{
	return FGV_RESULT(fgv_managed_prefetch((CUdeviceptr)(uintptr_t)devPtr, count,
					       location_of(location), flags, stream));
}

FGV_EXPORT cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr, size_t length,
						unsigned int flags)
{
	return FGV_RESULT(
		fgv_managed_attach(stream, (CUdeviceptr)(uintptr_t)devPtr, length, flags));
}

FGV_EXPORT cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize,
						enum cudaMemRangeAttribute attribute,
						const void *devPtr, size_t count)
{
	CUmem_range_attribute wanted = (CUmem_range_attribute)attribute;

	return FGV_RESULT(fgv_managed_get_attributes(&data, &dataSize, &wanted, 1,
						     (CUdeviceptr)(uintptr_t)devPtr, count));
}

FGV_EXPORT cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
						 enum cudaMemRangeAttribute *attributes,
						 size_t numAttributes, const void *devPtr,
						 size_t count)
{
	return FGV_RESULT(fgv_managed_get_attributes(
		data, dataSizes, (const CUmem_range_attribute *)attributes, numAttributes,
		(CUdeviceptr)(uintptr_t)devPtr, count));
}

/* --- Batches --------------------------------------------------------------------------- */

FGV_EXPORT cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
					    const size_t *sizes, size_t count,
					    struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs,
					    size_t numAttrs, cudaStream_t stream)
{
	return FGV_RESULT(fgv_batch_copy(dsts, srcs, sizes, count,
					 (const CUmemcpyAttributes *)attrs, attrsIdxs, numAttrs,
					 stream));
}

FGV_EXPORT cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp *opList,
					      unsigned long long flags, cudaStream_t stream)
{
	return FGV_RESULT(fgv_batch_copy_boxes((const CUDA_MEMCPY3D_BATCH_OP *)opList, numOps,
					       flags, stream));
}

static const CUdeviceptr *ranges_of(void *const *ptrs)
{
	return (const CUdeviceptr *)(const void *)ptrs;
}

FGV_EXPORT cudaError_t cudaMemPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
						 struct cudaMemLocation *prefetchLocs,
						 size_t *prefetchLocIdxs, size_t numPrefetchLocs,
						 unsigned long long flags, cudaStream_t stream)
{
	return FGV_RESULT(fgv_batch_prefetch(ranges_of(dptrs), sizes, count,
					     (const CUmemLocation *)prefetchLocs, prefetchLocIdxs,
					     numPrefetchLocs, flags, stream));
}

FGV_EXPORT cudaError_t cudaMemDiscardBatchAsync(void **dptrs, size_t *sizes, size_t count,
						unsigned long long flags, cudaStream_t stream)
{
	return FGV_RESULT(fgv_batch_discard(ranges_of(dptrs), sizes, count, flags, stream));
}

FGV_EXPORT cudaError_t cudaMemDiscardAndPrefetchBatchAsync(
	void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs,
	size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
	cudaStream_t stream)
{
	CUresult res = fgv_batch_discard(ranges_of(dptrs), sizes, count, flags, stream);

	if (!res)
		res = fgv_batch_prefetch(ranges_of(dptrs), sizes, count,
					 (const CUmemLocation *)prefetchLocs, prefetchLocIdxs,
					 numPrefetchLocs, flags, stream);
	return FGV_RESULT(res);
}
