/*
 * Limits of the context. CUDA_ERROR_UNSUPPORTED_LIMIT, CUDA_ERROR_INVALID_VALUE, or
 * CUDA_ERROR_OUT_OF_MEMORY where the VM's quota has no room for what a limit takes.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_LIMIT_H
#define FGV_CUDA_LIMIT_H

#include <cuda.h>
#include <stddef.h>

struct fgv_lane;

CUresult fgv_limit_get(CUlimit limit, size_t *value);
CUresult fgv_limit_set(CUlimit limit, size_t value);

/* For the reset of a device alone: sets all back. */
void fgv_limit_reset(struct fgv_lane *lane);

#endif
