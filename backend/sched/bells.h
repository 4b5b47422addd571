/*
 * A thread of the daemon that is woken by bells of processes that are not trusted. They are never
 * read, as a process may have made its own block, and so watched by their edges.
 *
 * Threads: the functions are for the daemon's main thread, but for fgv_bells_sleep(), which is for
 * the thread itself.
 */
#ifndef FGV_BACKEND_SCHED_BELLS_H
#define FGV_BACKEND_SCHED_BELLS_H

#include <pthread.h>
#include <stdint.h>
#include "backend/bell.h"

struct fgv_bells {
	pthread_t thread;
	int epoll_fd;	      /* all bells */
	int kick_fd;	      /* the main thread's bell */
	struct fgv_bell bell; /* to ring others': the thread's alone */
};

/* 0 or a negative errno. */
int fgv_bells_init(struct fgv_bells *bells);
void fgv_bells_fini(struct fgv_bells *bells);

/* @whose comes with the events of epoll_fd; NULL with the main thread's kick. 0 or a negative
 * errno. */
int fgv_bells_watch(const struct fgv_bells *bells, int fd, void *whose);
void fgv_bells_forget(const struct fgv_bells *bells, int fd);

/* Starts the thread, in which no signal is handled but its bell's. 0 or a negative errno. */
int fgv_bells_start(struct fgv_bells *bells, void (*serve)(void *arg), void *arg);
/* Wakes it. */
void fgv_bells_kick(const struct fgv_bells *bells);
/* Wakes it, and waits for its end. */
void fgv_bells_join(struct fgv_bells *bells);

/* Until a bell rings, or @until_ns (fgv_now_ns()); UINT64_MAX: for as long as it takes. */
void fgv_bells_sleep(const struct fgv_bells *bells, uint64_t until_ns);

#endif
