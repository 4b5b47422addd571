/*
 * Arrays, as the files of the soft GPU see them.
 */
#ifndef FGV_SOFTGPU_DEVICE_ARRAY_H
#define FGV_SOFTGPU_DEVICE_ARRAY_H

#include "softgpu/device/internal.h"

struct softgpu_array {
	CUarray_format format;
	unsigned channels;
	unsigned flags;
	unsigned texel_bytes;
	uint64_t size[3]; /* as asked for: 0 is a dimension that there is not */
	uint64_t row_bytes, rows, slices;
	uint64_t address;
	uint64_t bytes; /* of the allocation; 0: a level of another */
	unsigned levels_count; /* 0: not mipmapped */
	struct softgpu_array *levels;
};

#endif
