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

#include "frontend/client/client.h"

/* The session on GPU number @device, connected if need be; or why there is none. Logs why, once. */
CUresult fgv_session_open(uint32_t device, struct fgv_client **client);

/* How many GPUs the session has; 0: there is none yet. */
uint32_t fgv_session_count(void);

/* Its first GPU's, if there is or was one, else NULL. Never connects. */
struct fgv_client *fgv_session_existing(void);

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

/*
 * Around a fork, so that the child does not get half a session. It has none: its window is not
 * mapped, and its copies of the descriptors would keep the parent's session alive.
 */
void fgv_session_fork_begin(void);
void fgv_session_fork_end(bool is_child);

/* The process ends: what is called from now on finds CUDA gone. */
void fgv_session_stop(void);

#endif
