/*
 * Peers, and what a device can do in common with others. Which of a session's devices reach each
 * other's memory is for the host to say. Devices are ordinals.
 *
 * CUDA_ERROR_INVALID_VALUE for a missing out-parameter and unknown flags, CUDA_ERROR_INVALID_DEVICE
 * for a device that the session does not have.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_PEER_H
#define FGV_CUDA_PEER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;

/* Whether the session has both. */
CUresult fgv_peer_check(int one, int other);

/* Whether @device, which may be FGV_DEVICES_MAX for none, reaches the memory of @peer. */
bool fgv_peer_is_enabled(uint32_t device, uint32_t peer);
/*
 * @device is to reach memory of @peer's that it was given access to: all of it, until @device is
 * reset, as the host knows no less. CUDA_ERROR_INVALID_DEVICE: it can't. No lane may be held.
 */
CUresult fgv_peer_grant(int device, int peer);
/* A bit for each device that reaches the memory of @device. */
uint32_t fgv_peer_accessors(uint32_t device);
/* For the reset of a device alone, which has nothing to do: it reaches no other any more. */
void fgv_peer_reset(struct fgv_lane *lane);

CUresult fgv_peer_can_access(int *can, int device, int peer);
/*
 * From the thread's device to @peer. CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, and where it is so
 * already CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED and CUDA_ERROR_PEER_ACCESS_NOT_ENABLED.
 */
CUresult fgv_peer_enable(int peer, unsigned flags);
CUresult fgv_peer_disable(int peer);

/* Of a pair of different devices; CUDA_ERROR_INVALID_DEVICE of others. */
CUresult fgv_peer_get_attribute(int *value, CUdevice_P2PAttribute attribute, int from, int to);
CUresult fgv_peer_get_atomics(unsigned *capabilities, const CUatomicOperation *operations,
			      unsigned count);

/* Which atomic operations on the memory of the host the device has; of each its capabilities. */
CUresult fgv_peer_get_host_atomics(unsigned *capabilities, const CUatomicOperation *operations,
				   unsigned count, int device);

/*
 * No other device writes to a session's memory, and the device's attributes say so:
 * CUDA_ERROR_NOT_SUPPORTED at best.
 */
CUresult fgv_peer_flush_writes(CUflushGPUDirectRDMAWritesTarget target,
			       CUflushGPUDirectRDMAWritesScope scope);

#endif
