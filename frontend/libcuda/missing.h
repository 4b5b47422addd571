/*
 * The driver's functions that FairGV does not have: tablegen.py makes their list.
 */
#ifndef FGV_LIBCUDA_MISSING_H
#define FGV_LIBCUDA_MISSING_H

#include "frontend/libcuda/driver.h"

/* Counts the call; CUDA_ERROR_NOT_SUPPORTED, or CUDA_ERROR_NOT_INITIALIZED before cuInit(). */
CUresult fgv_driver_missing(struct fgv_unsupported *unsupported);

/*
 * A function that looks at none of its arguments may be called with any. Its prototype is the
 * header's if that has one, so the definition goes by another name.
 */
#define STUB_NAME(symbol)	 fgv_missing_##symbol
#define STUB_DECLARATION(symbol) FGV_EXPORT CUresult STUB_NAME(symbol)(void) __asm__(#symbol);
#define STUB(symbol)                                                                               \
	STUB_DECLARATION(symbol)                                                                   \
	CUresult STUB_NAME(symbol)(void)                                                           \
	{                                                                                          \
		static struct fgv_unsupported unsupported = {.name = #symbol};                     \
                                                                                                   \
		return fgv_driver_missing(&unsupported);                                           \
	}

#endif
