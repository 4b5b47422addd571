/*
 * A session of a vGPU process within this process: its dispatcher and handlers on a soft GPU, and
 * its guest's side of the window. The daemon's part, which gives it the grant, is here, too. It may
 * have a second GPU, and with it a part of the same kind (backend/vgpu/parts.h); both dispatchers
 * take turns in one thread.
 */
#ifndef FGV_TESTS_FUZZ_SLOTS_SESSION_H
#define FGV_TESTS_FUZZ_SLOTS_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/vgpu/session.h"
#include "backend/vgpu/parts.h"
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
	unsigned number; /* 0: the first part */
	uint64_t units;	 /* multiprocessors that the daemon gives it; 0: all */
	struct fgv_grant *grants[FGV_ENGINES];
	int grant_fds[FGV_ENGINES];
	struct fgv_accounts accounts;
	struct fgv_allowance allowance;
	struct slots_lane lanes[SLOTS_LANES];
	uint64_t ticket;
	/* Gets what is replied. */
	void (*on_reply)(void *of, const struct fgv_slot *slot);
	void *of;
	struct fgv_parts parts; /* of the first one, where there is another */
	/* Which is left to the process's end, since a copy may be on its way there. */
	void *word;
	bool has_ended; /* the guest broke the rules */
};

#define SLOTS_PARTS 2

/*
 * How a session begins: engines that copy are granted by themselves, memory may leave the GPU, it
 * has multiprocessors of its own, as in a green context.
 */
enum { SLOTS_ENGINES = 1, SLOTS_MOVABLE = 2, SLOTS_UNITS = 4 };

/* What the daemon wants of the memory of a session. */
enum { SLOTS_FROZEN = 1, SLOTS_OUT = 2, SLOTS_ALONE = 4, SLOTS_PAGED = 8 };

/* All @count parts of a session; on_reply and of are set. Whatever fails here aborts. */
void slots_begin(struct slots_session *parts, unsigned count, unsigned how);
/* Checks that nothing is left charged. */
void slots_end(struct slots_session *parts, unsigned count);

/* Publishes a message of @op, as it is. */
void slots_post(struct slots_session *slots, unsigned lane, uint16_t op, const void *message,
		uint32_t len);
/* Publishes a slot as it is, but for its mark. */
void slots_publish(struct slots_session *slots, unsigned lane, const struct fgv_slot *slot);
/* Some turns of all parts; and until no GPU has anything more to do, or for a while. */
void slots_turn(struct slots_session *parts, unsigned count);
void slots_settle(struct slots_session *parts, unsigned count);
/* Takes the grants; they are given again when they are asked for. */
void slots_take_grants(struct slots_session *slots);
/* It gets these multiprocessors with the next grant, which comes soon, if it had some before. */
void slots_set_units(struct slots_session *slots, unsigned set);
/* The daemon wants all of these, and no others, from now on. */
void slots_want(struct slots_session *slots, unsigned wants);

/* The arena, and where in the window it lies. */
uint8_t *slots_arena(const struct slots_session *slots, uint64_t off);
uint64_t slots_arena_off(const struct slots_session *slots);
uint64_t slots_arena_len(const struct slots_session *slots);

#endif
