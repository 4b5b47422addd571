/*
 * The torture test of shmring: a guest of several threads and a host, each a process
 * or a thread, over a real window. Every request is known beforehand from its lane
 * and number: operation, length and content, so the receiver can tell a message that
 * was lost, doubled, torn or overwritten.
 */
#ifndef FGV_TESTS_TORTURE_H
#define FGV_TESTS_TORTURE_H

#include <stdbool.h>
#include <stdint.h>
#include "shmring/window.h"

#define TORTURE_LANES 4u

enum torture_op { TORTURE_POST = 1, TORTURE_CALL = 2 };

/*
 * How many messages each side has surely handed over: shared between processes, and
 * counted up after publishing. A survivor compares it with what arrived.
 */
struct score {
	uint64_t published[TORTURE_LANES]; /* by the guest */
	uint64_t replied[TORTURE_LANES];   /* by the host */
};

struct world {
	struct fgv_window window;
	struct score *score;
	int window_fd;
	int host_doorbell;
	int lane_doorbells[TORTURE_LANES];
	int host_socket; /* each side's hang-up descriptor */
	int guest_socket;
	uint64_t requests; /* per lane; the last is a call */
	uint64_t seed;
	uint64_t ticket; /* the guest's */
};

/* world.c */
void world_init(struct world *world, uint64_t requests, uint64_t seed);
void world_fini(struct world *world);

/* What request @number of @lane is. */
struct message {
	uint64_t key;
	uint16_t op;
	uint32_t len;
};
struct message message_of(const struct world *world, uint32_t lane, uint64_t number);
void message_fill(const struct message *message, void *data);
/* Ends the process if @data is not the message's content. */
void message_verify(const struct message *message, const void *data);
uint64_t reply_status(const struct message *message);

uint64_t random_u64(uint64_t *state);

/* Says what is wrong and ends the process. */
void torture_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/*
 * guest.c, host.c: play a side until all requests are done, 0, or the other side has
 * hung up, -ECONNRESET; anything else is a failure and ends the process.
 */
int guest_run(struct world *world);
int host_run(struct world *world);

#endif
