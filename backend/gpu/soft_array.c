/*
 * Arrays of the soft GPU, and copies of boxes. An array goes by the driver's name for one,
 * CUarray, where a struct of the driver's has one.
 */
#include "backend/gpu/soft_internal.h"

#include "common/util.h"

static struct softgpu_array *array_of(struct fgv_gpu_array *array)
{
	return (struct softgpu_array *)array;
}

CUresult fgv_soft_box_in(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			 struct fgv_gpu_stream *stream)
{
	return softgpu_copy_box(gpu_of(gpu), box, 1, stream_of(stream));
}

CUresult fgv_soft_copy_box(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			   struct fgv_gpu_stream *stream)
{
	return softgpu_copy_box(gpu_of(gpu), box, 0, stream_of(stream));
}

/* Its texels, without gaps, in an allocation of their own. */
CUresult fgv_soft_array_cost(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			     unsigned levels, uint64_t *bytes)
{
	(void)gpu;
	(void)wanted;
	(void)levels;
	*bytes = fgv_align_up(*bytes, SOFTGPU_GRANULE);
	return CUDA_SUCCESS;
}

/* The texels are there already, in memory of this process. */
static void count_more(struct soft *soft, uint64_t bytes)
{
	fgv_soft_count(soft, soft->used_bytes + bytes);
}

CUresult fgv_soft_array_create(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			       unsigned levels, struct fgv_gpu_array **array)
{
	struct softgpu_array *made = NULL;
	CUresult status = softgpu_array_create(gpu_of(gpu), wanted, levels, &made);

	if (status == CUDA_SUCCESS)
		count_more((struct soft *)gpu, softgpu_array_bytes(made));
	*array = (struct fgv_gpu_array *)made;
	return status;
}

CUresult fgv_soft_array_destroy(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned levels,
				uint64_t bytes)
{
	(void)levels;
	(void)bytes;
	fgv_soft_give((struct soft *)gpu, softgpu_array_bytes(array_of(array)));
	return softgpu_array_destroy(gpu_of(gpu), array_of(array));
}

CUresult fgv_soft_array_level(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned level,
			      struct fgv_gpu_array **part)
{
	struct softgpu_array *found = NULL;
	CUresult status = softgpu_array_level(array_of(array), level, &found);

	(void)gpu;
	*part = (struct fgv_gpu_array *)found;
	return status;
}

CUresult fgv_soft_texture_create(struct fgv_gpu *gpu, const CUDA_RESOURCE_DESC *resource,
				 const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
				 uint64_t *number)
{
	return softgpu_texture_create(gpu_of(gpu), resource, how, view, number);
}

CUresult fgv_soft_surface_create(struct fgv_gpu *gpu, struct fgv_gpu_array *array, uint64_t *number)
{
	return softgpu_surface_create(gpu_of(gpu), array_of(array), number);
}

CUresult fgv_soft_texture_destroy(struct fgv_gpu *gpu, uint64_t number, bool is_surface)
{
	(void)is_surface;
	return softgpu_texture_destroy(gpu_of(gpu), number);
}
