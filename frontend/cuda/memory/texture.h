/*
 * Texture and surface objects.
 *
 * CUDA_ERROR_INVALID_VALUE for what is none, and for a missing out-parameter;
 * CUDA_ERROR_INVALID_HANDLE for what is no array; CUDA_ERROR_NOT_SUPPORTED, counted, for views of
 * block-compressed textures. What else the device does not have is the host's word.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_TEXTURE_H
#define FGV_CUDA_TEXTURE_H

#include <cuda.h>

struct fgv_lane;

/* @view may be NULL. Of memory it is not looked at, as CUDA does not. */
CUresult fgv_texture_create(CUtexObject *texture, const CUDA_RESOURCE_DESC *resource,
			    const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view);
/* What is none, or none any more, is no error to CUDA. */
CUresult fgv_texture_destroy(CUtexObject texture);
/* As it was created with; a view is zeros where there was none. */
CUresult fgv_texture_get_resource(CUDA_RESOURCE_DESC *resource, CUtexObject texture);
CUresult fgv_texture_get_how(CUDA_TEXTURE_DESC *how, CUtexObject texture);
CUresult fgv_texture_get_view(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject texture);

/* Of an array alone. */
CUresult fgv_texture_create_surface(CUsurfObject *surface, const CUDA_RESOURCE_DESC *resource);
CUresult fgv_texture_destroy_surface(CUsurfObject surface);
CUresult fgv_texture_get_surface_resource(CUDA_RESOURCE_DESC *resource, CUsurfObject surface);

/* How many elements a texture of memory can have. */
CUresult fgv_texture_linear_width(CUarray_format format, unsigned channels, int ordinal,
				  size_t *width);

/* For the reset of a device alone: destroys all of both. */
void fgv_texture_drain(struct fgv_lane *lane);

#endif
