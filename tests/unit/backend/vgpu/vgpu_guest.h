/*
 * Starts the real fairgv-vgpu on a soft GPU, as the daemon does, and speaks with it as a
 * guest does, but at the level of slots: so that what is sent can be wrong. Everything that
 * can go wrong on this side fails the test.
 *
 * It is told that it shares its context, since then it takes all down in order at its end.
 */
#ifndef FGV_TESTS_VGPU_GUEST_H
#define FGV_TESTS_VGPU_GUEST_H

#include <stdbool.h>
#include <sys/types.h>
#include "api/gpu_wire.h"
#include "backend/sched/arbiter.h"
#include "backend/sched/grant.h"
#include "backend/shared.h"
#include "shmring/heap.h"
#include "shmring/ring.h"
#include "shmring/window.h"

#define VGPU_LANES  4
#define VGPU_QUOTA  (48ull << 20)
#define VGPU_MEMORY (64ull << 20)
#define VGPU_SLICE  6000000ull
#define VGPU_IDLE   100000ull
#define VGPU_IDLE_LONG 200000000ull

/* Waits look this often at whether the process lives, and fail after so long. */
#define VGPU_LOOK_MS	 20
#define VGPU_PATIENCE_MS 60000

struct vgpu_lane {
	struct fgv_ring requests, replies;
	struct fgv_heap heap;
	uint32_t reclaimed; /* position up to which the heap has been given back */
	uint32_t calls;
	int doorbell_fd;
};

/* A grant of an engine that copies, by the names of those of the one that computes. */
struct vgpu_copying {
	int grant_fd, grant_bell_fd, sched_bell_fd;
	struct fgv_grant *grant;
};

struct vgpu {
	pid_t pid;
	int control_fd, connection_fd, window_fd, doorbell_fd, accounts_fd, log_fd;
	int seat_fds[FGV_SEAT_FDS];
	int grant_fd, grant_bell_fd, sched_bell_fd;
	int *images_fd;	     /* where the keeper's end of its socket goes; NULL: there is none */
	bool leaves_at_once; /* it has its context for itself; set before the order is sent */
	struct fgv_window window;
	struct fgv_msg_welcome welcome;
	struct fgv_accounts *accounts;
	struct fgv_allowance *allowance;
	int allowance_fd;
	struct fgv_grant *grant; /* given, without a limit, where a test does not change it */
	bool has_engines;	 /* granted by themselves; set before the setup is sent */
	bool fills_gaps;	 /* likewise: gaps are learned, and a turn without work lasts */
	bool movable;		 /* its memory may move; likewise */
	uint32_t slicing;	 /* as in the setup; set before */
	uint64_t slice_blocks;
	uint64_t slice_ns;		/* set before the setup is sent; 0: VGPU_SLICE */
	struct vgpu_copying copying[2]; /* in and out, not given */
	uint64_t ticket;
	struct vgpu_lane lanes[VGPU_LANES];
	bool is_part; /* a further GPU of a session: see vgpu_send_part() */
};

/* The process, which has been told nothing. */
void vgpu_spawn(struct vgpu *vgpu);
/* Has it open a soft GPU with so much memory; and what it says of that. */
void vgpu_send_prepare(struct vgpu *vgpu, uint64_t memory_bytes);
void vgpu_read_report(struct vgpu *vgpu, struct fgv_prepared *report);
/* Sends the setup; @setup NULL: a right one. */
void vgpu_send_setup(struct vgpu *vgpu, const struct fgv_setup *setup);
void vgpu_right_setup(const struct vgpu *vgpu, struct fgv_setup *setup);
/* Reads the welcome and maps the window, if there is one. */
void vgpu_read_welcome(struct vgpu *vgpu);
/*
 * A further GPU of @vgpu's session, behind a setup that says that it comes; and its welcome, behind
 * the first one. @part then is asked as any other, but ends with @vgpu: vgpu_give_back() is all
 * that is left to do for it. @ordinal: of the soft GPU.
 */
void vgpu_send_part(struct vgpu *vgpu, struct vgpu *part, uint32_t ordinal);
void vgpu_read_part(struct vgpu *vgpu, struct vgpu *part);
void vgpu_give_back(struct vgpu *vgpu);
void vgpu_attach_lanes(struct vgpu *vgpu);
/* Sends a lane message with @fd (-1: none); the acknowledgement's status. */
uint32_t vgpu_send_lane(struct vgpu *vgpu, uint32_t lane, int fd);
/* All of that after vgpu_spawn(), with all lanes attached; and with it. */
void vgpu_begin(struct vgpu *vgpu);
void vgpu_start(struct vgpu *vgpu);

/*
 * Gives the grant as the daemon does, for @limit_ns of use from now or FGV_GRANT_NO_LIMIT;
 * where it is with the process already, changes its limit, or takes it back if it is idle.
 */
void vgpu_grant(struct vgpu *vgpu, uint64_t limit_ns);
/* Waits until the grant is in @state. */
void vgpu_await_grant(struct vgpu *vgpu, enum fgv_grant_state state);
/* Takes it from a process that has no work. It may go on asking for it for a moment. */
void vgpu_take_grant(struct vgpu *vgpu);
/* Waits until the process asks for the grant. */
void vgpu_await_wants(struct vgpu *vgpu);
/*
 * Gives turns of @slice_ns, as the daemon does, until @lane has a reply. One turn may not do: it goes
 * by without work where the process runs late.
 */
void vgpu_grant_until_reply(struct vgpu *vgpu, uint64_t slice_ns, uint32_t lane);
/* @vgpu with the grant of engine @i that copies, for these functions alone. */
struct vgpu vgpu_copying(const struct vgpu *vgpu, unsigned i);

/* Wakes the dispatcher if it sleeps. */
void vgpu_wake(struct vgpu *vgpu);
/* A slot with the next ticket. */
struct fgv_slot vgpu_slot(struct vgpu *vgpu, uint16_t op, uint32_t len);
/* Publishes a slot as it is, but for its mark. Waits for room; false: the process has ended. */
bool vgpu_publish(struct vgpu *vgpu, uint32_t lane, const struct fgv_slot *slot);
/* Posts a request and its message, by the rules. */
bool vgpu_post(struct vgpu *vgpu, uint32_t lane, uint16_t op, const void *message, uint32_t len);
/*
 * Waits for the next reply of @lane, sleeping on its doorbell. Its status; its data, if
 * there is no failure, is as long as the operation says.
 */
uint32_t vgpu_wait(struct vgpu *vgpu, uint32_t lane, void *reply);
/* A post and a wait. */
uint32_t vgpu_call(struct vgpu *vgpu, uint32_t lane, uint16_t op, const void *message, uint32_t len,
		   void *reply);

/* Memory of the arena at @off from its beginning. */
void *vgpu_arena(struct vgpu *vgpu, uint64_t off);
bool vgpu_has_ended(struct vgpu *vgpu);

/*
 * Waits for the process to end, which it must, and not by a signal: its exit status, and
 * how many log lines it has written. Gives everything back.
 */
int vgpu_finish(struct vgpu *vgpu, unsigned *lines);
/* Hangs up first. */
int vgpu_hang_up(struct vgpu *vgpu, unsigned *lines);
/* Hangs up after keeping the rules: a success, and no log line. */
void vgpu_leave(struct vgpu *vgpu);
/* Hangs up, if the session was not ended for what the guest did; that is one log line. */
void vgpu_end_orderly(struct vgpu *vgpu);

#endif
