/*
 * The parts of a session that has several GPUs, but for the first, which is the session that main()
 * has (docs/design/0023-devices.md). Each has a struct fgv_session of its own, with a window, a
 * GPU, a quota and grants, and a thread that is its dispatcher. A session with one GPU has none of
 * this.
 *
 * One part's end is the session's: the guest gone, a violation, or a failure.
 *
 * Threads: the first part's. It opens a part's GPU and, when the part's thread has ended, closes
 * it.
 */
#ifndef FGV_VGPU_PARTS_H
#define FGV_VGPU_PARTS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/shared.h"

struct fgv_session;

/* Those that are open, in their order. */
struct fgv_parts {
	unsigned opened;
	struct fgv_session *sessions[FGV_GPU_DEVICES_MAX - 1];
};

/*
 * The part of @first's with this number, 0 for the first; NULL: there is none. Any part's thread,
 * once all are open; of another part only its GPU and its setup are to be looked at.
 */
static inline struct fgv_session *fgv_parts_find(struct fgv_session *first,
						 const struct fgv_parts *parts, uint32_t number)
{
	if (!number)
		return first;
	return parts && number <= parts->opened ? parts->sessions[number - 1] : NULL;
}

/* Takes the parts that the daemon sends behind the setup, and opens their GPUs. The sandbox is
 * open. */
CUresult fgv_parts_open(struct fgv_session *first);
void fgv_parts_close(struct fgv_session *first);

/* Starts their threads, and returns when all of them are ready to serve. */
CUresult fgv_parts_start(struct fgv_session *first);
/* Gives back what they have, if they have ended. */
void fgv_parts_stop(struct fgv_session *first);

/* Hands their windows over to the guest, behind the first part's. 0 or a negative errno. */
int fgv_parts_welcome(struct fgv_session *first);

/*
 * The session is over: ends them. 0, or a negative errno of one of them, whose reason is the
 * session's then. One that is stuck in its driver is left where it is.
 */
int fgv_parts_end(struct fgv_session *first);

/* After that: CUDA_ERROR_NOT_READY where a GPU of theirs is at work; or a fault. */
CUresult fgv_parts_are_idle(struct fgv_session *first);

#endif
