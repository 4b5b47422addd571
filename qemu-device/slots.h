/*
 * The slots of a QEMU guest's region (api/region.h): starts a session where the guest opens
 * one, tells it when that is ready or gone, and gives the window back.
 *
 * To the session's process the daemon plays the guest program: it takes the welcome and
 * attaches all lanes of the window, each with the guest's eventfd of that window.
 *
 * Nothing in the region is believed. The guest's half of a slot is copied, checked, and the
 * copy used; the host's half is written and never read. What a slot is about is private.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_QEMU_DEVICE_SLOTS_H
#define FGV_QEMU_DEVICE_SLOTS_H

#include <sys/types.h>
#include "backend/bell.h"
#include "backend/loop.h"
#include "backend/session.h"
#include "common/log.h"
#include "qemu-device/region.h"

/*
 * A guest that rings more often than so many times in so long is looked at when that is over,
 * so that it keeps a processor of the host busy to a small part only.
 */
#define FGV_SLOTS_LOOKS	    100
#define FGV_SLOTS_PERIOD_MS 10

enum fgv_slots_phase {
	FGV_PHASE_FREE,
	FGV_PHASE_STARTING, /* asked for, not yet answered */
	FGV_PHASE_READY,
	FGV_PHASE_SHOWN,  /* it has got a view, and no session */
	FGV_PHASE_OVER,	  /* refused or gone; the guest has not closed it yet */
	FGV_PHASE_CLOSING /* until the process has ended */
};

struct fgv_slots_entry {
	struct fgv_watch link; /* to the session's process; first. fd -1: none */
	struct fgv_slots *slots;
	uint32_t window;
	enum fgv_slots_phase phase;
	uint32_t seen;	  /* the serial that was looked at last */
	uint32_t serial;  /* of the request in hand */
	uint32_t session; /* the number of the window's last one */
	bool is_welcome;  /* it has come */
	uint32_t lanes_sent, lanes_attached;
	struct fgv_msg_welcome welcome;
	char end[FGV_END_TEXT_MAX]; /* why it has ended, as far as the process says */
};

/* What the slots are for. All of it outlives them. */
struct fgv_slots_scope {
	int loop;
	struct fgv_sessions *sessions;
	struct fgv_vm *vm;
	struct fgv_region *region;
	struct fgv_bell *bell;
	int qemu_fd; /* is shut down where QEMU makes a doorbell block */
	uid_t uid;   /* QEMU's, for the log */
	pid_t pid;
};

struct fgv_slots {
	struct fgv_watch bell; /* the daemon's vector; first */
	struct fgv_slots_scope scope;
	bool changed; /* the guest is to be told */
	bool blocked; /* a doorbell was made to block: none is rung any more */
	uint64_t period_ns;
	unsigned looks; /* in this period */
	uint64_t look_again_ns;
	struct fgv_log_limit complaints;
	struct fgv_slots_entry entries[FGV_REGION_WINDOWS_MAX];
};

/* For a new region. 0 or a negative errno. */
int fgv_slots_init(struct fgv_slots *slots, const struct fgv_slots_scope *scope);

/*
 * Ends the sessions, leaves the region, and tells the guest; the processes are reaped later, by
 * whatever else does.
 */
void fgv_slots_fini(struct fgv_slots *slots);

/* After processes have been reaped. */
void fgv_slots_reaped(struct fgv_slots *slots);

/* When fgv_slots_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_slots_deadline_ns(const struct fgv_slots *slots);
void fgv_slots_tick(struct fgv_slots *slots);

#endif
