/*
 * Objects of textures and surfaces.
 */
#include "frontend/cuda/memory/texture.h"

#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
				      const CUDA_TEXTURE_DESC *pTexDesc,
				      const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	return FGV_CALL(fgv_texture_create(pTexObject, pResDesc, pTexDesc, pResViewDesc));
}

FGV_EXPORT CUresult cuTexObjectDestroy(CUtexObject texObject)
{
	return FGV_CALL(fgv_texture_destroy(texObject));
}

FGV_EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	return FGV_CALL(fgv_texture_get_resource(pResDesc, texObject));
}

FGV_EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	return FGV_CALL(fgv_texture_get_how(pTexDesc, texObject));
}

FGV_EXPORT CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
						   CUtexObject texObject)
{
	return FGV_CALL(fgv_texture_get_view(pResViewDesc, texObject));
}

FGV_EXPORT CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject,
				       const CUDA_RESOURCE_DESC *pResDesc)
{
	return FGV_CALL(fgv_texture_create_surface(pSurfObject, pResDesc));
}

FGV_EXPORT CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return FGV_CALL(fgv_texture_destroy_surface(surfObject));
}

FGV_EXPORT CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc,
						CUsurfObject surfObject)
{
	return FGV_CALL(fgv_texture_get_surface_resource(pResDesc, surfObject));
}

FGV_EXPORT CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
						       CUarray_format format, unsigned numChannels,
						       CUdevice dev)
{
	return FGV_CALL_ANYWHERE(
		maxWidthInElements
			? fgv_texture_linear_width(format, numChannels, dev, maxWidthInElements)
			: CUDA_ERROR_INVALID_VALUE);
}
