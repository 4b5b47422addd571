/*
 * CUDA arrays.
 */
#include "frontend/cuda/memory/array.h"

#include "frontend/libcudart/channel.h"
#include "frontend/libcudart/cudart.h"

/* The runtime's flags are the driver's, bit for bit. */
_Static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED &&
		       cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
		       cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP &&
		       cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER &&
		       cudaArrayColorAttachment == CUDA_ARRAY3D_COLOR_ATTACHMENT &&
		       cudaArraySparse == CUDA_ARRAY3D_SPARSE &&
		       cudaArrayDeferredMapping == CUDA_ARRAY3D_DEFERRED_MAPPING,
	       "flags");

#define FLAGS                                                                                      \
	(cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap |                         \
	 cudaArrayTextureGather | cudaArrayColorAttachment | cudaArraySparse |                     \
	 cudaArrayDeferredMapping)

/* Flags that there are not go before what is wrong with the channels. */
static cudaError_t describe(const void *out, const struct cudaChannelFormatDesc *channels,
			    struct cudaExtent extent, unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	if (!out || !channels || (flags & ~(unsigned)FLAGS))
		return cudaErrorInvalidValue;
	*desc = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Flags = flags,
	};
	return fgv_channel_format(channels, &desc->Format, &desc->NumChannels);
}

static cudaError_t create(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
			  struct cudaExtent extent, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	cudaError_t error = describe(array, channels, extent, flags, &desc);

	return error ? error : fgv_error_from(fgv_array_create((CUarray *)array, &desc));
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

FGV_EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
						const struct cudaChannelFormatDesc *desc,
						struct cudaExtent extent, unsigned numLevels,
						unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR wanted;
	cudaError_t error = describe(mipmappedArray, desc, extent, flags, &wanted);

	if (!error)
		error = fgv_error_from(fgv_array_create_mipmapped(
			(CUmipmappedArray *)mipmappedArray, &wanted, numLevels));
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *levelArray,
						  cudaMipmappedArray_const_t mipmappedArray,
						  unsigned level)
{
	return FGV_RESULT(fgv_array_get_level((CUarray *)levelArray,
					      (CUmipmappedArray)mipmappedArray, level));
}

FGV_EXPORT cudaError_t cudaFreeArray(cudaArray_t array)
{
	return array ? FGV_RESULT(fgv_array_destroy((CUarray)array)) : cudaSuccess;
}

FGV_EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
	return mipmappedArray
		       ? FGV_RESULT(fgv_array_destroy_mipmapped((CUmipmappedArray)mipmappedArray))
		       : cudaSuccess;
}

static cudaError_t get_descriptor(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return array ? fgv_error_from(fgv_array_get_descriptor((CUarray)array, desc))
		     : cudaErrorInvalidValue;
}

FGV_EXPORT cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc,
					struct cudaExtent *extent, unsigned *flags,
					cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR found;
	cudaError_t error = get_descriptor(array, &found);

	if (error)
		return fgv_error_set(error);
	if (desc)
		*desc = fgv_channel_desc(found.Format, found.NumChannels);
	if (extent)
		*extent = (struct cudaExtent){found.Width, found.Height, found.Depth};
	if (flags)
		*flags = found.Flags;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc,
					  cudaArray_const_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR found;
	cudaError_t error = desc ? get_descriptor(array, &found) : cudaErrorInvalidValue;

	if (!error)
		*desc = fgv_channel_desc(found.Format, found.NumChannels);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaArrayGetPlane(cudaArray_t *pPlaneArray, cudaArray_t hArray,
					 unsigned int planeIdx)
{
	(void)planeIdx;
	return FGV_RESULT(fgv_array_refuse_parts((CUarray)hArray, pPlaneArray));
}

FGV_EXPORT cudaError_t
cudaArrayGetSparseProperties(struct cudaArraySparseProperties *sparseProperties, cudaArray_t array)
{
	return FGV_RESULT(fgv_array_refuse_parts((CUarray)array, sparseProperties));
}

FGV_EXPORT cudaError_t cudaMipmappedArrayGetSparseProperties(
	struct cudaArraySparseProperties *sparseProperties, cudaMipmappedArray_t mipmap)
{
	return FGV_RESULT(
		fgv_array_refuse_mipmapped_parts((CUmipmappedArray)mipmap, sparseProperties));
}

FGV_EXPORT cudaError_t cudaArrayGetMemoryRequirements(
	struct cudaArrayMemoryRequirements *memoryRequirements, cudaArray_t array, int device)
{
	cudaError_t error = fgv_device_check(device);

	if (!error)
		error = fgv_error_from(fgv_array_refuse_parts((CUarray)array, memoryRequirements));
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t
cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
					cudaMipmappedArray_t mipmap, int device)
{
	cudaError_t error = fgv_device_check(device);

	if (!error)
		error = fgv_error_from(fgv_array_refuse_mipmapped_parts((CUmipmappedArray)mipmap,
									memoryRequirements));
	return fgv_error_set(error);
}
