/*
 * Memory and events that programs share.
 */
#include "frontend/cuda/memory/ipc.h"

#include <string.h>

#include "frontend/cuda/stream/event.h"
#include "frontend/libcudart/cudart.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "the driver's");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "the driver's");

FGV_EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	return FGV_RESULT(
		fgv_ipc_get((CUipcMemHandle *)(void *)handle, (CUdeviceptr)(uintptr_t)devPtr));
}

FGV_EXPORT cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
					    unsigned int flags)
{
	CUipcMemHandle as_driver;

	memcpy(&as_driver, &handle, sizeof(as_driver));
	return FGV_RESULT(fgv_ipc_open((CUdeviceptr *)(void *)devPtr, &as_driver, flags));
}

FGV_EXPORT cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	return FGV_RESULT(fgv_ipc_close((CUdeviceptr)(uintptr_t)devPtr));
}

FGV_EXPORT cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	return FGV_RESULT(fgv_event_get_handle((CUipcEventHandle *)(void *)handle, event));
}

FGV_EXPORT cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle as_driver;

	memcpy(&as_driver, &handle, sizeof(as_driver));
	return FGV_RESULT(fgv_event_open_handle(event, &as_driver));
}
