/*
 * Copies of boxes and of arrays. Those that return when they are done have forms of their own for
 * the thread's default stream.
 */
#include "frontend/cuda/memory/box.h"

#include "frontend/libcuda/driver.h"

static CUresult copy(const CUDA_MEMCPY3D *box, CUstream stream, bool wait)
{
	return box ? fgv_box_copy(box, (struct fgv_when){stream, wait}) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *rectangle, CUstream stream, bool wait)
{
	CUDA_MEMCPY3D box;

	if (!rectangle)
		return CUDA_ERROR_INVALID_VALUE;
	box = fgv_box_of_2d(rectangle);
	return copy(&box, stream, wait);
}

/* The contexts share a device. */
static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool wait)
{
	CUDA_MEMCPY3D box;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	box = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcLOD = p->srcLOD,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth,
	};
	return copy(&box, stream, wait);
}

/* Bytes of a row of an array, of one dimension, on one side; linear memory on the other. */
static CUresult copy_row(CUDA_MEMCPY3D box, size_t bytes, CUstream stream, bool wait)
{
	box.WidthInBytes = bytes;
	box.Height = 1;
	box.Depth = 1;
	return bytes ? copy(&box, stream, wait) : CUDA_SUCCESS;
}

#define FROM_ARRAY(array, offset)                                                                  \
	.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = (array), .srcXInBytes = (offset)
#define TO_ARRAY(array, offset)                                                                    \
	.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = (array), .dstXInBytes = (offset)
#define FROM_DEVICE(address) .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = (address)
#define TO_DEVICE(address)   .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = (address)
#define FROM_HOST(address)   .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = (address)
#define TO_HOST(address)     .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = (address)

FGV_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return FGV_CALL(copy_2d(pCopy, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	return FGV_CALL(copy_2d(pCopy, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return FGV_CALL(copy_2d(pCopy, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	return FGV_CALL(copy_2d(pCopy, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return FGV_CALL(copy_2d(pCopy, hStream, false));
}

FGV_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return FGV_CALL(copy(pCopy, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy)
{
	return FGV_CALL(copy(pCopy, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return FGV_CALL(copy(pCopy, hStream, false));
}

FGV_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return FGV_CALL(copy_peer(pCopy, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return FGV_CALL(copy_peer(pCopy, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return FGV_CALL(copy_peer(pCopy, hStream, false));
}

FGV_EXPORT CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
				    size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_DEVICE(srcDevice)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpyDtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
					 size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_DEVICE(srcDevice)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
				    size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_DEVICE(dstDevice), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
					 size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_DEVICE(dstDevice), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
				    size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_HOST(srcHost)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpyHtoA_v2_ptds(CUarray dstArray, size_t dstOffset, const void *srcHost,
					 size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_HOST(srcHost)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
				    size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_HOST(dstHost), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpyAtoH_v2_ptds(void *dstHost, CUarray srcArray, size_t srcOffset,
					 size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_HOST(dstHost), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray,
				    size_t srcOffset, size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemcpyAtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUarray srcArray,
					 size_t srcOffset, size_t ByteCount)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
					 size_t ByteCount, CUstream hStream)
{
	const CUDA_MEMCPY3D box = {TO_ARRAY(dstArray, dstOffset), FROM_HOST(srcHost)};

	return FGV_CALL(copy_row(box, ByteCount, hStream, false));
}

FGV_EXPORT CUresult cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
					 size_t ByteCount, CUstream hStream)
{
	const CUDA_MEMCPY3D box = {TO_HOST(dstHost), FROM_ARRAY(srcArray, srcOffset)};

	return FGV_CALL(copy_row(box, ByteCount, hStream, false));
}
