/*
 * Each thread's stack of contexts: their handles, whatever has become of them. To
 * work in one, go through ctx.h.
 *
 * Threads: each has its own.
 */
#ifndef FGV_CUDA_CTX_STACK_H
#define FGV_CUDA_CTX_STACK_H

#include <cuda.h>
#include <stdbool.h>

/* NULL: nothing is on it. */
CUcontext fgv_ctx_top(void);
/* CUDA_ERROR_OUT_OF_MEMORY. */
CUresult fgv_ctx_stack_push(CUcontext handle);
/* False: there was nothing on it. */
bool fgv_ctx_stack_pop(void);
/* In the place of the top, which there is. */
void fgv_ctx_stack_replace(CUcontext handle);

#endif
