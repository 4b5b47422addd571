/*
 * The scheduler of one device as it runs: scheduler/sched.h driven by the real clock, in a
 * thread of its own, so that starting a session holds up no slice. It watches the grants
 * of the sessions (grant.h), carries out decisions, and looks without sleeping while a grant
 * is about to come back, as a wake-up there would cost the GPU its time.
 *
 * Threads: the functions are for the daemon's main thread, and take what they need of the
 * scheduler under its lock, which its thread holds for microseconds at a time.
 */
#ifndef FGV_BACKEND_SCHED_GPUSCHED_H
#define FGV_BACKEND_SCHED_GPUSCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/log.h"
#include "scheduler/sched.h"

struct fgv_cosched;
struct fgv_hold;
struct fgv_cosched_owner;
struct fgv_gpugangs;
struct fgv_gpusched;
struct fgv_gpusched_vgpu;
struct fgv_gpusched_session;

/*
 * A GPU has a scheduler for each of its engines: for computing, and where they are granted by
 * themselves, for copying in and out (docs/design/0021-engines.md). They know nothing of each
 * other.
 */
#define FGV_COPY_ENGINES 2

struct fgv_gpusched_config {
	const struct fgv_policy *policy;
	struct fgv_sched_params params;
	uint64_t hang_ns; /* a holder that is this late, while others wait, is killed; 0: never */
	/*
	 * The same for one that can be held (hold.h), which is never late: it is killed when its
	 * work has had so much of the GPU, with nothing of it done. 0: never.
	 */
	uint64_t hang_held_ns;
	struct fgv_cosched *cosched; /* NULL: no vCPU is favoured; outlives the scheduler */
	struct fgv_gpugangs *gangs;  /* NULL: there are none; likewise */
	unsigned number;	     /* of this GPU among theirs */
};

/* 0 or a negative errno. */
int fgv_gpusched_create(struct fgv_gpusched **out, const struct fgv_gpusched_config *config);
/* No vGPU is attached any more. NULL is allowed. */
void fgv_gpusched_destroy(struct fgv_gpusched *gpusched);

int fgv_gpusched_attach_vgpu(struct fgv_gpusched *gpusched, uint32_t weight,
			     struct fgv_gpusched_vgpu **out);
/* Its sessions are detached. */
void fgv_gpusched_detach_vgpu(struct fgv_gpusched_vgpu *vgpu);

/* From the next decision on. -EINVAL outside 1 to FGV_SCHED_WEIGHT_MAX. */
int fgv_gpusched_set_weight(struct fgv_gpusched_vgpu *vgpu, uint32_t weight);
uint32_t fgv_gpusched_weight(const struct fgv_gpusched_vgpu *vgpu);

/* From the next decision on, which is made at once. Refused as by fgv_sched_set_shares(). */
int fgv_gpusched_set_shares(struct fgv_gpusched_vgpu *vgpu, const struct fgv_sched_shares *shares);
void fgv_gpusched_shares(const struct fgv_gpusched_vgpu *vgpu, struct fgv_sched_shares *shares);

/*
 * From the next decision on; below FGV_SCHED_PRIORITIES, and FGV_SCHED_PRIORITY_DEFAULT at first.
 * Refused as by fgv_sched_set_priority().
 */
int fgv_gpusched_set_priority(struct fgv_gpusched_vgpu *vgpu, uint32_t priority);
uint32_t fgv_gpusched_priority(const struct fgv_gpusched_vgpu *vgpu);

/* @vgpu, which has no sessions, becomes a part of @gang. Refused as by fgv_sched_set_gang(). */
int fgv_gpusched_set_gang(struct fgv_gpusched_vgpu *vgpu, struct fgv_gang *gang);

/* Refused as by fgv_sched_set_units(). */
int fgv_gpusched_set_units(struct fgv_gpusched_vgpu *vgpu, uint32_t units, uint32_t limit);
/* As fgv_sched_units() and, unless it is NULL, fgv_sched_held_units(). */
uint64_t fgv_gpusched_units(const struct fgv_gpusched_vgpu *vgpu, uint64_t *held);

/*
 * Makes a session's grant and its two bells. *@fds gets the three descriptors in the order
 * of enum fgv_setup_fd, from FGV_SETUP_GRANT on; they stay the session's, and are good until
 * it has started. @subject, which is copied, is of the log lines about it; its texts
 * stay.
 */
int fgv_gpusched_attach_session(struct fgv_gpusched_vgpu *vgpu,
				const struct fgv_log_subject *subject,
				struct fgv_gpusched_session **out, int fds[3]);

/*
 * The priority of @session, which has not started, is this or its vGPU's, whichever is less urgent;
 * that of the vGPU under policies that know none. 0: the vGPU's. -ENOMEM.
 */
int fgv_gpusched_session_priority(struct fgv_gpusched_session *session, uint32_t priority);

/* Whose vCPUs are favoured for its turns, if any are. Before it has started; @owner is copied. */
void fgv_gpusched_session_guest(struct fgv_gpusched_session *session,
				const struct fgv_cosched_owner *owner);

/* Looks for the vCPU that is to be favoured, if it is not known. When cosched.h's bell rings. */
void fgv_gpusched_find_vcpu(struct fgv_gpusched_session *session);

/*
 * The process that got the grant; from now on it may be killed: for hanging (hang_ns), or for
 * breaking the rules of grant.h.
 */
void fgv_gpusched_session_started(struct fgv_gpusched_session *session, pid_t pid);

/*
 * From now on @session, which has started, can be held by @hold, which is the session's: a slice
 * that is over ends whatever its kernels do, and without the grant it does not compute.
 */
void fgv_gpusched_session_hold(struct fgv_gpusched_session *session, struct fgv_hold *hold);

/*
 * @session is ending: where its hold keeps what its process gives back, it is let go and can't be
 * held any more.
 */
void fgv_gpusched_session_ending(struct fgv_gpusched_session *session);

/* What a session or a vGPU has used. */
struct fgv_gpusched_stats {
	struct fgv_sched_stats sched;
	uint64_t stalls; /* see struct fgv_grant */
	uint64_t sync_calls;
	uint64_t favoured;  /* times that a vCPU was */
	uint64_t holds;	    /* times that it was held with work in the middle */
	uint64_t recent_ns; /* GPU time used in the last second */
	bool interactive; /* CPU-GPU interactive, in the paper's sense (of a vGPU: a session is) */
	bool holding;
	bool waiting;
	const char *killed_for; /* why its process was killed; NULL: it was not (sessions only) */
};

/* Adds what @stats has to @sum; of the reasons for killing the first one stays. */
void fgv_gpusched_stats_add(struct fgv_gpusched_stats *sum, const struct fgv_gpusched_stats *stats);

/* Has its process look at what it shares with the daemon, if it sleeps. */
void fgv_gpusched_session_wake(struct fgv_gpusched_session *session);

/* As fgv_sched_claim(). */
void fgv_gpusched_session_claim(struct fgv_gpusched_session *session, bool claims);

/*
 * The session's process has ended, or never began, but has not been reaped: its id is still
 * its own. If it held the grant that is charged and goes on to the next. *@last: its use;
 * @last may be NULL.
 */
void fgv_gpusched_detach_session(struct fgv_gpusched_session *session,
				 struct fgv_gpusched_stats *last);

/* Up to now: a holder is charged what it has used of it so far. */
void fgv_gpusched_session_stats(struct fgv_gpusched_session *session,
				struct fgv_gpusched_stats *stats);
/* The sum over the sessions, those gone included. */
void fgv_gpusched_vgpu_stats(struct fgv_gpusched_vgpu *vgpu, struct fgv_gpusched_stats *stats);
const char *fgv_gpusched_policy(struct fgv_gpusched *gpusched);

#endif
