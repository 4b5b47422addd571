/*
 * Memory and events that programs share.
 */
#include "frontend/cuda/memory/ipc.h"

#include "frontend/cuda/stream/event.h"
#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	return FGV_CALL(fgv_ipc_get(pHandle, dptr));
}

FGV_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
					  unsigned int Flags)
{
	return FGV_CALL(fgv_ipc_open(pdptr, &handle, Flags));
}

FGV_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle,
				       unsigned int Flags)
{
	return FGV_CALL(fgv_ipc_open(pdptr, &handle, Flags));
}

FGV_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	return FGV_CALL(fgv_ipc_close(dptr));
}

FGV_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	return FGV_CALL(fgv_event_get_handle(pHandle, event));
}

FGV_EXPORT CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	return FGV_CALL(fgv_event_open_handle(phEvent, &handle));
}
