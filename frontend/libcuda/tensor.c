/*
 * Tensor maps.
 */
#include "frontend/cuda/memory/tensor.h"

#include <string.h>

#include "frontend/libcuda/driver.h"

/* What all forms have. */
struct tensor {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *size, *stride;
	const cuuint32_t *step;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

/* Also where some array is missing, or the rank is not one. */
static CUresult describe(const struct tensor *tensor, enum fgv_tensor_form form,
			 struct fgv_tensor_shape *shape)
{
	if (!tensor->rank || tensor->rank > FGV_TENSOR_RANK_MAX || !tensor->size || !tensor->step ||
	    (tensor->rank > 1 && !tensor->stride))
		return CUDA_ERROR_INVALID_VALUE;
	*shape = (struct fgv_tensor_shape){
		.form = form,
		.type = (uint32_t)tensor->type,
		.rank = tensor->rank,
		.interleave = (uint32_t)tensor->interleave,
		.swizzle = (uint32_t)tensor->swizzle,
		.promotion = (uint32_t)tensor->promotion,
		.fill = (uint32_t)tensor->fill,
		.address = (uint64_t)(uintptr_t)tensor->address,
	};
	memcpy(shape->size, tensor->size, tensor->rank * sizeof(shape->size[0]));
	memcpy(shape->step, tensor->step, tensor->rank * sizeof(shape->step[0]));
	if (tensor->rank > 1)
		memcpy(shape->stride, tensor->stride,
		       (tensor->rank - 1) * sizeof(shape->stride[0]));
	return CUDA_SUCCESS;
}

static CUresult encode_tiled(CUtensorMap *map, const struct tensor *tensor, const cuuint32_t *box)
{
	struct fgv_tensor_shape shape;
	CUresult res = describe(tensor, FGV_TENSOR_TILED, &shape);

	if (res || !box)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(shape.box, box, shape.rank * sizeof(*box));
	return fgv_tensor_encode(map, &shape);
}

FGV_EXPORT CUresult cuTensorMapEncodeTiled(
	CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
	void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	const struct tensor tensor = {tensorDataType, tensorRank,     globalAddress, globalDim,
				      globalStrides,  elementStrides, interleave,    swizzle,
				      l2Promotion,    oobFill};

	return FGV_CALL(encode_tiled(tensorMap, &tensor, boxDim));
}

static CUresult encode_im2col(CUtensorMap *map, const struct tensor *tensor, const int *lower,
			      const int *upper, cuuint32_t channels, cuuint32_t pixels)
{
	struct fgv_tensor_shape shape;
	CUresult res = describe(tensor, FGV_TENSOR_IM2COL, &shape);

	if (res || !lower || !upper || shape.rank < 3)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(shape.lower, lower, (shape.rank - 2) * sizeof(*lower));
	memcpy(shape.upper, upper, (shape.rank - 2) * sizeof(*upper));
	shape.channels = channels;
	shape.pixels = pixels;
	return fgv_tensor_encode(map, &shape);
}

FGV_EXPORT CUresult cuTensorMapEncodeIm2col(
	CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
	void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
	cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	const struct tensor tensor = {tensorDataType, tensorRank,     globalAddress, globalDim,
				      globalStrides,  elementStrides, interleave,    swizzle,
				      l2Promotion,    oobFill};

	return FGV_CALL(encode_im2col(tensorMap, &tensor, pixelBoxLowerCorner, pixelBoxUpperCorner,
				      channelsPerPixel, pixelsPerColumn));
}

/* A row of pixels along the width. */
struct row {
	int lower, upper;
	cuuint32_t channels, pixels;
	CUtensorMapIm2ColWideMode mode;
};

static CUresult encode_wide(CUtensorMap *map, const struct tensor *tensor, const struct row *row)
{
	struct fgv_tensor_shape shape;
	CUresult res = describe(tensor, FGV_TENSOR_IM2COL_WIDE, &shape);

	if (res || shape.rank < 3)
		return CUDA_ERROR_INVALID_VALUE;
	shape.lower[0] = row->lower;
	shape.upper[0] = row->upper;
	shape.channels = row->channels;
	shape.pixels = row->pixels;
	shape.mode = (uint32_t)row->mode;
	return fgv_tensor_encode(map, &shape);
}

FGV_EXPORT CUresult cuTensorMapEncodeIm2colWide(
	CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
	void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
	cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	const struct tensor tensor = {tensorDataType, tensorRank,     globalAddress, globalDim,
				      globalStrides,  elementStrides, interleave,    swizzle,
				      l2Promotion,    oobFill};
	const struct row row = {pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth,
				channelsPerPixel, pixelsPerColumn, mode};

	return FGV_CALL(encode_wide(tensorMap, &tensor, &row));
}

FGV_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	return FGV_CALL(fgv_tensor_replace(tensorMap, (CUdeviceptr)(uintptr_t)globalAddress));
}
