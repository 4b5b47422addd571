/*
 * Which devices reach which. What they can the host knows; what is enabled is kept here as well, as
 * copies go other ways then (memory/memcpy.c). The host has one access for all of a peer's memory,
 * which is there as long as the program has enabled it, or has given it to memory of the peer's.
 */
#include "frontend/cuda/context/peer.h"

#include <pthread.h>

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"

static struct {
	pthread_mutex_t mutex;		   /* over what the host is told; outside of lanes */
	uint32_t reached[FGV_DEVICES_MAX]; /* atomic: bits of the devices that this one reaches */
	uint32_t enabled[FGV_DEVICES_MAX]; /* the mutex's: because the program said so, */
	uint32_t granted[FGV_DEVICES_MAX]; /* and for memory that it was given access to */
} peers = {.mutex = PTHREAD_MUTEX_INITIALIZER};

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

bool fgv_peer_is_enabled(uint32_t device, uint32_t peer)
{
	return device < FGV_DEVICES_MAX &&
	       __atomic_load_n(&peers.reached[device], __ATOMIC_ACQUIRE) >> peer & 1;
}

uint32_t fgv_peer_accessors(uint32_t device)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < FGV_DEVICES_MAX; i++)
		set |= (uint32_t)fgv_peer_is_enabled(i, device) << i;
	return set;
}

static CUresult ask(int device, int peer, CUdevice_P2PAttribute attribute, int *value)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on((uint32_t)device, &lane);

	if (res)
		return res;
	res = fgv_call_peer_attribute(lane, (uint32_t)peer, (uint32_t)attribute, value);
	fgv_lane_leave(lane);
	return res;
}

/* No device is its own peer. */
CUresult fgv_peer_can_access(int *can, int device, int peer)
{
	CUresult res = can ? fgv_peer_check(device, peer) : CUDA_ERROR_INVALID_VALUE;
	int value = 0;

	if (!res && device != peer)
		res = ask(device, peer, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, &value);
	if (!res)
		*can = value;
	return res;
}

/* @sets: of all devices, those that say why. */
static CUresult reach_locked(uint32_t device, uint32_t peer, uint32_t *sets)
{
	struct fgv_lane *lane;
	CUresult res = CUDA_SUCCESS;

	if (!fgv_peer_is_enabled(device, peer)) {
		res = fgv_context_enter_on(device, &lane);
		if (res)
			return res;
		res = fgv_call_peer_enable(lane, peer);
		fgv_lane_leave(lane);
	}
	if (res)
		return res;
	sets[device] |= 1u << peer;
	__atomic_fetch_or(&peers.reached[device], 1u << peer, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static CUresult enable_locked(uint32_t device, uint32_t peer)
{
	if (peers.enabled[device] >> peer & 1)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	return reach_locked(device, peer, peers.enabled);
}

CUresult fgv_peer_enable(int peer, unsigned flags)
{
	int device = fgv_context_get_device(), can = 0;
	CUresult res = flags ? CUDA_ERROR_INVALID_VALUE : fgv_peer_can_access(&can, device, peer);

	if (!res && !can)
		res = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (res)
		return res;
	pthread_mutex_lock(&peers.mutex);
	res = enable_locked((uint32_t)device, (uint32_t)peer);
	pthread_mutex_unlock(&peers.mutex);
	return res;
}

CUresult fgv_peer_grant(int device, int peer)
{
	int can = 0;
	CUresult res = fgv_peer_can_access(&can, device, peer);

	if (!res && !can)
		res = CUDA_ERROR_INVALID_DEVICE;
	if (res)
		return res;
	pthread_mutex_lock(&peers.mutex);
	res = reach_locked((uint32_t)device, (uint32_t)peer, peers.granted);
	pthread_mutex_unlock(&peers.mutex);
	return res;
}

/* Once the device is done with what it has. */
static CUresult disable_locked(uint32_t device, uint32_t peer)
{
	struct fgv_lane *lane;
	CUresult res;

	if (!(peers.enabled[device] >> peer & 1))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = fgv_sync_device(lane);
	if (!res && !(peers.granted[device] >> peer & 1)) {
		res = fgv_call_peer_disable(lane, peer);
		if (!res)
			__atomic_fetch_and(&peers.reached[device], ~(1u << peer), __ATOMIC_RELEASE);
	}
	fgv_lane_leave(lane);
	if (!res)
		peers.enabled[device] &= ~(1u << peer);
	return res;
}

CUresult fgv_peer_disable(int peer)
{
	int device = fgv_context_get_device();
	CUresult res = fgv_peer_check(device, peer);

	if (res)
		return res;
	pthread_mutex_lock(&peers.mutex);
	res = disable_locked((uint32_t)device, (uint32_t)peer);
	pthread_mutex_unlock(&peers.mutex);
	return res;
}

/* Those to it stay: contexts of other devices are nothing to this one's. */
void fgv_peer_reset(struct fgv_lane *lane)
{
	uint32_t device = lane->client->device;

	for (uint32_t peer = 0; peer < FGV_DEVICES_MAX; peer++) {
		if (fgv_peer_is_enabled(device, peer))
			fgv_call_peer_disable(lane, peer);
	}
	peers.enabled[device] = peers.granted[device] = 0;
	__atomic_store_n(&peers.reached[device], 0, __ATOMIC_RELEASE);
}

CUresult fgv_peer_get_attribute(int *value, CUdevice_P2PAttribute attribute, int from, int to)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (value && attribute >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
	    attribute <= CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		res = fgv_peer_check(from, to);
	if (!res && from == to)
		res = CUDA_ERROR_INVALID_DEVICE;
	return res ? res : ask(from, to, attribute, value);
}

/* Of the link between devices the host tells no more than attributes. */
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
