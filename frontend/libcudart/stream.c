/*
 * Streams, their attributes, and the program's functions in them.
 */
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/host_func.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/cudart.h"

/* The same numbers and the same layout by other names. */
_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "attributes of streams");
_Static_assert((int)cudaLaunchAttributePriority == (int)CU_LAUNCH_ATTRIBUTE_PRIORITY,
	       "attributes of streams");

FGV_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	return FGV_RESULT(fgv_stream_create(pStream, CU_STREAM_DEFAULT, 0));
}

FGV_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	return FGV_RESULT(fgv_stream_create(pStream, flags, 0));
}

FGV_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
						    int priority)
{
	return FGV_RESULT(fgv_stream_create(pStream, flags, priority));
}

FGV_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return FGV_RESULT(fgv_stream_destroy(stream));
}

FGV_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return FGV_RESULT(fgv_stream_synchronize(stream));
}

FGV_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return FGV_RESULT(fgv_stream_query(stream));
}

FGV_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
					   unsigned int flags)
{
	return FGV_RESULT(fgv_event_wait(stream, event, flags));
}

FGV_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
	return FGV_RESULT(fgv_stream_get_flags(hStream, flags));
}

FGV_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
	return FGV_RESULT(fgv_stream_get_priority(hStream, priority));
}

FGV_EXPORT cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
	return FGV_RESULT(fgv_stream_get_id(hStream, streamId));
}

FGV_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
	return FGV_RESULT(fgv_stream_get_device(hStream, device));
}

FGV_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	CUresult res = fgv_context_need();

	if (!res && leastPriority)
		*leastPriority = FGV_STREAM_PRIORITY_LEAST;
	if (!res && greatestPriority)
		*greatestPriority = FGV_STREAM_PRIORITY_GREATEST;
	return FGV_RESULT(res);
}

FGV_EXPORT cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaStreamAttrID attr,
					      cudaStreamAttrValue *value_out)
{
	return FGV_RESULT(fgv_stream_get_attribute(hStream, (CUstreamAttrID)attr,
						   (CUstreamAttrValue *)value_out));
}

FGV_EXPORT cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaStreamAttrID attr,
					      const cudaStreamAttrValue *value)
{
	return FGV_RESULT(fgv_stream_set_attribute(hStream, (CUstreamAttrID)attr,
						   (const CUstreamAttrValue *)value));
}

FGV_EXPORT cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
	return FGV_RESULT(fgv_stream_copy_attributes(dst, src));
}

FGV_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	return FGV_RESULT(fgv_host_func_launch(stream, fn, userData));
}

FGV_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
					     void *userData, unsigned int flags)
{
	return FGV_RESULT(
		fgv_host_func_add_callback(stream, (CUstreamCallback)callback, userData, flags));
}
