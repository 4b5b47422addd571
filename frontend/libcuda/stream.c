/*
 * Streams.
 */
#include "frontend/cuda/stream/stream.h"

#include "frontend/cuda/stream/host_func.h"
#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return FGV_CALL(fgv_stream_create(phStream, Flags, FGV_STREAM_PRIORITY_LEAST));
}

FGV_EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	return FGV_CALL(fgv_stream_create(phStream, flags, priority));
}

FGV_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream)
{
	return FGV_CALL_ON(hStream, fgv_stream_destroy(hStream));
}

FGV_EXPORT CUresult cuStreamDestroy(CUstream hStream)
{
	return FGV_CALL_ON(hStream, fgv_stream_destroy(hStream));
}

static CUresult get_range(int *least, int *greatest)
{
	if (least)
		*least = FGV_STREAM_PRIORITY_LEAST;
	if (greatest)
		*greatest = FGV_STREAM_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	return FGV_CALL(get_range(leastPriority, greatestPriority));
}

FGV_EXPORT CUresult cuStreamSynchronize(CUstream hStream)
{
	return FGV_CALL_ON(hStream, fgv_stream_synchronize(hStream));
}

FGV_EXPORT CUresult cuStreamQuery(CUstream hStream)
{
	return FGV_CALL_ON(hStream, fgv_stream_query(hStream));
}

FGV_EXPORT CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	return FGV_CALL_ON(hStream, fgv_stream_get_flags(hStream, flags));
}

FGV_EXPORT CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	return FGV_CALL_ON(hStream, fgv_stream_get_priority(hStream, priority));
}

FGV_EXPORT CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	return FGV_CALL_ON(hStream, fgv_stream_get_id(hStream, streamId));
}

FGV_EXPORT CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	return FGV_CALL_ON(hStream, fgv_stream_get_device(hStream, device));
}

FGV_EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	return FGV_CALL_ON(hStream, fgv_stream_get_context(hStream, pctx));
}

/* There are no green contexts, so the stream is of none. */
FGV_EXPORT CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	CUresult res = FGV_CALL_ON(hStream, fgv_stream_get_context(hStream, pCtx));

	if (!res && pGreenCtx)
		*pGreenCtx = NULL;
	return res;
}

FGV_EXPORT CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
					 CUstreamAttrValue *value)
{
	return FGV_CALL(fgv_stream_get_attribute(hStream, attr, value));
}

FGV_EXPORT CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
					 const CUstreamAttrValue *param)
{
	return FGV_CALL(fgv_stream_set_attribute(hStream, attr, param));
}

FGV_EXPORT CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
	return FGV_CALL(fgv_stream_copy_attributes(dstStream, srcStream));
}

FGV_EXPORT CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	return FGV_CALL(fgv_host_func_launch(hStream, fn, userData));
}

FGV_EXPORT CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
					unsigned int flags)
{
	return FGV_CALL(fgv_host_func_add_callback(hStream, callback, userData, flags));
}
