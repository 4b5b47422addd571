/*
 * CUDA arrays. What the program asks about one is answered here.
 */
#include "frontend/libcudart/array.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/texel.h"
#include "common/util.h"
#include "frontend/cuda/context/object.h"
#include "frontend/client/sync.h"
#include "frontend/libcudart/cudart.h"

#define KNOWN_FLAGS                                                                                \
	(cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather)
#define LATER_FLAGS (cudaArrayColorAttachment | cudaArraySparse | cudaArrayDeferredMapping)

/* The runtime's flags are the driver's, bit for bit. */
_Static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED &&
		       cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
		       cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP &&
		       cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER,
	       "flags");

/* Guards the levels of all mipmapped arrays. */
static pthread_mutex_t levels_mutex = PTHREAD_MUTEX_INITIALIZER;

static const struct fgv_array *find(enum fgv_object_kind kind, const void *array)
{
	struct fgv_object_info info;

	return fgv_object_find(kind, array, &info) ? info.data : NULL;
}

const struct fgv_array *fgv_array_find(cudaArray_const_t array)
{
	return find(FGV_OBJECT_ARRAY, array);
}

const struct fgv_array *fgv_array_find_mipmapped(cudaMipmappedArray_const_t mipmapped)
{
	return find(FGV_OBJECT_MIPMAPPED, mipmapped);
}

size_t fgv_array_rows(const struct fgv_array *array)
{
	return fgv_max_u64(array->extent.height, 1);
}

size_t fgv_array_slices(const struct fgv_array *array)
{
	return fgv_max_u64(array->extent.depth, 1);
}

static CUarray_format format_of(enum cudaChannelFormatKind kind, int bits)
{
	static const struct {
		enum cudaChannelFormatKind kind;
		int bits;
		CUarray_format format;
	} formats[] = {
		{cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
		{cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
		{cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
		{cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
		{cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
		{cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
		{cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
		{cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
	};

	for (unsigned i = 0; i < FGV_ARRAY_LEN(formats); i++) {
		if (formats[i].kind == kind && formats[i].bits == bits)
			return formats[i].format;
	}
	return (CUarray_format)0;
}

cudaError_t fgv_channel_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format,
			       unsigned *channels)
{
	const int bits[] = {desc->x, desc->y, desc->z, desc->w};
	unsigned count = 0;

	if ((unsigned)desc->f > cudaChannelFormatKindNone)
		return cudaErrorNotSupported;
	while (count < 4 && bits[count])
		count++;
	for (unsigned i = 0; i < 4; i++) {
		if (bits[i] != (i < count ? desc->x : 0))
			return cudaErrorInvalidChannelDescriptor;
	}
	*format = format_of(desc->f, desc->x);
	*channels = count;
	if (!fgv_texel_bytes(*format, count))
		return cudaErrorInvalidChannelDescriptor;
	return cudaSuccess;
}

/* Gives @wanted its handle. */
static cudaError_t send_create(struct fgv_array *wanted, CUarray_format format, unsigned channels)
{
	const uint64_t size[3] = {wanted->extent.width, wanted->extent.height,
				  wanted->extent.depth};
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_call_array_create(lane, size, format, channels, wanted->flags,
						     wanted->levels_count, &wanted->handle));
	fgv_lane_leave(lane);
	return error;
}

static void send_destroy(uint32_t handle)
{
	struct fgv_lane *lane;

	if (fgv_enter(&lane))
		return;
	fgv_post_array_destroy(lane, handle);
	fgv_lane_leave(lane);
}

static void release(struct fgv_array *array)
{
	free(array->levels);
	free(array);
}

/* What the program shall hold for a copy of @wanted; NULL: no memory. */
static void *keep(enum fgv_object_kind kind, const struct fgv_array *wanted)
{
	struct fgv_array *kept = malloc(sizeof(*kept));
	struct fgv_object_info info = {.handle = wanted->handle, .data = kept};
	void *object;

	if (!kept)
		return NULL;
	*kept = *wanted;
	if (kept->levels_count) {
		kept->levels = calloc(kept->levels_count, sizeof(*kept->levels));
		if (!kept->levels) {
			free(kept);
			return NULL;
		}
	}
	object = fgv_object_create(kind, &info);
	if (!object)
		release(kept);
	return object;
}

static cudaError_t make(struct fgv_array *wanted, unsigned levels, void **object)
{
	CUarray_format format;
	unsigned channels;
	cudaError_t error = fgv_channel_format(&wanted->desc, &format, &channels);

	if (error)
		return error;
	wanted->texel_bytes = fgv_texel_bytes(format, channels);
	wanted->levels_count = levels;
	error = send_create(wanted, format, channels);
	if (error)
		return error;
	*object = keep(levels ? FGV_OBJECT_MIPMAPPED : FGV_OBJECT_ARRAY, wanted);
	if (*object)
		return cudaSuccess;
	send_destroy(wanted->handle);
	return cudaErrorMemoryAllocation;
}

static cudaError_t check(const void *out, const struct cudaChannelFormatDesc *desc, unsigned flags)
{
	if (!out || !desc || (flags & ~(unsigned)(KNOWN_FLAGS | LATER_FLAGS)))
		return cudaErrorInvalidValue;
	return flags & LATER_FLAGS ? cudaErrorNotSupported : cudaSuccess;
}

static cudaError_t create(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
			  struct cudaExtent extent, unsigned flags)
{
	struct fgv_array wanted = {.extent = extent, .flags = flags};
	void *object;
	cudaError_t error = check(array, desc, flags);

	if (error)
		return error;
	wanted.desc = *desc;
	error = make(&wanted, 0, &object);
	if (!error)
		*array = object;
	return error;
}

FGV_EXPORT cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
				       size_t width, size_t height, unsigned flags)
{
	return fgv_error_set(create(array, desc, (struct cudaExtent){width, height, 0}, flags));
}

FGV_EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t *array,
					 const struct cudaChannelFormatDesc *desc,
					 struct cudaExtent extent, unsigned flags)
{
	return fgv_error_set(create(array, desc, extent, flags));
}

static cudaError_t create_mipmapped(cudaMipmappedArray_t *mipmapped,
				    const struct cudaChannelFormatDesc *desc,
				    struct cudaExtent extent, unsigned levels, unsigned flags)
{
	const uint64_t size[3] = {extent.width, extent.height, extent.depth};
	struct fgv_array wanted = {.extent = extent, .flags = flags};
	void *object;
	cudaError_t error = check(mipmapped, desc, flags);

	if (error)
		return error;
	levels = (unsigned)fgv_min_u64(fgv_max_u64(levels, 1), fgv_texel_levels_max(size, flags));
	wanted.desc = *desc;
	error = make(&wanted, levels, &object);
	if (!error)
		*mipmapped = object;
	return error;
}

FGV_EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
						const struct cudaChannelFormatDesc *desc,
						struct cudaExtent extent, unsigned numLevels,
						unsigned flags)
{
	return fgv_error_set(create_mipmapped(mipmappedArray, desc, extent, numLevels, flags));
}

/* Makes what stands for level @level of @whole. */
static cudaError_t make_level(const struct fgv_array *whole, unsigned level, cudaArray_t *object)
{
	const uint64_t size[3] = {whole->extent.width, whole->extent.height, whole->extent.depth};
	struct fgv_array part = *whole;
	struct fgv_lane *lane;
	uint64_t part_size[3];
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_call_array_level(lane, whole->handle, level, &part.handle));
	fgv_lane_leave(lane);
	if (error)
		return error;
	fgv_texel_level_size(size, whole->flags, level, part_size);
	part.extent = (struct cudaExtent){part_size[0], part_size[1], part_size[2]};
	part.is_level = true;
	part.levels_count = 0;
	part.levels = NULL;
	*object = keep(FGV_OBJECT_ARRAY, &part);
	return *object ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t get_level(cudaArray_t *array, cudaMipmappedArray_const_t mipmapped,
			     unsigned level)
{
	const struct fgv_array *whole = fgv_array_find_mipmapped(mipmapped);
	cudaError_t error = cudaSuccess;

	if (!array)
		return cudaErrorInvalidValue;
	if (!whole)
		return cudaErrorInvalidResourceHandle;
	if (level >= whole->levels_count)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&levels_mutex);
	if (!whole->levels[level])
		error = make_level(whole, level, &whole->levels[level]);
	if (!error)
		*array = whole->levels[level];
	pthread_mutex_unlock(&levels_mutex);
	return error;
}

FGV_EXPORT cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *levelArray,
						  cudaMipmappedArray_const_t mipmappedArray,
						  unsigned level)
{
	return fgv_error_set(get_level(levelArray, mipmappedArray, level));
}

/* An array that is no object any more: its levels are none either. */
static void forget(struct fgv_array *array)
{
	struct fgv_object_info info;

	for (unsigned i = 0; i < array->levels_count; i++) {
		if (array->levels[i] &&
		    fgv_object_destroy(FGV_OBJECT_ARRAY, array->levels[i], &info))
			release(info.data);
	}
	release(array);
}

static cudaError_t destroy(enum fgv_object_kind kind, const void *object)
{
	const struct fgv_array *array = find(kind, object);
	struct fgv_object_info info;
	struct fgv_lane *lane;
	cudaError_t error;

	if (!object)
		return cudaSuccess;
	if (!array)
		return cudaErrorInvalidResourceHandle;
	if (array->is_level)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	if (fgv_object_destroy(kind, object, &info)) {
		error = fgv_error_from(fgv_sync_device_seen(lane));
		fgv_post_array_destroy(lane, info.handle);
		forget(info.data);
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaFreeArray(cudaArray_t array)
{
	return fgv_error_set(destroy(FGV_OBJECT_ARRAY, array));
}

FGV_EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
	return fgv_error_set(destroy(FGV_OBJECT_MIPMAPPED, mipmappedArray));
}

static void drop(const struct fgv_object_info *info, void *lane)
{
	struct fgv_array *array = info->data;

	if (!array->is_level)
		fgv_post_array_destroy(lane, array->handle);
	release(array);
}

void fgv_array_drain(struct fgv_lane *lane)
{
	fgv_object_drain(FGV_OBJECT_ARRAY, drop, lane);
	fgv_object_drain(FGV_OBJECT_MIPMAPPED, drop, lane);
}

static cudaError_t describe(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
			    unsigned *flags, cudaArray_const_t array)
{
	const struct fgv_array *found = fgv_array_find(array);

	if (!found)
		return array ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
	if (desc)
		*desc = found->desc;
	if (extent)
		*extent = found->extent;
	if (flags)
		*flags = found->flags;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc,
					struct cudaExtent *extent, unsigned *flags,
					cudaArray_t array)
{
	return fgv_error_set(describe(desc, extent, flags, array));
}

FGV_EXPORT cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc,
					  cudaArray_const_t array)
{
	if (!desc)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(describe(desc, NULL, NULL, array));
}

/* No array here has parts: of sparse ones, of those that are mapped later, and of planes. */
static cudaError_t refuse_parts(const void *out, const struct fgv_array *array)
{
	return out && !array ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
}

FGV_EXPORT cudaError_t cudaArrayGetPlane(cudaArray_t *pPlaneArray, cudaArray_t hArray,
					 unsigned int planeIdx)
{
	(void)planeIdx;
	return fgv_error_set(refuse_parts(pPlaneArray, fgv_array_find(hArray)));
}

FGV_EXPORT cudaError_t
cudaArrayGetSparseProperties(struct cudaArraySparseProperties *sparseProperties, cudaArray_t array)
{
	return fgv_error_set(refuse_parts(sparseProperties, fgv_array_find(array)));
}

FGV_EXPORT cudaError_t cudaMipmappedArrayGetSparseProperties(
	struct cudaArraySparseProperties *sparseProperties, cudaMipmappedArray_t mipmap)
{
	return fgv_error_set(refuse_parts(sparseProperties, fgv_array_find_mipmapped(mipmap)));
}

FGV_EXPORT cudaError_t cudaArrayGetMemoryRequirements(
	struct cudaArrayMemoryRequirements *memoryRequirements, cudaArray_t array, int device)
{
	cudaError_t error = fgv_device_check(device);

	return fgv_error_set(error ? error
				   : refuse_parts(memoryRequirements, fgv_array_find(array)));
}

FGV_EXPORT cudaError_t
cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
					cudaMipmappedArray_t mipmap, int device)
{
	cudaError_t error = fgv_device_check(device);

	return fgv_error_set(
		error ? error : refuse_parts(memoryRequirements, fgv_array_find_mipmapped(mipmap)));
}
