/*
 * Device memory.
 */
#include "frontend/cuda/memory/memory.h"

#include "frontend/cuda/stream/capturing.h"
#include "frontend/libcudart/cudart.h"

/* No bytes are as good as any here, and have no address. */
static CUresult allocate_nothing(void **ptr)
{
	CUresult res = fgv_capturing_check_unsafe();

	if (!res)
		res = fgv_context_need();
	if (!res)
		*ptr = NULL;
	return res;
}

FGV_EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	if (!devPtr)
		return fgv_error_set(cudaErrorInvalidValue);
	if (!size)
		return FGV_RESULT(allocate_nothing(devPtr));
	return FGV_RESULT(fgv_memory_alloc((CUdeviceptr *)(void *)devPtr, size));
}

FGV_EXPORT cudaError_t cudaFree(void *devPtr)
{
	return FGV_RESULT(fgv_memory_free((CUdeviceptr)(uintptr_t)devPtr));
}

FGV_EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	return FGV_RESULT(fgv_memory_info(free, total));
}
