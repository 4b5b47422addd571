/*
 * Devices that reach each other's memory. A kernel finds a peer's memory as it finds its device's
 * own, by the marks of pages (memory.h), and keeps what it has found until it ends. So memory that
 * is freed loses its marks, then what had begun at other devices is waited for, and then it goes.
 *
 * Of two devices that free at the same time neither waits for the other's free, as this is not what
 * touches memory (fgv_queue_wait_begun()).
 */
#include "softgpu/device/internal.h"

/* Of the executor. */
static void await_accessors(void *arg)
{
	struct softgpu *gpu = arg;

	for (unsigned i = 0; i < SOFTGPU_PEERS; i++) {
		struct softgpu *accessor = __atomic_load_n(&gpu->accessors[i], __ATOMIC_SEQ_CST);

		if (accessor)
			fgv_queue_wait_begun(accessor);
	}
}

static bool can_be_peers(const struct softgpu *gpu, const struct softgpu *peer)
{
	unsigned one = (unsigned)gpu->config.ordinal, other = (unsigned)peer->config.ordinal;

	return one < SOFTGPU_PEERS && other < SOFTGPU_PEERS && one != other;
}

void fgv_peer_init(struct softgpu *gpu)
{
	gpu->memory.await_others = await_accessors;
	gpu->memory.await_arg = gpu;
}

/* Once an accessor, always one: kernels that run may have found what is disabled since. */
CUresult softgpu_peer_enable(struct softgpu *gpu, struct softgpu *peer)
{
	struct memory **slot;

	if (!can_be_peers(gpu, peer))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	slot = &gpu->memory.peers[peer->config.ordinal];
	if (*slot)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	__atomic_store_n(&peer->accessors[gpu->config.ordinal], gpu, __ATOMIC_SEQ_CST);
	__atomic_store_n(slot, &peer->memory, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

CUresult softgpu_peer_disable(struct softgpu *gpu, struct softgpu *peer)
{
	struct memory **slot;

	if (!can_be_peers(gpu, peer))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	slot = &gpu->memory.peers[peer->config.ordinal];
	if (!*slot)
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	__atomic_store_n(slot, NULL, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}
