/*
 * Holding: taking a session's kernels off the GPU while they run, and putting them back
 * (docs/design/0019-holding.md). What can do it is a holder, of which there are two: NVIDIA's
 * resource manager, and the arbiter of a soft GPU. What it knows of one session is a struct
 * fgv_hold, made by adopt and freed by forget.
 *
 * A session that is held is alive: its process runs, and what it puts on the GPU waits there. It
 * may be killed at any time. One that is never let go waits for ever, which is the caller's to
 * prevent.
 *
 * Threads: one at a time for each struct fgv_hold; the holders themselves take any number. hold()
 * and release() may take a millisecond, and on a GPU in trouble as long as its driver's time-outs.
 */
#ifndef FGV_BACKEND_SCHED_HOLD_H
#define FGV_BACKEND_SCHED_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "backend/sched/channels.h"

struct fgv_arbiter;
struct fgv_hold;

struct fgv_holder {
	const char *name; /* in log lines */

	/*
	 * Neither call takes the GPU's time, nor the caller's, so that a session without the grant
	 * is held always. Otherwise only when it pays.
	 */
	bool is_free;

	/*
	 * What ends by itself within so long after its slice is not taken: meanwhile the GPU works,
	 * and while a session is held and another let go it may not.
	 */
	uint64_t drain_ns;

	/* What the session has of the GPU is not free before forget. */
	bool keeps_memory;

	/*
	 * The session's kernels stop where they are, and none begins. 0, or a negative errno: then
	 * it runs as before. Not called for one that is held.
	 */
	int (*hold)(struct fgv_hold *hold);

	/* They go on. 0, or a negative errno: then it must be ended. Not called for one that runs.
	 */
	int (*release)(struct fgv_hold *hold);

	/* Frees @hold, whatever state the session is in. Its process has ended, or ends. */
	void (*forget)(struct fgv_hold *hold);
};

/* Each holder's own begins with this. */
struct fgv_hold {
	const struct fgv_holder *holder;
};

/*
 * Adopts the session of process @pid, by its seat at @arbiter. -ENOENT: it has none; -ENOMEM. The
 * seat must not be left before forget.
 */
int fgv_hold_soft_adopt(struct fgv_arbiter *arbiter, pid_t pid, struct fgv_hold **out);

/* What a control of the resource manager is sent by, as ioctl(2). A test's may be another. */
typedef int fgv_hold_rm_call(int fd, unsigned long number, void *data);

/*
 * Adopts the session whose channels are @channels, by @fd, the open file that made them. It is
 * tried out: set up, held and let go, with nothing of its own running. On success @fd is the
 * hold's. On failure a negative errno, and it stays the caller's; -ENOTRECOVERABLE: it is held and
 * can't be let go, so that its process must be ended. @why tells either way what each control
 * answered. @call: NULL for the kernel.
 */
int fgv_hold_rm_adopt(const struct fgv_channels *channels, int fd, fgv_hold_rm_call *call,
		      struct fgv_hold **out, char *why, size_t why_len);

#endif
