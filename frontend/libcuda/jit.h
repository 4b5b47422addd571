/*
 * Options of the compiler that the driver has for PTX. The host compiles as it would for any
 * program: what an option asks of the code that is made is a hint. What it asks to be told, it is.
 */
#ifndef FGV_LIBCUDA_JIT_H
#define FGV_LIBCUDA_JIT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_jit {
	unsigned count;
	const CUjit_option *options;
	void **values; /* some are results */
};

/* CUDA_ERROR_INVALID_VALUE: there is no such option, or they are missing. */
CUresult fgv_jit_check(const struct fgv_jit *jit);

/* The option's value as a number; false: it is not among them. */
bool fgv_jit_number(const struct fgv_jit *jit, CUjit_option option, uint32_t *value);

/* Tells the program what there was to say; either may be "". */
void fgv_jit_tell(const struct fgv_jit *jit, const char *errors, const char *info);

/* Tells the program what it asked for. @res: what the work ended with, which is returned. */
CUresult fgv_jit_finish(const struct fgv_jit *jit, CUresult res);

#endif
