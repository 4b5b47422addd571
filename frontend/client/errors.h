/*
 * CUDA's errors: from the driver's codes, which the wire carries, to the runtime's,
 * which the program sees; their names and texts; and the last error of each thread.
 *
 * Threads: any; the last error is the calling thread's.
 */
#ifndef FGV_CLIENT_ERRORS_H
#define FGV_CLIENT_ERRORS_H

#include <cuda.h>
#include <driver_types.h>

#include "frontend/client/thread.h"

/* The one conversion. */
cudaError_t fgv_error_from(CUresult res);

/*
 * Notes @error as this thread's last error, unless it is none, or cudaErrorNotReady,
 * which CUDA does not count as one. Returns it.
 */
static inline cudaError_t fgv_error_set(cudaError_t error)
{
	if (__builtin_expect(error != cudaSuccess, 0) && error != cudaErrorNotReady)
		fgv_thread_self.last_error = error;
	return error;
}

/* "unrecognized error code" for what is no error of CUDA's. */
const char *fgv_error_name(cudaError_t error);
const char *fgv_error_text(cudaError_t error);

#endif
