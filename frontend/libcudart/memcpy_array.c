/*
 * Copying to and from arrays: rectangles, and as many bytes as fill an array's rows one
 * after the other.
 */
#include "common/util.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy_box.h"

/* A place in @array; offsets in bytes and rows. */
static cudaError_t array_end(cudaArray_const_t array, size_t x, size_t y, struct fgv_box_end *end)
{
	cudaError_t error = fgv_box_end_of_array(array, end);

	end->x = x;
	end->y = y;
	return error;
}

static struct fgv_box_end memory_end(const void *ptr, size_t pitch, size_t rows)
{
	return (struct fgv_box_end){.ptr = (void *)(uintptr_t)ptr, .pitch = pitch, .rows = rows};
}

cudaError_t fgv_memcpy_2d_to_array(cudaArray_t dst, size_t x, size_t y, const void *src,
				   size_t spitch, size_t width, size_t height,
				   enum cudaMemcpyKind kind, struct fgv_when when)
{
	struct fgv_box_end to, from = memory_end(src, spitch, height);
	cudaError_t error = array_end(dst, x, y, &to);

	if (error)
		return error;
	return fgv_memcpy_box(&to, &from, &(struct fgv_box){width, height, 1}, kind, when);
}

cudaError_t fgv_memcpy_2d_from_array(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
				     size_t y, size_t width, size_t height,
				     enum cudaMemcpyKind kind, struct fgv_when when)
{
	struct fgv_box_end from, to = memory_end(dst, dpitch, height);
	cudaError_t error = array_end(src, x, y, &from);

	if (error)
		return error;
	return fgv_memcpy_box(&to, &from, &(struct fgv_box){width, height, 1}, kind, when);
}

cudaError_t fgv_memcpy_2d_between_arrays(cudaArray_t dst, size_t dst_x, size_t dst_y,
					 cudaArray_const_t src, size_t src_x, size_t src_y,
					 size_t width, size_t height, enum cudaMemcpyKind kind,
					 struct fgv_when when)
{
	struct fgv_box_end to, from;
	cudaError_t error = array_end(dst, dst_x, dst_y, &to);

	if (!error)
		error = array_end(src, src_x, src_y, &from);
	if (error)
		return error;
	return fgv_memcpy_box(&to, &from, &(struct fgv_box){width, height, 1}, kind, when);
}

FGV_EXPORT cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
					   const void *src, size_t spitch, size_t width,
					   size_t height, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_2d_to_array(dst, wOffset, hOffset, src, spitch, width,
						    height, kind, (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
						const void *src, size_t spitch, size_t width,
						size_t height, enum cudaMemcpyKind kind,
						cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_2d_to_array(dst, wOffset, hOffset, src, spitch, width,
						    height, kind,
						    (struct fgv_when){stream, false}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
					     size_t wOffset, size_t hOffset, size_t width,
					     size_t height, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_2d_from_array(dst, dpitch, src, wOffset, hOffset, width,
						      height, kind, (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
						  size_t wOffset, size_t hOffset, size_t width,
						  size_t height, enum cudaMemcpyKind kind,
						  cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_2d_from_array(dst, dpitch, src, wOffset, hOffset, width,
						      height, kind,
						      (struct fgv_when){stream, false}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst,
						size_t hOffsetDst, cudaArray_const_t src,
						size_t wOffsetSrc, size_t hOffsetSrc, size_t width,
						size_t height, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_2d_between_arrays(dst, wOffsetDst, hOffsetDst, src,
							  wOffsetSrc, hOffsetSrc, width, height,
							  kind, (struct fgv_when){NULL, true}));
}

/*
 * A run of bytes in an array, which ends at the end of a row and goes on at the start
 * of the next: what is left of a row, whole rows, a part of a row. The next of these
 * rectangles, as much of @count as it is.
 */
static struct fgv_box next_rectangle(const struct fgv_box_end *end, size_t count)
{
	size_t row_bytes = end->row_bytes;
	size_t left = end->x < row_bytes ? row_bytes - end->x : 0;

	if (!end->x && count >= row_bytes)
		return (struct fgv_box){row_bytes, count / row_bytes, 1};
	return (struct fgv_box){count < left || !left ? count : left, 1, 1};
}

static void move_on(struct fgv_box_end *end, const struct fgv_box *box)
{
	end->x = 0;
	end->y += box->height;
}

cudaError_t fgv_memcpy_to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t count,
				enum cudaMemcpyKind kind, struct fgv_when when)
{
	const char *at = src;
	struct fgv_box_end to;
	cudaError_t error = array_end(dst, x, y, &to);

	while (!error && count) {
		struct fgv_box box = next_rectangle(&to, count);
		struct fgv_box_end from = memory_end(at, box.width, box.height);

		error = fgv_memcpy_box(&to, &from, &box, kind, when);
		at += box.width * box.height;
		count -= box.width * box.height;
		move_on(&to, &box);
	}
	return error;
}

cudaError_t fgv_memcpy_from_array(void *dst, cudaArray_const_t src, size_t x, size_t y,
				  size_t count, enum cudaMemcpyKind kind, struct fgv_when when)
{
	char *at = dst;
	struct fgv_box_end from;
	cudaError_t error = array_end(src, x, y, &from);

	while (!error && count) {
		struct fgv_box box = next_rectangle(&from, count);
		struct fgv_box_end to = memory_end(at, box.width, box.height);

		error = fgv_memcpy_box(&to, &from, &box, kind, when);
		at += box.width * box.height;
		count -= box.width * box.height;
		move_on(&from, &box);
	}
	return error;
}

static void move_within(struct fgv_box_end *end, const struct fgv_box *box)
{
	end->x += box->width;
	if (end->x < end->row_bytes)
		return;
	move_on(end, box);
}

cudaError_t fgv_memcpy_between_arrays(cudaArray_t dst, size_t dst_x, size_t dst_y,
				      cudaArray_const_t src, size_t src_x, size_t src_y,
				      size_t count, enum cudaMemcpyKind kind, struct fgv_when when)
{
	struct fgv_box_end to, from;
	cudaError_t error = array_end(dst, dst_x, dst_y, &to);

	if (!error)
		error = array_end(src, src_x, src_y, &from);
	while (!error && count) {
		struct fgv_box box = next_rectangle(&to, count);
		struct fgv_box other = next_rectangle(&from, count);

		if (box.width != other.width)
			box = (struct fgv_box){fgv_min_u64(box.width, other.width), 1, 1};
		else
			box.height = fgv_min_u64(box.height, other.height);
		error = fgv_memcpy_box(&to, &from, &box, kind, when);
		count -= box.width * box.height;
		move_within(&to, &box);
		move_within(&from, &box);
	}
	return error;
}

FGV_EXPORT cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
					      cudaArray_const_t src, size_t wOffsetSrc,
					      size_t hOffsetSrc, size_t count,
					      enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc,
						       hOffsetSrc, count, kind,
						       (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
					 const void *src, size_t count, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_to_array(dst, wOffset, hOffset, src, count, kind,
						 (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
					      const void *src, size_t count,
					      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_to_array(dst, wOffset, hOffset, src, count, kind,
						 (struct fgv_when){stream, false}));
}

FGV_EXPORT cudaError_t cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset,
					   size_t hOffset, size_t count, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_from_array(dst, src, wOffset, hOffset, count, kind,
						   (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset,
						size_t hOffset, size_t count,
						enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_from_array(dst, src, wOffset, hOffset, count, kind,
						   (struct fgv_when){stream, false}));
}
