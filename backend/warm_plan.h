/*
 * When to start the next vGPU process that is kept ready for one device: not while sessions
 * have just begun, whose first calls it would hold up; one at a time; and after failures ever
 * less often.
 *
 * Pure: time comes in, decisions go out. Times are fgv_now_ns()'s.
 */
#ifndef FGV_BACKEND_WARM_PLAN_H
#define FGV_BACKEND_WARM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* After the beginning of a session; and where more of them follow, after the first at most. */
#define FGV_WARM_QUIET_NS     1000000000ull
#define FGV_WARM_QUIET_MAX_NS 5000000000ull

/* After a failure; doubled with each in a row. One that lived for the longest was no failure. */
#define FGV_WARM_AGAIN_MIN_NS 1000000000ull
#define FGV_WARM_AGAIN_MAX_NS 300000000000ull

struct fgv_warm_plan {
	unsigned wanted;
	unsigned opening; /* started; their GPU is not open yet */
	unsigned ready;
	unsigned failures;	 /* in a row */
	uint64_t quiet_since_ns; /* the first session since a process was started; 0: none */
	uint64_t quiet_until_ns;
	uint64_t again_ns; /* the end of a failure's pause */
};

void fgv_warm_plan_init(struct fgv_warm_plan *plan, unsigned wanted, uint64_t now_ns);

/* When a process is to be started, which may be a time that has passed; 0: none is. */
uint64_t fgv_warm_plan_due_ns(const struct fgv_warm_plan *plan);

/* A process was started; its GPU is open. */
void fgv_warm_plan_started(struct fgv_warm_plan *plan);
void fgv_warm_plan_opened(struct fgv_warm_plan *plan);

/* A session has begun, whoever serves it. */
void fgv_warm_plan_session(struct fgv_warm_plan *plan, uint64_t now_ns);

/*
 * One is kept no longer, and @was_ready or not: it serves a session; it is not wanted; it has
 * failed, after having lived so long. The last returns the pause before the next is started.
 */
void fgv_warm_plan_taken(struct fgv_warm_plan *plan, bool was_ready);
void fgv_warm_plan_dropped(struct fgv_warm_plan *plan, bool was_ready);
uint64_t fgv_warm_plan_failed(struct fgv_warm_plan *plan, bool was_ready, uint64_t lived_ns,
			      uint64_t now_ns);

#endif
