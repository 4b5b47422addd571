/*
 * CUDA arrays, for the functions that copy to and from them and bind textures to them.
 */
#ifndef FGV_LIBCUDART_ARRAY_H
#define FGV_LIBCUDART_ARRAY_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "frontend/cuda/context/context.h"

/* An array, one with mipmap levels, or a level of one. */
struct fgv_array {
	uint32_t handle;
	struct cudaChannelFormatDesc desc;
	struct cudaExtent extent; /* in elements, rows and slices, as asked for */
	unsigned flags;
	unsigned texel_bytes;
	bool is_level; /* goes with the array it is of */
	unsigned levels_count;
	cudaArray_t *levels; /* those that were asked for */
};

/* What @array stands for, NULL if it is none. It lives as long as @array does. */
const struct fgv_array *fgv_array_find(cudaArray_const_t array);
const struct fgv_array *fgv_array_find_mipmapped(cudaMipmappedArray_const_t mipmapped);

/* Rows and slices of an array, which have no 0. */
size_t fgv_array_rows(const struct fgv_array *array);
size_t fgv_array_slices(const struct fgv_array *array);

/*
 * The driver's names for channels: all of the same width, of 1, 2 or 4 of them.
 * cudaErrorInvalidChannelDescriptor; cudaErrorNotSupported for what is compressed or planar.
 */
cudaError_t fgv_channel_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format,
			       unsigned *channels);

/* Frees all arrays, as a reset does. */
void fgv_array_drain(struct fgv_lane *lane);

#endif
