/*
 * Copies of boxes, for the functions that copy between pitched memory and arrays.
 */
#ifndef FGV_LIBCUDART_MEMCPY_BOX_H
#define FGV_LIBCUDART_MEMCPY_BOX_H

#include "frontend/libcudart/array.h"

/* One end of a copy: an array, else memory in rows; and the place in it. */
struct fgv_box_end {
	const struct fgv_array *array;
	void *ptr;
	size_t pitch, rows; /* rows of a slice */
	size_t x, y, z;	    /* x in bytes */
};

/* Of so many bytes, rows and slices. */
struct fgv_box {
	size_t width, height, depth;
};

/* In which stream, and whether the program may use its memory, of whatever kind, on return. */
struct fgv_when {
	cudaStream_t stream;
	bool wait;
};

/*
 * Copies as fgv_memcpy() and fgv_memcpy_wait() do (memcpy.h). Checks everything but the
 * arrays of @to and @from, which are what fgv_array_find() gave.
 */
cudaError_t fgv_memcpy_box(const struct fgv_box_end *to, const struct fgv_box_end *from,
			   const struct fgv_box *box, enum cudaMemcpyKind kind,
			   struct fgv_when when);

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
