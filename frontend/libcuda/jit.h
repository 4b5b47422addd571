/*
 * Options of the compiler that the driver has for PTX. The host compiles as it would for any
 * program: what an option asks of the code that is made is a hint. What it asks to be told, it is.
 */
#ifndef FGV_LIBCUDA_JIT_H
#define FGV_LIBCUDA_JIT_H

#include <cuda.h>

struct fgv_jit {
	unsigned count;
	const CUjit_option *options;
	void **values; /* some are results */
};

/* CUDA_ERROR_INVALID_VALUE: there is no such option, or they are missing. */
CUresult fgv_jit_check(const struct fgv_jit *jit);

/* Tells the program what it asked for. @res: what the work ended with, which is returned. */
CUresult fgv_jit_finish(const struct fgv_jit *jit, CUresult res);

#endif
