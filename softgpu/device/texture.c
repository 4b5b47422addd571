/*
 * Texture and surface objects: made from arrays or device memory, found by kernels.
 */
#include "softgpu/texture.h"

#include <stdlib.h>

#include "common/texel.h"
#include "common/util.h"
#include "softgpu/device/array.h"

#define INDEX_BITS 20

CUresult fgv_textures_init(struct textures *textures)
{
	textures->slots = calloc(TEXTURES_MAX, sizeof(*textures->slots));
	return textures->slots ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void fgv_textures_fini(struct textures *textures)
{
	uint64_t used = fgv_min_u64(textures->next, TEXTURES_MAX);

	for (uint64_t i = 0; i < used; i++)
		free(textures->slots[i]);
	free(textures->slots);
}

/* Index + 1, so that 0 is none, below a generation. */
static struct texture **slot_of(const struct textures *textures, uint64_t handle)
{
	uint64_t index = (handle & ((1u << INDEX_BITS) - 1)) - 1;

	return index < TEXTURES_MAX ? &textures->slots[index] : NULL;
}

const struct texture *fgv_textures_find(const struct textures *textures, uint64_t handle)
{
	struct texture **slot = slot_of(textures, handle);
	/* Pairs with the release in add(). */
	const struct texture *texture = slot ? __atomic_load_n(slot, __ATOMIC_ACQUIRE) : NULL;

	return texture && texture->handle == handle ? texture : NULL;
}

void fgv_textures_drop(struct textures *textures, uint64_t handle)
{
	struct texture **slot = slot_of(textures, handle);
	struct texture *texture = *slot;

	/* Pairs with the acquire in add(), whose texture comes next. */
	__atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
	free(texture);
}

/* Puts a copy of @made into a free slot. */
static CUresult add(struct textures *textures, const struct texture *made, uint64_t *handle)
{
	struct texture *texture = malloc(sizeof(*texture));

	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*texture = *made;
	for (uint32_t tries = 0; tries < TEXTURES_MAX; tries++) {
		uint32_t index = textures->next++ % TEXTURES_MAX;

		if (__atomic_load_n(&textures->slots[index], __ATOMIC_ACQUIRE))
			continue;
		texture->handle =
			(uint64_t)(textures->generations++ & 0xfffu) << INDEX_BITS | (index + 1);
		*handle = texture->handle;
		__atomic_store_n(&textures->slots[index], texture, __ATOMIC_RELEASE);
		return CUDA_SUCCESS;
	}
	free(texture);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static struct texture_level level_of(const struct softgpu_array *array)
{
	return (struct texture_level){
		.address = array->address,
		.pitch = array->row_bytes,
		.slice = array->row_bytes * array->rows,
		.size = {(int64_t)array->size[0], (int64_t)array->rows, (int64_t)array->slices},
	};
}

static bool set_array(struct texture *texture, const struct softgpu_array *array)
{
	if (!array || array->levels_count > TEXTURE_LEVELS_MAX)
		return false;
	texture->format = array->format;
	texture->channels = array->channels;
	texture->levels_count = (unsigned)fgv_max_u64(array->levels_count, 1);
	for (unsigned i = 0; i < texture->levels_count; i++)
		texture->levels[i] = level_of(array->levels_count ? &array->levels[i] : array);
	return true;
}

static bool set_linear(struct texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	uint64_t texel =
		fgv_texel_bytes(resource->res.linear.format, resource->res.linear.numChannels);
	uint64_t count = texel ? resource->res.linear.sizeInBytes / texel : 0;

	texture->format = resource->res.linear.format;
	texture->channels = resource->res.linear.numChannels;
	texture->is_linear = true;
	texture->levels_count = 1;
	texture->levels[0] = (struct texture_level){
		.address = resource->res.linear.devPtr,
		.pitch = count * texel,
		.slice = count * texel,
		.size = {(int64_t)count, 1, 1},
	};
	return count > 0 && count <= INT32_MAX;
}

static bool set_pitched(struct texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	uint64_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
	uint64_t pitch = resource->res.pitch2D.pitchInBytes;
	uint64_t texel =
		fgv_texel_bytes(resource->res.pitch2D.format, resource->res.pitch2D.numChannels);

	if (!texel || !width || !height || width > INT32_MAX || height > INT32_MAX ||
	    pitch < width * texel || pitch > INT32_MAX)
		return false;
	texture->format = resource->res.pitch2D.format;
	texture->channels = resource->res.pitch2D.numChannels;
	texture->levels_count = 1;
	texture->levels[0] = (struct texture_level){
		.address = resource->res.pitch2D.devPtr,
		.pitch = pitch,
		.slice = pitch * height,
		.size = {(int64_t)width, (int64_t)height, 1},
	};
	return true;
}

/* NULL: it is linear memory. */
static const struct softgpu_array *array_of(const CUDA_RESOURCE_DESC *resource)
{
	if (resource->resType == CU_RESOURCE_TYPE_ARRAY)
		return (const struct softgpu_array *)resource->res.array.hArray;
	if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return (const struct softgpu_array *)resource->res.mipmap.hMipmappedArray;
	return NULL;
}

static bool set_resource(struct texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return set_array(texture, array_of(resource));
	case CU_RESOURCE_TYPE_LINEAR:
		return set_linear(texture, resource);
	case CU_RESOURCE_TYPE_PITCH2D:
		return set_pitched(texture, resource);
	}
	return false;
}

static bool view_format(struct texture *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	unsigned bytes = fgv_texel_bytes(texture->format, texture->channels);

	if (view->format == CU_RES_VIEW_FORMAT_NONE)
		return true;
	return fgv_texel_view(view->format, &texture->format, &texture->channels) &&
	       fgv_texel_bytes(texture->format, texture->channels) == bytes;
}

/*
 * The first and last of @count levels or layers, as the driver has it: the last may be the one
 * behind those that there are, but not where there is but one.
 */
static bool clip(unsigned first, unsigned *last, unsigned count)
{
	if (*last > (count > 1 ? count : 0))
		return false;
	*last = fgv_min_u64(*last, count - 1);
	return first <= *last;
}

static bool view_levels(struct texture *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	unsigned first = view->firstMipmapLevel, last = view->lastMipmapLevel;

	if (!clip(first, &last, texture->levels_count))
		return false;
	texture->levels_count = last - first + 1;
	for (unsigned i = 0; i < texture->levels_count; i++)
		texture->levels[i] = texture->levels[first + i];
	return true;
}

/* Of what is not layered there is only layer 0. */
static bool view_layers(struct texture *texture, const struct softgpu_array *array,
			const CUDA_RESOURCE_VIEW_DESC *view)
{
	bool is_layered = array->flags & CUDA_ARRAY3D_LAYERED;
	unsigned first = view->firstLayer, last = view->lastLayer;

	if (!clip(first, &last, is_layered ? array->slices : 1))
		return false;
	if (!is_layered)
		return true;
	for (unsigned i = 0; i < texture->levels_count; i++) {
		texture->levels[i].address += first * texture->levels[i].slice;
		texture->levels[i].size[2] = last - first + 1;
	}
	return true;
}

static bool set_view(struct texture *texture, const struct softgpu_array *array,
		     const CUDA_RESOURCE_VIEW_DESC *view)
{
	return array && view->width == array->size[0] && view->height == array->size[1] &&
	       view->depth == array->size[2] && view_format(texture, view) &&
	       view_levels(texture, view) && view_layers(texture, array, view);
}

/* Integers that are read as such cannot be filtered. */
static bool is_filter_good(const struct texture *texture)
{
	bool is_int = texture->format != CU_AD_FORMAT_FLOAT && texture->format != CU_AD_FORMAT_HALF;

	if (texture->how.filterMode == CU_TR_FILTER_MODE_POINT || !is_int)
		return true;
	return !(texture->how.flags & CU_TRSF_READ_AS_INTEGER) &&
	       fgv_texel_channel_bytes(texture->format) < 4;
}

CUresult softgpu_texture_create(struct softgpu *gpu, const CUDA_RESOURCE_DESC *resource,
				const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
				uint64_t *object)
{
	struct texture texture = {.how = *how};
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	if (!set_resource(&texture, resource) ||
	    (view && !set_view(&texture, array_of(resource), view)) || !is_filter_good(&texture))
		return CUDA_ERROR_INVALID_VALUE;
	texture.texel_bytes = fgv_texel_bytes(texture.format, texture.channels);
	fgv_texture_settle(&texture);
	return add(&gpu->textures, &texture, object);
}

CUresult softgpu_surface_create(struct softgpu *gpu, struct softgpu_array *array, uint64_t *object)
{
	struct texture texture = {.is_surface = true};
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	if (array->levels_count || !(array->flags & CUDA_ARRAY3D_SURFACE_LDST) ||
	    !set_array(&texture, array))
		return CUDA_ERROR_INVALID_VALUE;
	texture.texel_bytes = array->texel_bytes;
	return add(&gpu->textures, &texture, object);
}

CUresult softgpu_texture_destroy(struct softgpu *gpu, uint64_t object)
{
	struct command *command = fgv_queue_new(COMMAND_DROP_TEXTURE, 0);

	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->address = object;
	fgv_queue_submit_last(gpu, command);
	return CUDA_SUCCESS;
}
