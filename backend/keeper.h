/*
 * The keeper of a VM's images (vgpu/images/keeper.h), as the daemon has it: a process that is
 * started when a session of the VM first has something to say to it, and again where it has died.
 * The daemon reads nothing of what either says: it sees that there is something, and hands on the
 * socket.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_KEEPER_H
#define FGV_BACKEND_KEEPER_H

#include <sys/types.h>
#include "backend/loop.h"
#include "backend/relay.h"
#include "backend/shared.h"

struct fgv_keeper {
	struct fgv_keeper_setup setup; /* what it is told; no bytes: the VM keeps no images */
	pid_t pid;		       /* 0: there is none */
	int control_fd;		       /* where there is one; its end ends it */
	struct fgv_relay *relay;       /* where there is one: of what it logs */
	struct fgv_relay_limit *lines; /* the VM's */
};

/* The socket of one session that the keeper does not have yet. */
struct fgv_keeper_line {
	struct fgv_watch watch; /* first, so that its address is ours; its fd is -1: none */
	struct fgv_keeper *keeper;
	const char *vgpu_path;
	int cgroup_fd;
	struct fgv_relays *relays;
};

/*
 * Makes one, and returns the other end, which is for the session's process and the caller to
 * close; or a negative errno. A VM that keeps no images has a line to nobody. The program at
 * @vgpu_path is the keeper's, and @cgroup_fd as FGV_SETUP_CGROUP; both stay.
 */
int fgv_keeper_connect(struct fgv_keeper_line *line, struct fgv_keeper *keeper,
		       const char *vgpu_path, int cgroup_fd, struct fgv_relays *relays);
void fgv_keeper_hang_up(struct fgv_keeper_line *line);

/* Ends it: nothing of it is left in the VM's control group. */
void fgv_keeper_end(struct fgv_keeper *keeper);

/* Takes note of one that has ended. On SIGCHLD. */
void fgv_keeper_reap(struct fgv_keeper *keeper);

#endif
