/*
 * What the files of sessions share: their beginning is in session_start.c, their end in
 * session_end.c, what they say meanwhile in session.c.
 */
#ifndef FGV_BACKEND_SESSION_PRIV_H
#define FGV_BACKEND_SESSION_PRIV_H

#include <stdbool.h>
#include "backend/guard/refusals.h"
#include "backend/holding.h"
#include "backend/session.h"
#include "common/log.h"

#define LABEL_LEN (2 * FGV_NAME_MAX + 64)

/* Of a part whose GPU is over-committed (session_page.c). Times are of fgv_now_ns(). */
struct fgv_paging {
	bool is_out;	    /* its memory was told to be out */
	bool is_alone;	    /* nobody is left that could make room for it */
	bool claims;	    /* its part of the GPU's time, although it can't ask for it */
	uint64_t told_ns;   /* when it was told to be out, or in */
	uint64_t in_ns;	    /* since when all of it is in; 0: it is not */
	uint64_t asks_ns;   /* since when it asks for something; 0: it does not */
	uint64_t used_ns;   /* of the GPU, when it was looked at last */
	uint64_t active_ns; /* when it last was seen to use the GPU, or to wait for it */
	uint64_t out_ns;    /* how long it took to go out, the last time */
	uint64_t room_ns;   /* when others had made room; 0: not since it asked for nothing */
	uint64_t tries;	    /* for room, by then */
};

/* What it has of one GPU. */
struct fgv_part {
	const struct fgv_share *share;
	struct fgv_gpusched_session *sched;
	struct fgv_gpusched_session *copying[FGV_COPY_ENGINES]; /* or NULL */
	uint64_t need_bytes; /* of its program, which it has from the beginning; 0: unknown */
	struct fgv_place_task task; /* what it takes there, in the books */
	struct fgv_paging paging;
};

struct fgv_session {
	struct fgv_watch connection; /* to the program; first, so that its address is ours */
	struct fgv_watch control;    /* its control socket, until its process serves it */
	bool is_watched;
	struct fgv_keeper_line images;
	struct fgv_refusals refusals;
	struct fgv_holding holding;
	LIST_ENTRY(fgv_session) link;
	struct fgv_sessions *sessions;
	struct fgv_vm *vm;
	/* In the order of the VM's shares; of a program that is placed, the one where it is. */
	struct fgv_part parts[FGV_GPU_DEVICES_MAX];
	unsigned placed;     /* of them, those in the books */
	unsigned part_count; /* those that the schedulers know */
	pid_t pid;
	pid_t client_pid;
	uint32_t guest_pid;
	int control_fd;		 /* its end ends the process; -1: told already */
	struct fgv_relay *relay; /* of what its process logs */
	bool is_killed;
	char killed_for[FGV_END_TEXT_MAX]; /* by the daemon, where no scheduler did it */
	bool is_movable;		   /* its memory may leave the GPU */
	bool is_frozen;			   /* and it has been told to have it leave */
	uint64_t frozen_bytes;		   /* of the host's memory, for that */
	bool loads;			   /* and for coming back from a file */
	uint32_t number;
	unsigned account;
	uid_t uid;
	uint64_t started_ns;
	uint64_t ending_ns; /* not 0: since when its program has gone, or it was told to end */
	bool is_late;	    /* and was killed as it did not end */
	char program[FGV_NAME_MAX];
	char vm_name[FGV_NAME_MAX]; /* the configuration's may be replaced */
	char label[LABEL_LEN];
	char process_label[LABEL_LEN];	/* of what its process logs */
	struct fgv_log_subject subject; /* of its log lines, made of these three */
};

/* Its connection to the program: from now on the loop sees its end. 0 or a negative errno. */
int fgv_session_watch_connection(struct fgv_session *session, int fd);
void fgv_session_drop_connection(struct fgv_session *session);

/* Programs of the VM that have gone are known to have, from here on. */
void fgv_sessions_look_at_connections(struct fgv_sessions *sessions, const struct fgv_vm *vm);

/*
 * Its program has gone, or it was told to end. Nothing is charged for it in a moment: the VM's
 * other sessions may wait for that.
 */
void fgv_session_mark_ending(struct fgv_session *session);

/* What its process says until it serves its guest is heard; and no more. */
void fgv_session_watch_control(struct fgv_session *session);
void fgv_session_unwatch_control(struct fgv_session *session);

/*
 * Chooses its GPUs (session_place.c). -EAGAIN: there is no room for what its program needs; -E2BIG:
 * there never is. fgv_session_place_error() says that in words.
 */
int fgv_session_place(struct fgv_session *session, const struct fgv_msg_need *need);
void fgv_session_unplace(struct fgv_session *session);
void fgv_session_place_error(const struct fgv_session *session, const struct fgv_msg_need *need,
			     int error, char *text, size_t len);

/* The books of the GPUs, which are known by now; fgv_sessions_fini() closes them. */
int fgv_sessions_open_place(struct fgv_sessions *sessions);

/*
 * Its places with the schedulers of the GPUs chosen; a negative errno, and then it has none. *@fds
 * gets the descriptors of part i's grants, which are good until its process has started.
 */
int fgv_session_attach_parts(struct fgv_session *session,
			     int fds[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS]);
/* Before its process starts; as fgv_gpusched_session_priority(). */
int fgv_session_prioritize_parts(struct fgv_session *session, uint32_t priority);
/* They are given up; *@use: of the engines that compute, but for why the process was killed. */
void fgv_session_detach_parts(struct fgv_session *session, struct fgv_gpusched_stats *use);
/* Its process, which from now on may be killed for what it does with them. */
void fgv_session_start_parts(struct fgv_session *session);
/* Before its process starts: whether it may wait for memory of its GPUs. */
void fgv_session_page(struct fgv_session *session);
/*
 * The host's memory that it is charged now is set aside for what it has on GPUs, until that is back
 * there or in a file. -ENOMEM, and @why.
 */
int fgv_session_reserve_frozen(struct fgv_session *session, char *why, size_t len);
/* Where it has kernels that are held, these are let go. */
void fgv_session_release_parts(struct fgv_session *session);
/* What the engines that compute have done for it, together. */
void fgv_session_parts_stats(const struct fgv_session *session, struct fgv_gpusched_stats *stats);

#endif
