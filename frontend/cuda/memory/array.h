/*
 * CUDA arrays. What a program asks about one is answered here.
 *
 * CUDA_ERROR_INVALID_HANDLE for what is no array, CUDA_ERROR_INVALID_VALUE for a missing
 * out-parameter or an impossible shape, CUDA_ERROR_NOT_SUPPORTED for flags and formats that FairGV
 * does not have.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_ARRAY_H
#define FGV_CUDA_ARRAY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fgv_lane;

CUresult fgv_array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc);
/* Waits for what uses it. A level goes with its mipmapped array: CUDA_ERROR_INVALID_VALUE. */
CUresult fgv_array_destroy(CUarray array);
CUresult fgv_array_get_descriptor(CUarray array, CUDA_ARRAY3D_DESCRIPTOR *desc);

/* @levels out of range are as many as there can be. */
CUresult fgv_array_create_mipmapped(CUmipmappedArray *mipmapped,
				    const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels);
CUresult fgv_array_destroy_mipmapped(CUmipmappedArray mipmapped);
/* The same array each time it is asked for. */
CUresult fgv_array_get_level(CUarray *array, CUmipmappedArray mipmapped, unsigned level);

/*
 * No array here has parts: of sparse ones, of those that are mapped later, and of planes. So asking
 * for them, with @out the place for the answer, fails with what this returns.
 */
CUresult fgv_array_refuse_parts(CUarray array, const void *out);
CUresult fgv_array_refuse_mipmapped_parts(CUmipmappedArray mipmapped, const void *out);

/* An array, one with mipmap levels, or a level of one. */
struct fgv_array {
	uint32_t handle;	      /* the host's */
	uint32_t device;	      /* the ordinal of its device */
	CUDA_ARRAY3D_DESCRIPTOR desc; /* as asked for */
	unsigned texel_bytes;
	bool is_level; /* goes with the array it is of */
	unsigned levels_count;
	CUarray *levels; /* those that were asked for */
};

/* What @array stands for, NULL if it is none. It lives as long as @array does. */
const struct fgv_array *fgv_array_find(CUarray array);
const struct fgv_array *fgv_array_find_mipmapped(CUmipmappedArray mipmapped);

/* Rows and slices of an array, which have no 0. */
static inline size_t fgv_array_rows(const struct fgv_array *array)
{
	return array->desc.Height ? array->desc.Height : 1;
}

static inline size_t fgv_array_slices(const struct fgv_array *array)
{
	return array->desc.Depth ? array->desc.Depth : 1;
}

/* For the reset of a device alone: frees all arrays. */
void fgv_array_drain(struct fgv_lane *lane);

#endif
