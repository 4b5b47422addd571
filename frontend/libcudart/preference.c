/*
 * Preferences: how a multiprocessor's memory is divided between cache and shared memory, how
 * wide its banks are, what stays in the second cache. To the GPUs that FairGV runs on they are
 * hints, of which the program sees only what it asks for: they are remembered here.
 */
#include "frontend/libcudart/cudart.h"

/* As it was set; atomic. */
static uint32_t cache_config = cudaFuncCachePreferNone;

static bool is_cache_config(enum cudaFuncCache config)
{
	return config == cudaFuncCachePreferNone || config == cudaFuncCachePreferShared ||
	       config == cudaFuncCachePreferL1 || config == cudaFuncCachePreferEqual;
}

static bool is_bank_config(enum cudaSharedMemConfig config)
{
	return config == cudaSharedMemBankSizeDefault || config == cudaSharedMemBankSizeFourByte ||
	       config == cudaSharedMemBankSizeEightByte;
}

/* What concerns the device needs one. */
static cudaError_t check_device(void)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (!error)
		fgv_lane_leave(lane);
	return error;
}

static cudaError_t check_function(const void *func)
{
	struct fgv_kernel *kernel;

	return fgv_kernel_of(func, &kernel);
}

static cudaError_t set_cache_config(enum cudaFuncCache config)
{
	cudaError_t error;

	if (!is_cache_config(config))
		return cudaErrorInvalidValue;
	error = check_device();
	if (!error)
		__atomic_store_n(&cache_config, (uint32_t)config, __ATOMIC_RELAXED);
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
	return fgv_error_set(set_cache_config(cacheConfig));
}

FGV_EXPORT cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
	cudaError_t error = pCacheConfig ? check_device() : cudaErrorInvalidValue;

	if (!error)
		*pCacheConfig =
			(enum cudaFuncCache)__atomic_load_n(&cache_config, __ATOMIC_RELAXED);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
	cudaError_t error = check_function(func);

	if (!error && !is_cache_config(cacheConfig))
		error = cudaErrorInvalidValue;
	return fgv_error_set(error);
}

/* Banks have been four bytes wide since CUDA's fifth generation of devices. */
FGV_EXPORT cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	return fgv_error_set(is_bank_config(config) ? check_device() : cudaErrorInvalidValue);
}

FGV_EXPORT cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
	cudaError_t error = pConfig ? check_device() : cudaErrorInvalidValue;

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
	return fgv_error_set(check_device());
}
