/*
 * Pinned, registered and managed host memory, and what a pointer points to.
 */
#include "frontend/cuda/memory/host.h"

#include "frontend/cuda/memory/pointer.h"
#include "frontend/libcudart/cudart.h"

/* No bytes are as good as any here, and have no address. */
static CUresult allocate_nothing(void **ptr, bool are_flags_good)
{
	CUresult res = ptr && are_flags_good ? fgv_context_need() : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*ptr = NULL;
	return res;
}

FGV_EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	const unsigned known =
		cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;

	return FGV_RESULT(size ? fgv_host_alloc(pHost, size, flags)
			       : allocate_nothing(pHost, !(flags & ~known)));
}

FGV_EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return FGV_RESULT(size ? fgv_host_alloc(ptr, size, cudaHostAllocDefault)
			       : allocate_nothing(ptr, true));
}

FGV_EXPORT cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	if (size)
		return FGV_RESULT(
			fgv_host_alloc_managed((CUdeviceptr *)(void *)devPtr, size, flags));
	return FGV_RESULT(allocate_nothing(devPtr, flags == cudaMemAttachGlobal ||
							   flags == cudaMemAttachHost));
}

FGV_EXPORT cudaError_t cudaFreeHost(void *ptr)
{
	return FGV_RESULT(ptr ? fgv_host_free(ptr) : CUDA_SUCCESS);
}

FGV_EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return FGV_RESULT(fgv_host_register(ptr, size, flags));
}

FGV_EXPORT cudaError_t cudaHostUnregister(void *ptr)
{
	return FGV_RESULT(fgv_host_unregister(ptr));
}

FGV_EXPORT cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	return FGV_RESULT(
		fgv_host_get_device_pointer((CUdeviceptr *)(void *)pDevice, pHost, flags));
}

FGV_EXPORT cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
	return FGV_RESULT(fgv_host_get_flags(pFlags, pHost));
}

static enum cudaMemoryType type_of(const struct fgv_pointer *pointer)
{
	switch (pointer->type) {
	case CU_MEMORYTYPE_HOST:
		return cudaMemoryTypeHost;
	case CU_MEMORYTYPE_UNIFIED:
		return cudaMemoryTypeManaged;
	default:
		return pointer->is_known ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
	}
}

static CUresult pointer_attributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	struct fgv_pointer pointer;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (attributes)
		res = fgv_pointer_describe((CUdeviceptr)(uintptr_t)ptr, &pointer);
	if (res)
		return res;
	*attributes = (struct cudaPointerAttributes){
		.type = type_of(&pointer),
		.device = pointer.is_known ? pointer.ordinal : cudaInvalidDeviceId,
	};
	if (pointer.is_known)
		attributes->devicePointer = (void *)(uintptr_t)ptr;
	if (!pointer.is_known || pointer.is_host)
		attributes->hostPointer = (void *)(uintptr_t)ptr;
	return CUDA_SUCCESS;
}

FGV_EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
						const void *ptr)
{
	return FGV_RESULT(pointer_attributes(attributes, ptr));
}
