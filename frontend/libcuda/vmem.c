/*
 * Virtual memory: addresses and memory apart.
 */
#include "frontend/cuda/memory/vmem.h"

#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
					CUdeviceptr addr, unsigned long long flags)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_reserve(ptr, size, alignment, addr, flags));
}

FGV_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_free(ptr, size));
}

FGV_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
				const CUmemAllocationProp *prop, unsigned long long flags)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_create(handle, size, prop, flags));
}

FGV_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_release(handle));
}

FGV_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
			     CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_map(ptr, size, offset, handle, flags));
}

FGV_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_unmap(ptr, size));
}

FGV_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
				   size_t count)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_set_access(ptr, size, desc, count));
}

FGV_EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
				   CUdeviceptr ptr)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_get_access(flags, location, ptr));
}

FGV_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
						  const CUmemAllocationProp *prop,
						  CUmemAllocationGranularity_flags option)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_granularity(granularity, prop, option));
}

FGV_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							   CUmemGenericAllocationHandle handle)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_get_prop(prop, handle));
}

FGV_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_retain(handle, (CUdeviceptr)(uintptr_t)addr));
}

FGV_EXPORT CUresult cuMemExportToShareableHandle(void *shareableHandle,
						 CUmemGenericAllocationHandle handle,
						 CUmemAllocationHandleType handleType,
						 unsigned long long flags)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_export(shareableHandle, handle, handleType, flags));
}

FGV_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
						   void *osHandle,
						   CUmemAllocationHandleType shHandleType)
{
	return FGV_CALL_ANYWHERE(fgv_vmem_import(handle, osHandle, shHandleType));
}
