/*
 * Values in memory, in the order of a stream. What the second versions do otherwise than the first
 * is what is always done here.
 */
#include "frontend/cuda/stream/value.h"

#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					   unsigned int flags)
{
	const struct fgv_value wanted = {addr, value, 4, flags};

	return FGV_CALL(fgv_value_wait(&wanted, stream));
}

FGV_EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

FGV_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					   unsigned int flags)
{
	const struct fgv_value wanted = {addr, value, 8, flags};

	return FGV_CALL(fgv_value_wait(&wanted, stream));
}

FGV_EXPORT CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					unsigned int flags)
{
	return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

FGV_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					    unsigned int flags)
{
	const struct fgv_value wanted = {addr, value, 4, flags};

	return FGV_CALL(fgv_value_write(&wanted, stream));
}

FGV_EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					 unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

FGV_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					    unsigned int flags)
{
	const struct fgv_value wanted = {addr, value, 8, flags};

	return FGV_CALL(fgv_value_write(&wanted, stream));
}

FGV_EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					 unsigned int flags)
{
	return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

FGV_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
					  CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return FGV_CALL(fgv_value_batch(paramArray, count, flags, stream));
}

FGV_EXPORT CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
				       CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
