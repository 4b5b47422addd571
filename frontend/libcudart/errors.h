/*
 * CUDA's errors: from the driver's codes, which the wire carries, to the runtime's,
 * which the program sees; their names and texts; and the last error of each thread.
 *
 * Threads: any; the last error is the calling thread's.
 */
#ifndef FGV_LIBCUDART_ERRORS_H
#define FGV_LIBCUDART_ERRORS_H

#include <cuda.h>
#include <driver_types.h>

/* The one conversion, and what is left of it for failures. */
cudaError_t fgv_error_convert(CUresult res);

static inline cudaError_t fgv_error_from(CUresult res)
{
	return __builtin_expect(res == CUDA_SUCCESS, 1) ? cudaSuccess : fgv_error_convert(res);
}

/*
 * Notes @error as this thread's last error, and logs that the function at hand returns it, unless
 * it is none, or cudaErrorNotReady, which CUDA does not count as one. Returns it.
 */
#define fgv_error_set(error) fgv_error_note((error), __func__)

/* The same for what the core ends with. */
#define FGV_RESULT(res) fgv_error_set(fgv_error_from(res))

/* For fgv_error_set(); @call stays. */
void fgv_error_keep(cudaError_t error, const char *call);

static inline cudaError_t fgv_error_note(cudaError_t error, const char *call)
{
	if (__builtin_expect(error != cudaSuccess, 0) && error != cudaErrorNotReady)
		fgv_error_keep(error, call);
	return error;
}

/* "unrecognized error code" for what is no error of CUDA's. */
const char *fgv_error_name(cudaError_t error);
const char *fgv_error_text(cudaError_t error);

#endif
