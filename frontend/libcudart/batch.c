/*
 * Many copies, prefetches or discards by one call. Nothing says that those of a batch
 * happen in any order, so they happen in theirs.
 */
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"
#include "frontend/libcudart/memcpy_box.h"

/* Each of @indices is where a next part of the batch begins. */
static bool are_parts(const size_t *indices, size_t parts, size_t count)
{
	if (!indices || !parts || parts > count || indices[0])
		return false;
	for (size_t i = 1; i < parts; i++) {
		if (indices[i] <= indices[i - 1] || indices[i] >= count)
			return false;
	}
	return true;
}

/* Whatever is said of the source's order: pageable memory has been read when the call returns. */
static bool is_way(enum cudaMemcpySrcAccessOrder order, unsigned flags)
{
	return order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny &&
	       !(flags & ~(unsigned)cudaMemcpyFlagPreferOverlapWithCompute);
}

static bool are_attributes(const struct cudaMemcpyAttributes *attributes, size_t count)
{
	if (!attributes)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!is_way(attributes[i].srcAccessOrder, attributes[i].flags))
			return false;
	}
	return true;
}

static bool is_legacy(cudaStream_t stream)
{
	return !stream || stream == cudaStreamLegacy;
}

static cudaError_t copy_batch(void *const *dsts, const void *const *srcs, const size_t *sizes,
			      size_t count, cudaStream_t stream)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; !error && i < count; i++)
		error = fgv_memcpy(dsts[i], srcs[i], sizes[i], cudaMemcpyDefault, stream);
	return error;
}

FGV_EXPORT cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
					    const size_t *sizes, size_t count,
					    struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs,
					    size_t numAttrs, cudaStream_t stream)
{
	if (!dsts || !srcs || !sizes || !count || is_legacy(stream) ||
	    !are_parts(attrsIdxs, numAttrs, count) || !are_attributes(attrs, numAttrs))
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(copy_batch(dsts, srcs, sizes, count, stream));
}

/* The array that an end is, for its elements; NULL: memory, or nothing. */
static const struct fgv_array *array_of(const struct cudaMemcpy3DOperand *operand)
{
	return operand->type == cudaMemcpyOperandTypeArray ? fgv_array_find(operand->op.array.array)
							   : NULL;
}

/* Memory is as wide and high as the copy where nothing else is said. */
static cudaError_t find_memory(const struct cudaMemcpy3DOperand *operand,
			       const struct cudaExtent *extent, size_t element,
			       struct fgv_box_end *end)
{
	size_t width = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent->width;

	end->ptr = operand->op.ptr.ptr;
	end->rows = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height;
	if (!end->ptr || width < extent->width || end->rows < extent->height ||
	    __builtin_mul_overflow(width, element, &end->pitch))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static cudaError_t find_end(const struct cudaMemcpy3DOperand *operand,
			    const struct cudaExtent *extent, size_t element,
			    struct fgv_box_end *end)
{
	*end = (struct fgv_box_end){.array = array_of(operand)};
	if (operand->type == cudaMemcpyOperandTypePointer)
		return find_memory(operand, extent, element, end);
	if (!end->array)
		return cudaErrorInvalidValue;
	end->y = operand->op.array.offset.y;
	end->z = operand->op.array.offset.z;
	return __builtin_mul_overflow(operand->op.array.offset.x, element, &end->x)
		       ? cudaErrorInvalidValue
		       : cudaSuccess;
}

static cudaError_t copy_box(const struct cudaMemcpy3DBatchOp *op, cudaStream_t stream)
{
	const struct fgv_array *to_array = array_of(&op->dst), *from_array = array_of(&op->src);
	const struct fgv_array *array = to_array ? to_array : from_array;
	size_t element = array ? array->texel_bytes : 1;
	struct fgv_box box = {0, op->extent.height, op->extent.depth};
	struct fgv_box_end to, from;
	cudaError_t error;

	if (!op->extent.width || !op->extent.height || !op->extent.depth ||
	    (to_array && from_array && to_array->texel_bytes != from_array->texel_bytes) ||
	    __builtin_mul_overflow(op->extent.width, element, &box.width))
		return cudaErrorInvalidValue;
	error = find_end(&op->dst, &op->extent, element, &to);
	if (!error)
		error = find_end(&op->src, &op->extent, element, &from);
	return error ? error
		     : fgv_memcpy_box(&to, &from, &box, cudaMemcpyDefault,
				      (struct fgv_when){stream, false});
}

static cudaError_t copy_boxes(const struct cudaMemcpy3DBatchOp *ops, size_t count,
			      cudaStream_t stream)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; i < count; i++) {
		if (!is_way(ops[i].srcAccessOrder, ops[i].flags))
			return cudaErrorInvalidValue;
	}
	for (size_t i = 0; !error && i < count; i++)
		error = copy_box(&ops[i], stream);
	return error;
}

FGV_EXPORT cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp *opList,
					      unsigned long long flags, cudaStream_t stream)
{
	if (!numOps || !opList || flags || is_legacy(stream))
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(copy_boxes(opList, numOps, stream));
}

/* The part of the batch that number @i is in, where the one before it was in @part. */
static size_t next_part(const size_t *indices, size_t parts, size_t part, size_t i)
{
	return part + 1 < parts && indices[part + 1] == i ? part + 1 : part;
}

static cudaError_t prefetch_batch(void *const *ptrs, const size_t *sizes, size_t count,
				  const struct cudaMemLocation *locations, const size_t *indices,
				  size_t parts, cudaStream_t stream)
{
	cudaError_t error = cudaSuccess;
	size_t part = 0;

	for (size_t i = 0; !error && i < count; i++) {
		part = next_part(indices, parts, part, i);
		error = cudaMemPrefetchAsync(ptrs[i], sizes[i], locations[part], 0, stream);
	}
	return error;
}

FGV_EXPORT cudaError_t cudaMemPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
						 struct cudaMemLocation *prefetchLocs,
						 size_t *prefetchLocIdxs, size_t numPrefetchLocs,
						 unsigned long long flags, cudaStream_t stream)
{
	if (!dptrs || !sizes || !count || !prefetchLocs || flags || is_legacy(stream) ||
	    !are_parts(prefetchLocIdxs, numPrefetchLocs, count))
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(prefetch_batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
					    numPrefetchLocs, stream));
}

/* What may be forgotten is kept. */
static void forget_nothing(struct fgv_page_hints *hints, void *arg)
{
	(void)hints, (void)arg;
}

static cudaError_t discard_batch(void *const *ptrs, const size_t *sizes, size_t count,
				 cudaStream_t stream)
{
	struct fgv_lane *lane;
	uint32_t handle;
	bool blocking;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_stream_find(lane, stream, &handle, &blocking));
	fgv_lane_leave(lane);
	for (size_t i = 0; !error && i < count; i++)
		error = fgv_error_from(fgv_hostmem_hints((uint64_t)(uintptr_t)ptrs[i], sizes[i],
							 forget_nothing, NULL));
	return error;
}

FGV_EXPORT cudaError_t cudaMemDiscardBatchAsync(void **dptrs, size_t *sizes, size_t count,
						unsigned long long flags, cudaStream_t stream)
{
	if (!dptrs || !sizes || !count || flags || is_legacy(stream))
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(discard_batch(dptrs, sizes, count, stream));
}

FGV_EXPORT cudaError_t cudaMemDiscardAndPrefetchBatchAsync(
	void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs,
	size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
	cudaStream_t stream)
{
	cudaError_t error = cudaMemDiscardBatchAsync(dptrs, sizes, count, flags, stream);

	return error ? error
		     : cudaMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
						 numPrefetchLocs, flags, stream);
}
