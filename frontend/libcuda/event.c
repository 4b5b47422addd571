/*
 * Events. Those that there are know their context.
 */
#include "frontend/cuda/stream/event.h"

#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	return FGV_CALL(fgv_event_create(phEvent, Flags));
}

FGV_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent)
{
	return FGV_CALL_ANYWHERE(fgv_event_destroy(hEvent));
}

FGV_EXPORT CUresult cuEventDestroy(CUevent hEvent)
{
	return FGV_CALL_ANYWHERE(fgv_event_destroy(hEvent));
}

FGV_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return FGV_CALL(fgv_event_record(hEvent, hStream, CU_EVENT_RECORD_DEFAULT));
}

FGV_EXPORT CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	return FGV_CALL(fgv_event_record(hEvent, hStream, flags));
}

FGV_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	return FGV_CALL(fgv_event_wait(hStream, hEvent, Flags));
}

FGV_EXPORT CUresult cuEventQuery(CUevent hEvent)
{
	return FGV_CALL_ANYWHERE(fgv_event_query(hEvent));
}

FGV_EXPORT CUresult cuEventSynchronize(CUevent hEvent)
{
	return FGV_CALL_ANYWHERE(fgv_event_synchronize(hEvent));
}

FGV_EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return FGV_CALL_ANYWHERE(fgv_event_elapsed(pMilliseconds, hStart, hEnd));
}

FGV_EXPORT CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return FGV_CALL_ANYWHERE(fgv_event_elapsed(pMilliseconds, hStart, hEnd));
}
