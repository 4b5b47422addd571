/*
 * Settings of the thread's context. Those of caches and waiting are hints, which are kept.
 */
#include "frontend/cuda/context/limit.h"
#include "frontend/libcuda/driver.h"

/* @wanted: where a result goes, or NULL, which is no place. */
static CUresult find(const void *wanted, struct fgv_ctx **context)
{
	CUresult res = fgv_ctx_current(context);

	return res || wanted ? res : CUDA_ERROR_INVALID_VALUE;
}

FGV_EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct fgv_ctx *context;
	CUresult res = find(flags, &context);

	if (!res)
		*flags = __atomic_load_n(&context->flags, __ATOMIC_RELAXED);
	return res;
}

FGV_EXPORT CUresult cuCtxSetFlags(unsigned int flags)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_current(&context);

	return res ? res : fgv_ctx_set_flags(context, flags);
}

FGV_EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	struct fgv_ctx *context;
	CUresult res = find(pconfig, &context);

	if (!res)
		*pconfig = (CUfunc_cache)__atomic_load_n(&context->cache, __ATOMIC_RELAXED);
	return res;
}

FGV_EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_current(&context);

	if (!res && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		__atomic_store_n(&context->cache, (uint32_t)config, __ATOMIC_RELAXED);
	return res;
}

FGV_EXPORT CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	struct fgv_ctx *context;
	CUresult res = find(pConfig, &context);

	if (!res)
		*pConfig = (CUsharedconfig)__atomic_load_n(&context->banks, __ATOMIC_RELAXED);
	return res;
}

/* No GPU of today has another width of banks than four bytes: asked for, it stays as it is. */
FGV_EXPORT CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_current(&context);

	if (!res && (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		res = CUDA_ERROR_INVALID_VALUE;
	return res;
}

FGV_EXPORT CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity,
					 CUexecAffinityType type)
{
	struct fgv_ctx *context;
	CUresult res = find(type < CU_EXEC_AFFINITY_TYPE_MAX ? pExecAffinity : NULL, &context);

	return res ? res : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

FGV_EXPORT CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	return FGV_CALL(fgv_limit_get(limit, pvalue));
}

FGV_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	return FGV_CALL(fgv_limit_set(limit, value));
}

/* Nothing of this program persists in the second cache beyond its turn. */
FGV_EXPORT CUresult cuCtxResetPersistingL2Cache(void)
{
	return FGV_CALL(CUDA_SUCCESS);
}
