/*
 * Arrays and copies of boxes, by the driver. struct fgv_gpu_array is the driver's CUarray,
 * or its CUmipmappedArray for one with levels.
 */
#include "backend/gpu/cuda_internal.h"

/*
 * Pageable memory: the driver has staged it when it returns. A box's device memory is of
 * CU_MEMORYTYPE_DEVICE, never UNIFIED: an address that comes from the guest must not be
 * taken for one in this process's own memory.
 */
CUresult fgv_cuda_copy_box(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			   struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status;

	stream = stream_of(cuda, stream);
	status = fgv_cuda_before_work(cuda, stream);
	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->copy_box(box, stream->handle);
}

static CUresult create(struct cuda *cuda, const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels,
		       struct fgv_gpu_array **array)
{
	CUmipmappedArray mipmapped = NULL;
	CUarray plain = NULL;
	CUresult status;

	if (levels)
		status = cuda->driver->mipmapped_create(&mipmapped, wanted, levels);
	else
		status = cuda->driver->array_create(&plain, wanted);
	*array = levels ? (struct fgv_gpu_array *)mipmapped : (struct fgv_gpu_array *)plain;
	return status;
}

CUresult fgv_cuda_array_create(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			       unsigned levels, struct fgv_gpu_array **array)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status;

	fgv_cuda_collect(cuda);
	status = create(cuda, wanted, levels, array);
	if (status == CUDA_ERROR_OUT_OF_MEMORY && cuda->garbage) {
		fgv_cuda_collect_now(cuda);
		status = create(cuda, wanted, levels, array);
	}
	return status;
}

CUresult fgv_cuda_array_destroy(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned levels,
				uint64_t bytes)
{
	return fgv_cuda_discard(cuda_of(gpu), levels ? GARBAGE_MIPMAPPED : GARBAGE_ARRAY,
				(uint64_t)(uintptr_t)array, bytes);
}

CUresult fgv_cuda_array_level(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned level,
			      struct fgv_gpu_array **part)
{
	CUarray found = NULL;
	CUresult status =
		cuda_of(gpu)->driver->mipmapped_level(&found, (CUmipmappedArray)array, level);

	*part = (struct fgv_gpu_array *)found;
	return status;
}

CUresult fgv_cuda_texture_create(struct fgv_gpu *gpu, const CUDA_RESOURCE_DESC *resource,
				 const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
				 uint64_t *number)
{
	CUtexObject made = 0;
	CUresult status = cuda_of(gpu)->driver->texture_create(&made, resource, how, view);

	*number = made;
	return status;
}

CUresult fgv_cuda_surface_create(struct fgv_gpu *gpu, struct fgv_gpu_array *array, uint64_t *number)
{
	CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_ARRAY,
		.res.array.hArray = (CUarray)array,
	};
	CUsurfObject made = 0;
	CUresult status = cuda_of(gpu)->driver->surface_create(&made, &resource);

	*number = made;
	return status;
}

CUresult fgv_cuda_texture_destroy(struct fgv_gpu *gpu, uint64_t number, bool is_surface)
{
	const struct fgv_cuda_driver *driver = cuda_of(gpu)->driver;

	return is_surface ? driver->surface_destroy(number) : driver->texture_destroy(number);
}
