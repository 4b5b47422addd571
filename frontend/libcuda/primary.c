/*
 * The primary contexts, which runtimes share with each other and with the program.
 */
#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult res = fgv_ctx_status();

	if (!res && !pctx)
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : fgv_ctx_retain(dev, pctx);
}

FGV_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return fgv_ctx_release(dev);
}

FGV_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return fgv_ctx_release(dev);
}

FGV_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return fgv_ctx_reset(dev);
}

FGV_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return fgv_ctx_reset(dev);
}

FGV_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_primary(dev, &context);

	return res ? res : fgv_ctx_set_flags(context, flags);
}

/* Before CUDA 11 flags could not be changed any more once they were in use. */
FGV_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_primary(dev, &context);

	if (!res && fgv_ctx_is_active(context))
		res = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	return res ? res : fgv_ctx_set_flags(context, flags);
}

FGV_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_primary(dev, &context);

	if (!res && (!flags || !active))
		res = CUDA_ERROR_INVALID_VALUE;
	if (res)
		return res;
	*flags = __atomic_load_n(&context->flags, __ATOMIC_RELAXED);
	*active = fgv_ctx_is_active(context);
	return CUDA_SUCCESS;
}
