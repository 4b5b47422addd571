/*
 * What the variables of a PTX text take of the GPU's memory. The text is the guest's and is
 * given to NVIDIA's compiler, so nothing of it is taken for right: what looks like the declaration
 * of a variable counts as one, and a size that can't be told is an error.
 *
 * Threads: no state.
 */
#ifndef FGV_BACKEND_GPU_PTX_BYTES_H
#define FGV_BACKEND_GPU_PTX_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include "backend/gpu/gpu_ops.h"

/*
 * Bytes of all variables in .global and .const, each aligned as it asks, but for those
 * that lie elsewhere: @placed, of that size at most. UINT64_MAX: more than can be counted. @text
 * ends with a NUL. 0, or -EINVAL where the size of one can't be told.
 */
int fgv_ptx_bytes(const char *text, const struct fgv_gpu_placed *placed, size_t placed_count,
		  uint64_t *bytes);

#endif
