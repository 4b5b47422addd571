/*
 * Texture and surface objects. What they are made of has other names in the driver.
 */
#include "frontend/cuda/memory/texture.h"

#include <stddef.h>
#include <string.h>

#include "common/texel.h"
#include "frontend/cuda/memory/array.h"
#include "frontend/libcudart/channel.h"
#include "frontend/libcudart/cudart.h"

/* The same numbers and the same layout by other names. */
_Static_assert((int)cudaResViewFormatFloat4 == CU_RES_VIEW_FORMAT_FLOAT_4X32 &&
		       sizeof(struct cudaResourceViewDesc) <= sizeof(CUDA_RESOURCE_VIEW_DESC) &&
		       offsetof(struct cudaResourceViewDesc, lastLayer) ==
			       offsetof(CUDA_RESOURCE_VIEW_DESC, lastLayer),
	       "views");
_Static_assert((int)cudaResourceTypePitch2D == CU_RESOURCE_TYPE_PITCH2D &&
		       (int)cudaAddressModeBorder == CU_TR_ADDRESS_MODE_BORDER &&
		       (int)cudaFilterModeLinear == CU_TR_FILTER_MODE_LINEAR,
	       "resources and modes");

/* --- Resources ------------------------------------------------------------------------ */

static cudaError_t to_memory(const struct cudaChannelFormatDesc *desc, const void *ptr,
			     CUarray_format *format, unsigned *channels)
{
	return ptr ? fgv_channel_format(desc, format, channels) : cudaErrorInvalidValue;
}

/* To the driver's. */
static cudaError_t to_resource(const struct cudaResourceDesc *from, CUDA_RESOURCE_DESC *to)
{
	*to = (CUDA_RESOURCE_DESC){.resType = (CUresourcetype)from->resType};
	switch (from->resType) {
	case cudaResourceTypeArray:
		to->res.array.hArray = (CUarray)from->res.array.array;
		return cudaSuccess;
	case cudaResourceTypeMipmappedArray:
		to->res.mipmap.hMipmappedArray = (CUmipmappedArray)from->res.mipmap.mipmap;
		return cudaSuccess;
	case cudaResourceTypeLinear:
		to->res.linear.devPtr = (CUdeviceptr)(uintptr_t)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		return to_memory(&from->res.linear.desc, from->res.linear.devPtr,
				 &to->res.linear.format, &to->res.linear.numChannels);
	case cudaResourceTypePitch2D:
		to->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		return to_memory(&from->res.pitch2D.desc, from->res.pitch2D.devPtr,
				 &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
	default:
		return cudaErrorInvalidValue;
	}
}

/* And back. */
static void from_resource(const CUDA_RESOURCE_DESC *from, struct cudaResourceDesc *to)
{
	memset(to, 0, sizeof(*to));
	to->resType = (enum cudaResourceType)from->resType;
	switch (from->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		to->res.array.array = (cudaArray_t)from->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		to->res.mipmap.mipmap = (cudaMipmappedArray_t)from->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		to->res.linear.devPtr = (void *)(uintptr_t)from->res.linear.devPtr;
		to->res.linear.desc =
			fgv_channel_desc(from->res.linear.format, from->res.linear.numChannels);
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		to->res.pitch2D.devPtr = (void *)(uintptr_t)from->res.pitch2D.devPtr;
		to->res.pitch2D.desc =
			fgv_channel_desc(from->res.pitch2D.format, from->res.pitch2D.numChannels);
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		break;
	}
}

/* What its elements are; 0: it is no resource, as the core will say. */
static CUarray_format format_of(const CUDA_RESOURCE_DESC *desc)
{
	const struct fgv_array *array = NULL;

	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		array = fgv_array_find(desc->res.array.hArray);
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		array = fgv_array_find_mipmapped(desc->res.mipmap.hMipmappedArray);
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		return desc->res.linear.format;
	case CU_RESOURCE_TYPE_PITCH2D:
		return desc->res.pitch2D.format;
	}
	return array ? array->desc.Format : (CUarray_format)0;
}

/* --- How a texture is read ------------------------------------------------------------ */

static CUDA_TEXTURE_DESC to_how(const struct cudaTextureDesc *from)
{
	CUDA_TEXTURE_DESC to = {
		.filterMode = (CUfilter_mode)from->filterMode,
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias,
		.minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
	};

	for (int i = 0; i < 3; i++)
		to.addressMode[i] = (CUaddress_mode)from->addressMode[i];
	memcpy(to.borderColor, from->borderColor, sizeof(to.borderColor));
	to.flags =
		(from->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
		(from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
		(from->sRGB ? CU_TRSF_SRGB : 0) |
		(from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
		(from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
	return to;
}

static struct cudaTextureDesc from_how(const CUDA_TEXTURE_DESC *from)
{
	struct cudaTextureDesc to = {
		.filterMode = (enum cudaTextureFilterMode)from->filterMode,
		.readMode = from->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType
								  : cudaReadModeNormalizedFloat,
		.sRGB = (from->flags & CU_TRSF_SRGB) != 0,
		.normalizedCoords = (from->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (enum cudaTextureFilterMode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias,
		.minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
		.disableTrilinearOptimization =
			(from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
		.seamlessCubemap = (from->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0,
	};

	for (int i = 0; i < 3; i++)
		to.addressMode[i] = (enum cudaTextureAddressMode)from->addressMode[i];
	memcpy(to.borderColor, from->borderColor, sizeof(to.borderColor));
	return to;
}

/* What a view makes of elements of @format; 0: it is no view, as the core will say. */
static CUarray_format viewed(CUarray_format format, const CUDA_RESOURCE_DESC *resource,
			     const struct cudaResourceViewDesc *view)
{
	bool is_array = resource->resType == CU_RESOURCE_TYPE_ARRAY ||
			resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	unsigned channels;

	if (!format || !view || !is_array)
		return format;
	return fgv_texel_view(view->format, &format, &channels) ? format : (CUarray_format)0;
}

/* Integers are filtered, or read as fractions, only in the ways that there are. */
static cudaError_t check_reading(const struct cudaTextureDesc *how, CUarray_format format)
{
	if (!format || format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF)
		return cudaSuccess;
	if (how->readMode == cudaReadModeNormalizedFloat)
		return fgv_texel_channel_bytes(format) < 4 ? cudaSuccess
							   : cudaErrorInvalidNormSetting;
	return how->filterMode == cudaFilterModeLinear ? cudaErrorInvalidFilterSetting
						       : cudaSuccess;
}

/* --- The program's calls -------------------------------------------------------------- */

static cudaError_t create(cudaTextureObject_t *texture, const struct cudaResourceDesc *desc,
			  const struct cudaTextureDesc *how,
			  const struct cudaResourceViewDesc *view)
{
	CUDA_RESOURCE_DESC resource;
	CUDA_RESOURCE_VIEW_DESC view_desc = {0};
	CUDA_TEXTURE_DESC how_desc;
	cudaError_t error;

	if (!texture || !desc)
		return cudaErrorInvalidValue;
	if (!how)
		return cudaErrorInvalidResourceHandle;
	error = to_resource(desc, &resource);
	if (error)
		return error;
	error = check_reading(how, viewed(format_of(&resource), &resource, view));
	if (error)
		return error;
	how_desc = to_how(how);
	if (view)
		memcpy(&view_desc, view, sizeof(*view));
	return fgv_error_from(
		fgv_texture_create(texture, &resource, &how_desc, view ? &view_desc : NULL));
}

FGV_EXPORT cudaError_t cudaCreateTextureObject(cudaTextureObject_t *pTexObject,
					       const struct cudaResourceDesc *pResDesc,
					       const struct cudaTextureDesc *pTexDesc,
					       const struct cudaResourceViewDesc *pResViewDesc)
{
	return fgv_error_set(create(pTexObject, pResDesc, pTexDesc, pResViewDesc));
}

static cudaError_t create_surface(cudaSurfaceObject_t *surface, const struct cudaResourceDesc *desc)
{
	CUDA_RESOURCE_DESC resource;

	if (!surface || !desc || desc->resType != cudaResourceTypeArray)
		return cudaErrorInvalidValue;
	to_resource(desc, &resource);
	return fgv_error_from(fgv_texture_create_surface(surface, &resource));
}

FGV_EXPORT cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject,
					       const struct cudaResourceDesc *pResDesc)
{
	return fgv_error_set(create_surface(pSurfObject, pResDesc));
}

FGV_EXPORT cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject)
{
	return FGV_RESULT(fgv_texture_destroy(texObject));
}

FGV_EXPORT cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject)
{
	return FGV_RESULT(fgv_texture_destroy_surface(surfObject));
}

FGV_EXPORT cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *pResDesc,
							cudaTextureObject_t texObject)
{
	CUDA_RESOURCE_DESC found;
	CUresult res = fgv_texture_get_resource(pResDesc ? &found : NULL, texObject);

	if (!res)
		from_resource(&found, pResDesc);
	return FGV_RESULT(res);
}

FGV_EXPORT cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *pTexDesc,
						       cudaTextureObject_t texObject)
{
	CUDA_TEXTURE_DESC found;
	CUresult res = fgv_texture_get_how(pTexDesc ? &found : NULL, texObject);

	if (!res)
		*pTexDesc = from_how(&found);
	return FGV_RESULT(res);
}

FGV_EXPORT cudaError_t cudaGetTextureObjectResourceViewDesc(
	struct cudaResourceViewDesc *pResViewDesc, cudaTextureObject_t texObject)
{
	CUDA_RESOURCE_VIEW_DESC found;
	CUresult res = fgv_texture_get_view(pResViewDesc ? &found : NULL, texObject);

	if (!res)
		memcpy(pResViewDesc, &found, sizeof(*pResViewDesc));
	return FGV_RESULT(res);
}

FGV_EXPORT cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *pResDesc,
							cudaSurfaceObject_t surfObject)
{
	CUDA_RESOURCE_DESC found;
	CUresult res = fgv_texture_get_surface_resource(pResDesc ? &found : NULL, surfObject);

	if (!res)
		from_resource(&found, pResDesc);
	return FGV_RESULT(res);
}

/* --- What the device can do ----------------------------------------------------------- */

FGV_EXPORT cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(
	size_t *maxWidthInElements, const struct cudaChannelFormatDesc *fmtDesc, int device)
{
	CUarray_format format;
	unsigned channels;
	cudaError_t error = cudaErrorInvalidValue;

	if (maxWidthInElements && fmtDesc)
		error = fgv_channel_format(fmtDesc, &format, &channels);
	if (!error)
		error = fgv_error_from(
			fgv_texture_linear_width(format, channels, device, maxWidthInElements));
	return fgv_error_set(error);
}
