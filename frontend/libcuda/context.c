/*
 * Contexts that programs create, each thread's stack of them, and what can be asked about them.
 */
#include "frontend/cuda/context/context.h"
#include "frontend/libcuda/driver.h"

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, uint32_t api_version)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(dev, &info);

	if (!res && (!pctx || !fgv_ctx_are_flags(flags)))
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : fgv_ctx_create(dev, flags, api_version, pctx);
}

FGV_EXPORT CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev, FGV_CTX_API_OLD);
}

FGV_EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev, FGV_CTX_API);
}

/* A part of the processors can be had by clients of an MPS server only. */
FGV_EXPORT CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
				   unsigned int flags, CUdevice dev)
{
	if (numParams < 0 || (numParams && !paramsArray))
		return CUDA_ERROR_INVALID_VALUE;
	if (numParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return create(pctx, flags, dev, FGV_CTX_API);
}

FGV_EXPORT CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
				   unsigned int flags, CUdevice dev)
{
	if (ctxCreateParams && ctxCreateParams->cigParams)
		return FGV_UNSUPPORTED("cuCtxCreate (shared with graphics)");
	if (ctxCreateParams)
		return cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
				      ctxCreateParams->numExecAffinityParams, flags, dev);
	return create(pctx, flags, dev, FGV_CTX_API);
}

static CUresult destroy(CUcontext ctx)
{
	CUresult res = fgv_ctx_status();

	return res ? res : fgv_ctx_destroy(ctx);
}

FGV_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	return destroy(ctx);
}

FGV_EXPORT CUresult cuCtxDestroy(CUcontext ctx)
{
	return destroy(ctx);
}

FGV_EXPORT CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_current(&context);

	if (!res && (!pctx || flags))
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		res = fgv_ctx_attach(context);
	if (!res)
		*pctx = context->handle;
	return res;
}

FGV_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
	CUresult res = fgv_ctx_status();

	return res ? res : fgv_ctx_detach(ctx);
}

static CUresult push(CUcontext ctx)
{
	CUresult res = fgv_ctx_status();

	return res ? res : fgv_ctx_push(ctx);
}

FGV_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	return push(ctx);
}

FGV_EXPORT CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return push(ctx);
}

static CUresult pop(CUcontext *pctx)
{
	CUresult res = fgv_ctx_status();

	return res ? res : fgv_ctx_pop(pctx);
}

FGV_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	return pop(pctx);
}

FGV_EXPORT CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return pop(pctx);
}

FGV_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult res = fgv_ctx_status();

	return res ? res : fgv_ctx_set(ctx);
}

FGV_EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult res = fgv_ctx_status();

	if (!res && !pctx)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*pctx = fgv_ctx_top();
	return res;
}

/*
 * The context that a program names, or NULL for the thread's, which must be usable. A primary one
 * that is named need not be active.
 */
static CUresult find(CUcontext ctx, struct fgv_ctx **context)
{
	CUresult res;

	if (!ctx)
		return fgv_ctx_current(context);
	res = fgv_ctx_status();
	return res ? res : fgv_ctx_find(ctx, context);
}

static CUresult get_device(CUdevice *device, CUcontext ctx)
{
	struct fgv_ctx *context;
	CUresult res = find(ctx, &context);

	if (!res && !device)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*device = context->device;
	return res;
}

FGV_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	return get_device(device, NULL);
}

FGV_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	return get_device(device, ctx);
}

static CUresult synchronize(CUcontext ctx)
{
	struct fgv_ctx *context;
	CUresult res = find(ctx, &context);

	if (!res && !fgv_ctx_is_active(context))
		res = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return res ? res : fgv_context_synchronize();
}

FGV_EXPORT CUresult cuCtxSynchronize(void)
{
	return FGV_CALL(fgv_context_synchronize());
}

FGV_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	return fgv_driver_note(synchronize(ctx), __func__);
}

FGV_EXPORT CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct fgv_ctx *context;
	CUresult res = find(ctx, &context);

	if (!res && !ctxId)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*ctxId = context->id;
	return res;
}

FGV_EXPORT CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct fgv_ctx *context;
	CUresult res = find(ctx, &context);

	if (!res && !version)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*version = context->api_version;
	return res;
}
