/*
 * Preferences: how a multiprocessor's memory is divided between cache and shared memory, how
 * wide its banks are, what stays in the second cache. To the GPUs that FairGV runs on they are
 * hints, of which the program sees only what it asks for.
 */
#include "frontend/libcudart/cudart.h"

static bool is_bank_config(enum cudaSharedMemConfig config)
{
	return config == cudaSharedMemBankSizeDefault || config == cudaSharedMemBankSizeFourByte ||
	       config == cudaSharedMemBankSizeEightByte;
}

static cudaError_t check_function(const void *func)
{
	struct fgv_kernel *kernel;

	return fgv_kernel_of(func, &kernel);
}

FGV_EXPORT cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
	return FGV_RESULT(fgv_context_set_cache_config((CUfunc_cache)cacheConfig));
}

FGV_EXPORT cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
	return FGV_RESULT(fgv_context_get_cache_config((CUfunc_cache *)pCacheConfig));
}

FGV_EXPORT cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
	cudaError_t error = check_function(func);

	if (!error && !fgv_context_is_cache_config((CUfunc_cache)cacheConfig))
		error = cudaErrorInvalidValue;
	return fgv_error_set(error);
}

/* Banks have been four bytes wide since CUDA's fifth generation of devices. */
FGV_EXPORT cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	return fgv_error_set(is_bank_config(config) ? fgv_error_from(fgv_context_need())
						    : cudaErrorInvalidValue);
}

FGV_EXPORT cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
	cudaError_t error = pConfig ? fgv_error_from(fgv_context_need()) : cudaErrorInvalidValue;

	if (!error)
		*pConfig = cudaSharedMemBankSizeFourByte;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	cudaError_t error = check_function(func);

	if (!error && !is_bank_config(config))
		error = cudaErrorInvalidValue;
	return fgv_error_set(error);
}

/* Nothing of this program persists there beyond its turn. */
FGV_EXPORT cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	return FGV_RESULT(fgv_context_need());
}
