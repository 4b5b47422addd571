/*
 * Ringing a doorbell (shmring/park.h) of a process that is not trusted. An eventfd's flags
 * belong to all who have it: the peer can make it blocking and fill its counter, and the
 * kernel has no write to it that does not block then. So a timer interrupts the thread that
 * rings.
 *
 * Threads: a struct fgv_bell serves the thread that called fgv_bell_init().
 */
#ifndef FGV_BACKEND_BELL_H
#define FGV_BACKEND_BELL_H

#include <stdbool.h>
#include <time.h>

struct fgv_bell {
	timer_t timer;
};

/* Unblocks SIGRTMIN in this thread, and gives it a handler. 0 or a negative errno. */
int fgv_bell_init(struct fgv_bell *bell);
void fgv_bell_fini(struct fgv_bell *bell);

/* False: the peer has made it block. A bell that was full has been rung already. */
bool fgv_bell_ring(struct fgv_bell *bell, int fd);

#endif
