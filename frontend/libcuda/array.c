/*
 * CUDA arrays.
 */
#include "frontend/cuda/memory/array.h"

#include "frontend/libcuda/driver.h"

static CUresult create(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR box;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	box = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
	};
	return fgv_array_create(array, &box);
}

FGV_EXPORT CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	return FGV_CALL(create(pHandle, pAllocateArray));
}

FGV_EXPORT CUresult cuArray3DCreate_v2(CUarray *pHandle,
				       const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	return FGV_CALL(pAllocateArray ? fgv_array_create(pHandle, pAllocateArray)
				       : CUDA_ERROR_INVALID_VALUE);
}

FGV_EXPORT CUresult cuArrayDestroy(CUarray hArray)
{
	return FGV_CALL(fgv_array_destroy(hArray));
}

static CUresult describe(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR box;
	CUresult res = desc ? fgv_array_get_descriptor(array, &box) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*desc = (CUDA_ARRAY_DESCRIPTOR){box.Width, box.Height, box.Format, box.NumChannels};
	return res;
}

FGV_EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	return FGV_CALL(describe(pArrayDescriptor, hArray));
}

FGV_EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor,
					      CUarray hArray)
{
	return FGV_CALL(fgv_array_get_descriptor(hArray, pArrayDescriptor));
}

FGV_EXPORT CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
					       CUarray array)
{
	return FGV_CALL(fgv_array_refuse_parts(array, sparseProperties));
}

FGV_EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
						 CUarray array, CUdevice device)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(device, &info);

	return FGV_CALL(res ? res : fgv_array_refuse_parts(array, memoryRequirements));
}

FGV_EXPORT CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	(void)planeIdx;
	return FGV_CALL(fgv_array_refuse_parts(hArray, pPlaneArray));
}

FGV_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
					   const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
					   unsigned int numMipmapLevels)
{
	return FGV_CALL(pMipmappedArrayDesc ? fgv_array_create_mipmapped(
						      pHandle, pMipmappedArrayDesc, numMipmapLevels)
					    : CUDA_ERROR_INVALID_VALUE);
}

FGV_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	return FGV_CALL(fgv_array_destroy_mipmapped(hMipmappedArray));
}

FGV_EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
					     unsigned int level)
{
	return FGV_CALL(fgv_array_get_level(pLevelArray, hMipmappedArray, level));
}

FGV_EXPORT CUresult cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	return FGV_CALL(fgv_array_refuse_mipmapped_parts(mipmap, sparseProperties));
}

FGV_EXPORT CUresult
cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
				      CUmipmappedArray mipmap, CUdevice device)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(device, &info);

	return FGV_CALL(res ? res : fgv_array_refuse_mipmapped_parts(mipmap, memoryRequirements));
}
