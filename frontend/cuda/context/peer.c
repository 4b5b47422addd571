/*
 * The answers of a machine whose devices do not reach each other's memory.
 */
#include "frontend/cuda/context/peer.h"

#include "frontend/cuda/context/context.h"

static CUresult check(int device)
{
	const struct fgv_device_info *info;

	return fgv_context_find_device(device, &info);
}

CUresult fgv_peer_check(int one, int other)
{
	CUresult res = check(one);

	return res ? res : check(other);
}

/* No device is its own peer, nor has it others: copies between them go through the program. */
CUresult fgv_peer_can_access(int *can, int device, int peer)
{
	CUresult res = can ? fgv_peer_check(device, peer) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*can = 0;
	return res;
}

CUresult fgv_peer_enable(int peer, unsigned flags)
{
	CUresult res =
		flags ? CUDA_ERROR_INVALID_VALUE : fgv_peer_check(fgv_context_get_device(), peer);

	return res ? res : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

CUresult fgv_peer_disable(int peer)
{
	CUresult res = fgv_peer_check(fgv_context_get_device(), peer);

	return res ? res : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult fgv_peer_get_attribute(int *value, CUdevice_P2PAttribute attribute, int from, int to)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (value && attribute >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
	    attribute <= CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		res = fgv_peer_check(from, to);
	if (!res && from == to)
		res = CUDA_ERROR_INVALID_DEVICE;
	if (!res)
		*value = 0;
	return res;
}

/* There is no link between devices. */
CUresult fgv_peer_get_atomics(unsigned *capabilities, const CUatomicOperation *operations,
			      unsigned count)
{
	return capabilities && operations && count ? CUDA_ERROR_INVALID_DEVICE
						   : CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_peer_get_host_atomics(unsigned *capabilities, const CUatomicOperation *operations,
				   unsigned count, int device)
{
	struct fgv_lane *lane;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (capabilities && operations && count)
		res = check(device);
	if (!res)
		res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	for (unsigned i = 0; i < count && !res; i++)
		res = fgv_call_host_atomics(lane, (uint32_t)operations[i], &capabilities[i]);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_peer_flush_writes(CUflushGPUDirectRDMAWritesTarget target,
			       CUflushGPUDirectRDMAWritesScope scope)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
	    (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
	     scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
		res = check(fgv_context_get_device());
	return res ? res : CUDA_ERROR_NOT_SUPPORTED;
}
