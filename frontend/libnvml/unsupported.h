/*
 * The stubs of what the library does not do (nvmlgen.py makes their list). A function that
 * looks at none of its arguments may be called with any.
 */
#ifndef FGV_LIBNVML_UNSUPPORTED_H
#define FGV_LIBNVML_UNSUPPORTED_H

#include "frontend/client/stats.h"

/* Counts the call; NVML_ERROR_NOT_SUPPORTED, or that NVML is not initialized. */
int fgv_nvml_unsupported(struct fgv_unsupported *unsupported);

#define STUB(function)                                                                             \
	__attribute__((visibility("default"))) int function(void);                                 \
	int function(void)                                                                         \
	{                                                                                          \
		static struct fgv_unsupported unsupported = {.name = #function};                   \
                                                                                                   \
		return fgv_nvml_unsupported(&unsupported);                                         \
	}

#endif
