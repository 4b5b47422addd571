/*
 * Copying boxes: cudaMemcpy2D and cudaMemcpy3D, and what all copies to and from arrays come
 * down to. As between pointers (memcpy.c), memory itself says on which side it is; an
 * array is always on the device.
 */
#include "frontend/libcudart/memcpy_box.h"

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"

cudaError_t fgv_box_end_of_array(cudaArray_const_t array, struct fgv_box_end *end)
{
	const struct fgv_array *found = fgv_array_find((CUarray)array);

	if (!found)
		return array ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
	*end = (struct fgv_box_end){
		.array = (CUarray)array,
		.texel_bytes = found->texel_bytes,
		.row_bytes = found->desc.Width * found->texel_bytes,
	};
	return cudaSuccess;
}

/* --- The driver's terms ---------------------------------------------------------------- */

/* What the kind of a copy says of one end, by whether it has to be on the device. */
static CUmemorytype type_of(const struct fgv_box_end *end, enum cudaMemcpyKind kind, bool is_device)
{
	if (end->array)
		return CU_MEMORYTYPE_ARRAY;
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static void convert(const struct fgv_box_end *to, const struct fgv_box_end *from,
		    const struct fgv_box *box, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *converted)
{
	*converted = (CUDA_MEMCPY3D){
		.srcXInBytes = from->x,
		.srcY = from->y,
		.srcZ = from->z,
		.srcMemoryType = type_of(from, kind, fgv_memcpy_is_from_device(kind)),
		.srcHost = from->ptr,
		.srcDevice = (CUdeviceptr)(uintptr_t)from->ptr,
		.srcArray = from->array,
		.srcPitch = from->pitch,
		.srcHeight = from->rows,
		.dstXInBytes = to->x,
		.dstY = to->y,
		.dstZ = to->z,
		.dstMemoryType = type_of(to, kind, fgv_memcpy_is_to_device(kind)),
		.dstHost = to->ptr,
		.dstDevice = (CUdeviceptr)(uintptr_t)to->ptr,
		.dstArray = to->array,
		.dstPitch = to->pitch,
		.dstHeight = to->rows,
		.WidthInBytes = box->width,
		.Height = box->height,
		.Depth = box->depth,
	};
}

static bool is_pitch_good(const struct fgv_box_end *end, const struct fgv_box *box)
{
	return end->array || (end->x <= end->pitch && box->width <= end->pitch - end->x);
}

/* What the runtime has codes of its own for. */
static cudaError_t check(const struct fgv_box_end *to, const struct fgv_box_end *from,
			 const struct fgv_box *box, enum cudaMemcpyKind kind)
{
	bool is_empty = !box->width || !box->height || !box->depth;

	if ((unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!is_empty && (!is_pitch_good(to, box) || !is_pitch_good(from, box)))
		return cudaErrorInvalidPitchValue;
	return cudaSuccess;
}

cudaError_t fgv_memcpy_box(const struct fgv_box_end *to, const struct fgv_box_end *from,
			   const struct fgv_box *box, enum cudaMemcpyKind kind,
			   struct fgv_when when)
{
	CUDA_MEMCPY3D converted;
	cudaError_t error = check(to, from, box, kind);

	if (error)
		return error;
	convert(to, from, box, kind, &converted);
	return fgv_error_from(fgv_box_copy(&converted, when));
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
	cudaError_t error = cudaSuccess;

	if (!array == !memory->ptr)
		return cudaErrorInvalidValue;
	if (array)
		error = fgv_box_end_of_array(array, end);
	else
		*end = (struct fgv_box_end){
			.ptr = memory->ptr, .pitch = memory->pitch, .rows = memory->ysize};
	end->x = at->x;
	end->y = at->y;
	end->z = at->z;
	if (!error && array && __builtin_mul_overflow(at->x, end->texel_bytes, &end->x))
		error = cudaErrorInvalidValue;
	return error;
}

/* The extent in bytes, rows and slices: in elements of an array, if one is there. */
static cudaError_t find_box(const struct fgv_box_end *to, const struct fgv_box_end *from,
			    const struct cudaExtent *extent, struct fgv_box *box)
{
	size_t element = to->array ? to->texel_bytes : from->array ? from->texel_bytes : 1;

	if (to->array && from->array && to->texel_bytes != from->texel_bytes)
		return cudaErrorInvalidValue;
	*box = (struct fgv_box){0, extent->height, extent->depth};
	if (__builtin_mul_overflow(extent->width, element, &box->width))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static cudaError_t find_all(const struct cudaMemcpy3DParms *p, struct fgv_box_end *to,
			    struct fgv_box_end *from, struct fgv_box *box)
{
	cudaError_t error;

	if (!p)
		return cudaErrorInvalidValue;
	error = find_end(p->dstArray, &p->dstPtr, &p->dstPos, to);
	if (!error)
		error = find_end(p->srcArray, &p->srcPtr, &p->srcPos, from);
	return error ? error : find_box(to, from, &p->extent, box);
}

cudaError_t fgv_memcpy_3d(const struct cudaMemcpy3DParms *p, struct fgv_when when)
{
	struct fgv_box_end to, from;
	struct fgv_box box;
	cudaError_t error = find_all(p, &to, &from, &box);

	return error ? error : fgv_memcpy_box(&to, &from, &box, p->kind, when);
}

/* --- Nodes of graphs --------------------------------------------------------------------- */

/* A node may copy one row of memory, whatever is said of rows. */
static bool is_flat(const struct cudaMemcpy3DParms *p)
{
	return !p->srcArray && !p->dstArray && p->extent.height <= 1 && p->extent.depth <= 1 &&
	       !p->srcPos.y && !p->srcPos.z && !p->dstPos.y && !p->dstPos.z;
}

cudaError_t fgv_box_convert(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *converted)
{
	struct fgv_box_end to, from;
	struct fgv_box box;
	cudaError_t error = find_all(p, &to, &from, &box);

	if (error)
		return error;
	if (is_flat(p)) {
		box.height = box.depth = 1;
		if ((unsigned)p->kind > cudaMemcpyDefault)
			error = cudaErrorInvalidMemcpyDirection;
	} else {
		error = check(&to, &from, &box, p->kind);
	}
	if (!error)
		convert(&to, &from, &box, p->kind, converted);
	return error;
}

static bool is_device(CUmemorytype type)
{
	return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY;
}

static enum cudaMemcpyKind kind_of(const CUDA_MEMCPY3D *box)
{
	if (box->srcMemoryType == CU_MEMORYTYPE_UNIFIED ||
	    box->dstMemoryType == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (is_device(box->srcMemoryType))
		return is_device(box->dstMemoryType) ? cudaMemcpyDeviceToDevice
						     : cudaMemcpyDeviceToHost;
	return is_device(box->dstMemoryType) ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

/* Bytes of an array's elements; 1 where @type is no array, or the array is gone. */
static size_t element_of(CUmemorytype type, CUarray array)
{
	const struct fgv_array *found = type == CU_MEMORYTYPE_ARRAY ? fgv_array_find(array) : NULL;

	return found ? found->texel_bytes : 1;
}

static struct cudaPitchedPtr pitched(CUmemorytype type, const void *host, CUdeviceptr device,
				     size_t pitch, size_t rows)
{
	void *ptr = type == CU_MEMORYTYPE_HOST ? (void *)host : (void *)(uintptr_t)device;

	return (struct cudaPitchedPtr){ptr, pitch, pitch, rows};
}

struct cudaMemcpy3DParms fgv_box_describe(const CUDA_MEMCPY3D *box)
{
	size_t src_element = element_of(box->srcMemoryType, box->srcArray);
	size_t dst_element = element_of(box->dstMemoryType, box->dstArray);
	size_t element = src_element > dst_element ? src_element : dst_element;
	struct cudaMemcpy3DParms p = {
		.srcPos = {box->srcXInBytes / src_element, box->srcY, box->srcZ},
		.dstPos = {box->dstXInBytes / dst_element, box->dstY, box->dstZ},
		.extent = {box->WidthInBytes / element, box->Height, box->Depth},
		.kind = kind_of(box),
	};

	if (box->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		p.srcArray = (cudaArray_t)box->srcArray;
	else
		p.srcPtr = pitched(box->srcMemoryType, box->srcHost, box->srcDevice, box->srcPitch,
				   box->srcHeight);
	if (box->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		p.dstArray = (cudaArray_t)box->dstArray;
	else
		p.dstPtr = pitched(box->dstMemoryType, box->dstHost, box->dstDevice, box->dstPitch,
				   box->dstHeight);
	return p;
}

/* --- The program's calls ------------------------------------------------------------------ */

FGV_EXPORT cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	return fgv_error_set(fgv_memcpy_3d(p, (struct fgv_when){NULL, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_3d(p, (struct fgv_when){stream, false}));
}
