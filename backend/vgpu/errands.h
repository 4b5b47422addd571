/*
 * What a session has the driver do beside work: load and unload modules, allocate and free memory,
 * make and destroy streams, events and arrays. None of it goes through a queue of the GPU, so the
 * gate does not see it. But it takes locks of the driver's, copies, and changes contexts on the
 * GPU: a program that does nothing else takes some percent of it from its neighbours.
 *
 * While a session has the GPU to itself errands cost nobody anything, and nothing is counted. While
 * it holds the grant it pays for the time anyway. At other times they come out of a small credit
 * of time, enough for the start of a usual program; where that is used up they wait for the grant
 * like work, and so are charged by the daemon's clock.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_ERRANDS_H
#define FGV_VGPU_ERRANDS_H

#include <stdbool.h>
#include <stdint.h>
#include "api/host.h"

/* Of the driver's time, at once and in the long run; the sessions of a VM share both. */
#define FGV_ERRANDS_BURST_NS (20 * UINT64_C(1000000))
#define FGV_ERRANDS_PART     200 /* one in so many of the time that passes */

/*
 * What loading a module counts for at most: what it takes beyond that is compiling, on a processor.
 * Loading and unloading count for FGV_GRANT_CHANGE_NS at least.
 */
#define FGV_ERRANDS_LOAD_NS UINT64_C(1000000)

struct fgv_errands {
	int64_t credit_ns;  /* below 0: to be made up for first */
	uint64_t filled_ns; /* up to when time has been added to it; fgv_now_ns() */
	uint64_t load_ns;   /* what loading a module takes: a mean in which the latest count most */
};

void fgv_errands_init(struct fgv_session *session);

/*
 * Whether an errand may run now. If not, the gate counts as blocked, so that the grant is asked
 * for.
 */
bool fgv_errands_admit(struct fgv_session *session, uint16_t op);

/*
 * Whether a module may be loaded in what is left of the turn. If not, the turn ends, and the gate
 * counts as blocked: a turn that ends late by a load finds the session that is next asleep.
 */
bool fgv_errands_fit_load(struct fgv_session *session);

/*
 * An errand begins: what fgv_errands_end() wants to know, or 0, for which that need not be called,
 * where the errand costs nobody anything.
 */
uint64_t fgv_errands_begin(const struct fgv_session *session);
void fgv_errands_end(struct fgv_session *session, uint16_t op, uint64_t begun_ns);

/*
 * After each errand, and once in each turn: charges for the memory that was freed and is not yet
 * given back to the driver, and counts what the driver did late, of errands that were over before.
 */
void fgv_errands_settle(struct fgv_session *session);

#endif
