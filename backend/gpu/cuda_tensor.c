/*
 * Tensor maps, as the driver encodes them. It looks at no memory for that: a map holds an address,
 * which the GPU checks when a kernel fetches by it.
 */
#include "backend/gpu/cuda_internal.h"

static CUresult encode_tiled(const struct fgv_cuda_driver *driver,
			     const struct fgv_tensor_shape *shape, CUtensorMap *map)
{
	return driver->tensor_tiled(
		map, (CUtensorMapDataType)shape->type, shape->rank,
		(void *)(uintptr_t)shape->address, shape->size, shape->stride, shape->box,
		shape->step, (CUtensorMapInterleave)shape->interleave,
		(CUtensorMapSwizzle)shape->swizzle, (CUtensorMapL2promotion)shape->promotion,
		(CUtensorMapFloatOOBfill)shape->fill);
}

static CUresult encode_im2col(const struct fgv_cuda_driver *driver,
			      const struct fgv_tensor_shape *shape, CUtensorMap *map)
{
	return driver->tensor_im2col(
		map, (CUtensorMapDataType)shape->type, shape->rank,
		(void *)(uintptr_t)shape->address, shape->size, shape->stride, shape->lower,
		shape->upper, shape->channels, shape->pixels, shape->step,
		(CUtensorMapInterleave)shape->interleave, (CUtensorMapSwizzle)shape->swizzle,
		(CUtensorMapL2promotion)shape->promotion, (CUtensorMapFloatOOBfill)shape->fill);
}

static CUresult encode_wide(const struct fgv_cuda_driver *driver,
			    const struct fgv_tensor_shape *shape, CUtensorMap *map)
{
	if (!driver->tensor_im2col_wide)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->tensor_im2col_wide(
		map, (CUtensorMapDataType)shape->type, shape->rank,
		(void *)(uintptr_t)shape->address, shape->size, shape->stride, shape->lower[0],
		shape->upper[0], shape->channels, shape->pixels, shape->step,
		(CUtensorMapInterleave)shape->interleave, (CUtensorMapIm2ColWideMode)shape->mode,
		(CUtensorMapSwizzle)shape->swizzle, (CUtensorMapL2promotion)shape->promotion,
		(CUtensorMapFloatOOBfill)shape->fill);
}

CUresult fgv_cuda_tensor_map(struct fgv_gpu *gpu, const struct fgv_tensor_shape *shape,
			     CUtensorMap *map)
{
	const struct fgv_cuda_driver *driver = cuda_of(gpu)->driver;

	switch (shape->form) {
	case FGV_TENSOR_TILED:
		return encode_tiled(driver, shape, map);
	case FGV_TENSOR_IM2COL:
		return encode_im2col(driver, shape, map);
	default:
		return encode_wide(driver, shape, map);
	}
}

CUresult fgv_cuda_tensor_map_replace(struct fgv_gpu *gpu, CUtensorMap *map, uint64_t address)
{
	return cuda_of(gpu)->driver->tensor_replace(map, (void *)(uintptr_t)address);
}
