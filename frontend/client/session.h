/*
 * The process's session with a vGPU: one, made at the first call that needs the GPU.
 * An attempt that fails is made again by the next call that needs it.
 *
 * A session ends once, for one reason, and every call returns that reason's code from
 * then on:
 *   - an error of the GPU that CUDA calls sticky (illegal address, ...)
 *   - the connection is lost: CUDA_ERROR_LAUNCH_FAILED; the process must be restarted
 *   - in the child of a fork: CUDA_ERROR_NOT_INITIALIZED, as with CUDA itself
 *   - the process is exiting: CUDA_ERROR_DEINITIALIZED
 * An ended session's memory stays mapped, as other threads may be using it.
 *
 * Threads: any.
 */
#ifndef FGV_CLIENT_SESSION_H
#define FGV_CLIENT_SESSION_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "shmring/arena.h"
#include "shmring/window.h"

struct fgv_transport;

/* Written while connecting, before any other thread sees it; but for the last six. */
struct fgv_client {
	struct fgv_window window;
	struct fgv_arena *arena; /* behind the staging part */
	const struct fgv_transport *transport;
	int connection; /* its end is the session's; what else it is for is the transport's */
	int doorbell;	/* wakes the dispatcher */
	int window_fd;	/* to map parts of the window once more (hostmem.c) */
	char vm[FGV_NAME_MAX];
	uint32_t ended; /* atomic: a CUresult; 0 while it goes on */
	uint32_t lost;	/* atomic: by the loss of its connection */
	/* The number of the next request, session-wide; every post writes here. */
	uint64_t ticket __attribute__((aligned(FGV_CACHE_LINE)));
	uint64_t synced_ticket; /* atomic: nothing asked before this one is under way; 0: unknown */
	uint64_t done_ticket;	/* atomic: no work asked for before this one is under way; see sync.h */
	uint32_t is_split;	/* atomic: some stream is not waited for by the legacy one */
};

/* The session, connected if need be; or why there is none. Logs why, once. */
CUresult fgv_session_open(struct fgv_client **client);

/* The session if there is or was one, else NULL. Never connects. */
struct fgv_client *fgv_session_existing(void);

static inline CUresult fgv_session_status(const struct fgv_client *client)
{
	return (CUresult)__atomic_load_n(&client->ended, __ATOMIC_RELAXED);
}

/* Ends the session with @code, unless it has ended. True if this call did it. */
bool fgv_session_end(struct fgv_client *client, CUresult code);

/* The connection is of no use any more: ends the session and logs @why, once. */
void fgv_session_lose(struct fgv_client *client, const char *why);

/*
 * What is left of cudaDeviceReset() after a sticky error: it works, and from then on
 * every call fails with CUDA_ERROR_DEVICE_UNAVAILABLE. False if the session has ended
 * otherwise, or not at all.
 */
bool fgv_session_reset_dead(void);

#endif
