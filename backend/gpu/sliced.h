/*
 * The PTX of a kernel that runs in parts, from the image of its module.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_BACKEND_GPU_SLICED_H
#define FGV_BACKEND_GPU_SLICED_H

#include "backend/gpu/gpu_ops.h"

/* As module_slice() of struct fgv_gpu_ops, for a GPU of @sm, or FGV_FATBIN_ANY_SM. */
CUresult fgv_sliced_text(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what, unsigned sm,
			 char **text, char *why, size_t why_len);

#endif
