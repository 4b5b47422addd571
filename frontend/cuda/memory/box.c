/*
 * Copying boxes, which all copies to and from arrays come down to. As between pointers, memory
 * itself says on which side it is; an array is always on the device.
 */
#include "frontend/cuda/memory/box.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/memory/copy.h"
#include "frontend/cuda/memory/memcpy.h"
#include "frontend/cuda/stream/stream.h"

/* What a copy from one device to another has in the program at a time, or a row. */
#define CHUNK_BYTES (4u << 20)

/* One end of a copy: an array, else memory in rows; and the place in it. */
struct end {
	const struct fgv_array *array;
	bool wanted; /* on the device, as the program says */
	uint64_t address;
	size_t pitch, rows; /* rows of a slice */
	size_t x, y, z;	    /* x in bytes */
};

/* Of so many bytes, rows and slices. */
struct box {
	size_t width, height, depth;
};

/* An end whose place has been found. */
struct place {
	enum fgv_side side;
	uint32_t ordinal; /* of its device; as it came, where it is on none */
	struct fgv_place device;
	struct fgv_rows host;
};

static bool fits(size_t from, size_t count, size_t limit)
{
	return from <= limit && count <= limit - from;
}

static bool add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
	uint64_t product;

	return !__builtin_mul_overflow(a, b, &product) &&
	       !__builtin_add_overflow(*sum, product, sum);
}

static CUresult place_in_array(const struct end *end, const struct box *box, struct place *place)
{
	const struct fgv_array *array = end->array;

	if (end->x % array->texel_bytes || box->width % array->texel_bytes ||
	    !fits(end->x, box->width, array->desc.Width * array->texel_bytes) ||
	    !fits(end->y, box->height, fgv_array_rows(array)) ||
	    !fits(end->z, box->depth, fgv_array_slices(array)))
		return CUDA_ERROR_INVALID_VALUE;
	place->side = FGV_SIDE_DEVICE;
	place->ordinal = array->device;
	place->device = (struct fgv_place){array->handle, {end->x, end->y, end->z}};
	return CUDA_SUCCESS;
}

static CUresult place_in_memory(const struct end *end, const struct box *box, struct place *place,
				bool *ask)
{
	uint64_t first = end->address, span = box->width, slice = 0;

	if (!first || (box->depth > 1 && !fits(end->y, box->height, end->rows)) ||
	    !add_product(&slice, end->pitch, end->rows) || !add_product(&first, end->x, 1) ||
	    !add_product(&first, end->y, end->pitch) || !add_product(&first, end->z, slice) ||
	    !add_product(&span, box->height - 1, end->pitch) ||
	    !add_product(&span, box->depth - 1, slice) || span > UINT64_MAX - first ||
	    !fgv_memcpy_side((void *)(uintptr_t)first, span, end->wanted, &place->side, ask,
			     &place->ordinal))
		return CUDA_ERROR_INVALID_VALUE;
	place->device = (struct fgv_place){0, {first, end->pitch, end->rows}};
	place->host = (struct fgv_rows){(uint8_t *)(uintptr_t)first, end->pitch, end->rows};
	return CUDA_SUCCESS;
}

static CUresult find_place(const struct end *end, const struct box *box, struct place *place,
			   bool *ask)
{
	return end->array ? place_in_array(end, box, place) : place_in_memory(end, box, place, ask);
}

static void copy_rows(const struct fgv_rows *to, const struct fgv_rows *from, const uint64_t box[3])
{
	for (uint64_t z = 0; z < box[2]; z++) {
		for (uint64_t y = 0; y < box[1]; y++)
			memmove(to->base + (z * to->rows + y) * to->pitch,
				from->base + (z * from->rows + y) * from->pitch, box[0]);
	}
}

static CUresult run(struct fgv_lane *lane, const struct place *to, const struct place *from,
		    const uint64_t box[3], uint32_t stream, bool wait)
{
	CUresult res;

	if (to->side == FGV_SIDE_DEVICE && from->side == FGV_SIDE_HOST) {
		res = wait ? fgv_sync_stream_seen(lane, stream) : CUDA_SUCCESS;
		if (!res)
			res = fgv_copy_box_in(lane, &to->device, &from->host, box, stream);
		if (!res && wait && fgv_box_bytes(box) > FGV_DATA_MAX)
			res = fgv_sync_stream(lane, stream);
		return res;
	}
	if (to->side == FGV_SIDE_HOST && from->side == FGV_SIDE_DEVICE) {
		uint64_t then = fgv_sync_now(lane);

		res = fgv_copy_box_out(lane, &to->host, &from->device, box, stream);
		if (!res)
			fgv_sync_note(lane, stream, then);
		return res;
	}
	if (to->side == FGV_SIDE_DEVICE || from->side == FGV_SIDE_DEVICE) {
		res = fgv_post_copy_box(lane, to->device.array, from->device.array, to->device.at,
					from->device.at, box, stream);
		if (!res && wait && to->side != from->side)
			res = fgv_sync_stream(lane, stream);
		return res;
	}
	/* Within host memory CUDA's copies are never asynchronous. */
	res = fgv_sync_stream(lane, stream);
	if (!res)
		copy_rows(&to->host, &from->host, box);
	return res;
}

static CUresult copy_on(struct fgv_lane *lane, const struct place *to, const struct place *from,
			const struct box *box, bool ask, struct fgv_when when)
{
	const uint64_t extent[3] = {box->width, box->height, box->depth};
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, when.stream, &handle);

	if (res)
		return res;
	res = run(lane, to, from, extent, handle, when.wait);
	if (!res && ask && !lane->recorder)
		res = fgv_sync_stream(lane, handle);
	return res;
}

static CUresult copy_there(uint32_t device, const struct place places[2], const struct box *box,
			   bool ask, struct fgv_when when)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device, &lane);

	if (res)
		return res;
	res = copy_on(lane, &places[0], &places[1], box, ask, when);
	fgv_lane_leave(lane);
	return res;
}

/* Behind all that @device has in streams that wait for the legacy one; done on return. */
static CUresult copy_alone(uint32_t device, const struct place *to, const struct place *from,
			   const struct box *box)
{
	const struct fgv_when when = {CU_STREAM_LEGACY, true};
	const struct place places[2] = {*to, *from};
	struct fgv_lane *lane;
	CUresult res = copy_there(device, places, box, true, when);

	if (!res)
		res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = fgv_sync_stream(lane, 0);
	fgv_lane_leave(lane);
	return res;
}

/* What of @place is @y rows and @z slices further. */
static struct place part_of(const struct place *place, size_t y, size_t z)
{
	struct place part = *place;

	if (part.device.array) {
		part.device.at[1] += y;
		part.device.at[2] += z;
	} else {
		part.device.at[0] += (z * part.device.at[2] + y) * part.device.at[1];
	}
	return part;
}

/* Slice @z, so many rows at a time as @room has. */
static CUresult copy_slice(const struct place places[2], const struct box *box, size_t z,
			   const struct place *room)
{
	CUresult res = CUDA_SUCCESS;

	for (size_t y = 0; y < box->height && !res; y += room->host.rows) {
		struct place to = part_of(&places[0], y, z), from = part_of(&places[1], y, z);
		struct box part = {box->width, fgv_min_u64(room->host.rows, box->height - y), 1};

		res = copy_alone(from.ordinal, room, &from, &part);
		if (!res)
			res = copy_alone(to.ordinal, &to, room, &part);
	}
	return res;
}

/* From one device to another, through the program. */
static CUresult copy_between(const struct place places[2], const struct box *box)
{
	size_t rows = fgv_min_u64(box->height, fgv_max_u64(CHUNK_BYTES / box->width, 1));
	struct place room = {.side = FGV_SIDE_HOST, .host = {NULL, box->width, rows}};
	CUresult res = CUDA_SUCCESS;

	room.host.base = malloc(box->width * rows);
	if (!room.host.base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t z = 0; z < box->depth && !res; z++)
		res = copy_slice(places, box, z, &room);
	free(room.host.base);
	return res;
}

/* On another device than the stream's: behind what the stream has, and done on return. */
static CUresult copy_elsewhere(uint32_t here, const struct place places[2], const struct box *box,
			       CUstream stream)
{
	uint32_t to = places[0].ordinal, from = places[1].ordinal;
	CUresult res = fgv_stream_synchronize(stream);

	if (res)
		return res;
	if (places[0].side == FGV_SIDE_DEVICE && places[1].side == FGV_SIDE_DEVICE && to != from)
		return copy_between(places, box);
	return copy_alone(to != here ? to : from, &places[0], &places[1], box);
}

static CUresult copy_places(const struct end *to, const struct end *from, const struct box *box,
			    struct fgv_when when)
{
	uint32_t here = fgv_stream_device(when.stream);
	struct place places[2] = {{.ordinal = here}, {.ordinal = here}};
	bool ask = false;
	CUresult res = fgv_context_need();

	if (!res)
		res = find_place(to, box, &places[0], &ask);
	if (!res)
		res = find_place(from, box, &places[1], &ask);
	if (res)
		return res;
	if (places[0].ordinal != here || places[1].ordinal != here)
		return copy_elsewhere(here, places, box, when.stream);
	return copy_there(here, places, box, ask, when);
}

/* One row has no pitch. */
static bool is_pitch_good(const struct end *end, const struct box *box)
{
	return end->array || (box->height == 1 && box->depth == 1) ||
	       fits(end->x, box->width, end->pitch);
}

/* Whether the box has no gaps between its rows. */
static bool is_dense(const struct end *end, const struct box *box)
{
	if (end->array || end->x || end->y || end->z)
		return false;
	return (box->height == 1 && box->depth == 1) ||
	       (end->pitch == box->width && (box->depth == 1 || end->rows == box->height));
}

/* A row of memory begins where it does, whatever leads there. */
static void begin_row(struct end *end)
{
	if (end->array || !end->address || end->y || end->z || end->x > UINT64_MAX - end->address)
		return;
	end->address += end->x;
	end->x = 0;
}

static CUresult copy_dense(const struct end *to, const struct end *from, size_t bytes,
			   struct fgv_when when)
{
	unsigned wanted = (to->wanted ? FGV_MEMCPY_TO_DEVICE : 0) |
			  (from->wanted ? FGV_MEMCPY_FROM_DEVICE : 0);

	return fgv_memcpy_run((void *)(uintptr_t)to->address, (void *)(uintptr_t)from->address,
			      bytes, wanted, when.stream, when.wait);
}

/* What is said of an end in CUDA_MEMCPY3D under names that begin with the end's. */
struct named {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
};

static CUresult find_end(const struct named *named, struct end *end)
{
	switch (named->type) {
	case CU_MEMORYTYPE_HOST:
		end->address = (uint64_t)(uintptr_t)named->host;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		end->wanted = true;
		end->address = named->device;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		end->address = named->device;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_ARRAY:
		end->array = fgv_array_find(named->array);
		return end->array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult find_ends(const CUDA_MEMCPY3D *p, struct end *to, struct end *from)
{
	const struct named dst = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray};
	const struct named src = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray};
	CUresult res;

	*to = (struct end){.pitch = p->dstPitch,
			   .rows = p->dstHeight,
			   .x = p->dstXInBytes,
			   .y = p->dstY,
			   .z = p->dstZ};
	*from = (struct end){.pitch = p->srcPitch,
			     .rows = p->srcHeight,
			     .x = p->srcXInBytes,
			     .y = p->srcY,
			     .z = p->srcZ};
	res = p->srcLOD || p->dstLOD ? CUDA_ERROR_INVALID_VALUE : find_end(&dst, to);
	return res ? res : find_end(&src, from);
}

CUresult fgv_box_copy(const CUDA_MEMCPY3D *p, struct fgv_when when)
{
	struct end to, from;
	struct box box;
	size_t bytes = 0;
	CUresult res = p ? find_ends(p, &to, &from) : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	box = (struct box){p->WidthInBytes, p->Height, p->Depth};
	if (!box.width || !box.height || !box.depth)
		return CUDA_SUCCESS;
	if (!is_pitch_good(&to, &box) || !is_pitch_good(&from, &box) ||
	    __builtin_mul_overflow(box.width, box.height, &bytes) ||
	    __builtin_mul_overflow(bytes, box.depth, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (box.height == 1 && box.depth == 1) {
		begin_row(&to);
		begin_row(&from);
	}
	if (!is_dense(&to, &box) || !is_dense(&from, &box))
		return copy_places(&to, &from, &box, when);
	return copy_dense(&to, &from, bytes, when);
}
