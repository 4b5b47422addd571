/* What the dispatcher asks of the device's system: text and limits. */
#include "common/util.h"
#include "softgpu/device/internal.h"

#define STACK_MAX	   (512u << 10)
#define L2_GRANULARITY_MAX 128

bool softgpu_has_text(const struct softgpu *gpu)
{
	return fgv_softgpu_output_waits(&gpu->system.output);
}

size_t softgpu_take_text(struct softgpu *gpu, unsigned stream, char *text, size_t room)
{
	return fgv_softgpu_output_take(&gpu->system.output, stream, text, room);
}

CUresult softgpu_limit_get(struct softgpu *gpu, CUlimit limit, size_t *value)
{
	struct softgpu_system *system = &gpu->system;

	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		*value = system->stack_bytes;
		return CUDA_SUCCESS;
	case CU_LIMIT_PRINTF_FIFO_SIZE:
		*value = system->output.fifo_bytes;
		return CUDA_SUCCESS;
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		*value = system->heap.bytes;
		return CUDA_SUCCESS;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		*value = system->l2_granularity_bytes;
		return CUDA_SUCCESS;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		*value = system->l2_persisting_bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
}

/* The sizes of what kernels already use stay as they are. */
CUresult softgpu_limit_set(struct softgpu *gpu, CUlimit limit, size_t value)
{
	struct softgpu_system *system = &gpu->system;

	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		if (value > STACK_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		system->stack_bytes = value;
		return CUDA_SUCCESS;
	case CU_LIMIT_PRINTF_FIFO_SIZE:
		return fgv_softgpu_output_resize(&system->output, value);
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		return fgv_softgpu_heap_resize(&system->heap, value);
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		if (value > L2_GRANULARITY_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		system->l2_granularity_bytes = value;
		return CUDA_SUCCESS;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		system->l2_persisting_bytes = fgv_min_u64(value, L2_PERSISTING_MAX);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
}

void fgv_softgpu_system_init(struct softgpu_system *system)
{
	fgv_softgpu_output_init(&system->output);
	fgv_softgpu_heap_init(&system->heap);
	system->stack_bytes = 1024;
	system->l2_granularity_bytes = 64;
}

void fgv_softgpu_system_fini(struct softgpu_system *system)
{
	fgv_softgpu_heap_fini(&system->heap);
	fgv_softgpu_output_fini(&system->output);
}
