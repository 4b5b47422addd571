/*
 * The handlers of the operations on texture and surface objects; see handlers.c. What a
 * kernel gets is the driver's number; the guest names it here by a handle, so that the driver
 * is never asked to destroy what it has not made.
 */
#include "backend/vgpu/session.h"

#include <string.h>
#include "common/texel.h"

static bool set_resource(CUDA_RESOURCE_DESC *resource, const struct fgv_texture_create_in *in)
{
	resource->resType = (CUresourcetype)in->type;
	switch (in->type) {
	case CU_RESOURCE_TYPE_ARRAY:
		if (!in->array || in->array->array.levels_count)
			return false;
		resource->res.array.hArray = (CUarray)in->array->array.gpu;
		return true;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (!in->array || !in->array->array.levels_count)
			return false;
		resource->res.mipmap.hMipmappedArray = (CUmipmappedArray)in->array->array.gpu;
		return true;
	case CU_RESOURCE_TYPE_LINEAR:
		resource->res.linear.devPtr = in->address;
		resource->res.linear.format = (CUarray_format)in->format;
		resource->res.linear.numChannels = in->channels;
		resource->res.linear.sizeInBytes = in->size[0];
		return fgv_texel_bytes(in->format, in->channels) > 0;
	case CU_RESOURCE_TYPE_PITCH2D:
		resource->res.pitch2D.devPtr = in->address;
		resource->res.pitch2D.format = (CUarray_format)in->format;
		resource->res.pitch2D.numChannels = in->channels;
		resource->res.pitch2D.width = in->size[0];
		resource->res.pitch2D.height = in->size[1];
		resource->res.pitch2D.pitchInBytes = in->size[2];
		return fgv_texel_bytes(in->format, in->channels) > 0;
	default:
		return false;
	}
}

static bool set_reading(CUDA_TEXTURE_DESC *how, const struct fgv_texture_create_in *in)
{
	const uint32_t known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
			       CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
			       CU_TRSF_SEAMLESS_CUBEMAP;

	for (int i = 0; i < 3; i++) {
		if (in->address_modes[i] > CU_TR_ADDRESS_MODE_BORDER)
			return false;
		how->addressMode[i] = (CUaddress_mode)in->address_modes[i];
	}
	if (in->filter > CU_TR_FILTER_MODE_LINEAR || in->mipmap_filter > CU_TR_FILTER_MODE_LINEAR ||
	    (in->flags & ~known))
		return false;
	how->filterMode = (CUfilter_mode)in->filter;
	how->mipmapFilterMode = (CUfilter_mode)in->mipmap_filter;
	how->flags = in->flags;
	how->maxAnisotropy = in->anisotropy;
	how->mipmapLevelBias = in->lod[0];
	how->minMipmapLevelClamp = in->lod[1];
	how->maxMipmapLevelClamp = in->lod[2];
	memcpy(how->borderColor, in->border, sizeof(how->borderColor));
	return true;
}

/* What the view is of, the driver looks at. */
static bool set_view(CUDA_RESOURCE_VIEW_DESC *view, const struct fgv_texture_create_in *in)
{
	view->format = (CUresourceViewFormat)in->view_format;
	view->width = in->view_size[0];
	view->height = in->view_size[1];
	view->depth = in->view_size[2];
	view->firstMipmapLevel = in->view_levels[0];
	view->lastMipmapLevel = in->view_levels[1];
	view->firstLayer = in->view_layers[0];
	view->lastLayer = in->view_layers[1];
	return in->array && in->view_format <= CU_RES_VIEW_FORMAT_FLOAT_4X32;
}

/* An object for @number; what it was made of may go before it does. */
static CUresult add(struct fgv_session *session, uint64_t number, bool is_surface, uint32_t *handle)
{
	struct fgv_object *object;
	CUresult status =
		fgv_session_add(session, FGV_KIND_TEXTURE, session->costs.texture, &object);

	if (status != CUDA_SUCCESS) {
		session->gpu->ops->texture_destroy(session->gpu, number, is_surface);
		return status;
	}
	object->texture.number = number;
	object->texture.is_surface = is_surface;
	*handle = object->handle;
	return CUDA_SUCCESS;
}

CUresult fgv_do_texture_create(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_texture_create_in *in,
			       struct fgv_texture_create_out *out)
{
	CUresult status = fgv_session_take_deferred(session);
	CUDA_RESOURCE_DESC resource = {.flags = 0};
	CUDA_TEXTURE_DESC how = {.flags = 0};
	CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_NONE};

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!set_resource(&resource, in) || !set_reading(&how, in) ||
	    (in->is_view && !set_view(&view, in)))
		return CUDA_ERROR_INVALID_VALUE;
	status = session->gpu->ops->texture_create(session->gpu, &resource, &how,
						   in->is_view ? &view : NULL, &out->number);
	if (status != CUDA_SUCCESS)
		return status;
	return add(session, out->number, false, &out->texture);
}

CUresult fgv_do_surface_create(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_surface_create_in *in,
			       struct fgv_surface_create_out *out)
{
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!in->array || in->array->array.levels_count)
		return CUDA_ERROR_INVALID_VALUE;
	status =
		session->gpu->ops->surface_create(session->gpu, in->array->array.gpu, &out->number);
	if (status != CUDA_SUCCESS)
		return status;
	return add(session, out->number, true, &out->texture);
}

CUresult fgv_do_texture_destroy(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_texture_destroy_in *in)
{
	(void)request;
	return fgv_session_remove(session, in->texture);
}

CUresult fgv_do_texture_linear_width(struct fgv_session *session, struct fgv_request *request,
				     const struct fgv_texture_linear_width_in *in,
				     struct fgv_texture_linear_width_out *out)
{
	size_t texels = 0;
	CUresult status;

	(void)request;
	if (!fgv_texel_bytes(in->format, in->channels))
		return CUDA_ERROR_INVALID_VALUE;
	status = session->gpu->ops->texture_linear_width(session->gpu, (CUarray_format)in->format,
							 in->channels, &texels);
	out->texels = texels;
	return status;
}
