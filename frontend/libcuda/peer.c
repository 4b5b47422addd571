/*
 * Peers: a session has one device so far, and no device is its own peer.
 */
#include "frontend/libcuda/driver.h"

static CUresult check_pair(CUdevice one, CUdevice other)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(one, &info);

	return res ? res : fgv_driver_device(other, &info);
}

FGV_EXPORT CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	CUresult res = check_pair(dev, peerDev);

	if (!res && !canAccessPeer)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*canAccessPeer = 0;
	return res;
}

FGV_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib,
					    CUdevice srcDevice, CUdevice dstDevice)
{
	CUresult res = fgv_ctx_status();

	if (!res && (!value || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
		     attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED))
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		res = check_pair(srcDevice, dstDevice);
	/* Of a pair of different devices alone. */
	return res ? res : CUDA_ERROR_INVALID_DEVICE;
}

FGV_EXPORT CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
						     const CUatomicOperation *operations,
						     unsigned int count, CUdevice srcDevice,
						     CUdevice dstDevice)
{
	CUresult res = fgv_ctx_status();

	(void)srcDevice, (void)dstDevice;
	if (!res && (!capabilities || !operations || !count))
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : CUDA_ERROR_INVALID_DEVICE;
}

/* The device of the context that would be reached; both contexts are of one device. */
static CUresult check_peer(CUcontext peer)
{
	struct fgv_ctx *current, *other;
	CUresult res = fgv_ctx_current(&current);

	if (!res)
		res = peer ? fgv_ctx_find(peer, &other) : CUDA_ERROR_INVALID_CONTEXT;
	return res;
}

FGV_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	CUresult res = check_peer(peerContext);

	if (!res && Flags)
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

FGV_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	CUresult res = check_peer(peerContext);

	return res ? res : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
