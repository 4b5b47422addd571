/*
 * What the device can do beyond what its attributes tell.
 */
#include "frontend/cuda/context/device.h"
#include "frontend/libcudart/cudart.h"

static cudaError_t host_atomics(unsigned *capabilities, const enum cudaAtomicOperation *operations,
				unsigned count)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	for (unsigned i = 0; i < count && !error; i++)
		error = fgv_error_from(
			fgv_call_host_atomics(lane, (uint32_t)operations[i], &capabilities[i]));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceGetHostAtomicCapabilities(
	unsigned int *capabilities, const enum cudaAtomicOperation *operations, unsigned int count,
	int device)
{
	cudaError_t error = cudaErrorInvalidValue;

	if (capabilities && operations && count)
		error = fgv_device_check(device);
	if (!error)
		error = host_atomics(capabilities, operations, count);
	return fgv_error_set(error);
}

/* There is no link of the one device to itself. */
FGV_EXPORT cudaError_t cudaDeviceGetP2PAtomicCapabilities(
	unsigned int *capabilities, const enum cudaAtomicOperation *operations, unsigned int count,
	int srcDevice, int dstDevice)
{
	(void)srcDevice, (void)dstDevice;
	if (!capabilities || !operations || !count)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(cudaErrorInvalidDevice);
}

static cudaError_t flush_writes(enum cudaFlushGPUDirectRDMAWritesTarget target,
				enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	if (target != cudaFlushGPUDirectRDMAWritesTargetCurrentDevice ||
	    (scope != cudaFlushGPUDirectRDMAWritesToOwner &&
	     scope != cudaFlushGPUDirectRDMAWritesToAllDevices))
		return cudaErrorInvalidValue;
	return fgv_device_check(fgv_context_get_device());
}

/* No other device writes to a session's memory, and the device's attributes say so. */
FGV_EXPORT cudaError_t
cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
				   enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	cudaError_t error = flush_writes(target, scope);

	return fgv_error_set(error ? error : cudaErrorNotSupported);
}
