/* Memory and addresses apart, as the dispatcher sees them. */
#include "softgpu/device/internal.h"

_Static_assert(SOFTGPU_CHUNK_GRANULE == SPACE_GRANULE, "what is promised");

static struct space_range *range_of(struct softgpu_chunk *chunk)
{
	return (struct space_range *)chunk;
}

CUresult softgpu_reserve(struct softgpu *gpu, uint64_t bytes, uint64_t alignment, uint64_t hint,
			 uint64_t *address)
{
	return fgv_softgpu_space_reserve(&gpu->space, bytes, alignment, hint, address)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

void softgpu_unreserve(struct softgpu *gpu, uint64_t address)
{
	fgv_softgpu_space_unreserve(&gpu->space, address);
}

CUresult softgpu_chunk_create(struct softgpu *gpu, uint64_t bytes, struct softgpu_chunk **chunk)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	*chunk = (struct softgpu_chunk *)fgv_softgpu_space_take(&gpu->space, bytes);
	return *chunk ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult softgpu_chunk_create_file(struct softgpu *gpu, uint64_t bytes,
				   struct softgpu_chunk **chunk)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	*chunk = (struct softgpu_chunk *)fgv_softgpu_space_take_file(bytes);
	return *chunk ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult softgpu_chunk_import(struct softgpu *gpu, int fd, uint64_t bytes,
			      struct softgpu_chunk **chunk)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	*chunk = (struct softgpu_chunk *)fgv_softgpu_space_take_given(fd, bytes);
	return *chunk ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int softgpu_chunk_file(struct softgpu_chunk *chunk)
{
	return range_of(chunk)->fd;
}

void softgpu_chunk_destroy(struct softgpu *gpu, struct softgpu_chunk *chunk)
{
	fgv_softgpu_space_give(&gpu->space, range_of(chunk));
}

CUresult softgpu_map(struct softgpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
		     struct softgpu_chunk *chunk)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	return fgv_softgpu_space_map(&gpu->space, address, bytes, offset, range_of(chunk))
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult softgpu_show(struct softgpu *gpu, uint64_t address, uint64_t bytes)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	return fgv_softgpu_space_show(&gpu->space, &gpu->memory, address, bytes);
}

CUresult softgpu_view(struct softgpu *gpu, uint64_t address, uint64_t bytes)
{
	CUresult status = fgv_queue_fault(gpu);

	if (status != CUDA_SUCCESS)
		return status;
	if (!fgv_softgpu_space_view(&gpu->space, address, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = fgv_softgpu_space_show(&gpu->space, &gpu->memory, address, bytes);
	if (status != CUDA_SUCCESS)
		fgv_softgpu_space_forget(&gpu->space, fgv_softgpu_space_find(&gpu->space, address));
	return status;
}

/* Without memory for the command it waits instead. */
CUresult softgpu_retire(struct softgpu *gpu, uint64_t address)
{
	struct space_range *range = fgv_softgpu_space_find(&gpu->space, address);
	struct command *command = fgv_queue_new(COMMAND_UNMAP, 0);

	fgv_softgpu_host_set(&gpu->memory, address, RANGE_RETIRED);
	if (!command) {
		fgv_queue_wait_all(gpu);
		fgv_softgpu_space_hide(&gpu->memory, address, range->bytes, range->is_view);
		return CUDA_SUCCESS;
	}
	command->unmap.address = address;
	command->unmap.bytes = range->bytes;
	command->unmap.is_view = range->is_view;
	range->hidden_by = fgv_queue_submit_last(gpu, command);
	return CUDA_SUCCESS;
}

void softgpu_unmap(struct softgpu *gpu, uint64_t address)
{
	struct space_range *range = fgv_softgpu_space_find(&gpu->space, address);

	fgv_queue_wait(gpu, range->hidden_by);
	fgv_softgpu_space_forget(&gpu->space, range);
}
