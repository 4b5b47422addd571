/*
 * The runtime's error functions. None of them asks the GPU.
 */
#include <cuda_profiler_api.h>

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/thread.h"

FGV_EXPORT cudaError_t cudaGetLastError(void)
{
	cudaError_t last = fgv_cudart_self.last_error;

	fgv_cudart_self.last_error = cudaSuccess;
	return last;
}

FGV_EXPORT cudaError_t cudaPeekAtLastError(void)
{
	return fgv_cudart_self.last_error;
}

FGV_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	return fgv_error_name(error);
}

FGV_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	return fgv_error_text(error);
}

/* What a profiler sees is the vGPU process; nothing to start here. */
FGV_EXPORT cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
