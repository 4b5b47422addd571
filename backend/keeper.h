/*
 * The keeper of what a VM's programs have in common (vgpu/images/keeper.h), as the daemon has it: a
 * process that is started when a session of the VM first has something to say to it, and again
 * where it has died. The daemon reads nothing of what either says: it sees that there is something,
 * hands on the socket, and says when the session has ended.
 *
 * Memory that sessions share is charged by the keeper. If it dies, the sessions that may have such
 * memory are lost, and until the last of them has ended what it charged stays charged.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_KEEPER_H
#define FGV_BACKEND_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>
#include "backend/loop.h"
#include "backend/relay.h"
#include "backend/shared.h"

struct fgv_share;

struct fgv_keeper {
	/* What it is told; no bytes: the VM keeps no images, nor, if it shares nothing, anything.
	 */
	struct fgv_keeper_setup setup;
	const struct fgv_share *shares; /* the VM's, setup.gpus of them */
	uint64_t known;			/* a bit for each account whose session it was told of */
	uint64_t lost;			/* of sessions that have lost it, and are to end */
	pid_t pid;			/* 0: there is none */
	int control_fd;			/* where there is one; its end ends it */
	struct fgv_relay *relay;	/* where there is one: of what it logs */
	struct fgv_relay_limit *lines;	/* the VM's */
};

/* The socket of one session that the keeper does not have yet. */
struct fgv_keeper_line {
	struct fgv_watch watch; /* first, so that its address is ours; its fd is -1: none */
	struct fgv_keeper *keeper;
	struct fgv_keeper_session who;
	const char *vgpu_path;
	int cgroup_fd;
	struct fgv_relays *relays;
};

/*
 * Makes one of session @who, and returns the other end, which is for its process and the caller to
 * close; or a negative errno. A VM that keeps no images has a line to nobody. The program at
 * @vgpu_path is the keeper's, and @cgroup_fd as FGV_SETUP_CGROUP; both stay.
 */
int fgv_keeper_connect(struct fgv_keeper_line *line, struct fgv_keeper *keeper,
		       const struct fgv_keeper_session *who, const char *vgpu_path, int cgroup_fd,
		       struct fgv_relays *relays);
void fgv_keeper_hang_up(struct fgv_keeper_line *line);

/* The session with that account has no process any more, and so none of its memory. */
void fgv_keeper_forget(struct fgv_keeper *keeper, const struct fgv_keeper_session *who);

/* Whether it has memory that sessions share. */
bool fgv_keeper_has_memory(const struct fgv_keeper *keeper);

/* Ends it: nothing of it is left in the VM's control group. */
void fgv_keeper_end(struct fgv_keeper *keeper);

/* Takes note of one that has ended. On SIGCHLD. */
void fgv_keeper_reap(struct fgv_keeper *keeper);

#endif
