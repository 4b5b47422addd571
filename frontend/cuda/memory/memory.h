/*
 * Device memory, one allocation at a time.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_MEMORY_H
#define FGV_CUDA_MEMORY_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

struct fgv_lane;

/* CUDA_ERROR_INVALID_VALUE: no bytes; CUDA_ERROR_OUT_OF_MEMORY; what captures do not allow. */
CUresult fgv_memory_alloc(CUdeviceptr *address, size_t bytes);

/*
 * Of any kind that the device has, and managed memory; 0 is none. The memory goes after the work
 * that uses it. CUDA_ERROR_INVALID_VALUE where none begins.
 */
CUresult fgv_memory_free(CUdeviceptr address);

/* Of the VM's quota; each may be NULL. */
CUresult fgv_memory_info(size_t *free_bytes, size_t *total_bytes);

/* For the reset of a device alone: frees what fgv_memory_alloc() has given. */
void fgv_memory_drain(struct fgv_lane *lane);

#endif
