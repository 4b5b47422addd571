/*
 * The core's own structures, shared by sched.c (set-up), sched_grant.c (events), sched_decide.c
 * (decisions), sched_look.c (reports), sched_watch.c (the watchdog) and sched_gangs.c. Drivers see
 * sched.h, policies policy.h.
 */
#ifndef FGV_SCHEDULER_SCHED_PRIV_H
#define FGV_SCHEDULER_SCHED_PRIV_H

#include <stddef.h>

#include <bsd/sys/queue.h>

#include "scheduler/recent.h"
#include "scheduler/sched.h"
#include "scheduler/sfq.h"

#define LINE 64 /* bytes of a cache line */

enum session_state { SESSION_IDLE, SESSION_WAITING, SESSION_HOLDING };

/*
 * Of both structures a hand-over touches the first cache lines only. With many vGPUs, these
 * come from memory, and are nearly all that a decision costs.
 */
struct fgv_sched_session {
	struct fgv_sfq_node node; /* first: in its vGPU's queue while not idle */
	struct fgv_sched_vgpu *vgpu;
	void *owner;
	enum session_state state;
	int32_t vcpu;

	TAILQ_ENTRY(fgv_sched_session) state_link; /* in waiting or holding */
	uint64_t since_ns;			   /* waiting: since when */
	uint64_t granted_ns;	/* holding: since when; likewise all to told_zero */
	uint64_t charged_ns;	/* measured usage of this grant so far */
	uint64_t settled_ns;	/* the time up to which it has been charged */
	uint64_t slice_ns;	/* or FGV_SCHED_NO_LIMIT */
	uint64_t limit_from_ns; /* when the slice began to count */
	uint64_t end_ns;	/* when it ends at the latest, as others have woken */

	/* Is the guest interactive? Calls against granted time in the window so far. */
	uint64_t window_held_ns;
	uint64_t window_from_ns;
	uint64_t window_calls;
	bool interactive;

	bool revoke;	/* holding: the policy wants it back */
	bool told_zero; /* and has said so */
	bool is_bounded; /* it ends although nobody else may wait */
	bool claims;

	struct fgv_sched_stats stats;
	struct fgv_recent recent;
	LIST_ENTRY(fgv_sched_session) vgpu_link;
};

TAILQ_HEAD(fgv_sched_queue, fgv_sched_session);

struct fgv_sched_vgpu {
	struct fgv_policy_vgpu pub; /* first */
	struct fgv_sched *sched;

	/* The watchdog's, see sched_watch.c. */
	uint64_t passed_since_ns;
	bool starved_told;
	uint64_t seen_service;
	int64_t owed;

	struct fgv_sfq sessions; /* those not idle are active */
	struct fgv_sfq_room room;
	void *owner;
	uint32_t claims; /* sessions that do */
	LIST_HEAD(, fgv_sched_session) all;
	LIST_ENTRY(fgv_sched_vgpu) link;
	struct fgv_sched_stats gone; /* of sessions that were detached; likewise */
	struct fgv_recent gone_recent;
};

struct fgv_sched {
	struct fgv_policy_gpu gpu;
	struct fgv_sfq_room room; /* the policy's, for all vGPUs */
	const struct fgv_policy *policy;
	struct fgv_sched_params params;
	struct fgv_gangs *gangs;
	unsigned number; /* of its GPU among theirs */
	bool has_parts;	 /* of gangs, or has had some; else it need not look at gangs */
	LIST_HEAD(, fgv_sched_vgpu) vgpus;
	struct fgv_sched_queue waiting; /* oldest request first */
	struct fgv_sched_queue holding; /* oldest grant first */
	struct fgv_sched_load load;
	uint64_t next_id;
	uint64_t requested; /* the sum of the vGPUs' requests */
	uint64_t now_ns;
	uint64_t tick_ns;
	const struct fgv_sched_session *told_awake; /* for the end of this grant */
	bool awake_done;			    /* no need of a timer for it any more */

	uint64_t free_since_ns;		      /* no grant is out since */
	uint64_t watch_ns;		      /* when to look next, */
	struct fgv_sched_session *watch_from; /* and at whom first; NULL: the oldest request */
	uint64_t service;		      /* see sched_watch.c */
};

static inline struct fgv_sched_vgpu *vgpu_of(const struct fgv_policy_vgpu *pub)
{
	return (struct fgv_sched_vgpu *)pub; /* its first member */
}

static inline struct fgv_sched_session *session_of(struct fgv_sfq_node *node)
{
	return (struct fgv_sched_session *)node; /* its first member */
}

static inline bool vgpu_active(const struct fgv_sched_vgpu *vgpu)
{
	return vgpu->pub.waiting + vgpu->pub.holding > 0;
}

/* The latest time seen; time does not go back. */
static inline uint64_t sched_advance(struct fgv_sched *sched, uint64_t now_ns)
{
	if (now_ns > sched->now_ns)
		sched->now_ns = now_ns;
	return sched->now_ns;
}

/*
 * Begins an event: brings the time up to it, which it returns, and runs the tick if that was due
 * before. A slice that ends with a tick is in it.
 */
uint64_t fgv_sched_enter(struct fgv_sched *sched, uint64_t now_ns);

/* It is in no queue of the scheduler's then, until it holds or is idle. */
void fgv_sched_stop_waiting(struct fgv_sched_session *session);

/* @vgpu has woken, or its vCPU runs: the policy may want the grants back, or end them earlier. */
void fgv_sched_preempt(struct fgv_sched_vgpu *vgpu, bool vcpu_runs, uint64_t now_ns);
void fgv_sched_shorten(struct fgv_sched_vgpu *vgpu, uint64_t now_ns);

/* Another session of @vgpu, which holds, asks. */
void fgv_sched_shorten_own(struct fgv_sched_vgpu *vgpu, uint64_t now_ns);

/* The grant of @holder ends within a slice from now, if others wait. */
void fgv_sched_end_within(struct fgv_sched_session *holder, uint64_t now_ns);

/* Gangs: before the decisions, and when there are no more; whether other GPUs have some then. */
void fgv_sched_follow_gangs(struct fgv_sched *sched, uint64_t now_ns);
bool fgv_sched_tell_gangs(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d);

/* The place of @vgpu among the others has changed. */
void fgv_sched_reorder(struct fgv_sched_vgpu *vgpu, uint64_t now_ns);

/* Tells the policy that @vgpu, already counted, has become active. */
void fgv_sched_wake(struct fgv_sched_vgpu *vgpu);

/* Brings a time-shared policy's charges up to now; nothing under a measured one. */
void fgv_sched_settle(struct fgv_sched *sched, uint64_t now_ns);

/* The watchdog: @vgpu used @used_ns; has begun to wait; has been granted. */
void fgv_sched_watch_charge(struct fgv_sched_vgpu *vgpu, uint64_t used_ns);
void fgv_sched_watch_wait(struct fgv_sched_vgpu *vgpu, uint64_t now_ns);
void fgv_sched_watch_grant(struct fgv_sched_vgpu *vgpu);

/* Forgets what was owed, if anything: a policy begins. */
void fgv_sched_watch_reset(struct fgv_sched *sched, uint64_t now_ns);

/* When it wants to look next, or FGV_SCHED_NEVER. */
uint64_t fgv_sched_watch_ns(const struct fgv_sched *sched);

/* Is it time to look, and is a session starved that was not reported yet? */
bool fgv_sched_watch_decide(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d);

#endif
