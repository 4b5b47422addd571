/*
 * Who has the engine of a soft device: one process at a time, first come, first served
 * (softgpu/seat.h). Each process has a page of its own, shared with the daemon alone; a thread
 * looks at it when the process rings. It keeps the order and the holder to itself, so nothing
 * that a process writes reaches another one, or is believed: a process can ask, and give back
 * what it has. One that keeps the engine for hang_ns while others wait is killed.
 *
 * Threads: the functions are for the daemon's main thread, and take the lock, which the thread
 * holds for microseconds at a time.
 */
#ifndef FGV_BACKEND_ARBITER_H
#define FGV_BACKEND_ARBITER_H

#include <stdint.h>
#include <sys/types.h>

struct fgv_arbiter;
struct fgv_arbiter_seat;

/* The order of a seat's descriptors in the message that brings them to its process. */
enum fgv_seat_fd {
	FGV_SEAT_PAGE,	  /* struct softgpu_seat */
	FGV_SEAT_BELL,	  /* wakes the process */
	FGV_SEAT_ARBITER, /* wakes the arbiter */
	FGV_SEAT_FDS
};

/* @name is the device's, in log lines, and is copied. @hang_ns: 0 is for ever. */
int fgv_arbiter_create(struct fgv_arbiter **out, const char *name, uint64_t hang_ns);
/* No seat is left. NULL is allowed. */
void fgv_arbiter_destroy(struct fgv_arbiter *arbiter);

/* A seat for a process to come. @fds stay the seat's, and are good until it has started. */
int fgv_arbiter_attach(struct fgv_arbiter *arbiter, struct fgv_arbiter_seat **out,
		       int fds[FGV_SEAT_FDS]);
/* The process that got it. */
void fgv_arbiter_started(struct fgv_arbiter_seat *seat, pid_t pid);
/* There is no such process; the engine goes on to the next. */
void fgv_arbiter_detach(struct fgv_arbiter_seat *seat);
/* Process @pid has ended, but has not been reaped. One without a seat is no error. */
void fgv_arbiter_forget(struct fgv_arbiter *arbiter, pid_t pid);

#endif
