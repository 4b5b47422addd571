/*
 * Peers: a session has one device, so these are the answers of a machine with one.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"

static cudaError_t check_pair(int one, int other)
{
	cudaError_t error = fgv_device_check(one);

	return error ? error : fgv_device_check(other);
}

/* No device is its own peer. */
static cudaError_t can_access(int *can, int device, int peer)
{
	cudaError_t error = can ? check_pair(device, peer) : cudaErrorInvalidValue;

	if (!error)
		*can = 0;
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
	return fgv_error_set(can_access(canAccessPeer, device, peerDevice));
}

FGV_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	cudaError_t error =
		flags ? cudaErrorInvalidValue : check_pair(fgv_context_get_device(), peerDevice);

	/* Only the device itself passes for one. */
	return fgv_error_set(error ? error : cudaErrorPeerAccessUnsupported);
}

FGV_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
	cudaError_t error = check_pair(fgv_context_get_device(), peerDevice);

	return fgv_error_set(error ? error : cudaErrorPeerAccessNotEnabled);
}

FGV_EXPORT cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr,
						 int srcDevice, int dstDevice)
{
	cudaError_t error = cudaErrorInvalidValue;

	if (value && attr >= cudaDevP2PAttrPerformanceRank &&
	    attr <= cudaDevP2PAttrOnlyPartialNativeAtomicSupported)
		error = check_pair(srcDevice, dstDevice);
	/* Of a pair of different devices alone. */
	return fgv_error_set(error ? error : cudaErrorInvalidDevice);
}

static cudaError_t copy(void *dst, int to, const void *src, int from, size_t count,
			cudaStream_t stream)
{
	cudaError_t error = check_pair(to, from);

	return error ? error : fgv_memcpy(dst, src, count, cudaMemcpyDefault, stream);
}

FGV_EXPORT cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
				      size_t count)
{
	return fgv_error_set(copy(dst, dstDevice, src, srcDevice, count, NULL));
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
	error = check_pair(p->dstDevice, p->srcDevice);
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
