/*
 * The structures shared by gpusched.c (set-up, and the thread) and gpusched_turn.c (what
 * happens in one turn of it). The daemon sees gpusched.h.
 */
#ifndef FGV_BACKEND_GPUSCHED_PRIV_H
#define FGV_BACKEND_GPUSCHED_PRIV_H

#include <pthread.h>
#include <sys/queue.h>
#include "backend/gpusched.h"
#include "backend/bell.h"
#include "backend/grant.h"
#include "shmring/spin.h"

#define FGV_GPUSCHED_LABEL_LEN 192

struct fgv_gpusched {
	struct fgv_gpusched_config config;
	pthread_t thread;
	int epoll_fd;	      /* all bells, which are never read: edge-triggered */
	int kick_fd;	      /* the main thread's bell */
	struct fgv_bell bell; /* the thread's alone, like spin */
	struct fgv_spin spin;

	pthread_mutex_t lock; /* of all below, and of what hangs on it */
	struct fgv_sched *sched;
	LIST_HEAD(, fgv_gpusched_session) holders;
	struct fgv_gpusched_session *next; /* the one whose is_next is set */
	uint64_t waited_since_ns;	   /* somebody waits since; 0: nobody does */
	uint64_t look_ns;		   /* when to look next at the latest */
	bool stopping;
};

struct fgv_gpusched_vgpu {
	struct fgv_gpusched *gpusched;
	struct fgv_sched_vgpu *sched;
	LIST_HEAD(, fgv_gpusched_session) sessions;
	uint64_t gone_stalls, gone_sync_calls; /* of sessions that were detached */
};

enum fgv_gpusched_state { SESSION_IDLE, SESSION_WAITING, SESSION_HOLDING };

struct fgv_gpusched_session {
	LIST_ENTRY(fgv_gpusched_session) vgpu_link;
	LIST_ENTRY(fgv_gpusched_session) holder_link; /* while SESSION_HOLDING */
	struct fgv_gpusched_vgpu *vgpu;
	struct fgv_sched_session *sched;
	enum fgv_gpusched_state state; /* as the library has it */
	pid_t pid;		       /* 0: not started yet */
	bool condemned;		       /* killed, or to be killed when it has a process */
	bool hung;		       /* for that */

	struct fgv_grant *grant;
	int grant_fd; /* -1: not needed any more */
	int bell_fd;
	int sched_bell_fd;

	uint64_t attached_ns;
	uint64_t used_ns; /* what of the report has been charged */
	uint64_t charged_at_ns;
	uint64_t sync_calls; /* what of the report has been counted */

	/* The grant that it holds. */
	uint32_t flags;
	uint64_t word;	   /* as last seen */
	uint64_t slice_ns; /* or FGV_SCHED_NO_LIMIT */
	uint64_t slice_from_ns;

	char label[FGV_GPUSCHED_LABEL_LEN];
};

/*
 * Looks at those who have rung and at the holders, decides, and carries that out. Returns
 * when to look again even if no bell rings (fgv_now_ns()), or FGV_SCHED_NEVER. *@close: a
 * grant is about to come back, so keep looking. The lock is held, as for all below.
 */
uint64_t fgv_gpusched_turn(struct fgv_gpusched *gpusched, bool *close);

/* Whether a holder's grant is not as fgv_gpusched_turn() left it. */
bool fgv_gpusched_has_news(const struct fgv_gpusched *gpusched);

/* Charges what the holder has used so far. */
void fgv_gpusched_charge(struct fgv_gpusched_session *session);

/* Takes @session, whose process is gone, out of all; a grant that it held is charged. */
void fgv_gpusched_leave(struct fgv_gpusched_session *session);

/* Ends a session that breaks the rules, or as soon as it has a process. */
void fgv_gpusched_condemn(struct fgv_gpusched_session *session, const char *why);

#endif
