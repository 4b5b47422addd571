/*
 * Copying boxes: cudaMemcpy2D and cudaMemcpy3D, and what all copies to and from arrays come
 * down to. As between pointers (memcpy.c), memory itself says on which side it is; an
 * array is always on the device.
 */
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/memcpy_box.h"

#include <string.h>

#include "common/util.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/memory/copy.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"

/* An end whose place has been found. */
struct place {
	enum fgv_side side;
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

static cudaError_t place_in_array(const struct fgv_box_end *end, const struct fgv_box *box,
				  struct place *place)
{
	const struct fgv_array *array = end->array;

	if (end->x % array->texel_bytes || box->width % array->texel_bytes ||
	    !fits(end->x, box->width, array->extent.width * array->texel_bytes) ||
	    !fits(end->y, box->height, fgv_array_rows(array)) ||
	    !fits(end->z, box->depth, fgv_array_slices(array)))
		return cudaErrorInvalidValue;
	place->side = FGV_SIDE_DEVICE;
	place->device = (struct fgv_place){array->handle, {end->x, end->y, end->z}};
	return cudaSuccess;
}

/* @wanted: the kind of the copy says that this end is on the device. */
static cudaError_t place_in_memory(const struct fgv_box_end *end, const struct fgv_box *box,
				   bool wanted, struct place *place, bool *ask)
{
	uint64_t first = (uint64_t)(uintptr_t)end->ptr, span = box->width, slice = 0;

	if (!end->ptr || (box->depth > 1 && !fits(end->y, box->height, end->rows)) ||
	    !add_product(&slice, end->pitch, end->rows) || !add_product(&first, end->x, 1) ||
	    !add_product(&first, end->y, end->pitch) || !add_product(&first, end->z, slice) ||
	    !add_product(&span, box->height - 1, end->pitch) ||
	    !add_product(&span, box->depth - 1, slice) || span > UINT64_MAX - first ||
	    !fgv_memcpy_side((void *)(uintptr_t)first, span, wanted, &place->side, ask))
		return cudaErrorInvalidValue;
	place->device = (struct fgv_place){0, {first, end->pitch, end->rows}};
	place->host = (struct fgv_rows){(uint8_t *)(uintptr_t)first, end->pitch, end->rows};
	return cudaSuccess;
}

static cudaError_t find_place(const struct fgv_box_end *end, const struct fgv_box *box, bool wanted,
			      struct place *place, bool *ask)
{
	if (end->array)
		return place_in_array(end, box, place);
	return place_in_memory(end, box, wanted, place, ask);
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

static cudaError_t copy_on(struct fgv_lane *lane, const struct place *to, const struct place *from,
			   const struct fgv_box *box, bool ask, struct fgv_when when)
{
	const uint64_t extent[3] = {box->width, box->height, box->depth};
	uint32_t handle;
	cudaError_t error = fgv_error_from(fgv_stream_handle(lane, when.stream, &handle));
	CUresult res;

	if (error)
		return error;
	res = run(lane, to, from, extent, handle, when.wait);
	if (!res && ask)
		res = fgv_sync_stream(lane, handle);
	return fgv_error_from(res);
}

static bool is_pitch_good(const struct fgv_box_end *end, const struct fgv_box *box)
{
	return end->array || fits(end->x, box->width, end->pitch);
}

/* Whether the box has no gaps between its rows. */
static bool is_dense(const struct fgv_box_end *end, const struct fgv_box *box)
{
	if (end->array || end->x || end->y || end->z)
		return false;
	return (box->height == 1 && box->depth == 1) ||
	       (end->pitch == box->width && (box->depth == 1 || end->rows == box->height));
}

static cudaError_t copy_places(const struct fgv_box_end *to, const struct fgv_box_end *from,
			       const struct fgv_box *box, enum cudaMemcpyKind kind,
			       struct fgv_when when)
{
	struct place to_place, from_place;
	struct fgv_lane *lane;
	bool ask = false;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = find_place(to, box, fgv_memcpy_is_to_device(kind), &to_place, &ask);
	if (!error)
		error = find_place(from, box, fgv_memcpy_is_from_device(kind), &from_place, &ask);
	if (!error)
		error = copy_on(lane, &to_place, &from_place, box, ask, when);
	fgv_lane_leave(lane);
	return error;
}

cudaError_t fgv_memcpy_box(const struct fgv_box_end *to, const struct fgv_box_end *from,
			   const struct fgv_box *box, enum cudaMemcpyKind kind,
			   struct fgv_when when)
{
	size_t bytes = 0;

	if ((unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!box->width || !box->height || !box->depth)
		return cudaSuccess;
	if (!is_pitch_good(to, box) || !is_pitch_good(from, box))
		return cudaErrorInvalidPitchValue;
	if (__builtin_mul_overflow(box->width, box->height, &bytes) ||
	    __builtin_mul_overflow(bytes, box->depth, &bytes))
		return cudaErrorInvalidValue;
	if (is_dense(to, box) && is_dense(from, box))
		return when.wait ? fgv_memcpy_wait(to->ptr, from->ptr, bytes, kind, when.stream)
				 : fgv_memcpy(to->ptr, from->ptr, bytes, kind, when.stream);
	return copy_places(to, from, box, kind, when);
}

cudaError_t fgv_memcpy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height, enum cudaMemcpyKind kind, struct fgv_when when)
{
	struct fgv_box_end to = {.ptr = dst, .pitch = dpitch, .rows = height};
	struct fgv_box_end from = {.ptr = (void *)(uintptr_t)src, .pitch = spitch, .rows = height};

	return fgv_memcpy_box(&to, &from, &(struct fgv_box){width, height, 1}, kind, when);
}

FGV_EXPORT cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
				    size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_2d(dst, dpitch, src, spitch, width, height, kind,
					   (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
					 size_t width, size_t height, enum cudaMemcpyKind kind,
					 cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_2d(dst, dpitch, src, spitch, width, height, kind,
					   (struct fgv_when){stream, false}));
}

/* Exactly one of an array and memory; positions are in its elements, which memory has bytes of. */
static cudaError_t find_end(cudaArray_const_t array, const struct cudaPitchedPtr *memory,
			    const struct cudaPos *at, struct fgv_box_end *end)
{
	*end = (struct fgv_box_end){
		.ptr = memory->ptr,
		.pitch = memory->pitch,
		.rows = memory->ysize,
		.x = at->x,
		.y = at->y,
		.z = at->z,
	};
	if (!array)
		return memory->ptr ? cudaSuccess : cudaErrorInvalidValue;
	end->array = fgv_array_find(array);
	if (memory->ptr)
		return cudaErrorInvalidValue;
	if (!end->array)
		return cudaErrorInvalidResourceHandle;
	if (__builtin_mul_overflow(at->x, (size_t)end->array->texel_bytes, &end->x))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* The extent in bytes, rows and slices: in elements of an array, if one is there. */
static cudaError_t find_box(const struct fgv_box_end *to, const struct fgv_box_end *from,
			    const struct cudaExtent *extent, struct fgv_box *box)
{
	const struct fgv_array *array = to->array ? to->array : from->array;
	size_t element = array ? array->texel_bytes : 1;

	if (to->array && from->array && to->array->texel_bytes != from->array->texel_bytes)
		return cudaErrorInvalidValue;
	*box = (struct fgv_box){0, extent->height, extent->depth};
	if (__builtin_mul_overflow(extent->width, element, &box->width))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

cudaError_t fgv_memcpy_3d(const struct cudaMemcpy3DParms *p, struct fgv_when when)
{
	struct fgv_box_end to, from;
	struct fgv_box box;
	cudaError_t error;

	if (!p)
		return cudaErrorInvalidValue;
	error = find_end(p->dstArray, &p->dstPtr, &p->dstPos, &to);
	if (!error)
		error = find_end(p->srcArray, &p->srcPtr, &p->srcPos, &from);
	if (!error)
		error = find_box(&to, &from, &p->extent, &box);
	if (error)
		return error;
	return fgv_memcpy_box(&to, &from, &box, p->kind, when);
}

FGV_EXPORT cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	return fgv_error_set(fgv_memcpy_3d(p, (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_3d(p, (struct fgv_when){stream, false}));
}
