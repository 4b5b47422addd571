/*
 * Device memory and addresses apart from each other. The driver is asked for memory of the device
 * alone that no other process can be given, unless the caller wants to export it.
 *
 * Addresses and handles are the process's, whichever device is current; access is a device's.
 */
#include "backend/gpu/cuda_internal.h"

static CUmemAllocationProp props_of(const struct cuda *cuda)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes =
			cuda->base.exports ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, cuda->device},
	};
}

CUresult fgv_cuda_memory_granularity(struct fgv_gpu *gpu, CUmemAllocationGranularity_flags option,
				     size_t *bytes)
{
	CUmemAllocationProp props = props_of(cuda_of(gpu));

	return cuda_of(gpu)->driver->memory_granularity(bytes, &props, option);
}

CUresult fgv_cuda_address_reserve(struct fgv_gpu *gpu, uint64_t bytes, uint64_t alignment,
				  uint64_t hint, uint64_t *address)
{
	CUdeviceptr reserved = 0;
	CUresult status =
		cuda_of(gpu)->driver->address_reserve(&reserved, bytes, alignment, hint, 0);

	*address = reserved;
	return status;
}

CUresult fgv_cuda_address_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	return cuda_of(gpu)->driver->address_free(address, bytes);
}

/* As for any allocation, what was put off is done first. */
CUresult fgv_cuda_memory_create(struct fgv_gpu *gpu, uint64_t bytes, struct fgv_gpu_memory **memory)
{
	struct cuda *cuda = cuda_of(gpu);
	CUmemAllocationProp props = props_of(cuda);
	CUmemGenericAllocationHandle handle = 0;
	CUresult status;

	fgv_cuda_collect(cuda);
	status = cuda->driver->memory_create(&handle, bytes, &props, 0);
	if (status == CUDA_ERROR_OUT_OF_MEMORY && cuda->garbage) {
		fgv_cuda_collect_now(cuda);
		status = cuda->driver->memory_create(&handle, bytes, &props, 0);
	}
	*memory = (struct fgv_gpu_memory *)(uintptr_t)handle;
	return status;
}

CUresult fgv_cuda_memory_release(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory)
{
	return cuda_of(gpu)->driver->memory_release((uintptr_t)memory);
}

CUresult fgv_cuda_memory_export(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory, int *fd)
{
	return cuda_of(gpu)->driver->memory_export(fd, (uintptr_t)memory,
						   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

/* How much it is the driver says when it is mapped. */
CUresult fgv_cuda_memory_import(struct fgv_gpu *gpu, int fd, uint64_t bytes,
				struct fgv_gpu_memory **memory)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult status = cuda_of(gpu)->driver->memory_import(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	(void)bytes;
	*memory = (struct fgv_gpu_memory *)(uintptr_t)handle;
	return status;
}

CUresult fgv_cuda_memory_map(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
			     struct fgv_gpu_memory *memory)
{
	return cuda_of(gpu)->driver->memory_map(address, bytes, offset, (uintptr_t)memory, 0);
}

CUresult fgv_cuda_memory_access(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
				CUmemAccess_flags flags)
{
	struct cuda *cuda = cuda_of(gpu);
	const CUmemAccessDesc access = {
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, cuda->device},
		.flags = flags,
	};

	return cuda->driver->memory_access(address, bytes, &access, 1);
}

/* Of this device alone, whatever others may. */
CUresult fgv_cuda_memory_unview(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	return fgv_cuda_memory_access(gpu, address, bytes, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

CUresult fgv_cuda_memory_unmap(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	return cuda_of(gpu)->driver->memory_unmap(address, bytes);
}
