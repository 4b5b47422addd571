/*
 * Events.
 */
#include "frontend/cuda/stream/event.h"
#include "frontend/libcudart/cudart.h"

FGV_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return FGV_RESULT(fgv_event_create(event, CU_EVENT_DEFAULT));
}

FGV_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return FGV_RESULT(fgv_event_create(event, flags));
}

FGV_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return FGV_RESULT(fgv_event_destroy(event));
}

FGV_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return FGV_RESULT(fgv_event_record(event, stream, CU_EVENT_RECORD_DEFAULT));
}

FGV_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
						unsigned int flags)
{
	return FGV_RESULT(fgv_event_record(event, stream, flags));
}

FGV_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return FGV_RESULT(fgv_event_synchronize(event));
}

FGV_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return FGV_RESULT(fgv_event_query(event));
}

FGV_EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return FGV_RESULT(fgv_event_elapsed(ms, start, end));
}
