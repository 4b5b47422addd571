/*
 * The stubs of what FairGV does not have (stubgen.py makes their list). This header
 * does without CUDA's, whose prototypes the stubs have no use for: a function that
 * looks at none of its arguments may be called with any.
 */
#ifndef FGV_LIBCUDART_UNSUPPORTED_H
#define FGV_LIBCUDART_UNSUPPORTED_H

#include "frontend/client/stats.h"

/* Counts the call, notes cudaErrorNotSupported as the thread's last error, returns it. */
int fgv_unsupported_call(struct fgv_unsupported *unsupported);

#define DEFINE_STUB(function, statement)                                                           \
	__attribute__((visibility("default"))) int function(void);                                 \
	int function(void)                                                                         \
	{                                                                                          \
		static struct fgv_unsupported unsupported = {.name = #function};                   \
                                                                                                   \
		statement;                                                                         \
	}

#define STUB(function) DEFINE_STUB(function, return fgv_unsupported_call(&unsupported))

/* Only counted: what was registered in vain shows when it is used. */
#define QUIET_STUB(function) DEFINE_STUB(function, fgv_stats_unsupported(&unsupported); return 0)

#endif
