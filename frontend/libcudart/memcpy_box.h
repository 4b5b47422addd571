/*
 * Copies of boxes, for the functions that copy between pitched memory and arrays.
 */
#ifndef FGV_LIBCUDART_MEMCPY_BOX_H
#define FGV_LIBCUDART_MEMCPY_BOX_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/memory/box.h"

/* One end of a copy: an array, else memory in rows; and the place in it. */
struct fgv_box_end {
	CUarray array;
	size_t texel_bytes; /* of an array */
	size_t row_bytes;   /* the same */
	void *ptr;
	size_t pitch, rows; /* rows of a slice */
	size_t x, y, z;	    /* x in bytes */
};

/* Of so many bytes, rows and slices. */
struct fgv_box {
	size_t width, height, depth;
};

/* cudaErrorInvalidValue for NULL, cudaErrorInvalidResourceHandle for what else is no array. */
cudaError_t fgv_box_end_of_array(cudaArray_const_t array, struct fgv_box_end *end);

/* Copies as fgv_memcpy() and fgv_memcpy_wait() do (memcpy.h). */
cudaError_t fgv_memcpy_box(const struct fgv_box_end *to, const struct fgv_box_end *from,
			   const struct fgv_box *box, enum cudaMemcpyKind kind,
			   struct fgv_when when);

/* The same as a node does it, in the driver's terms, and what it was in the runtime's. */
cudaError_t fgv_box_convert(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *box);
struct cudaMemcpy3DParms fgv_box_describe(const CUDA_MEMCPY3D *box);

/* The copies of the runtime, in any stream, waiting or not. */
cudaError_t fgv_memcpy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height, enum cudaMemcpyKind kind, struct fgv_when when);
cudaError_t fgv_memcpy_3d(const struct cudaMemcpy3DParms *p, struct fgv_when when);
cudaError_t fgv_memcpy_2d_to_array(cudaArray_t dst, size_t x, size_t y, const void *src,
				   size_t spitch, size_t width, size_t height,
				   enum cudaMemcpyKind kind, struct fgv_when when);
cudaError_t fgv_memcpy_2d_from_array(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
				     size_t y, size_t width, size_t height,
				     enum cudaMemcpyKind kind, struct fgv_when when);
cudaError_t fgv_memcpy_2d_between_arrays(cudaArray_t dst, size_t dst_x, size_t dst_y,
					 cudaArray_const_t src, size_t src_x, size_t src_y,
					 size_t width, size_t height, enum cudaMemcpyKind kind,
					 struct fgv_when when);
cudaError_t fgv_memcpy_to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t count,
				enum cudaMemcpyKind kind, struct fgv_when when);
cudaError_t fgv_memcpy_from_array(void *dst, cudaArray_const_t src, size_t x, size_t y,
				  size_t count, enum cudaMemcpyKind kind, struct fgv_when when);
cudaError_t fgv_memcpy_between_arrays(cudaArray_t dst, size_t dst_x, size_t dst_y,
				      cudaArray_const_t src, size_t src_x, size_t src_y,
				      size_t count, enum cudaMemcpyKind kind, struct fgv_when when);
cudaError_t fgv_memset_3d(struct cudaPitchedPtr memory, int value, struct cudaExtent extent,
			  struct fgv_when when);

#endif
