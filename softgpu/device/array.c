/*
 * Arrays, and copies of boxes to and from them. An array is device memory, row by row
 * without gaps; of a mipmapped one the levels follow each other. struct softgpu_array is
 * the dispatcher's alone: what is queued carries addresses, and the memory goes as all
 * device memory does, once the work queued before is done.
 */
#include "softgpu/device/array.h"

#include <stdlib.h>
#include <string.h>

#include "common/texel.h"
#include "common/util.h"

#define LEVEL_ALIGN 512 /* bytes */

static void set_size(struct softgpu_array *array, const uint64_t size[3])
{
	memcpy(array->size, size, sizeof(array->size));
	array->row_bytes = size[0] * array->texel_bytes;
	array->rows = fgv_max_u64(size[1], 1);
	array->slices = fgv_max_u64(size[2], 1);
}

/* Describes @array and its levels, with addresses from 0 on, and how much memory they take. */
static bool lay_out(struct softgpu_array *array, const uint64_t size[3], uint64_t *bytes)
{
	*bytes = 0;
	set_size(array, size);
	for (unsigned i = 0; i < fgv_max_u64(array->levels_count, 1); i++) {
		struct softgpu_array *part = array->levels_count ? &array->levels[i] : array;
		uint64_t part_size[3], part_bytes;

		fgv_texel_level_size(size, array->flags, i, part_size);
		if (!fgv_texel_array_bytes(part_size, array->texel_bytes, &part_bytes) ||
		    part_bytes > UINT64_MAX / 4 - *bytes)
			return false;
		if (part != array) {
			*part = *array;
			part->levels_count = 0;
			part->levels = NULL;
		}
		set_size(part, part_size);
		part->address = *bytes;
		*bytes += fgv_align_up(part_bytes, LEVEL_ALIGN);
	}
	return true;
}

static CUresult allocate(struct softgpu *gpu, struct softgpu_array *array, const uint64_t size[3])
{
	uint64_t address;
	CUresult status;

	if (!lay_out(array, size, &array->bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = softgpu_mem_alloc(gpu, array->bytes, &address);
	if (status != CUDA_SUCCESS)
		return status;
	array->address = address;
	for (unsigned i = 0; i < array->levels_count; i++)
		array->levels[i].address += address;
	return CUDA_SUCCESS;
}

static bool is_sane(const CUDA_ARRAY3D_DESCRIPTOR *wanted)
{
	const unsigned known =
		FGV_TEXEL_LAYERS | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER;
	bool is_cube = wanted->Flags & CUDA_ARRAY3D_CUBEMAP;
	bool is_layered = wanted->Flags & CUDA_ARRAY3D_LAYERED;

	if (!wanted->Width || (wanted->Flags & ~known) ||
	    !fgv_texel_bytes(wanted->Format, wanted->NumChannels))
		return false;
	if (is_cube && (wanted->Width != wanted->Height || !wanted->Depth || wanted->Depth % 6 ||
			(!is_layered && wanted->Depth != 6)))
		return false;
	return (!is_layered || wanted->Depth) && (wanted->Height || !wanted->Depth || is_layered);
}

CUresult softgpu_array_create(struct softgpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			      unsigned levels, struct softgpu_array **array)
{
	uint64_t size[3] = {wanted->Width, wanted->Height, wanted->Depth};
	struct softgpu_array *made;
	CUresult status;

	if (!is_sane(wanted) || levels > fgv_texel_levels_max(size, wanted->Flags))
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->format = wanted->Format;
	made->channels = wanted->NumChannels;
	made->flags = wanted->Flags;
	made->texel_bytes = fgv_texel_bytes(wanted->Format, wanted->NumChannels);
	made->levels_count = levels;
	made->levels = levels ? calloc(levels, sizeof(*made->levels)) : NULL;
	status = levels && !made->levels ? CUDA_ERROR_OUT_OF_MEMORY : allocate(gpu, made, size);
	if (status != CUDA_SUCCESS) {
		free(made->levels);
		free(made);
		return status;
	}
	*array = made;
	return CUDA_SUCCESS;
}

CUresult softgpu_array_destroy(struct softgpu *gpu, struct softgpu_array *array)
{
	CUresult status = softgpu_mem_free(gpu, array->address);

	free(array->levels);
	free(array);
	return status;
}

CUresult softgpu_array_level(struct softgpu_array *array, unsigned level,
			     struct softgpu_array **part)
{
	if (level >= array->levels_count)
		return CUDA_ERROR_INVALID_VALUE;
	*part = &array->levels[level];
	return CUDA_SUCCESS;
}

uint64_t softgpu_array_bytes(const struct softgpu_array *array)
{
	return array->bytes;
}

/* One end of a copy, and the place in it. */
struct place {
	CUmemorytype type;
	const struct softgpu_array *array;
	uint64_t address; /* of host or linear memory */
	uint64_t pitch, rows;
	uint64_t x, y, z;
};

static struct place source_of(const CUDA_MEMCPY3D *box)
{
	bool is_host = box->srcMemoryType == CU_MEMORYTYPE_HOST;

	return (struct place){
		.type = box->srcMemoryType,
		.array = (const struct softgpu_array *)box->srcArray,
		.address = is_host ? (uint64_t)(uintptr_t)box->srcHost : box->srcDevice,
		.pitch = box->srcPitch,
		.rows = box->srcHeight,
		.x = box->srcXInBytes,
		.y = box->srcY,
		.z = box->srcZ,
	};
}

static struct place destination_of(const CUDA_MEMCPY3D *box)
{
	bool is_host = box->dstMemoryType == CU_MEMORYTYPE_HOST;

	return (struct place){
		.type = box->dstMemoryType,
		.array = (const struct softgpu_array *)box->dstArray,
		.address = is_host ? (uint64_t)(uintptr_t)box->dstHost : box->dstDevice,
		.pitch = box->dstPitch,
		.rows = box->dstHeight,
		.x = box->dstXInBytes,
		.y = box->dstY,
		.z = box->dstZ,
	};
}

static bool fits(uint64_t from, uint64_t count, uint64_t limit)
{
	return from <= limit && count <= limit - from;
}

/* Whole elements of the array that are all there. */
static bool find_in_array(const struct place *place, const CUDA_MEMCPY3D *box, struct box_end *end)
{
	const struct softgpu_array *array = place->array;

	if (!array || array->levels_count || place->x % array->texel_bytes ||
	    box->WidthInBytes % array->texel_bytes ||
	    !fits(place->x, box->WidthInBytes, array->row_bytes) ||
	    !fits(place->y, box->Height, array->rows) || !fits(place->z, box->Depth, array->slices))
		return false;
	end->pitch = array->row_bytes;
	end->slice = array->row_bytes * array->rows;
	end->base = array->address + place->z * end->slice + place->y * end->pitch + place->x;
	return true;
}

/* *@sum += @a * @b; false where that overflows. */
static bool add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
	uint64_t product;

	return !__builtin_mul_overflow(a, b, &product) &&
	       !__builtin_add_overflow(*sum, product, sum);
}

/* In linear memory, of which rows and slices must not overlap. @span: from the first byte on. */
static bool find_in_memory(const struct place *place, const CUDA_MEMCPY3D *box, struct box_end *end,
			   uint64_t *span)
{
	uint64_t first = place->address;

	end->pitch = place->pitch;
	end->slice = 0;
	*span = box->WidthInBytes;
	if ((box->Height > 1 && place->pitch < box->WidthInBytes) ||
	    (box->Depth > 1 && place->rows < box->Height) ||
	    !add_product(&end->slice, place->pitch, place->rows) ||
	    !add_product(&first, place->x, 1) || !add_product(&first, place->y, end->pitch) ||
	    !add_product(&first, place->z, end->slice) ||
	    !add_product(span, box->Height - 1, end->pitch) ||
	    !add_product(span, box->Depth - 1, end->slice))
		return false;
	end->base = first;
	return true;
}

static bool find_end(struct softgpu *gpu, const struct place *place, const CUDA_MEMCPY3D *box,
		     struct box_end *end)
{
	uint64_t span;

	switch (place->type) {
	case CU_MEMORYTYPE_ARRAY:
		return find_in_array(place, box, end);
	case CU_MEMORYTYPE_HOST:
		return find_in_memory(place, box, end, &span);
	case CU_MEMORYTYPE_DEVICE:
		return find_in_memory(place, box, end, &span) &&
		       fgv_softgpu_memory_inside(&gpu->memory, end->base, span);
	default:
		return false;
	}
}

/* Keeps the source in the command, rows without gaps. */
static void keep_source(struct command *command)
{
	struct box_copy *copy = &command->box;
	struct box_copy kept = *copy;

	kept.to = (struct box_end){(uint64_t)(uintptr_t)command->param, copy->width,
				   copy->width * copy->height};
	fgv_softgpu_box_run(&kept);
	copy->from = kept.to;
}

/* An array is device memory. */
static unsigned queue_for(struct softgpu *gpu, const CUDA_MEMCPY3D *box,
				  const struct box_copy *copy, int keep)
{
	bool to_host = box->dstMemoryType == CU_MEMORYTYPE_HOST;

	if (keep)
		return QUEUE_COMPUTE;
	if (to_host != (box->srcMemoryType == CU_MEMORYTYPE_HOST))
		return to_host ? QUEUE_OUT : QUEUE_IN;
	return fgv_queue_for_copy(gpu, copy->to.base, copy->from.base);
}

CUresult softgpu_copy_box(struct softgpu *gpu, const CUDA_MEMCPY3D *box, int keep,
			  struct softgpu_stream *stream)
{
	struct place from = source_of(box), to = destination_of(box);
	CUresult fault = fgv_queue_fault(gpu);
	struct box_copy copy = {
		.width = box->WidthInBytes, .height = box->Height, .depth = box->Depth};
	struct command *command;

	if (fault != CUDA_SUCCESS || !copy.width || !copy.height || !copy.depth)
		return fault;
	if (!find_end(gpu, &from, box, &copy.from) || !find_end(gpu, &to, box, &copy.to))
		return CUDA_ERROR_INVALID_VALUE;
	command = fgv_queue_new(COMMAND_COPY_BOX, keep ? copy.width * copy.height * copy.depth : 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->box = copy;
	if (keep)
		keep_source(command);
	fgv_queue_submit(gpu, command, queue_for(gpu, box, &copy, keep), stream);
	return CUDA_SUCCESS;
}

void fgv_softgpu_box_run(const struct box_copy *copy)
{
	for (uint64_t z = 0; z < copy->depth; z++) {
		uint64_t to = copy->to.base + z * copy->to.slice;
		uint64_t from = copy->from.base + z * copy->from.slice;

		for (uint64_t y = 0; y < copy->height; y++)
			memmove((void *)(uintptr_t)(to + y * copy->to.pitch),
				(const void *)(uintptr_t)(from + y * copy->from.pitch),
				copy->width);
	}
}
