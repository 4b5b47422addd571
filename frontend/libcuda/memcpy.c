/*
 * Copies between pointers. Those that return when they are done have forms of their own for the
 * thread's default stream.
 */
#include "frontend/cuda/memory/memcpy.h"

#include "frontend/libcuda/driver.h"

#define TO_DEVICE   FGV_MEMCPY_TO_DEVICE
#define FROM_DEVICE FGV_MEMCPY_FROM_DEVICE

static const void *from(CUdeviceptr address)
{
	return (const void *)(uintptr_t)address;
}

static void *to(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

static CUresult copy(void *dst, const void *src, size_t count, unsigned wanted, CUstream stream)
{
	return fgv_memcpy_run(dst, src, count, wanted, stream, true);
}

static CUresult copy_async(void *dst, const void *src, size_t count, unsigned wanted,
			   CUstream stream)
{
	return fgv_memcpy_run(dst, src, count, wanted, stream, false);
}

FGV_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return FGV_CALL(copy(to(dstDevice), srcHost, ByteCount, TO_DEVICE, CU_STREAM_LEGACY));
}

FGV_EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost,
					 size_t ByteCount)
{
	return FGV_CALL(copy(to(dstDevice), srcHost, ByteCount, TO_DEVICE, CU_STREAM_PER_THREAD));
}

FGV_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return FGV_CALL(copy(dstHost, from(srcDevice), ByteCount, FROM_DEVICE, CU_STREAM_LEGACY));
}

FGV_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return FGV_CALL(
		copy(dstHost, from(srcDevice), ByteCount, FROM_DEVICE, CU_STREAM_PER_THREAD));
}

FGV_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return FGV_CALL(copy(to(dstDevice), from(srcDevice), ByteCount, TO_DEVICE | FROM_DEVICE,
			     CU_STREAM_LEGACY));
}

FGV_EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
					 size_t ByteCount)
{
	return FGV_CALL(copy(to(dstDevice), from(srcDevice), ByteCount, TO_DEVICE | FROM_DEVICE,
			     CU_STREAM_PER_THREAD));
}

FGV_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return FGV_CALL(copy(to(dst), from(src), ByteCount, 0, CU_STREAM_LEGACY));
}

FGV_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return FGV_CALL(copy(to(dst), from(src), ByteCount, 0, CU_STREAM_PER_THREAD));
}

FGV_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost,
					 size_t ByteCount, CUstream hStream)
{
	return FGV_CALL(copy_async(to(dstDevice), srcHost, ByteCount, TO_DEVICE, hStream));
}

FGV_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
					 CUstream hStream)
{
	return FGV_CALL(copy_async(dstHost, from(srcDevice), ByteCount, FROM_DEVICE, hStream));
}

FGV_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
					 size_t ByteCount, CUstream hStream)
{
	return FGV_CALL(copy_async(to(dstDevice), from(srcDevice), ByteCount,
				   TO_DEVICE | FROM_DEVICE, hStream));
}

FGV_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
				  CUstream hStream)
{
	return FGV_CALL(copy_async(to(dst), from(src), ByteCount, 0, hStream));
}

/* Between two contexts, which share a device. */
static CUresult check_contexts(CUcontext one, CUcontext other)
{
	struct fgv_ctx *context;
	CUresult res = one && other ? fgv_ctx_find(one, &context) : CUDA_ERROR_INVALID_CONTEXT;

	return res ? res : fgv_ctx_find(other, &context);
}

static CUresult copy_peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			  CUcontext src_context, size_t count, CUstream stream)
{
	CUresult res = check_contexts(dst_context, src_context);

	return res ? res : copy_async(to(dst), from(src), count, TO_DEVICE | FROM_DEVICE, stream);
}

FGV_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
				 CUcontext srcContext, size_t ByteCount)
{
	return FGV_CALL(copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount,
				  CU_STREAM_LEGACY));
}

FGV_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext,
				      CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount)
{
	return FGV_CALL(copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount,
				  CU_STREAM_PER_THREAD));
}

FGV_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
				      CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
				      CUstream hStream)
{
	return FGV_CALL(
		copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream));
}
