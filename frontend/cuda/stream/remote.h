/*
 * Waiting in a stream of one device for an event of another one, in a session with several. The
 * devices know nothing of each other's events. So a stream of this library's, on the event's
 * device, waits for the event and then writes a number to host memory; and the stream that is to
 * wait, waits for that number (value.h). What comes behind it stays on the host until then, so
 * neither device is held for the other one's sake.
 *
 * Threads: any, without a lane.
 */
#ifndef FGV_CUDA_REMOTE_H
#define FGV_CUDA_REMOTE_H

#include <stdint.h>

#include "frontend/client/lane.h"

/* Where the number will be, and which it is. */
struct fgv_remote {
	uint64_t address;
	uint64_t number;
};

/*
 * Has a number written behind @event, the host's handle, of device @device. Its latest record
 * counts, as with any wait.
 */
CUresult fgv_remote_signal(uint32_t device, uint32_t event, struct fgv_remote *signal);
/* Has what comes in @stream, the host's handle, wait for that. */
CUresult fgv_remote_wait(struct fgv_lane *lane, uint32_t stream, const struct fgv_remote *signal);

/* For the reset of a device alone: destroys its streams. */
void fgv_remote_drain(struct fgv_lane *lane);

#endif
