/*
 * Memory that programs of one VM share by handles (cudaIpcGetMemHandle), where the VM's
 * configuration lets them (key sharing); elsewhere CUDA_ERROR_NOT_SUPPORTED, counted.
 *
 * A handle names an allocation of another program's, in the block of the GPU's memory that it lies
 * in. That block is mapped here for as long as it is open, at an address that is free here.
 *
 * Threads: any. One mutex inside, never held over a call of the host.
 */
#ifndef FGV_CUDA_IPC_H
#define FGV_CUDA_IPC_H

#include <cuda.h>
#include <stdint.h>

/* A random number of this program's, by which it knows its own handles. */
uint64_t fgv_ipc_program(void);

/* CUDA_ERROR_INVALID_VALUE for what is no allocation of its own (cudaMalloc). */
CUresult fgv_ipc_get(CUipcMemHandle *handle, CUdeviceptr pointer);
/*
 * The allocation's beginning; each time the same address. CUDA_ERROR_INVALID_CONTEXT: it is this
 * program's own; CUDA_ERROR_INVALID_HANDLE: there is none such, or it is gone.
 */
CUresult fgv_ipc_open(CUdeviceptr *pointer, const CUipcMemHandle *handle, unsigned flags);
/* Once for each time; the last waits for the work that was asked for before. */
CUresult fgv_ipc_close(CUdeviceptr pointer);

/* For the reset of a device alone: nothing of it is open any more. Without a lane. */
void fgv_ipc_drain(uint32_t device);

#endif
