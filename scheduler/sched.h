/*
 * The scheduler of one GPU: it decides which session holds the grant, the right to put work on it.
 * A pure library: no clock, no thread, no I/O. The driver (the daemon with the real clock,
 * fairgv-sim with a virtual one, a test with any) reports events, with the time of each, and
 * then asks for decisions until there are none:
 *
 *	fgv_sched_request(session, now);
 *	while (fgv_sched_decide(sched, now, &d))
 *		carry_out(&d);
 *	set_timer(fgv_sched_next_ns(sched, now));
 *
 * VMs have a vGPU each, weighed against each other by the policy (policy.h). The sessions
 * of a vGPU share its part equally. A session is idle, waiting or holding:
 *
 *	idle --request--> waiting --FGV_SCHED_GRANT--> holding --release--> idle or waiting
 *	waiting --withdraw--> idle
 *
 * Times are nanoseconds of one clock that does not go back; an earlier time counts as the
 * latest seen. What a vGPU process reports (used_ns, counts) is not trusted: usage is cut
 * at the time that the grant was held. Functions return 0 or a negative errno. One thread
 * at a time per scheduler. Memory is allocated by create and attach only.
 */
#ifndef FGV_SCHEDULER_SCHED_H
#define FGV_SCHEDULER_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/hist.h"
#include "scheduler/params.h"
#include "scheduler/policy.h"

#define FGV_SCHED_NO_LIMIT UINT64_MAX /* a slice without end: nobody else wants the GPU */
#define FGV_SCHED_HELD	   UINT64_MAX /* used_ns: charge all the time that the grant was held */
#define FGV_SCHED_NEVER	   UINT64_MAX

struct fgv_sched;
struct fgv_sched_vgpu;
struct fgv_sched_session;

/* --- Set-up ---------------------------------------------------------------- */

/* @params may be NULL for the defaults. -ENOMEM, -EINVAL (a slice of 0). */
int fgv_sched_create(struct fgv_sched **out, const struct fgv_policy *policy,
		     const struct fgv_sched_params *params, uint64_t now_ns);

/* Frees the scheduler with all that is attached. NULL is allowed. */
void fgv_sched_destroy(struct fgv_sched *sched);

/*
 * Changes the policy under running sessions: grants that are out stay out, and those too
 * many under the new policy are asked back by decisions. If the new one fails to take a
 * vGPU over, `fair` runs instead and the error is returned.
 */
int fgv_sched_set_policy(struct fgv_sched *sched, const struct fgv_policy *policy, uint64_t now_ns);
const struct fgv_policy *fgv_sched_policy(const struct fgv_sched *sched);

/* @owner is the driver's, given back by fgv_sched_vgpu_owner(). -EINVAL: weight. -ENOMEM. */
int fgv_sched_attach_vgpu(struct fgv_sched *sched, uint32_t weight, void *owner, uint64_t now_ns,
			  struct fgv_sched_vgpu **out);

/* -EBUSY while sessions are attached to it. Frees @vgpu. */
int fgv_sched_detach_vgpu(struct fgv_sched_vgpu *vgpu);

/* Takes effect at the next decision; -EINVAL outside 1 to FGV_SCHED_WEIGHT_MAX. */
int fgv_sched_set_weight(struct fgv_sched_vgpu *vgpu, uint32_t weight);

/*
 * Takes effect at the next decision. What can't be kept is refused, and changes nothing:
 * -EINVAL (a request above the limit, a limit of nothing, a part greater than the whole, a
 * bound without a request), -ENOSPC (with it the requests are more than the whole GPU),
 * -ERANGE (with it, bounds can't be kept together), -EOPNOTSUPP (the policy knows no
 * shares), -ENOMEM. Whoever holds without limit is charged first, as for a request.
 */
int fgv_sched_set_shares(struct fgv_sched_vgpu *vgpu, const struct fgv_sched_shares *shares,
			 uint64_t now_ns);

/*
 * Takes effect at the next decision. A new vGPU has FGV_SCHED_PRIORITY_DEFAULT. -EINVAL: not below
 * FGV_SCHED_PRIORITIES; -EOPNOTSUPP: the policy knows no priorities, and this is another; -ENOMEM.
 */
int fgv_sched_set_priority(struct fgv_sched_vgpu *vgpu, uint32_t priority, uint64_t now_ns);
uint32_t fgv_sched_vgpu_priority(const struct fgv_sched_vgpu *vgpu);

/*
 * Reserves @units of params.units for @vgpu, and lets it have @limit at most (0: all). -EBUSY: it is
 * active, or nothing is lent, and sessions count on what this would take; -EINVAL: more than the
 * limit; -ENOSPC: so many are not left; -EOPNOTSUPP: the policy divides no multiprocessors.
 */
int fgv_sched_set_units(struct fgv_sched_vgpu *vgpu, uint32_t units, uint32_t limit);
/* The set that it has when nothing is lent, and that it has now; 0: none are told from others. */
uint64_t fgv_sched_units(const struct fgv_sched_vgpu *vgpu);
uint64_t fgv_sched_held_units(const struct fgv_sched_vgpu *vgpu);

/*
 * This is the scheduler of GPU number @gpu, below FGV_GANGS_GPUS, of those that share @gangs, which
 * outlive it. Before its first vGPU.
 */
void fgv_sched_join_gangs(struct fgv_sched *sched, struct fgv_gangs *gangs, unsigned gpu);

/*
 * @vgpu becomes the part of @gang on this GPU; under policies that know no gangs nothing comes of
 * it. -EBUSY: it is active, or a part of one; -EINVAL: the scheduler has joined no gangs.
 */
int fgv_sched_set_gang(struct fgv_sched_vgpu *vgpu, struct fgv_gang *gang);

/* A grant of @vgpu that is asked back comes back within @taken_ns; at first nobody knows. */
void fgv_sched_set_taken(struct fgv_sched_vgpu *vgpu, uint64_t taken_ns);

/* The new session is idle. -ENOMEM. */
int fgv_sched_attach_session(struct fgv_sched_vgpu *vgpu, void *owner, uint64_t now_ns,
			     struct fgv_sched_session **out);

/*
 * From now on @session is one of @to's, a vGPU of the same scheduler. If it waits, it asks anew.
 * -EBUSY: it holds a grant, which ends within a slice now if it has a limit. -ENOMEM.
 */
int fgv_sched_move_session(struct fgv_sched_session *session, struct fgv_sched_vgpu *to,
			   uint64_t now_ns);

/*
 * The session is gone, in whatever state; frees it. If it held a grant, @used_ns since its
 * last charge is charged first: what its process had counted, or FGV_SCHED_HELD.
 */
void fgv_sched_detach_session(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns);

void *fgv_sched_vgpu_owner(const struct fgv_sched_vgpu *vgpu);
void *fgv_sched_session_owner(const struct fgv_sched_session *session);
struct fgv_sched_vgpu *fgv_sched_session_vgpu(const struct fgv_sched_session *session);

/* --- Events ---------------------------------------------------------------- */

/* The session has work and asks for a grant. Nothing happens unless it is idle. */
void fgv_sched_request(struct fgv_sched_session *session, uint64_t now_ns);

/*
 * From now on, or no more, the session has work that it can't ask for, as others have the memory that
 * it needs: its vGPU is idle, but claims its part.
 */
void fgv_sched_claim(struct fgv_sched_session *session, bool claims, uint64_t now_ns);

/* The session asks no more. Nothing happens unless it is waiting. */
void fgv_sched_withdraw(struct fgv_sched_session *session, uint64_t now_ns);

/*
 * A holder has used @used_ns since its last charge and goes on. A driver does so for a
 * holder without limit before it announces anybody else's request, because a newcomer
 * starts at the virtual time, and that is as old as the holder's last charge. -EINVAL if
 * the session holds nothing.
 */
int fgv_sched_charge(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns);

/*
 * A waiting session has used @used_ns up to now although its grant was taken: its work did not
 * stand still at once, and nobody else had the GPU. Nothing happens to others.
 */
void fgv_sched_charge_late(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns);

/*
 * What a holder does under its grant will cost the next one @cost_ns of its own: the holder is
 * charged for that, too, beyond the time that it holds the GPU. Nothing happens unless it holds.
 */
void fgv_sched_surcharge(struct fgv_sched_session *session, uint64_t cost_ns, uint64_t now_ns);

/* What @session expects, as it asks or is about to give back. Nothing happens to it. */
void fgv_sched_advise(struct fgv_sched_session *session, const struct fgv_sched_advice *advice);

/*
 * A holder gives back: drained, with @used_ns since its last charge, however long; @more
 * if it asks again at once. -EINVAL if the session holds nothing.
 */
int fgv_sched_release(struct fgv_sched_session *session, uint64_t used_ns, bool more,
		      uint64_t now_ns);

/* The guest made @count synchronous calls, the last one on its processor @vcpu. */
void fgv_sched_sync_calls(struct fgv_sched_session *session, uint32_t count, int32_t vcpu,
			  uint64_t now_ns);

/* A vCPU of the VM is about to run on a processor (algorithm 1); for cosched CPU only. */
void fgv_sched_vcpu_runs(struct fgv_sched_vgpu *vgpu, uint64_t now_ns);

/* --- Decisions ------------------------------------------------------------- */

enum fgv_sched_action {
	/*
	 * The session holds the grant from now on, for slice_ns of GPU time (by the clock
	 * under a time_shared policy) or FGV_SCHED_NO_LIMIT. If cosched, its guest is
	 * CPU-GPU interactive: wake and favour the vCPU (algorithms 3 and 4).
	 */
	FGV_SCHED_GRANT,
	/*
	 * The holder's slice is now slice_ns, counted from now; 0: give back as soon as
	 * drained. For a holder without limit when others come or its VM gets a limit, one
	 * that is preempted, or one with a long slice when others come.
	 */
	FGV_SCHED_LIMIT,
	/*
	 * The waiting session is probably next, within awake_lead_ns: it should be awake.
	 * cosched and vcpu are as they will be at its grant, for a driver that has a
	 * processor to spare for waking the guest early too.
	 */
	FGV_SCHED_AWAKE,
	/*
	 * The watchdog: the policy lets this vGPU wait although it is owed owed_ns of GPU
	 * time. Told once per wait. The driver may change to `fair`.
	 */
	FGV_SCHED_STARVED,
	/*
	 * A gang is to begin on the GPUs in `gpus`, bits by their numbers: their schedulers have
	 * something to decide (fgv_sched_join_gangs()). session is NULL.
	 */
	FGV_SCHED_KNOCK,
};

struct fgv_sched_decision {
	enum fgv_sched_action action;
	struct fgv_sched_session *session; /* valid until it is detached */
	uint64_t slice_ns;		   /* GRANT, LIMIT */
	uint64_t ahead_ns;		   /* GRANT; see struct fgv_policy_grant, as for must_fit */
	bool must_fit;
	uint64_t units;			   /* GRANT; likewise */
	uint64_t owed_ns;		   /* STARVED */
	uint32_t gpus;			   /* KNOCK */
	bool cosched;			   /* GRANT, AWAKE */
	int32_t vcpu; /* with cosched: the last vCPU that waited; -1: unknown */
};

/* Fills in the next decision, already in force, or returns false if there is none now. */
bool fgv_sched_decide(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d);

/* Ask again at this time even if nothing happens; FGV_SCHED_NEVER: no need. */
uint64_t fgv_sched_next_ns(const struct fgv_sched *sched, uint64_t now_ns);

/* What gets the grant when the holder's slice ends; may be the holder; NULL: nothing waits. */
struct fgv_sched_session *fgv_sched_successor(struct fgv_sched *sched, uint64_t now_ns);

/* --- Looking at it --------------------------------------------------------- */

struct fgv_sched_stats {
	uint64_t overruns;   /* grants that used more than their slice */
	uint64_t overrun_ns; /* by how much, in all */
	uint64_t starved;    /* times the watchdog reported (vGPU only) */
	uint64_t gpu_ns;     /* as measured and reported */
	uint64_t held_ns;    /* of grants that have been given back */
	uint64_t grants;
	struct fgv_hist wait; /* from asking to the grant */
};

/* Adds what @stats counts to @sum. */
void fgv_sched_stats_add(struct fgv_sched_stats *sum, const struct fgv_sched_stats *stats);

/* The sum over the vGPU's sessions, those gone included. */
void fgv_sched_vgpu_stats(const struct fgv_sched_vgpu *vgpu, struct fgv_sched_stats *stats);
const struct fgv_sched_stats *fgv_sched_session_stats(const struct fgv_sched_session *session);
/* What they have used in the last second, as far as it has been charged. */
uint64_t fgv_sched_vgpu_recent_ns(const struct fgv_sched_vgpu *vgpu, uint64_t now_ns);
uint64_t fgv_sched_session_recent_ns(const struct fgv_sched_session *session, uint64_t now_ns);
uint32_t fgv_sched_vgpu_weight(const struct fgv_sched_vgpu *vgpu);
const struct fgv_sched_shares *fgv_sched_vgpu_shares(const struct fgv_sched_vgpu *vgpu);

/* Is the session's guest CPU-GPU interactive, as judged over its last window? */
bool fgv_sched_interactive(const struct fgv_sched_session *session);

/* False if the policy has no tags. */
bool fgv_sched_tags(const struct fgv_sched_vgpu *vgpu, struct fgv_policy_tags *tags);

/* For choosing between GPUs. */
struct fgv_sched_load {
	uint64_t active_weight; /* of the vGPUs that wait or hold */
	uint32_t vgpus;
	uint32_t sessions;
	uint32_t waiting; /* sessions */
	uint32_t holding;
};

void fgv_sched_load(const struct fgv_sched *sched, struct fgv_sched_load *load);

#endif
