/*
 * The log of errors, as the program reads it.
 */
#include "frontend/cuda/context/errlog.h"
#include "frontend/libcudart/cudart.h"

FGV_EXPORT cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void *userData,
						cudaLogsCallbackHandle *callback_out)
{
	struct fgv_errlog_listener *listener;

	if (!callbackFunc)
		return fgv_error_set(cudaErrorInvalidValue);
	listener = fgv_errlog_listen((CUlogsCallback)callbackFunc, userData);
	if (!listener)
		return fgv_error_set(cudaErrorMemoryAllocation);
	if (callback_out)
		*callback_out = (cudaLogsCallbackHandle)listener;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback)
{
	if (fgv_errlog_unlisten((struct fgv_errlog_listener *)callback))
		return fgv_error_set(cudaErrorInvalidValue);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsCurrent(cudaLogIterator *iterator_out, unsigned int flags)
{
	(void)flags; /* CUDA accepts any, too */
	if (!iterator_out)
		return fgv_error_set(cudaErrorInvalidValue);
	*iterator_out = fgv_errlog_end();
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *pathToFile,
					  unsigned int flags)
{
	return FGV_RESULT(flags ? CUDA_ERROR_INVALID_VALUE
				: fgv_errlog_dump_to_file(iterator, pathToFile));
}

FGV_EXPORT cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size,
					    unsigned int flags)
{
	return FGV_RESULT(flags ? CUDA_ERROR_INVALID_VALUE
				: fgv_errlog_dump_to_memory(iterator, buffer, size));
}
