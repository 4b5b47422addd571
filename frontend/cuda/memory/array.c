/*
 * CUDA arrays as the program holds them.
 */
#include "frontend/cuda/memory/array.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/texel.h"
#include "common/util.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/object.h"

#define KNOWN_FLAGS                                                                                \
	(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |                 \
	 CUDA_ARRAY3D_TEXTURE_GATHER)
#define LATER_FLAGS                                                                                \
	(CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* Guards the levels of all mipmapped arrays. */
static pthread_mutex_t levels_mutex = PTHREAD_MUTEX_INITIALIZER;

static const struct fgv_array *find(enum fgv_object_kind kind, const void *array)
{
	struct fgv_object_info info;

	return fgv_object_find(kind, array, &info) ? info.data : NULL;
}

const struct fgv_array *fgv_array_find(CUarray array)
{
	return find(FGV_OBJECT_ARRAY, array);
}

const struct fgv_array *fgv_array_find_mipmapped(CUmipmappedArray mipmapped)
{
	return find(FGV_OBJECT_MIPMAPPED, mipmapped);
}

static void size_of(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t size[3])
{
	size[0] = desc->Width;
	size[1] = desc->Height;
	size[2] = desc->Depth;
}

/* Gives @wanted its handle. */
static CUresult send_create(struct fgv_array *wanted)
{
	const CUDA_ARRAY3D_DESCRIPTOR *desc = &wanted->desc;
	uint64_t size[3];
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	wanted->device = lane->client->device;
	size_of(desc, size);
	res = fgv_call_array_create(lane, size, desc->Format, desc->NumChannels, desc->Flags,
				    wanted->levels_count, &wanted->handle);
	fgv_lane_leave(lane);
	return res;
}

static void send_destroy(const struct fgv_array *array)
{
	struct fgv_lane *lane;

	if (fgv_context_enter_on(array->device, &lane))
		return;
	fgv_post_array_destroy(lane, array->handle);
	fgv_lane_leave(lane);
}

static void release(struct fgv_array *array)
{
	free(array->levels);
	free(array);
}

/* What the program shall hold for a copy of @wanted; NULL: no memory. */
static void *keep(enum fgv_object_kind kind, const struct fgv_array *wanted)
{
	struct fgv_array *kept = malloc(sizeof(*kept));
	struct fgv_object_info info = {.handle = wanted->handle, .data = kept};
	void *object;

	if (!kept)
		return NULL;
	*kept = *wanted;
	if (kept->levels_count) {
		kept->levels = calloc(kept->levels_count, sizeof(*kept->levels));
		if (!kept->levels) {
			free(kept);
			return NULL;
		}
	}
	object = fgv_object_create(kind, &info);
	if (!object)
		release(kept);
	return object;
}

/* @levels 0: an array that has none. */
static CUresult make(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, void **object)
{
	struct fgv_array wanted = {.desc = *desc, .levels_count = levels};
	CUresult res;

	wanted.texel_bytes = fgv_texel_bytes(desc->Format, desc->NumChannels);
	if (!wanted.texel_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	res = send_create(&wanted);
	if (res)
		return res;
	*object = keep(levels ? FGV_OBJECT_MIPMAPPED : FGV_OBJECT_ARRAY, &wanted);
	if (*object)
		return CUDA_SUCCESS;
	send_destroy(&wanted);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult check(const void *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	if (!out || !desc || (desc->Flags & ~(unsigned)(KNOWN_FLAGS | LATER_FLAGS)))
		return CUDA_ERROR_INVALID_VALUE;
	return desc->Flags & LATER_FLAGS ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult fgv_array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	void *object;
	CUresult res = check(array, desc);

	if (!res)
		res = make(desc, 0, &object);
	if (!res)
		*array = object;
	return res;
}

CUresult fgv_array_create_mipmapped(CUmipmappedArray *mipmapped,
				    const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	uint64_t size[3];
	void *object;
	CUresult res = check(mipmapped, desc);

	if (res)
		return res;
	size_of(desc, size);
	levels = (unsigned)fgv_min_u64(fgv_max_u64(levels, 1),
				       fgv_texel_levels_max(size, desc->Flags));
	res = make(desc, levels, &object);
	if (!res)
		*mipmapped = object;
	return res;
}

/* Makes what stands for level @level of @whole. */
static CUresult make_level(const struct fgv_array *whole, unsigned level, CUarray *object)
{
	struct fgv_array part = *whole;
	struct fgv_lane *lane;
	uint64_t size[3], part_size[3];
	CUresult res = fgv_context_enter_on(whole->device, &lane);

	if (res)
		return res;
	res = fgv_call_array_level(lane, whole->handle, level, &part.handle);
	fgv_lane_leave(lane);
	if (res)
		return res;
	size_of(&whole->desc, size);
	fgv_texel_level_size(size, whole->desc.Flags, level, part_size);
	part.desc.Width = part_size[0];
	part.desc.Height = part_size[1];
	part.desc.Depth = part_size[2];
	part.is_level = true;
	part.levels_count = 0;
	part.levels = NULL;
	*object = keep(FGV_OBJECT_ARRAY, &part);
	return *object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_array_get_level(CUarray *array, CUmipmappedArray mipmapped, unsigned level)
{
	const struct fgv_array *whole = fgv_array_find_mipmapped(mipmapped);
	CUresult res = CUDA_SUCCESS;

	if (!array)
		return CUDA_ERROR_INVALID_VALUE;
	if (!whole)
		return CUDA_ERROR_INVALID_HANDLE;
	if (level >= whole->levels_count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&levels_mutex);
	if (!whole->levels[level])
		res = make_level(whole, level, &whole->levels[level]);
	if (!res)
		*array = whole->levels[level];
	pthread_mutex_unlock(&levels_mutex);
	return res;
}

/* An array that is no object any more: its levels are none either. */
static void forget(struct fgv_array *array)
{
	struct fgv_object_info info;

	for (unsigned i = 0; i < array->levels_count; i++) {
		if (array->levels[i] &&
		    fgv_object_destroy(FGV_OBJECT_ARRAY, array->levels[i], &info))
			release(info.data);
	}
	release(array);
}

static CUresult destroy(enum fgv_object_kind kind, const void *object)
{
	const struct fgv_array *array = find(kind, object);
	struct fgv_object_info info;
	struct fgv_lane *lane;
	CUresult res;

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (array->is_level)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_on(array->device, &lane);
	if (res)
		return res;
	if (fgv_object_destroy(kind, object, &info)) {
		res = fgv_sync_device_seen(lane);
		fgv_post_array_destroy(lane, info.handle);
		forget(info.data);
	}
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_array_destroy(CUarray array)
{
	return destroy(FGV_OBJECT_ARRAY, array);
}

CUresult fgv_array_destroy_mipmapped(CUmipmappedArray mipmapped)
{
	return destroy(FGV_OBJECT_MIPMAPPED, mipmapped);
}

static void drop(const struct fgv_object_info *info, void *lane)
{
	struct fgv_array *array = info->data;

	if (!array->is_level)
		fgv_post_array_destroy(lane, array->handle);
	release(array);
}

void fgv_array_drain(struct fgv_lane *lane)
{
	fgv_object_drain(FGV_OBJECT_ARRAY, lane->client->device, drop, lane);
	fgv_object_drain(FGV_OBJECT_MIPMAPPED, lane->client->device, drop, lane);
}

CUresult fgv_array_get_descriptor(CUarray array, CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	const struct fgv_array *found = fgv_array_find(array);

	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	*desc = found->desc;
	return CUDA_SUCCESS;
}

static CUresult refuse_parts(const struct fgv_array *array, const void *out)
{
	return out && !array ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_array_refuse_parts(CUarray array, const void *out)
{
	return refuse_parts(fgv_array_find(array), out);
}

CUresult fgv_array_refuse_mipmapped_parts(CUmipmappedArray mipmapped, const void *out)
{
	return refuse_parts(fgv_array_find_mipmapped(mipmapped), out);
}
