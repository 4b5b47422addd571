/*
 * Memory and addresses apart, on the soft GPU: of its memory, chunks take what allocations leave.
 * What is mapped may be read and written, or not be touched at all; nothing else is asked of its
 * pages.
 */
#include "backend/gpu/soft_internal.h"

#include <fcntl.h>
#include <stdlib.h>

CUresult fgv_soft_memory_granularity(struct fgv_gpu *gpu, CUmemAllocationGranularity_flags option,
				     size_t *bytes)
{
	(void)gpu;
	(void)option;
	*bytes = SOFTGPU_CHUNK_GRANULE;
	return CUDA_SUCCESS;
}

CUresult fgv_soft_address_reserve(struct fgv_gpu *gpu, uint64_t bytes, uint64_t alignment,
				  uint64_t hint, uint64_t *address)
{
	return softgpu_reserve(gpu_of(gpu), bytes, alignment, hint, address);
}

CUresult fgv_soft_address_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	(void)bytes;
	softgpu_unreserve(gpu_of(gpu), address);
	return CUDA_SUCCESS;
}

/* What the handle stands for. */
struct fgv_gpu_memory {
	struct softgpu_chunk *chunk;
	uint64_t bytes; /* that this process has taken; 0: another has */
};

CUresult fgv_soft_memory_create(struct fgv_gpu *gpu, uint64_t bytes, struct fgv_gpu_memory **memory)
{
	struct soft *soft = (struct soft *)gpu;
	struct fgv_gpu_memory *made = NULL;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (!fgv_soft_take(soft, bytes))
		return status;
	made = calloc(1, sizeof(*made));
	if (made && gpu->exports)
		status = softgpu_chunk_create_file(soft->gpu, bytes, &made->chunk);
	else if (made)
		status = softgpu_chunk_create(soft->gpu, bytes, &made->chunk);
	if (status != CUDA_SUCCESS) {
		fgv_soft_give(soft, bytes);
		free(made);
		return status;
	}
	made->bytes = bytes;
	*memory = made;
	return CUDA_SUCCESS;
}

CUresult fgv_soft_memory_release(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory)
{
	softgpu_chunk_destroy(gpu_of(gpu), memory->chunk);
	fgv_soft_give((struct soft *)gpu, memory->bytes);
	free(memory);
	return CUDA_SUCCESS;
}

CUresult fgv_soft_memory_export(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory, int *fd)
{
	int file = softgpu_chunk_file(memory->chunk);

	(void)gpu;
	if (file < 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	*fd = fcntl(file, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult fgv_soft_memory_import(struct fgv_gpu *gpu, int fd, uint64_t bytes,
				struct fgv_gpu_memory **memory)
{
	struct fgv_gpu_memory *made = calloc(1, sizeof(*made));
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (made)
		status = softgpu_chunk_import(gpu_of(gpu), fd, bytes, &made->chunk);
	if (status != CUDA_SUCCESS) {
		free(made);
		return status;
	}
	*memory = made;
	return CUDA_SUCCESS;
}

CUresult fgv_soft_memory_map(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
			     struct fgv_gpu_memory *memory)
{
	return softgpu_map(gpu_of(gpu), address, bytes, offset, memory->chunk);
}

CUresult fgv_soft_memory_access(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
				CUmemAccess_flags flags)
{
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return softgpu_show(gpu_of(gpu), address, bytes);
}

CUresult fgv_soft_memory_view(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
			      CUmemAccess_flags flags)
{
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return softgpu_view(gpu_of(gpu), address, bytes);
}

CUresult fgv_soft_memory_retire(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	(void)bytes;
	return softgpu_retire(gpu_of(gpu), address);
}

CUresult fgv_soft_memory_unmap(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	(void)bytes;
	softgpu_unmap(gpu_of(gpu), address);
	return CUDA_SUCCESS;
}
