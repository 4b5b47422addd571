/*
 * Several GPUs with a scheduler each, on one virtual clock, and VMs of which some are gangs: for
 * the tests of scheduler/gangs.h. A VM's part on a GPU is busy, or has bursts of work and pauses. A
 * holder keeps its GPU until its slice or its burst ends, and a little longer. Each step checks
 * that no GPU is idle while somebody asks for it, and what the VMs got of each GPU beside each
 * other.
 */
#ifndef FGV_TESTS_TEST_GANGS_WORLD_H
#define FGV_TESTS_TEST_GANGS_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/gangs.h"
#include "scheduler/sched.h"

#define WORLD_GPUS     4
#define WORLD_VMS      6
#define WORLD_SLICE_NS 6000000ull
#define WORLD_DRAIN_NS 300000ull /* that a holder is late at most */

struct part {
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session; /* NULL: it has no part here */
	enum { PART_IDLE, PART_WAITING, PART_HOLDING } state;
	uint64_t burst_ns, pause_ns; /* at most; 0: never pauses */
	uint64_t left_ns;	     /* of the burst */
	uint64_t wake_ns;
	uint64_t asked_ns;
	uint64_t used_ns;
	uint64_t max_wait_ns;
};

struct vm {
	uint32_t weight;
	struct fgv_gang *gang; /* NULL: its parts know nothing of each other */
	struct part part[WORLD_GPUS];
	uint64_t together_ns; /* for which all its parts that are not idle held, and two at least */
	uint64_t apart_ns;    /* for which some did, and others waited */
	uint64_t max_turns_apart_ns; /* the longest time with work on several, but never on all */
	uint64_t last_together_ns;
};

struct gpu {
	struct fgv_sched *sched;
	struct vm *holder;
	uint64_t granted_ns, charged_ns, end_ns; /* the limit, or UINT64_MAX */
	uint64_t late_ns;
};

struct gangs_world {
	uint64_t seed, now_ns;
	struct fgv_gangs *gangs;
	unsigned gpus, vms;
	struct gpu gpu[WORLD_GPUS];
	struct vm vm[WORLD_VMS];
	/* By GPU and pair: how far the first is ahead in service by weight, and the least of that.
	 */
	double ahead[WORLD_GPUS][WORLD_VMS][WORLD_VMS];
	double least[WORLD_GPUS][WORLD_VMS][WORLD_VMS];
	double worst; /* of what a VM was ahead of one that is no gang, in slices allowed */
};

uint64_t gangs_draw(struct gangs_world *world, uint64_t below);

void gangs_open(struct gangs_world *world, unsigned gpus, uint64_t seed);
void gangs_close(struct gangs_world *world);

/* A VM with parts on the GPUs in @gpus, bits, which asks for all of them at once. */
struct vm *gangs_add(struct gangs_world *world, uint32_t weight, uint32_t gpus, bool is_gang);

/* It is gone, whatever it does. */
void gangs_remove(struct gangs_world *world, struct vm *vm);

void gangs_run(struct gangs_world *world, uint64_t until_ns);

#endif
