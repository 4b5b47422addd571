/*
 * Rows begin ROW_ALIGN apart, as NVIDIA's driver has them, which suits textures on every GPU.
 */
#include "frontend/cuda/memory/pitched.h"

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/stream/capturing.h"

#define ROW_ALIGN 512

static CUresult alloc_nothing(CUdeviceptr *address)
{
	CUresult res = fgv_capturing_check_unsafe();

	if (!res)
		res = fgv_context_need();
	if (!res)
		*address = 0;
	return res;
}

CUresult fgv_pitched_alloc(CUdeviceptr *address, size_t *pitch, size_t width, size_t rows)
{
	size_t row_bytes, bytes;
	CUresult res;

	if (!address || !pitch || width > SIZE_MAX - ROW_ALIGN)
		return CUDA_ERROR_INVALID_VALUE;
	row_bytes = fgv_align_up(width, ROW_ALIGN);
	if (__builtin_mul_overflow(row_bytes, rows, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = bytes ? fgv_memory_alloc(address, bytes) : alloc_nothing(address);
	if (!res)
		*pitch = row_bytes;
	return res;
}
