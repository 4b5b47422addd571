/*
 * Which process has the engine of a soft device: one process at a time, first come, first served
 * (softgpu/seat.h). Each process has a page of its own, shared with the daemon alone; a thread
 * looks at it when the process rings. It keeps the order and the holder to itself, so nothing
 * that a process writes reaches another one, or is believed: a process can ask, and give back
 * what it has. One that keeps the engine for hang_ns while others wait is killed.
 *
 * A seat may be held: its process does not get the engine, and if it has it, the kernel stops where
 * it is (0019-holding.md). One that goes on nevertheless for hang_ns is killed, too; here 0 is
 * FGV_ARBITER_STOP_NS.
 *
 * Threads: the functions are for the daemon's main thread, fgv_arbiter_hold() is for any. They take
 * the lock, which the thread holds for microseconds at a time.
 */
#ifndef FGV_BACKEND_SCHED_ARBITER_H
#define FGV_BACKEND_SCHED_ARBITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/util.h"

/* Kernels stop within microseconds; but the process may not run for a while. */
#define FGV_ARBITER_STOP_NS (10 * FGV_NS_PER_SEC)

struct fgv_arbiter;
struct fgv_arbiter_seat;

/* The order of a seat's descriptors in the message that brings them to its process. */
enum fgv_seat_fd {
	FGV_SEAT_PAGE,	  /* struct softgpu_seat */
	FGV_SEAT_BELL,	  /* wakes the process */
	FGV_SEAT_ARBITER, /* wakes the arbiter */
	FGV_SEAT_LEDGER,  /* struct softgpu_ledger; closed when its own page is mapped */
	FGV_SEAT_FDS
};

/* @name is the device's, in log lines, and is copied. @hang_ns: 0 is for ever. */
int fgv_arbiter_create(struct fgv_arbiter **out, const char *name, uint64_t hang_ns);
/* No seat is left. NULL is allowed. */
void fgv_arbiter_destroy(struct fgv_arbiter *arbiter);

/*
 * A seat for a process to come; -EUSERS where there are too many. @shares_memory: the device has
 * one memory for all processes with this. @fds stay the seat's, and are good until it has started.
 */
int fgv_arbiter_attach(struct fgv_arbiter *arbiter, bool shares_memory,
		       struct fgv_arbiter_seat **out, int fds[FGV_SEAT_FDS]);
/* The process that got it. */
void fgv_arbiter_started(struct fgv_arbiter_seat *seat, pid_t pid);
/* There is no such process; the engine goes on to the next. */
void fgv_arbiter_detach(struct fgv_arbiter_seat *seat);
/* The seat of process @pid; NULL: it has none. Good until the seat is left. */
struct fgv_arbiter_seat *fgv_arbiter_find(struct fgv_arbiter *arbiter, pid_t pid);
/* Holds the seat's process, or lets it go. Does not wait until it stands still. */
void fgv_arbiter_hold(struct fgv_arbiter_seat *seat, bool held);
/* Process @pid has ended, but has not been reaped. One without a seat is no error. */
void fgv_arbiter_forget(struct fgv_arbiter *arbiter, pid_t pid);

#endif
