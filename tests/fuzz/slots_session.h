/*
 * A session of a vGPU process within this process: its dispatcher and handlers on a soft GPU, and
 * its guest's side of the window. The daemon's part, which gives it the grant, is here, too.
 */
#ifndef FGV_TESTS_FUZZ_SLOTS_SESSION_H
#define FGV_TESTS_FUZZ_SLOTS_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/vgpu/session.h"
#include "shmring/ring.h"

#define SLOTS_LANES	 4
#define SLOTS_MEMORY	 (16ull << 20)
#define SLOTS_QUOTA	 (12ull << 20)
#define SLOTS_WINDOW_LEN (4ull << 20)

struct slots_lane {
	struct fgv_ring requests, replies;
	uint32_t heap_at; /* where the next long message goes */
	uint32_t calls;
};

struct slots_session {
	struct fgv_session *session;
	struct fgv_grant *grants[FGV_ENGINES];
	int grant_fds[FGV_ENGINES];
	struct fgv_accounts accounts;
	struct fgv_allowance allowance;
	struct slots_lane lanes[SLOTS_LANES];
	uint64_t ticket;
	/* Gets what is replied. */
	void (*on_reply)(void *of, const struct fgv_slot *slot);
	void *of;
	bool has_ended; /* the guest broke the rules */
};

/* What the daemon wants of the memory of a session. */
enum { SLOTS_FROZEN = 1, SLOTS_OUT = 2, SLOTS_ALONE = 4, SLOTS_PAGED = 8 };

/*
 * @engines: those that copy are granted by themselves. @movable: memory may leave the GPU. Whatever
 * fails here aborts.
 */
void slots_begin(struct slots_session *slots, bool engines, bool movable);
/* Checks that nothing is left charged. */
void slots_end(struct slots_session *slots);

/* Publishes a message of @op, as it is. */
void slots_post(struct slots_session *slots, unsigned lane, uint16_t op, const void *message,
		uint32_t len);
/* Publishes a slot as it is, but for its mark. */
void slots_publish(struct slots_session *slots, unsigned lane, const struct fgv_slot *slot);
/* Some turns; and until the GPU has nothing more to do, or for a while. */
void slots_turn(struct slots_session *slots);
void slots_settle(struct slots_session *slots);
/* Takes the grants; they are given again when they are asked for. */
void slots_take_grants(struct slots_session *slots);
/* The daemon wants all of these, and no others, from now on. */
void slots_want(struct slots_session *slots, unsigned wants);

/* The arena, and where in the window it lies. */
uint8_t *slots_arena(const struct slots_session *slots, uint64_t off);
uint64_t slots_arena_off(const struct slots_session *slots);
uint64_t slots_arena_len(const struct slots_session *slots);

#endif
