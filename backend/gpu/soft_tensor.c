/*
 * The soft GPU's tensor maps. It runs no instruction that fetches by one, so they are for the
 * host's side alone: a program's arguments are judged by what cuda.h says of them, and its map
 * holds them as they are. An opaque map of 128 bytes: a mark, then struct content. Nothing is said
 * of the area of an im2col box, whose dimensions cuda.h does not order.
 */
#include "backend/gpu/soft_internal.h"

#include <string.h>

#define MARK 0x50414d5456474632ull /* "2FGVTMAP" */

#define SIZE_MOST     (1ull << 32)
#define STRIDE_END    (1ull << 40)
#define BOX_MOST      256
#define STEP_MOST     8
#define CHANNELS_MOST 256
#define PIXELS_MOST   1024
#define WHOLE_BOX     128 /* elements, of what is spread in memory */

/* Strides are in units of 16 bytes, and take 36 bits. */
struct content {
	uint64_t mark;
	uint64_t address;
	uint32_t size[FGV_TENSOR_RANK_MAX]; /* less 1 */
	uint32_t stride[FGV_TENSOR_RANK_MAX - 1];
	uint8_t stride_high[FGV_TENSOR_RANK_MAX - 1];
	uint16_t box[FGV_TENSOR_RANK_MAX]; /* or channels and pixels */
	uint8_t step[FGV_TENSOR_RANK_MAX];
	uint8_t form, type, rank, interleave, swizzle, promotion, fill, align;
	int16_t lower[FGV_TENSOR_RANK_MAX - 2];
	int16_t upper[FGV_TENSOR_RANK_MAX - 2];
};
_Static_assert(sizeof(struct content) <= sizeof(CUtensorMap), "fits");

static const uint8_t element_bits[] = {
	[CU_TENSOR_MAP_DATA_TYPE_UINT8] = 8,	     [CU_TENSOR_MAP_DATA_TYPE_UINT16] = 16,
	[CU_TENSOR_MAP_DATA_TYPE_UINT32] = 32,	     [CU_TENSOR_MAP_DATA_TYPE_INT32] = 32,
	[CU_TENSOR_MAP_DATA_TYPE_UINT64] = 64,	     [CU_TENSOR_MAP_DATA_TYPE_INT64] = 64,
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = 16,	     [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = 32,
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = 64,	     [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = 16,
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = 32,  [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = 32,
	[CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = 32, [CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B] = 4,
	[CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B] = 4, [CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B] = 6,
};

static bool is_float(uint32_t type)
{
	return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
	       type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

/* Elements that lie in memory with gaps between them. */
static bool is_spread(uint32_t type)
{
	return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B;
}

static unsigned align_of(const struct fgv_tensor_shape *shape)
{
	return shape->interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_spread(shape->type) ? 32
											   : 16;
}

static bool is_within(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

static bool check_memory(const struct fgv_tensor_shape *shape)
{
	unsigned align = align_of(shape), of = 1;

	if (is_spread(shape->type))
		of = 128;
	else if (shape->type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B)
		of = 2;
	if (shape->address % align || shape->size[0] % of)
		return false;
	for (unsigned i = 0; i < shape->rank; i++) {
		if (!is_within(shape->size[i], 1, SIZE_MOST))
			return false;
		if (i && (shape->stride[i - 1] % align || shape->stride[i - 1] >= STRIDE_END))
			return false;
	}
	return true;
}

/* Where nothing is interleaved the first step is not looked at. */
static bool check_steps(const struct fgv_tensor_shape *shape)
{
	for (unsigned i = !shape->interleave; i < shape->rank; i++) {
		if (!is_within(shape->step[i], 1, STEP_MOST))
			return false;
	}
	return true;
}

static unsigned swizzle_span(uint32_t swizzle)
{
	switch (swizzle) {
	case CU_TENSOR_MAP_SWIZZLE_32B:
		return 32;
	case CU_TENSOR_MAP_SWIZZLE_64B:
		return 64;
	default:
		return 128;
	}
}

/* @inner: how many elements a box has in the first dimension. */
static bool check_swizzle(const struct fgv_tensor_shape *shape, uint32_t inner)
{
	uint32_t bytes = inner * element_bits[shape->type] / 8;

	if (shape->interleave == CU_TENSOR_MAP_INTERLEAVE_32B)
		return shape->swizzle == CU_TENSOR_MAP_SWIZZLE_32B;
	if (shape->type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B && shape->interleave)
		return false;
	if (is_spread(shape->type))
		return shape->swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ||
		       shape->swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
		       shape->swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
		       (shape->swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
			shape->type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
	return shape->interleave || !shape->swizzle || bytes <= swizzle_span(shape->swizzle);
}

static bool check_box(const struct fgv_tensor_shape *shape)
{
	if (shape->interleave && shape->rank < 3)
		return false;
	for (unsigned i = 0; i < shape->rank; i++) {
		if (!is_within(shape->box[i], 1, BOX_MOST))
			return false;
	}
	if (is_spread(shape->type))
		return shape->box[0] == WHOLE_BOX;
	return shape->interleave || shape->box[0] * element_bits[shape->type] % (16 * 8) == 0;
}

static bool check_pixels(const struct fgv_tensor_shape *shape)
{
	static const int32_t reach[] = {[3] = 32768, [4] = 128, [5] = 16};
	int32_t most;

	if (shape->rank < 3)
		return false;
	most = reach[shape->rank];
	for (unsigned i = 0; i < shape->rank - 2; i++) {
		if (shape->lower[i] < -most || shape->lower[i] >= most || shape->upper[i] < -most ||
		    shape->upper[i] >= most)
			return false;
	}
	if (is_spread(shape->type) && shape->channels != WHOLE_BOX)
		return false;
	return is_within(shape->channels, 1, CHANNELS_MOST) &&
	       is_within(shape->pixels, 1, PIXELS_MOST);
}

static bool check(const struct fgv_tensor_shape *shape)
{
	bool is_tiled = shape->form == FGV_TENSOR_TILED;

	if (!(is_tiled ? check_box(shape) : check_pixels(shape)))
		return false;
	if (shape->fill && !is_float(shape->type))
		return false;
	return check_memory(shape) && check_steps(shape) &&
	       check_swizzle(shape, is_tiled ? shape->box[0] : shape->channels);
}

static void fill_content(const struct fgv_tensor_shape *shape, struct content *content)
{
	*content = (struct content){
		.mark = MARK,
		.address = shape->address,
		.form = (uint8_t)shape->form,
		.type = (uint8_t)shape->type,
		.rank = (uint8_t)shape->rank,
		.interleave = (uint8_t)shape->interleave,
		.swizzle = (uint8_t)shape->swizzle,
		.promotion = (uint8_t)shape->promotion,
		.fill = (uint8_t)shape->fill,
		.align = (uint8_t)align_of(shape),
	};
	for (unsigned i = 0; i < shape->rank; i++) {
		content->size[i] = (uint32_t)(shape->size[i] - 1);
		content->step[i] = (uint8_t)shape->step[i];
		content->box[i] = (uint16_t)shape->box[i];
	}
	for (unsigned i = 0; i + 1 < shape->rank; i++) {
		content->stride[i] = (uint32_t)(shape->stride[i] / 16);
		content->stride_high[i] = (uint8_t)(shape->stride[i] / 16 >> 32);
	}
	if (shape->form == FGV_TENSOR_TILED)
		return;
	content->box[0] = (uint16_t)shape->channels;
	content->box[1] = (uint16_t)shape->pixels;
	for (unsigned i = 0; i + 2 < shape->rank; i++) {
		content->lower[i] = (int16_t)shape->lower[i];
		content->upper[i] = (int16_t)shape->upper[i];
	}
}

/* The wide form needs a later device than it would be at best. */
CUresult fgv_soft_tensor_map(struct fgv_gpu *gpu, const struct fgv_tensor_shape *shape,
			     CUtensorMap *map)
{
	struct content content;

	(void)gpu;
	if (shape->form == FGV_TENSOR_IM2COL_WIDE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!check(shape))
		return CUDA_ERROR_INVALID_VALUE;
	fill_content(shape, &content);
	memset(map, 0, sizeof(*map));
	memcpy(map, &content, sizeof(content));
	return CUDA_SUCCESS;
}

CUresult fgv_soft_tensor_map_replace(struct fgv_gpu *gpu, CUtensorMap *map, uint64_t address)
{
	struct content content;

	(void)gpu;
	memcpy(&content, map, sizeof(content));
	if (content.mark != MARK || !content.align || address % content.align)
		return CUDA_ERROR_INVALID_VALUE;
	content.address = address;
	memcpy(map, &content, sizeof(content));
	return CUDA_SUCCESS;
}
