/*
 * Texture and surface objects. What the program holds is the driver's own number, as it goes
 * to kernels; what it was made of is kept here, for the questions about it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/texel.h"
#include "frontend/cuda/module/ptrhash.h"
#include "frontend/libcudart/array.h"
#include "frontend/libcudart/cudart.h"

struct object {
	LIST_ENTRY(object) link;
	uint64_t number;
	uint32_t handle; /* the host's */
	struct cudaResourceDesc resource;
	struct cudaTextureDesc how; /* a texture's */
	bool has_view;
	struct cudaResourceViewDesc view;
};

/* The runtime's numbers are the driver's. */
_Static_assert((int)cudaResViewFormatFloat4 == CU_RES_VIEW_FORMAT_FLOAT_4X32, "formats of views");

/* By number; textures and surfaces may have the same ones. The mutex is held around all use. */
static struct objects {
	pthread_mutex_t mutex;
	struct fgv_ptrhash objects;
	LIST_HEAD(object_list, object) list;
} textures = {.mutex = PTHREAD_MUTEX_INITIALIZER}, surfaces = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static cudaError_t keep(struct objects *objects, uint64_t number, const struct object *made)
{
	struct object *kept = malloc(sizeof(*kept));
	int err;

	if (!kept)
		return cudaErrorMemoryAllocation;
	*kept = *made;
	kept->number = number;
	pthread_mutex_lock(&objects->mutex);
	err = fgv_ptrhash_set(&objects->objects, (void *)(uintptr_t)number, kept);
	if (!err)
		LIST_INSERT_HEAD(&objects->list, kept, link);
	pthread_mutex_unlock(&objects->mutex);
	if (!err)
		return cudaSuccess;
	free(kept);
	return cudaErrorMemoryAllocation;
}

/* A copy of what @number stands for. */
static cudaError_t look_up(struct objects *objects, uint64_t number, struct object *copy)
{
	const struct object *found = NULL;

	pthread_mutex_lock(&objects->mutex);
	if (number)
		found = fgv_ptrhash_find(&objects->objects, (void *)(uintptr_t)number);
	if (found)
		*copy = *found;
	pthread_mutex_unlock(&objects->mutex);
	return found ? cudaSuccess : cudaErrorInvalidValue;
}

/* What the operation needs to know of a resource. */
struct resource {
	uint32_t array;
	uint64_t address;
	uint64_t size[3]; /* elements, rows, bytes from row to row; of linear memory, bytes */
	CUarray_format format;
	unsigned channels;
};

static cudaError_t find_array(const struct fgv_array *array, struct resource *found)
{
	if (!array)
		return cudaErrorInvalidResourceHandle;
	found->array = array->handle;
	return fgv_channel_format(&array->desc, &found->format, &found->channels);
}

static cudaError_t find_memory(const void *ptr, const struct cudaChannelFormatDesc *desc,
			       struct resource *found)
{
	if (!ptr)
		return cudaErrorInvalidValue;
	found->address = (uint64_t)(uintptr_t)ptr;
	return fgv_channel_format(desc, &found->format, &found->channels);
}

static cudaError_t find_resource(const struct cudaResourceDesc *desc, struct resource *found)
{
	memset(found, 0, sizeof(*found));
	switch (desc->resType) {
	case cudaResourceTypeArray:
		return find_array(fgv_array_find(desc->res.array.array), found);
	case cudaResourceTypeMipmappedArray:
		return find_array(fgv_array_find_mipmapped(desc->res.mipmap.mipmap), found);
	case cudaResourceTypeLinear:
		found->size[0] = desc->res.linear.sizeInBytes;
		return find_memory(desc->res.linear.devPtr, &desc->res.linear.desc, found);
	case cudaResourceTypePitch2D:
		found->size[0] = desc->res.pitch2D.width;
		found->size[1] = desc->res.pitch2D.height;
		found->size[2] = desc->res.pitch2D.pitchInBytes;
		return find_memory(desc->res.pitch2D.devPtr, &desc->res.pitch2D.desc, found);
	default:
		return cudaErrorInvalidValue;
	}
}

/* What is read is what the view says; whether the array has it, the host knows. */
static cudaError_t apply_view(const struct cudaResourceViewDesc *view, struct resource *resource)
{
	if ((unsigned)view->format > cudaResViewFormatUnsignedBlockCompressed7 ||
	    view->format == cudaResViewFormatNone)
		return cudaErrorInvalidValue;
	if (fgv_texel_view(view->format, &resource->format, &resource->channels))
		return cudaSuccess;
	return FGV_NOT_SUPPORTED("views of block-compressed textures");
}

/* Integers are filtered, or read as fractions, only in the ways that there are. */
static cudaError_t check_reading(const struct cudaTextureDesc *how, const struct resource *resource)
{
	bool is_float =
		resource->format == CU_AD_FORMAT_FLOAT || resource->format == CU_AD_FORMAT_HALF;

	if (is_float)
		return cudaSuccess;
	if (how->readMode == cudaReadModeNormalizedFloat)
		return fgv_texel_channel_bytes(resource->format) < 4 ? cudaSuccess
								     : cudaErrorInvalidNormSetting;
	return how->filterMode == cudaFilterModeLinear ? cudaErrorInvalidFilterSetting
						       : cudaSuccess;
}

/* A view changes nothing about whether integers are read as such: that is the array's. */
static uint32_t flags_of(const struct cudaTextureDesc *how, const struct resource *resource)
{
	bool is_float =
		resource->format == CU_AD_FORMAT_FLOAT || resource->format == CU_AD_FORMAT_HALF;
	uint32_t flags = 0;

	if (!is_float && how->readMode == cudaReadModeElementType)
		flags |= CU_TRSF_READ_AS_INTEGER;
	if (how->normalizedCoords)
		flags |= CU_TRSF_NORMALIZED_COORDINATES;
	if (how->sRGB)
		flags |= CU_TRSF_SRGB;
	if (how->disableTrilinearOptimization)
		flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
	if (how->seamlessCubemap)
		flags |= CU_TRSF_SEAMLESS_CUBEMAP;
	return flags;
}

static cudaError_t send_texture(const struct object *wanted, const struct resource *resource,
				uint64_t *number, uint32_t *handle)
{
	const struct cudaTextureDesc *how = &wanted->how;
	const uint32_t modes[3] = {how->addressMode[0], how->addressMode[1], how->addressMode[2]};
	const float levels[3] = {how->mipmapLevelBias, how->minMipmapLevelClamp,
				 how->maxMipmapLevelClamp};
	const struct cudaResourceViewDesc *view = &wanted->view;
	const uint64_t view_size[3] = {view->width, view->height, view->depth};
	const uint32_t view_levels[2] = {view->firstMipmapLevel, view->lastMipmapLevel};
	const uint32_t view_layers[2] = {view->firstLayer, view->lastLayer};
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_call_texture_create(
		lane, resource->array, wanted->resource.resType, resource->address, resource->size,
		resource->format, resource->channels, modes, how->filterMode,
		flags_of(how, resource), how->maxAnisotropy, how->mipmapFilterMode, levels,
		how->borderColor, wanted->has_view, view->format, view_size, view_levels,
		view_layers, handle, number));
	fgv_lane_leave(lane);
	return error;
}

static void send_destroy(uint32_t handle)
{
	struct fgv_lane *lane;

	if (fgv_enter(&lane))
		return;
	fgv_post_texture_destroy(lane, handle);
	fgv_lane_leave(lane);
}

static cudaError_t create_texture(cudaTextureObject_t *texture, const struct cudaResourceDesc *desc,
				  const struct cudaTextureDesc *how,
				  const struct cudaResourceViewDesc *view)
{
	struct object made = {0};
	struct resource resource, seen;
	uint64_t number;
	cudaError_t error;

	if (!texture || !desc)
		return cudaErrorInvalidValue;
	if (!how)
		return cudaErrorInvalidResourceHandle;
	error = find_resource(desc, &resource);
	seen = resource;
	/* CUDA does not look at what it is given for memory. */
	made.has_view = view && resource.array;
	if (!error && made.has_view)
		error = apply_view(view, &seen);
	if (!error)
		error = check_reading(how, &seen);
	if (error)
		return error;
	made.resource = *desc;
	made.how = *how;
	if (made.has_view)
		made.view = *view;
	error = send_texture(&made, &resource, &number, &made.handle);
	if (error)
		return error;
	error = keep(&textures, number, &made);
	if (error)
		send_destroy(made.handle);
	else
		*texture = number;
	return error;
}

FGV_EXPORT cudaError_t cudaCreateTextureObject(cudaTextureObject_t *pTexObject,
					       const struct cudaResourceDesc *pResDesc,
					       const struct cudaTextureDesc *pTexDesc,
					       const struct cudaResourceViewDesc *pResViewDesc)
{
	return fgv_error_set(create_texture(pTexObject, pResDesc, pTexDesc, pResViewDesc));
}

static cudaError_t create_surface(cudaSurfaceObject_t *surface, const struct cudaResourceDesc *desc)
{
	struct object made = {0};
	const struct fgv_array *array;
	struct fgv_lane *lane;
	uint64_t number;
	cudaError_t error;

	if (!surface || !desc || desc->resType != cudaResourceTypeArray)
		return cudaErrorInvalidValue;
	array = fgv_array_find(desc->res.array.array);
	if (!array)
		return cudaErrorInvalidResourceHandle;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_error_from(fgv_call_surface_create(lane, array->handle, &made.handle, &number));
	fgv_lane_leave(lane);
	if (error)
		return error;
	made.resource = *desc;
	error = keep(&surfaces, number, &made);
	if (error)
		send_destroy(made.handle);
	else
		*surface = number;
	return error;
}

FGV_EXPORT cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject,
					       const struct cudaResourceDesc *pResDesc)
{
	return fgv_error_set(create_surface(pSurfObject, pResDesc));
}

static void forget_locked(struct objects *objects, struct object *object)
{
	fgv_ptrhash_remove(&objects->objects, (void *)(uintptr_t)object->number);
	LIST_REMOVE(object, link);
}

static void drain(struct objects *objects, struct fgv_lane *lane)
{
	struct object *object;

	pthread_mutex_lock(&objects->mutex);
	while ((object = LIST_FIRST(&objects->list))) {
		forget_locked(objects, object);
		fgv_post_texture_destroy(lane, object->handle);
		free(object);
	}
	pthread_mutex_unlock(&objects->mutex);
}

void fgv_texture_drain(struct fgv_lane *lane)
{
	drain(&textures, lane);
	drain(&surfaces, lane);
}

/* What is not there, or not any more, is no error to CUDA. */
static cudaError_t destroy(struct objects *objects, uint64_t number)
{
	struct object *found;

	if (!number)
		return cudaSuccess;
	pthread_mutex_lock(&objects->mutex);
	found = fgv_ptrhash_find(&objects->objects, (void *)(uintptr_t)number);
	if (found)
		forget_locked(objects, found);
	pthread_mutex_unlock(&objects->mutex);
	if (!found)
		return cudaSuccess;
	send_destroy(found->handle);
	free(found);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject)
{
	return fgv_error_set(destroy(&textures, texObject));
}

FGV_EXPORT cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject)
{
	return fgv_error_set(destroy(&surfaces, surfObject));
}

static cudaError_t describe(struct objects *objects, uint64_t number,
			    struct cudaResourceDesc *resource, struct cudaTextureDesc *how)
{
	struct object found;
	cudaError_t error =
		resource || how ? look_up(objects, number, &found) : cudaErrorInvalidValue;

	if (!error && resource)
		*resource = found.resource;
	if (!error && how)
		*how = found.how;
	return error;
}

FGV_EXPORT cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *pResDesc,
							cudaTextureObject_t texObject)
{
	return fgv_error_set(describe(&textures, texObject, pResDesc, NULL));
}

FGV_EXPORT cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *pTexDesc,
						       cudaTextureObject_t texObject)
{
	return fgv_error_set(describe(&textures, texObject, NULL, pTexDesc));
}

FGV_EXPORT cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *pResDesc,
							cudaSurfaceObject_t surfObject)
{
	return fgv_error_set(describe(&surfaces, surfObject, pResDesc, NULL));
}

static cudaError_t describe_view(uint64_t number, struct cudaResourceViewDesc *view)
{
	struct object found;

	if (!view || look_up(&textures, number, &found))
		return cudaErrorInvalidValue;
	*view = found.view;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGetTextureObjectResourceViewDesc(
	struct cudaResourceViewDesc *pResViewDesc, cudaTextureObject_t texObject)
{
	return fgv_error_set(describe_view(texObject, pResViewDesc));
}
