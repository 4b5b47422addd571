/*
 * Waiting for the session's work, and what is known of it without asking the host.
 *
 * By memory that both sides see, by text and by failures a program can tell when kernels are
 * done, and so can it natively when calls have waited that need not: cudaFree(), and copies to the
 * device that are not asynchronous. These wait here, too, but for work that is known to be
 * done, which mostly it is. Nothing tells of copies to the device and of events, so they are no
 * reason to wait.
 *
 * Threads: each with a lane of its own.
 */
#ifndef FGV_CLIENT_SYNC_H
#define FGV_CLIENT_SYNC_H

#include "frontend/client/lane.h"

/* Waits for all work; the host is asked only if anything was asked of it since all was done. */
CUresult fgv_sync_device(struct fgv_lane *lane);

/* Waits for a stream's work; the host is not asked where the last request of all waited for it. */
CUresult fgv_sync_stream(struct fgv_lane *lane, uint32_t stream);

/* The next request's ticket, for fgv_sync_note(). */
static inline uint64_t fgv_sync_now(const struct fgv_lane *lane)
{
	return __atomic_load_n(&lane->client->ticket, __ATOMIC_RELAXED);
}

/* The host has answered a request of @lane since @then, which waited for @stream's work. */
void fgv_sync_note(struct fgv_lane *lane, uint32_t stream, uint64_t then);

/*
 * The same waits where the program would see that there was none: not for what is known to be
 * done, and, as CUDA allows such calls there, not while a stream is captured.
 */
CUresult fgv_sync_device_seen(struct fgv_lane *lane);
CUresult fgv_sync_stream_seen(struct fgv_lane *lane, uint32_t stream);

/* There is a stream that the legacy stream does not wait for. */
void fgv_sync_split(struct fgv_client *client);

#endif
