/*
 * What the program may ask about a kernel, and set of it.
 *
 * A kernel that is asked about is loaded first, so all may fail as that may (module.h), once.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_FUNCTION_H
#define FGV_CUDA_FUNCTION_H

#include <cuda.h>
#include <stddef.h>

struct fgv_kernel;

/* Makes @kernel known in full. The session's code, if that has ended. */
CUresult fgv_function_need(struct fgv_kernel **kernel);

/* CUDA_ERROR_INVALID_VALUE: no such attribute. */
CUresult fgv_function_get_attribute(struct fgv_kernel *kernel, CUfunction_attribute attribute,
				    int *value);
/* The same for what can't be set, or not to that. */
CUresult fgv_function_set_attribute(struct fgv_kernel *kernel, CUfunction_attribute attribute,
				    int value);

/* Where parameter @index lies, and its bytes; @size may be NULL. CUDA_ERROR_INVALID_VALUE. */
CUresult fgv_function_get_param(struct fgv_kernel *kernel, size_t index, size_t *offset,
				size_t *size);

#endif
