/*
 * The structures shared by gpusched.c (set-up, and the thread), gpusched_turn.c (what
 * happens in one turn of it), gpusched_hold.c (holding), gpusched_favour.c (coscheduling),
 * gpusched_shares.c (requests and limits) and gpusched_levels.c (priorities). The daemon sees gpusched.h.
 *
 * A holder here is a session that holds the grant. One that is held has none, and its kernels
 * stand still.
 */
#ifndef FGV_BACKEND_SCHED_GPUSCHED_PRIV_H
#define FGV_BACKEND_SCHED_GPUSCHED_PRIV_H

#include <pthread.h>
#include <sys/queue.h>
#include "backend/sched/bells.h"
#include "backend/sched/cosched.h"
#include "backend/sched/gpusched.h"
#include "backend/sched/grant.h"
#include "backend/sched/hold.h"
#include "shmring/spin.h"

#define FGV_GPUSCHED_NOBODY    (-1) /* no vCPU is to be favoured, or it is not known which */

struct fgv_gpusched {
	struct fgv_gpusched_config config;
	struct fgv_bells bells;
	struct fgv_spin spin; /* the thread's alone */

	pthread_mutex_t lock; /* of all below, and of what hangs on it */
	struct fgv_sched *sched;
	LIST_HEAD(, fgv_gpusched_session) holders;
	LIST_HEAD(, fgv_gpusched_session) favoured;
	LIST_HEAD(, fgv_gpusched_session) loose; /* no grant, not held, but could be */
	struct fgv_gpusched_session *next;	 /* the one whose is_next is set */
	uint64_t waited_since_ns;		 /* somebody waits since; 0: nobody does */
	uint64_t look_ns;			 /* when to look next at the latest */
	bool stopping;
};

struct fgv_gpusched_vgpu {
	struct fgv_gpusched *gpusched;
	struct fgv_sched_vgpu *sched; /* of its own priority */
	struct fgv_sched_vgpu *levels[FGV_SCHED_PRIORITIES]; /* that, and of others; or NULL */
	uint32_t priority;
	LIST_HEAD(, fgv_gpusched_session) sessions;
	uint64_t gone_stalls, gone_sync_calls; /* of sessions that were detached */
	uint64_t gone_favoured, gone_holds;
};

enum fgv_gpusched_state { SESSION_IDLE, SESSION_WAITING, SESSION_HOLDING };

struct fgv_gpusched_session {
	LIST_ENTRY(fgv_gpusched_session) vgpu_link;
	LIST_ENTRY(fgv_gpusched_session) holder_link; /* while SESSION_HOLDING */
	struct fgv_gpusched_vgpu *vgpu;
	struct fgv_sched_session *sched;
	enum fgv_gpusched_state state; /* as the library has it */
	pid_t pid;		       /* 0: not started yet */
	const char *condemned;	       /* why it is killed, or to be when it has a process; or NULL */

	struct fgv_grant *grant;
	int grant_fd; /* -1: not needed any more */
	int bell_fd;
	int sched_bell_fd;

	uint32_t priority; /* that it wants, if its VM's allows it */
	bool is_misplaced; /* its vGPU is that of another priority, as it holds the grant */
	uint64_t attached_ns;
	uint64_t used_ns; /* what of the report has been charged */
	uint64_t charged_at_ns;
	uint64_t sync_calls; /* what of the report has been counted */
	uint32_t changes;    /* likewise */

	struct fgv_cosched_guest *guest;		/* NULL: it is never favoured */
	LIST_ENTRY(fgv_gpusched_session) favoured_link; /* while is_favoured */
	bool is_favoured;				/* or was tried to be */
	bool is_chosen; /* favour is a new choice, to be carried out */
	int32_t favour; /* the vCPU to favour; or FGV_GPUSCHED_NOBODY */
	int32_t vcpu;	/* that the guest waited on last, as it says */

	struct fgv_hold *hold; /* NULL: it can't be held */
	bool is_held;
	uint64_t held_at_ns; /* while is_held: since when */
	uint64_t held_ns;    /* in all, but for this time */
	bool is_undrained; /* its grant was taken, with work unfinished */
	bool is_loose;
	LIST_ENTRY(fgv_gpusched_session) loose_link; /* while is_loose */
	uint64_t loose_ns;			     /* since when */
	uint64_t holds;
	uint64_t progress, stuck_ns; /* GPU time that its work has had since this progress */

	/* The grant that it holds. */
	uint32_t flags;
	uint64_t word;	   /* as last seen */
	uint64_t slice_ns; /* or FGV_SCHED_NO_LIMIT */
	uint64_t slice_from_ns;

	struct fgv_log_subject subject;
};

/*
 * Looks at the sessions that have rung and at the holders, decides, and carries that out. Returns
 * when to look again even if no bell rings (fgv_now_ns()), or FGV_SCHED_NEVER. *@close: a
 * grant is about to come back, so keep looking. The lock is held, as for all below.
 */
uint64_t fgv_gpusched_turn(struct fgv_gpusched *gpusched, bool *close);

/* Whether a holder's grant is not as fgv_gpusched_turn() left it. */
bool fgv_gpusched_has_news(const struct fgv_gpusched *gpusched);

/*
 * Holding. @session has lost the grant or can be held from now on; is about to get the grant
 * (false: it is condemned); is no more.
 */
void fgv_gpusched_hold_loosen(struct fgv_gpusched_session *session, uint64_t now_ns);
bool fgv_gpusched_hold_free(struct fgv_gpusched_session *session);
void fgv_gpusched_hold_leave(struct fgv_gpusched_session *session);


/* Whether @session's slices end by themselves or by being taken, and when, if others wait. */
bool fgv_gpusched_hold_ends(const struct fgv_gpusched_session *session);
uint64_t fgv_gpusched_hold_end_ns(const struct fgv_gpusched_session *session);

/*
 * Takes the grants that should have come back, before the decisions; holds the sessions that these
 * left without one, after them, and returns when to look again, or FGV_SCHED_NEVER.
 */
void fgv_gpusched_hold_take(struct fgv_gpusched *gpusched, uint64_t now_ns);
uint64_t fgv_gpusched_hold_settle(struct fgv_gpusched *gpusched, uint64_t now_ns);
/* When the next of the grants that are out is to be taken, or FGV_SCHED_NEVER. */
uint64_t fgv_gpusched_hold_next_ns(const struct fgv_gpusched *gpusched, uint64_t now_ns);

/* Ends a grant: charges @used_ns; @more: it asks for another. */
void fgv_gpusched_end_grant(struct fgv_gpusched_session *session, uint64_t used_ns, bool more);
/* GPU time since the last charge. */
uint64_t fgv_gpusched_take_used(struct fgv_gpusched_session *session);
/* Reads what its process has written: a wish, a grant that has come back. */
void fgv_gpusched_look(struct fgv_gpusched_session *session);
/* Wakes its process if that sleeps. */
void fgv_gpusched_wake(struct fgv_gpusched_session *session);

/*
 * The vGPUs of @vgpu, one for each priority: the first is made; all go; all have a new weight; what
 * all have used is added to *@stats.
 */
int fgv_gpusched_levels_attach(struct fgv_gpusched_vgpu *vgpu, uint32_t weight);
void fgv_gpusched_levels_detach(struct fgv_gpusched_vgpu *vgpu);
int fgv_gpusched_levels_weigh(struct fgv_gpusched_vgpu *vgpu, uint32_t weight);
void fgv_gpusched_levels_sum(const struct fgv_gpusched_vgpu *vgpu,
			     struct fgv_gpusched_stats *stats);
/* Moves @session to that of its priority, now or when its grant has ended. */
int fgv_gpusched_levels_place(struct fgv_gpusched_session *session);

/* Hands on what its process expects, before it asks or has given back. */
void fgv_gpusched_advise(const struct fgv_gpusched_session *session);

/* Charges what the holder has used so far. */
void fgv_gpusched_charge(struct fgv_gpusched_session *session);
/* The same for all that hold without limit: the virtual time is up to date then. */
void fgv_gpusched_settle_unlimited(struct fgv_gpusched *gpusched);

/* Takes @session, whose process is gone, out of all; a grant that it held is charged. */
void fgv_gpusched_leave(struct fgv_gpusched_session *session);

/* Ends a session that breaks the rules, or as soon as it has a process. */
void fgv_gpusched_condemn(struct fgv_gpusched_session *session, const char *why);

/* The vCPU, or the thread of a local program, that made the last synchronous call; any number. */
int32_t fgv_gpusched_waiting_vcpu(const struct fgv_gpusched_session *session);

/* Chooses @vcpu to be favoured until the grant, which @session has been given, ends. */
void fgv_gpusched_favour(struct fgv_gpusched_session *session, int32_t vcpu);
/* The same where a grant without limit has got one. */
void fgv_gpusched_limit_favours(struct fgv_gpusched_session *session);
/* Carries out what was chosen. */
void fgv_gpusched_settle_favours(struct fgv_gpusched *gpusched);
void fgv_gpusched_put_back(struct fgv_gpusched_session *session);

#endif
