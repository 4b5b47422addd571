/*
 * What vGPU processes log: each writes to a pipe (fgv_log_be_relayed()), and the daemon passes its
 * lines on as lines about what the daemon knows the process to serve. So a process that its guest
 * has taken over can neither name another VM, nor choose fields of the journal, nor fill it:
 *
 * - A line is what lies between two newlines, of FGV_LOG_LINE_MAX bytes at most; whatever is no
 *   printable ASCII becomes '?'. Its priority is one of those that fgv_log_be_relayed() writes,
 *   else a warning's.
 * - A VM's processes have FGV_RELAY_LINES lines a second, and may save up FGV_RELAY_BURST of them;
 *   all processes together have FGV_RELAY_ALL_LINES. Of a VM no more than FGV_RELAY_BYTES are read
 *   in a second. How much was left out is said, every ten seconds at most.
 * - The pipe blocks neither side: where it is full, the process loses lines (log.h), and where the
 *   daemon's own standard error is, the daemon leaves them out.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_RELAY_H
#define FGV_BACKEND_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "backend/guard/rate.h"
#include "backend/loop.h"
#include "common/log.h"

#define FGV_RELAY_LINES	    5
#define FGV_RELAY_BURST	    100
#define FGV_RELAY_ALL_LINES 200
#define FGV_RELAY_BYTES	    (256u << 10)

struct fgv_relay;

/* What the processes of one VM may log together, or those that have none yet. Zero at the start. */
struct fgv_relay_limit {
	LIST_ENTRY(fgv_relay_limit) link; /* of those that the timer looks after */
	bool is_listed;
	const char *vm; /* its name; NULL: none */
	struct fgv_rate_bucket lines;
	uint64_t second; /* in which so many bytes were read */
	size_t read;
	uint64_t lost_lines, lost_bytes; /* not said yet */
	unsigned ticks;			 /* of the timer, since that was said */
	LIST_HEAD(, fgv_relay) paused;	 /* until the next second */
};

/* Takes leave of the timer, and says what is still to be said. No relay has this limit any more. */
void fgv_relay_limit_fini(struct fgv_relay_limit *limit);

struct fgv_relays {
	struct fgv_watch timer; /* first, so that its address is ours */
	int loop;		/* -1: it has gone */
	struct fgv_rate_bucket lines;
	LIST_HEAD(, fgv_relay_limit) due;
};

/* A negative errno. Relays may outlive fgv_relays_fini(), but are heard no more. */
int fgv_relays_init(struct fgv_relays *relays, int loop);
void fgv_relays_fini(struct fgv_relays *relays);

/*
 * A relay that is about nothing yet. *@fd becomes the process's standard output and error, and is
 * the caller's to close. @limit stays as long as this is the relay's. 0 or a negative errno.
 */
int fgv_relay_open(struct fgv_relays *relays, struct fgv_relay_limit *limit,
		   struct fgv_relay **relay, int *fd);
/* The process at its other end. */
void fgv_relay_started(struct fgv_relay *relay, pid_t pid);
/* From now on its lines are about @subject, whose texts stay, and count for @limit. */
void fgv_relay_about(struct fgv_relay *relay, struct fgv_relay_limit *limit,
		     const struct fgv_log_subject *subject);
/* Passes on all that has been written. */
void fgv_relay_drain(struct fgv_relay *relay);
/*
 * Does the same, and ends it: what is written to a descriptor that is still open somewhere is lost.
 * NULL is none.
 */
void fgv_relay_close(struct fgv_relay *relay);

#endif
