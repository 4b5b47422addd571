/*
 * Batches, one call after another.
 */
#include "frontend/cuda/memory/batch.h"

#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/memory/box.h"
#include "frontend/cuda/memory/managed.h"
#include "frontend/cuda/memory/memcpy.h"
#include "frontend/cuda/stream/stream.h"

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
static bool is_way(CUmemcpySrcAccessOrder order, unsigned flags)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
	       order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
	       !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
}

static bool are_attributes(const CUmemcpyAttributes *attributes, size_t count)
{
	if (!attributes)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!is_way(attributes[i].srcAccessOrder, attributes[i].flags))
			return false;
	}
	return true;
}

CUresult fgv_batch_copy(void *const *to, const void *const *from, const size_t *sizes, size_t count,
			const CUmemcpyAttributes *attributes, const size_t *indices,
			size_t attribute_count, CUstream stream)
{
	CUresult res = CUDA_SUCCESS;

	if (!to || !from || !sizes || !count || fgv_stream_is_legacy(stream) ||
	    !are_parts(indices, attribute_count, count) ||
	    !are_attributes(attributes, attribute_count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !res && i < count; i++)
		res = fgv_memcpy_run(to[i], from[i], sizes[i], 0, stream, false);
	return res;
}

/* The array that an end is, for its elements; NULL: memory, or nothing. */
static const struct fgv_array *array_of(const CUmemcpy3DOperand *operand)
{
	return operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY
		       ? fgv_array_find(operand->op.array.array)
		       : NULL;
}

/* An end of a copy, as CUDA_MEMCPY3D has it. */
struct end {
	CUmemorytype type;
	CUdeviceptr address;
	CUarray array;
	size_t pitch, rows;
	size_t x, y, z;
};

/* Memory is as wide and high as the copy where nothing else is said. */
static CUresult find_memory(const CUmemcpy3DOperand *operand, const CUextent3D *extent,
			    size_t element, struct end *end)
{
	size_t width = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent->width;

	end->type = CU_MEMORYTYPE_UNIFIED;
	end->address = operand->op.ptr.ptr;
	end->rows = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height;
	if (!end->address || width < extent->width || end->rows < extent->height ||
	    __builtin_mul_overflow(width, element, &end->pitch))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult find_end(const CUmemcpy3DOperand *operand, const CUextent3D *extent, size_t element,
			 struct end *end)
{
	*end = (struct end){.type = CU_MEMORYTYPE_ARRAY};
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
		return find_memory(operand, extent, element, end);
	if (!array_of(operand))
		return CUDA_ERROR_INVALID_VALUE;
	end->array = operand->op.array.array;
	end->y = operand->op.array.offset.y;
	end->z = operand->op.array.offset.z;
	return __builtin_mul_overflow(operand->op.array.offset.x, element, &end->x)
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static CUDA_MEMCPY3D box_of(const struct end *to, const struct end *from)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = from->type,
		.srcDevice = from->address,
		.srcArray = from->array,
		.srcPitch = from->pitch,
		.srcHeight = from->rows,
		.srcXInBytes = from->x,
		.srcY = from->y,
		.srcZ = from->z,
		.dstMemoryType = to->type,
		.dstDevice = to->address,
		.dstArray = to->array,
		.dstPitch = to->pitch,
		.dstHeight = to->rows,
		.dstXInBytes = to->x,
		.dstY = to->y,
		.dstZ = to->z,
	};
}

static CUresult copy_box(const CUDA_MEMCPY3D_BATCH_OP *op, CUstream stream)
{
	const struct fgv_array *to_array = array_of(&op->dst), *from_array = array_of(&op->src);
	const struct fgv_array *array = to_array ? to_array : from_array;
	size_t element = array ? array->texel_bytes : 1;
	struct end to, from;
	CUDA_MEMCPY3D box;
	CUresult res;

	if (!op->extent.width || !op->extent.height || !op->extent.depth ||
	    (to_array && from_array && to_array->texel_bytes != from_array->texel_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	res = find_end(&op->dst, &op->extent, element, &to);
	if (!res)
		res = find_end(&op->src, &op->extent, element, &from);
	if (res)
		return res;
	box = box_of(&to, &from);
	box.Height = op->extent.height;
	box.Depth = op->extent.depth;
	if (__builtin_mul_overflow(op->extent.width, element, &box.WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_box_copy(&box, (struct fgv_when){stream, false});
}

CUresult fgv_batch_copy_boxes(const CUDA_MEMCPY3D_BATCH_OP *copies, size_t count,
			      unsigned long long flags, CUstream stream)
{
	CUresult res = CUDA_SUCCESS;

	if (!count || !copies || flags || fgv_stream_is_legacy(stream))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (!is_way(copies[i].srcAccessOrder, copies[i].flags))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; !res && i < count; i++)
		res = copy_box(&copies[i], stream);
	return res;
}

/* The part of the batch that number @i is in, where the one before it was in @part. */
static size_t next_part(const size_t *indices, size_t parts, size_t part, size_t i)
{
	return part + 1 < parts && indices[part + 1] == i ? part + 1 : part;
}

CUresult fgv_batch_prefetch(const CUdeviceptr *ranges, const size_t *sizes, size_t count,
			    const CUmemLocation *locations, const size_t *indices,
			    size_t location_count, unsigned long long flags, CUstream stream)
{
	CUresult res = CUDA_SUCCESS;
	size_t part = 0;

	if (!ranges || !sizes || !count || !locations || flags || fgv_stream_is_legacy(stream) ||
	    !are_parts(indices, location_count, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !res && i < count; i++) {
		part = next_part(indices, location_count, part, i);
		res = fgv_managed_prefetch(ranges[i], sizes[i], locations[part], 0, stream);
	}
	return res;
}

CUresult fgv_batch_discard(const CUdeviceptr *ranges, const size_t *sizes, size_t count,
			   unsigned long long flags, CUstream stream)
{
	CUresult res;

	if (!ranges || !sizes || !count || flags || fgv_stream_is_legacy(stream))
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_stream_check(stream);
	for (size_t i = 0; !res && i < count; i++)
		res = fgv_managed_discard(ranges[i], sizes[i]);
	return res;
}
