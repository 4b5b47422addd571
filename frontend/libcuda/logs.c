/*
 * The log of errors, as the program reads it.
 */
#include "frontend/cuda/context/errlog.h"

#include "frontend/libcuda/driver.h"

static CUresult listen(CUlogsCallback callback, void *data, CUlogsCallbackHandle *handle)
{
	struct fgv_errlog_listener *listener;

	if (!callback)
		return CUDA_ERROR_INVALID_VALUE;
	listener = fgv_errlog_listen(callback, data);
	if (!listener)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (handle)
		*handle = (CUlogsCallbackHandle)listener;
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
					   CUlogsCallbackHandle *callback_out)
{
	return fgv_driver_note(listen(callbackFunc, userData, callback_out), __func__);
}

FGV_EXPORT CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	int err = fgv_errlog_unlisten((struct fgv_errlog_listener *)callback);

	return fgv_driver_note(err ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, __func__);
}

FGV_EXPORT CUresult cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
	(void)flags; /* CUDA accepts any, too */
	if (!iterator_out)
		return fgv_driver_note(CUDA_ERROR_INVALID_VALUE, __func__);
	*iterator_out = fgv_errlog_end();
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile,
				     unsigned int flags)
{
	CUresult res =
		flags ? CUDA_ERROR_INVALID_VALUE : fgv_errlog_dump_to_file(iterator, pathToFile);

	return fgv_driver_note(res, __func__);
}

FGV_EXPORT CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size,
				       unsigned int flags)
{
	CUresult res = flags ? CUDA_ERROR_INVALID_VALUE
			     : fgv_errlog_dump_to_memory(iterator, buffer, size);

	return fgv_driver_note(res, __func__);
}
