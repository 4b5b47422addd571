/*
 * The parameters of one GPU's scheduler. fgv_sched_params_init() gives the defaults, which
 * are the paper's for a GPU that cannot preempt (sections 3.2.1 and 3.2.3). They are copied
 * at creation and do not change afterwards.
 */
#ifndef FGV_SCHEDULER_PARAMS_H
#define FGV_SCHEDULER_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#define FGV_SCHED_WEIGHT_MAX	      1000000u
#define FGV_SCHED_SLICE_NS	      6000000ull  /* a GPU that cannot preempt */
#define FGV_SCHED_PREEMPTIVE_SLICE_NS 30000000ull /* one that can */

#define FGV_SCHED_SHARE_WINDOW_NS     10000000000ull

#define FGV_SCHED_BLOCKING_NS	      1000000ull    /* where kernels are held */

#define FGV_SCHED_WHOLE 1000000u /* of a GPU's time; parts of it are counted in millionths */

/* What a vGPU was promised of the GPU's time, beside its weight; for policies that promise. */
struct fgv_sched_shares {
	uint32_t request; /* that it gets whenever it wants it; 0: nothing */
	uint32_t limit;	  /* that it never exceeds over share_window_ns; FGV_SCHED_WHOLE: none */
	/* In which it gets what it asks for, within its request, which it must have; 0: none. */
	uint64_t bound_ns;
};

/*
 * Priorities, for policies that know them: 0 is the most urgent. A session without one of its own
 * has its VM's, and a VM without one this.
 */
#define FGV_SCHED_PRIORITIES	   10u
#define FGV_SCHED_PRIORITY_DEFAULT 5u

/*
 * What the process of a session expects; a guess at best, and a lie at worst, so a policy may use
 * it only to the disadvantage of the session that says so, or of those less urgent.
 */
struct fgv_sched_advice {
	uint32_t gap_ns;  /* idle now, it asks for the GPU again after this; 0: unknown */
	uint32_t next_ns; /* what it asks the GPU for takes so long; 0: unknown */
};

struct fgv_sched_params {
	uint64_t slice_ns;		/* of a grant; at least 1 */
	uint64_t awake_lead_ns;		/* the next in line is awake this long before its turn */
	uint64_t starve_ns;		/* the watchdog's bound; 0: no watchdog */
	uint64_t interactive_window_ns; /* of granted time, over which calls are counted */
	uint32_t interactive_calls;	/* interactive: more synchronous calls than this in it */
	uint64_t first_tag;		/* where virtual time begins */
	uint64_t share_window_ns;	/* over which limits hold */
	uint64_t blocking_ns;		/* until a grant that is asked back has come back */
	uint32_t units; /* groups of multiprocessors, for policies that divide them; or 0 */
	bool lends;	/* those that their owners don't use, to others */
};

void fgv_sched_params_init(struct fgv_sched_params *params);

#endif
