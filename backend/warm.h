/*
 * The vGPU processes before they serve a session. Some are kept ready for each device that a
 * VM uses (key "warm"): their GPU is open, which takes a program's time where it is done for
 * that program. A session gets one of them, or one that is started for it; the way is the same.
 *
 * A process serves one session and ends, so nothing of one guest comes to another.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_WARM_H
#define FGV_BACKEND_WARM_H

#include <limits.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/relay.h"
#include "backend/shared.h"
#include "backend/warm_plan.h"

struct fgv_mps;
struct fgv_warm_process;

struct fgv_warm {
	const struct fgv_config *config;
	const struct fgv_devices *devices;
	const struct fgv_mps *mps;
	struct fgv_relays *relays;
	struct fgv_relay_limit lines; /* of those that serve no VM yet */
	int loop;
	bool ending;
	char vgpu_path[PATH_MAX];
	struct fgv_warm_plan plans[FGV_GPU_DEVICES_MAX];
	LIST_HEAD(, fgv_warm_process) list;
	unsigned count; /* of processes that have not been reaped, those of sessions not among them
			 */
};

/* Whether process @pid is ready for @device, and has served nobody. */
bool fgv_warm_is_ready(const struct fgv_warm *warm, unsigned device, pid_t pid);

/* Finds the vGPU program; a negative errno and @why where there is none. Starts nothing. */
int fgv_warm_init(struct fgv_warm *warm, const struct fgv_config *config,
		  const struct fgv_devices *devices, const struct fgv_mps *mps,
		  struct fgv_relays *relays, char *why, size_t why_len);

/*
 * As many are kept from now on as the configuration says, for the devices that it uses: it has
 * changed.
 */
void fgv_warm_configure(struct fgv_warm *warm);

/* A process that is its session's. */
struct fgv_warm_given {
	pid_t pid;		 /* to be reaped */
	int control_fd;		 /* its end ends the process */
	struct fgv_relay *relay; /* of its lines, which are about nothing yet */
};

/*
 * Sends @setup with its descriptors to the process that is nearest to ready for @device, which
 * from now on is the session's. 0 or a negative errno.
 */
int fgv_warm_assign(struct fgv_warm *warm, unsigned device, const struct fgv_setup *setup,
		    const int fds[FGV_SETUP_FDS], struct fgv_warm_given *given);

/*
 * Sends process @pid, which has got a setup on @control_fd, a further @part of its session, on
 * @device. The caller has filled in its setup, and @fds but for a seat. 0 or a negative errno.
 */
int fgv_warm_add_part(struct fgv_warm *warm, unsigned device, struct fgv_setup_part *part,
		      int fds[FGV_SETUP_PART_FDS], pid_t pid, int control_fd);

/*
 * A session on @device has ended otherwise than in order. Under MPS that may have been a fault
 * for all clients of the server, which takes no new ones until the last of those has gone: so
 * the ones that are kept go.
 */
void fgv_warm_suspect(struct fgv_warm *warm, unsigned device);

/* How many are ready for @device. */
unsigned fgv_warm_ready(const struct fgv_warm *warm, unsigned device);

/* When fgv_warm_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_warm_deadline_ns(const struct fgv_warm *warm);
/* Starts what is due, and ends what is not wanted. After every turn of the loop. */
void fgv_warm_tick(struct fgv_warm *warm);

/* Clears away behind those that have ended; other children are left alone. On SIGCHLD. */
void fgv_warm_reap(struct fgv_warm *warm);

/* Tells all to end, and starts none any more; fgv_warm_signal() is for those that don't. */
void fgv_warm_end(struct fgv_warm *warm);
void fgv_warm_signal(struct fgv_warm *warm, int signal);

/* Forgets the processes that do not die. */
void fgv_warm_fini(struct fgv_warm *warm);

#endif
