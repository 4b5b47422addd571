/*
 * A small world on a virtual clock for the scheduler's property tests: one GPU that runs
 * requests one after the other, and clients that are always busy or sleep between bursts,
 * with requests of random length. A holder goes on until its slice is used up, it has
 * nothing left, or its limit says so; then it gives back, drained. Every step checks what
 * must hold always: nobody waits beside an idle GPU, and never more than one holds it.
 */
#ifndef FGV_TESTS_TEST_SCHED_WORLD_H
#define FGV_TESTS_TEST_SCHED_WORLD_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/sched.h"

#define WORLD_CLIENTS 64

/* As ck_assert(), without its system call each time: for what is checked millions of times. */
#define WORLD_MUST(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s:%d: %s", __FILE__, __LINE__, #condition);                 \
	} while (0)

struct client {
	struct fgv_sched_session *session;
	struct fgv_sched_vgpu *vgpu;
	uint64_t min_ns, max_ns; /* a request's length */
	uint32_t burst;		 /* requests until it sleeps; 0: never */
	uint64_t sleep_ns;	 /* at most; a random part of it */
	uint64_t pause_ns;	 /* that it sleeps at least */

	uint32_t left; /* requests before the next sleep */
	uint64_t wake_ns;
	bool asleep;
	uint64_t asked_ns;    /* for a grant; at the end of a slice it asks again */
	uint64_t woke_ns;     /* from its last sleep */
	uint64_t used_ns;     /* in all */
	uint64_t max_wait_ns; /* for a grant */
	uint64_t max_burst_ns; /* from asking until a burst was done */
};

struct world {
	struct fgv_sched *sched;
	struct client client[WORLD_CLIENTS];
	unsigned int clients;
	uint64_t now_ns;
	uint64_t seed;

	struct client *holder;
	uint64_t slice_ns; /* what the holder may use in this grant */
	uint64_t slice_used_ns;
	uint64_t grant_used_ns;
	uint64_t request_ns, request_end_ns; /* the one that runs */

	uint64_t grants;
	uint64_t trace; /* a hash of which session got the grant when */
	uint64_t starved;
	const void *last_starved; /* the vGPU */
	void (*check)(struct world *world);
	void *check_arg;
	bool may_idle; /* the policy may hold back all that wait */
};

void world_open(struct world *world, const struct fgv_policy *policy,
		const struct fgv_sched_params *params, uint64_t seed);
void world_close(struct world *world);

uint64_t world_draw(struct world *world, uint64_t below);

/* A VM with one session, or another session of the VM of @sibling. Asks at once. */
struct client *world_add(struct world *world, uint32_t weight, const struct client *sibling,
			 uint64_t min_ns, uint64_t max_ns);

void world_run(struct world *world, uint64_t until_ns);

#endif
