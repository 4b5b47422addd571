/*
 * What arrays and textures are made of, in the driver's terms: the sizes of elements and of
 * mipmap levels. Sizes are width, height and depth in elements, rows and slices; 0 is a
 * dimension that there is not.
 */
#ifndef FGV_COMMON_TEXEL_H
#define FGV_COMMON_TEXEL_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Slices are layers, which all levels have as many of. */
#define FGV_TEXEL_LAYERS (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)

/* Bytes of one channel of an element; 0 for a format that FairGV does not have. */
static inline unsigned fgv_texel_channel_bytes(uint32_t format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

/* Bytes of an element; 0 where there is none such. */
static inline unsigned fgv_texel_bytes(uint32_t format, uint32_t channels)
{
	if (channels != 1 && channels != 2 && channels != 4)
		return 0;
	return fgv_texel_channel_bytes(format) * channels;
}

/* What a view, a CUresourceViewFormat, reads elements as; false where it is compressed, or none. */
static inline bool fgv_texel_view(uint32_t view, CUarray_format *format, unsigned *channels)
{
	static const CUarray_format formats[] = {
		CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
		CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
		CU_AD_FORMAT_HALF,	     CU_AD_FORMAT_FLOAT,
	};
	uint32_t index = view - CU_RES_VIEW_FORMAT_UINT_1X8;

	if (index > CU_RES_VIEW_FORMAT_FLOAT_4X32 - CU_RES_VIEW_FORMAT_UINT_1X8)
		return false;
	*format = formats[index / 3];
	*channels = 1u << index % 3;
	return true;
}

/* How many levels an array of this size can have. */
static inline unsigned fgv_texel_levels_max(const uint64_t size[3], uint32_t flags)
{
	uint64_t largest = size[0] | size[1] | (flags & FGV_TEXEL_LAYERS ? 0 : size[2]);

	return largest ? 64 - (unsigned)__builtin_clzll(largest) : 1;
}

/* The size of level @level of an array of size @size. */
static inline void fgv_texel_level_size(const uint64_t size[3], uint32_t flags, unsigned level,
					uint64_t part[3])
{
	for (int i = 0; i < 3; i++) {
		bool shrinks = (i < 2 || !(flags & FGV_TEXEL_LAYERS)) && size[i];

		part[i] = shrinks ? (size[i] >> level ? size[i] >> level : 1) : size[i];
	}
}

/* Bytes of elements of @texel_bytes; false where that overflows. */
static inline bool fgv_texel_array_bytes(const uint64_t size[3], unsigned texel_bytes,
					 uint64_t *bytes)
{
	*bytes = texel_bytes;
	for (int i = 0; i < 3; i++) {
		if (size[i] && __builtin_mul_overflow(*bytes, size[i], bytes))
			return false;
	}
	return true;
}

#endif
