/*
 * The daemon's event loop: descriptors to watch, each with the function to call.
 *
 * Threads: one. Each turn handles one event, so that what a handler closes and frees
 * can not have an event that is still to be delivered.
 */
#ifndef FGV_BACKEND_LOOP_H
#define FGV_BACKEND_LOOP_H

#include <stdint.h>

struct fgv_watch {
	int fd;
	/* @events: as epoll reports them. May remove and free @watch. */
	void (*ready)(struct fgv_watch *watch, uint32_t events);
};

/* The loop's descriptor, or a negative errno. */
int fgv_loop_create(void);

/* Watches watch->fd for @events. The watch stays where it is until it is removed. */
int fgv_loop_add(int loop, struct fgv_watch *watch, uint32_t events);
void fgv_loop_change(int loop, struct fgv_watch *watch, uint32_t events);
/* Call before watch->fd is closed. */
void fgv_loop_remove(int loop, struct fgv_watch *watch);

/* Waits for one event, until @deadline_ns (fgv_now_ns()) at most; 0: no deadline. */
void fgv_loop_turn(int loop, uint64_t deadline_ns);

#endif
