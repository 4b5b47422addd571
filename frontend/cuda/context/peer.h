/*
 * Peers, and what a device can do in common with others: the devices of a session do not reach each
 * other's memory. Devices are ordinals.
 *
 * CUDA_ERROR_INVALID_VALUE for a missing out-parameter and unknown flags, CUDA_ERROR_INVALID_DEVICE
 * for a device that the session does not have.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_PEER_H
#define FGV_CUDA_PEER_H

#include <cuda.h>

/* Whether the session has both. */
CUresult fgv_peer_check(int one, int other);

CUresult fgv_peer_can_access(int *can, int device, int peer);
/* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED and CUDA_ERROR_PEER_ACCESS_NOT_ENABLED at best. */
CUresult fgv_peer_enable(int peer, unsigned flags);
CUresult fgv_peer_disable(int peer);

/* Of a pair of different devices: 0, whatever is asked; CUDA_ERROR_INVALID_DEVICE of others. */
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
