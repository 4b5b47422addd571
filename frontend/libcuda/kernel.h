/*
 * The kernel that a program names by a CUfunction or a CUkernel.
 */
#ifndef FGV_LIBCUDA_KERNEL_H
#define FGV_LIBCUDA_KERNEL_H

#include "frontend/cuda/module/registry.h"

/* CUDA_ERROR_INVALID_HANDLE */
static inline CUresult fgv_driver_kernel(const void *handle, struct fgv_kernel **kernel)
{
	*kernel = fgv_registry_kernel(handle);
	return __builtin_expect(*kernel != NULL, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

#endif
