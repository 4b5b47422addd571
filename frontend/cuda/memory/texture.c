/*
 * Texture and surface objects. What the program holds is the driver's own number, as it goes
 * to kernels; what it was made of is kept here, for the questions about it.
 */
#include "frontend/cuda/memory/texture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/texel.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/module/ptrhash.h"

struct object {
	LIST_ENTRY(object) link;
	uint64_t number;
	uint32_t handle; /* the host's */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC how; /* a texture's */
	bool has_view;
	CUDA_RESOURCE_VIEW_DESC view;
};

/*
 * By number; textures and surfaces may have the same ones, and so may two devices. The mutex is
 * held around all use.
 */
struct objects {
	pthread_mutex_t mutex;
	struct fgv_ptrhash objects;
	LIST_HEAD(object_list, object) list;
};

static struct objects of_textures[FGV_DEVICES_MAX] = {
	[0 ... FGV_DEVICES_MAX - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
static struct objects of_surfaces[FGV_DEVICES_MAX] = {
	[0 ... FGV_DEVICES_MAX - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER}};

/* Objects are made, and found, on the device that the thread works on. */
static struct objects *textures(void)
{
	return &of_textures[fgv_thread_self.device];
}

static struct objects *surfaces(void)
{
	return &of_surfaces[fgv_thread_self.device];
}

static CUresult keep(struct objects *objects, uint64_t number, const struct object *made)
{
	struct object *kept = malloc(sizeof(*kept));
	int err;

	if (!kept)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*kept = *made;
	kept->number = number;
	pthread_mutex_lock(&objects->mutex);
	err = fgv_ptrhash_set(&objects->objects, (void *)(uintptr_t)number, kept);
	if (!err)
		LIST_INSERT_HEAD(&objects->list, kept, link);
	pthread_mutex_unlock(&objects->mutex);
	if (!err)
		return CUDA_SUCCESS;
	free(kept);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A copy of what @number stands for. */
static CUresult look_up(struct objects *objects, uint64_t number, struct object *copy)
{
	const struct object *found = NULL;

	pthread_mutex_lock(&objects->mutex);
	if (number)
		found = fgv_ptrhash_find(&objects->objects, (void *)(uintptr_t)number);
	if (found)
		*copy = *found;
	pthread_mutex_unlock(&objects->mutex);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What the operation needs to know of a resource. */
struct resource {
	uint32_t array;
	uint64_t address;
	uint64_t size[3]; /* elements, rows, bytes from row to row; of linear memory, bytes */
	CUarray_format format;
	unsigned channels;
};

static CUresult find_array(const struct fgv_array *array, struct resource *found)
{
	if (!array || array->device != fgv_thread_self.device)
		return CUDA_ERROR_INVALID_HANDLE;
	found->array = array->handle;
	found->format = array->desc.Format;
	found->channels = array->desc.NumChannels;
	return CUDA_SUCCESS;
}

static CUresult find_memory(CUdeviceptr address, CUarray_format format, unsigned channels,
			    struct resource *found)
{
	if (!address || !fgv_texel_bytes(format, channels))
		return CUDA_ERROR_INVALID_VALUE;
	found->address = address;
	found->format = format;
	found->channels = channels;
	return CUDA_SUCCESS;
}

static CUresult find_resource(const CUDA_RESOURCE_DESC *desc, struct resource *found)
{
	memset(found, 0, sizeof(*found));
	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return find_array(fgv_array_find(desc->res.array.hArray), found);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return find_array(fgv_array_find_mipmapped(desc->res.mipmap.hMipmappedArray),
				  found);
	case CU_RESOURCE_TYPE_LINEAR:
		found->size[0] = desc->res.linear.sizeInBytes;
		return find_memory(desc->res.linear.devPtr, desc->res.linear.format,
				   desc->res.linear.numChannels, found);
	case CU_RESOURCE_TYPE_PITCH2D:
		found->size[0] = desc->res.pitch2D.width;
		found->size[1] = desc->res.pitch2D.height;
		found->size[2] = desc->res.pitch2D.pitchInBytes;
		return find_memory(desc->res.pitch2D.devPtr, desc->res.pitch2D.format,
				   desc->res.pitch2D.numChannels, found);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* What is read is what the view says; whether the array has it, the host knows. */
static CUresult check_view(const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUarray_format format;
	unsigned channels;

	if ((unsigned)view->format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7 ||
	    view->format == CU_RES_VIEW_FORMAT_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_texel_view(view->format, &format, &channels)
		       ? CUDA_SUCCESS
		       : FGV_UNSUPPORTED("views of block-compressed textures");
}

/* A view changes nothing about whether integers are read as such: that is the array's. */
static uint32_t flags_of(const CUDA_TEXTURE_DESC *how, const struct resource *resource)
{
	bool is_float =
		resource->format == CU_AD_FORMAT_FLOAT || resource->format == CU_AD_FORMAT_HALF;

	return is_float ? how->flags & ~(unsigned)CU_TRSF_READ_AS_INTEGER : how->flags;
}

static CUresult send_texture(const struct object *wanted, const struct resource *resource,
			     uint64_t *number, uint32_t *handle)
{
	const CUDA_TEXTURE_DESC *how = &wanted->how;
	const uint32_t modes[3] = {how->addressMode[0], how->addressMode[1], how->addressMode[2]};
	const float levels[3] = {how->mipmapLevelBias, how->minMipmapLevelClamp,
				 how->maxMipmapLevelClamp};
	const CUDA_RESOURCE_VIEW_DESC *view = &wanted->view;
	const uint64_t view_size[3] = {view->width, view->height, view->depth};
	const uint32_t view_levels[2] = {view->firstMipmapLevel, view->lastMipmapLevel};
	const uint32_t view_layers[2] = {view->firstLayer, view->lastLayer};
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_call_texture_create(
		lane, resource->array, wanted->resource.resType, resource->address, resource->size,
		resource->format, resource->channels, modes, how->filterMode,
		flags_of(how, resource), how->maxAnisotropy, how->mipmapFilterMode, levels,
		how->borderColor, wanted->has_view, view->format, view_size, view_levels,
		view_layers, handle, number);
	fgv_lane_leave(lane);
	return res;
}

static void send_destroy(uint32_t handle)
{
	struct fgv_lane *lane;

	if (fgv_context_enter_any(&lane))
		return;
	fgv_post_texture_destroy(lane, handle);
	fgv_lane_leave(lane);
}

CUresult fgv_texture_create(CUtexObject *texture, const CUDA_RESOURCE_DESC *desc,
			    const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct object made = {0};
	struct resource resource;
	uint64_t number;
	CUresult res;

	if (!texture || !desc || !how)
		return CUDA_ERROR_INVALID_VALUE;
	res = find_resource(desc, &resource);
	made.has_view = view && resource.array;
	if (!res && made.has_view)
		res = check_view(view);
	if (res)
		return res;
	made.resource = *desc;
	made.how = *how;
	if (made.has_view)
		made.view = *view;
	res = send_texture(&made, &resource, &number, &made.handle);
	if (res)
		return res;
	res = keep(textures(), number, &made);
	if (res)
		send_destroy(made.handle);
	else
		*texture = number;
	return res;
}

static CUresult send_surface(uint32_t array, uint32_t *handle, uint64_t *number)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_call_surface_create(lane, array, handle, number);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_texture_create_surface(CUsurfObject *surface, const CUDA_RESOURCE_DESC *desc)
{
	struct object made = {0};
	const struct fgv_array *array;
	uint64_t number;
	CUresult res;

	if (!surface || !desc || desc->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	array = fgv_array_find(desc->res.array.hArray);
	if (!array || array->device != fgv_thread_self.device)
		return CUDA_ERROR_INVALID_HANDLE;
	res = send_surface(array->handle, &made.handle, &number);
	if (res)
		return res;
	made.resource = *desc;
	res = keep(surfaces(), number, &made);
	if (res)
		send_destroy(made.handle);
	else
		*surface = number;
	return res;
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
	drain(&of_textures[lane->client->device], lane);
	drain(&of_surfaces[lane->client->device], lane);
}

static CUresult destroy(struct objects *objects, uint64_t number)
{
	struct object *found;

	if (!number)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&objects->mutex);
	found = fgv_ptrhash_find(&objects->objects, (void *)(uintptr_t)number);
	if (found)
		forget_locked(objects, found);
	pthread_mutex_unlock(&objects->mutex);
	if (!found)
		return CUDA_SUCCESS;
	send_destroy(found->handle);
	free(found);
	return CUDA_SUCCESS;
}

CUresult fgv_texture_destroy(CUtexObject texture)
{
	return destroy(textures(), texture);
}

CUresult fgv_texture_destroy_surface(CUsurfObject surface)
{
	return destroy(surfaces(), surface);
}

CUresult fgv_texture_get_resource(CUDA_RESOURCE_DESC *resource, CUtexObject texture)
{
	struct object found;

	if (!resource || look_up(textures(), texture, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*resource = found.resource;
	return CUDA_SUCCESS;
}

CUresult fgv_texture_get_how(CUDA_TEXTURE_DESC *how, CUtexObject texture)
{
	struct object found;

	if (!how || look_up(textures(), texture, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*how = found.how;
	return CUDA_SUCCESS;
}

CUresult fgv_texture_get_view(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject texture)
{
	struct object found;

	if (!view || look_up(textures(), texture, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*view = found.view;
	return CUDA_SUCCESS;
}

CUresult fgv_texture_get_surface_resource(CUDA_RESOURCE_DESC *resource, CUsurfObject surface)
{
	struct object found;

	if (!resource || look_up(surfaces(), surface, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*resource = found.resource;
	return CUDA_SUCCESS;
}

CUresult fgv_texture_linear_width(CUarray_format format, unsigned channels, int ordinal,
				  size_t *width)
{
	const struct fgv_device_info *info;
	struct fgv_lane *lane;
	uint64_t texels;
	CUresult res = fgv_context_find_device(ordinal, &info);

	if (!width || !fgv_texel_bytes(format, channels))
		return CUDA_ERROR_INVALID_VALUE;
	if (!res)
		res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	res = fgv_call_texture_linear_width(lane, format, channels, &texels);
	fgv_lane_leave(lane);
	if (!res)
		*width = texels;
	return res;
}
