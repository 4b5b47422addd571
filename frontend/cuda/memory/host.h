/*
 * Host memory that the GPU sees, as programs ask for it: pinned, registered and managed. All of it
 * is mapped and portable, whatever its flags, and has one address for both.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_HOST_H
#define FGV_CUDA_HOST_H

#include <cuda.h>
#include <stddef.h>

/* @flags: CU_MEMHOSTALLOC_... CUDA_ERROR_INVALID_VALUE: no bytes, or other flags. */
CUresult fgv_host_alloc(void **ptr, size_t bytes, unsigned flags);
CUresult fgv_host_free(void *ptr);

/*
 * @flags: CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST. fgv_memory_free() frees it.
 */
CUresult fgv_host_alloc_managed(CUdeviceptr *address, size_t bytes, unsigned flags);

/* Of managed memory alone. */
CUresult fgv_host_free_managed(CUdeviceptr address);

/*
 * @flags: CU_MEMHOSTREGISTER_... CUDA_ERROR_NOT_SUPPORTED, counted, for memory whose pages can't
 * be the GPU's too, and else as fgv_hostmem_register() says.
 */
CUresult fgv_host_register(void *ptr, size_t bytes, unsigned flags);
CUresult fgv_host_unregister(void *ptr);

/* For the reset of a device alone, without a lane: frees what was made on it. */
void fgv_host_drain(uint32_t device);

/* CUDA_ERROR_INVALID_VALUE for memory that the GPU does not see. */
CUresult fgv_host_get_device_pointer(CUdeviceptr *address, void *ptr, unsigned flags);
/* Those that pinned memory was allocated with. */
CUresult fgv_host_get_flags(unsigned *flags, const void *ptr);

#endif
