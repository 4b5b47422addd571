/*
 * The grant of one session for one engine of its GPU: a page of memory that its vGPU process and
 * the daemon share, and nobody else. The daemon gives the grant, the vGPU process gives it back:
 *
 *	NONE  --daemon-->  BUSY      limit_ns says for how much use of the GPU
 *	BUSY  --vGPU---->  NONE      drained (or not, see FGV_GRANT_UNDRAINED); rings the daemon
 *	BUSY  --vGPU---->  IDLE      nothing to do, and nobody is known to wait
 *	IDLE  --vGPU---->  BUSY      work has come
 *	IDLE  --daemon-->  NONE      somebody else has; the vGPU process is not even woken
 *	BUSY  --daemon-->  NONE      the slice is over, its work is not: that is held (hold.h)
 *
 * All else are levels and sums, each with one writer, so nothing is lost if a side looks
 * late or dies. A waiter is woken by an eventfd: the vGPU process rings the daemon's
 * whenever it has written what the daemon waits for; the daemon rings the vGPU process's if
 * that has announced that it sleeps (shmring/park.h).
 *
 * The daemon does not believe what it reads here: it cuts the use reported at the time that
 * the grant was held, charges no less than that time where others waited, and ends a
 * session that does not give back.
 */
#ifndef FGV_BACKEND_SCHED_GRANT_H
#define FGV_BACKEND_SCHED_GRANT_H

#include <stdbool.h>
#include <stdint.h>
#include "api/wire.h"

#define FGV_GRANT_NO_LIMIT UINT64_MAX

/*
 * What loading or unloading a module costs the next turn of another session, as the GPU changes to
 * another context and back: measured on an H200 (docs/design/0004-grant.md, "Errands"). A turn in
 * which that happened is charged it beyond its time.
 */
#define FGV_GRANT_CHANGE_NS UINT64_C(300000)

enum fgv_grant_state { FGV_GRANT_NONE, FGV_GRANT_BUSY, FGV_GRANT_IDLE };

enum {
	/* limit_ns is a time of the clock, and giving back means to submit nothing more. */
	FGV_GRANT_UNDRAINED = 1,
	/* A holder with nothing to do keeps the grant until its limit. */
	FGV_GRANT_KEEP = 2,
	/* It is for a gap of another one: only work that is expected to fit is let through. */
	FGV_GRANT_FIT = 4,
};

struct fgv_grant {
	/* Both sides': enum fgv_grant_state in the two lowest bits, above them a count of grants. */
	_Alignas(FGV_CACHE_LINE) uint64_t word;

	/*
	 * The daemon's. limit_ns is compared with used_ns (UNDRAINED: with fgv_now_ns()) and may
	 * change under a grant; a limit that has been passed means: as soon as possible.
	 */
	_Alignas(FGV_CACHE_LINE) uint64_t limit_ns;
	uint32_t flags;
	uint32_t is_next;     /* 1: the grant comes soon, so be awake; 0 once it is given */
	uint32_t is_holdable; /* 1: the session can be held, and may find its grant taken */
	uint32_t is_held;     /* 1: its kernels stand still; more of them may be queued */
	uint64_t held_ns;     /* how long it was held, in all, but for this time */
	uint64_t ahead_ns;    /* of this grant: unfinished work at most; 0: as much as a slice */
	uint64_t units;	      /* of this grant: the set of multiprocessors; 0: all */

	/* The vGPU process's. */
	_Alignas(FGV_CACHE_LINE) uint64_t used_ns; /* of the GPU, in all */
	uint64_t stalls;     /* times that it held work back to wait for the GPU, in all */
	uint64_t sync_calls; /* that the guest made, in all */
	uint32_t wants;	     /* 1: has work that needs the grant; with NONE: asks for it */
	uint32_t vcpu;	     /* of the last synchronous call */
	uint32_t parked;     /* enum fgv_park */
	uint32_t thread;     /* of the guest, that made the last synchronous call */
	uint32_t in_call; /* 1: may wait for the GPU in a call of the driver's: asks, if held */
	uint32_t gap_ns;  /* as it gives back: expects to want the GPU again after this; 0: unknown */
	uint64_t progress; /* pieces of work that are done, in all */
	uint32_t next_ns; /* of the work that waits first, as expected; 0: unknown */
	uint32_t changes; /* modules loaded and unloaded under grants, in all */
};
_Static_assert(sizeof(struct fgv_grant) == 3 * FGV_CACHE_LINE, "a line for each writer");

static inline enum fgv_grant_state fgv_grant_state(uint64_t word)
{
	return (enum fgv_grant_state)(word & 3);
}

/* Acquire: pairs with fgv_grant_move() of the other side. */
static inline uint64_t fgv_grant_load(const struct fgv_grant *grant)
{
	return __atomic_load_n(&grant->word, __ATOMIC_ACQUIRE);
}

/* From the state seen in @word to @state; false: the other side was faster. */
static inline bool fgv_grant_move(struct fgv_grant *grant, uint64_t word,
				  enum fgv_grant_state state)
{
	uint64_t next = (word & ~UINT64_C(3)) | state;

	/* A new grant has a number of its own, so that a late look does not miss one. */
	if (fgv_grant_state(word) == FGV_GRANT_NONE)
		next += 4;
	return __atomic_compare_exchange_n(&grant->word, &word, next, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

#endif
