/*
 * Memory: the device's, pinned and managed.
 */
#include "frontend/cuda/memory/memory.h"

#include "frontend/cuda/memory/host.h"
#include "frontend/cuda/memory/pitched.h"
#include "frontend/cuda/memory/pointer.h"
#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	return FGV_CALL(fgv_memory_info(free, total));
}

FGV_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	return FGV_CALL(fgv_memory_alloc(dptr, bytesize));
}

static CUresult allocate_rows(CUdeviceptr *address, size_t *pitch, size_t width, size_t rows,
			      unsigned element)
{
	if (!address || !pitch || !width || !rows ||
	    (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_pitched_alloc(address, pitch, width, rows);
}

FGV_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
				       size_t Height, unsigned int ElementSizeBytes)
{
	return FGV_CALL(allocate_rows(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
}

FGV_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	return FGV_CALL(fgv_memory_free(dptr));
}

static CUresult get_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct fgv_pointer found;
	CUresult res = fgv_pointer_describe(address, &found);

	if (!res && !found.is_known)
		res = CUDA_ERROR_NOT_FOUND;
	if (res)
		return res;
	if (base)
		*base = found.range.start;
	if (bytes)
		*bytes = found.range.len;
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	return FGV_CALL(get_range(pbase, psize, dptr));
}

FGV_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	return FGV_CALL(fgv_host_alloc_managed(dptr, bytesize, flags));
}

FGV_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return FGV_CALL(fgv_host_alloc(pp, bytesize, 0));
}

FGV_EXPORT CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return FGV_CALL(fgv_host_alloc(pp, bytesize, 0));
}

FGV_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	return FGV_CALL(fgv_host_alloc(pp, bytesize, Flags));
}

FGV_EXPORT CUresult cuMemFreeHost(void *p)
{
	return FGV_CALL(p ? fgv_host_free(p) : CUDA_SUCCESS);
}

FGV_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	return FGV_CALL(fgv_host_get_device_pointer(pdptr, p, Flags));
}

FGV_EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	return FGV_CALL(fgv_host_get_flags(pFlags, p));
}

FGV_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	return FGV_CALL(fgv_host_register(p, bytesize, Flags));
}

FGV_EXPORT CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return FGV_CALL(fgv_host_register(p, bytesize, Flags));
}

FGV_EXPORT CUresult cuMemHostUnregister(void *p)
{
	return FGV_CALL(fgv_host_unregister(p));
}
