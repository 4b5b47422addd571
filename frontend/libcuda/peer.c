/*
 * Peers, and what the device can do in common with others.
 */
#include "frontend/cuda/context/peer.h"

#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	return FGV_CALL_ANYWHERE(fgv_peer_can_access(canAccessPeer, dev, peerDev));
}

FGV_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib,
					    CUdevice srcDevice, CUdevice dstDevice)
{
	return FGV_CALL_ANYWHERE(fgv_peer_get_attribute(value, attrib, srcDevice, dstDevice));
}

FGV_EXPORT CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
						     const CUatomicOperation *operations,
						     unsigned int count, CUdevice srcDevice,
						     CUdevice dstDevice)
{
	(void)srcDevice, (void)dstDevice;
	return FGV_CALL_ANYWHERE(fgv_peer_get_atomics(capabilities, operations, count));
}

FGV_EXPORT CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
						      const CUatomicOperation *operations,
						      unsigned int count, CUdevice dev)
{
	return FGV_CALL_ANYWHERE(fgv_peer_get_host_atomics(capabilities, operations, count, dev));
}

FGV_EXPORT CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
					       CUflushGPUDirectRDMAWritesScope scope)
{
	return FGV_CALL(fgv_peer_flush_writes(target, scope));
}

/* The ordinal of the device of a context that is not the thread's. */
static CUresult find(CUcontext peer, int *ordinal)
{
	struct fgv_ctx *context;
	CUresult res = peer ? fgv_ctx_find(peer, &context) : CUDA_ERROR_INVALID_CONTEXT;

	if (!res)
		*ordinal = context->device;
	return res;
}

static CUresult enable(CUcontext peer, unsigned flags)
{
	int ordinal;
	CUresult res = find(peer, &ordinal);

	return res ? res : fgv_peer_enable(ordinal, flags);
}

FGV_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	return FGV_CALL(enable(peerContext, Flags));
}

static CUresult disable(CUcontext peer)
{
	int ordinal;
	CUresult res = find(peer, &ordinal);

	return res ? res : fgv_peer_disable(ordinal);
}

FGV_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	return FGV_CALL(disable(peerContext));
}
