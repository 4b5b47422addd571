/*
 * Peers, and copies between devices.
 */
#include "frontend/cuda/context/peer.h"

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"

/* The same numbers by other names. */
_Static_assert((int)cudaDevP2PAttrOnlyPartialNativeAtomicSupported ==
			       CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED &&
		       (int)cudaFlushGPUDirectRDMAWritesToAllDevices ==
			       CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES &&
		       sizeof(enum cudaAtomicOperation) == sizeof(CUatomicOperation),
	       "peers");

FGV_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
	return FGV_RESULT(fgv_peer_can_access(canAccessPeer, device, peerDevice));
}

FGV_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	return FGV_RESULT(fgv_peer_enable(peerDevice, flags));
}

FGV_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
	return FGV_RESULT(fgv_peer_disable(peerDevice));
}

FGV_EXPORT cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr,
						 int srcDevice, int dstDevice)
{
	return FGV_RESULT(
		fgv_peer_get_attribute(value, (CUdevice_P2PAttribute)attr, srcDevice, dstDevice));
}

FGV_EXPORT cudaError_t cudaDeviceGetP2PAtomicCapabilities(
	unsigned int *capabilities, const enum cudaAtomicOperation *operations, unsigned int count,
	int srcDevice, int dstDevice)
{
	(void)srcDevice, (void)dstDevice;
	return FGV_RESULT(
		fgv_peer_get_atomics(capabilities, (const CUatomicOperation *)operations, count));
}

FGV_EXPORT cudaError_t cudaDeviceGetHostAtomicCapabilities(
	unsigned int *capabilities, const enum cudaAtomicOperation *operations, unsigned int count,
	int device)
{
	return FGV_RESULT(fgv_peer_get_host_atomics(
		capabilities, (const CUatomicOperation *)operations, count, device));
}

FGV_EXPORT cudaError_t
cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
				   enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	return FGV_RESULT(fgv_peer_flush_writes((CUflushGPUDirectRDMAWritesTarget)target,
						(CUflushGPUDirectRDMAWritesScope)scope));
}

static cudaError_t copy(void *dst, int to, const void *src, int from, size_t count,
			cudaStream_t stream)
{
	cudaError_t error = fgv_error_from(fgv_peer_check(to, from));

	return error ? error : fgv_memcpy(dst, src, count, cudaMemcpyDefault, stream);
}

/* Behind and before all work of both devices. */
static cudaError_t copy_in_order(void *dst, int to, const void *src, int from, size_t count)
{
	cudaError_t error = fgv_error_from(fgv_peer_check(to, from));

	return error ? error : fgv_memcpy_wait(dst, src, count, cudaMemcpyDefault, NULL);
}

FGV_EXPORT cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
				      size_t count)
{
	return fgv_error_set(copy_in_order(dst, dstDevice, src, srcDevice, count));
}

FGV_EXPORT cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
					   size_t count, cudaStream_t stream)
{
	return fgv_error_set(copy(dst, dstDevice, src, srcDevice, count, stream));
}

/* The pointers and arrays say where they lie. */
static cudaError_t copy_box(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	struct cudaMemcpy3DParms box;
	cudaError_t error;

	if (!p)
		return cudaErrorInvalidValue;
	error = fgv_error_from(fgv_peer_check(p->dstDevice, p->srcDevice));
	if (error)
		return error;
	box = (struct cudaMemcpy3DParms){
		.srcArray = p->srcArray,
		.srcPos = p->srcPos,
		.srcPtr = p->srcPtr,
		.dstArray = p->dstArray,
		.dstPos = p->dstPos,
		.dstPtr = p->dstPtr,
		.extent = p->extent,
		.kind = cudaMemcpyDefault,
	};
	return cudaMemcpy3DAsync(&box, stream);
}

FGV_EXPORT cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	return fgv_error_set(copy_box(p, NULL));
}

FGV_EXPORT cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p,
					     cudaStream_t stream)
{
	return fgv_error_set(copy_box(p, stream));
}
