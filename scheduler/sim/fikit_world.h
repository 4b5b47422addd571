/*
 * Two services that share a GPU, as in the experiments of the FIKIT paper (arXiv 2311.10359): one
 * is urgent and has gaps between its kernels, the other one has none. First come, first served as
 * the GPU's own sharing is, or under the policy, on the library alone: with the rules by which a
 * vGPU process and the daemon use it, without holding, as in the paper.
 *
 * Threads: none; all state is the caller's.
 */
#ifndef FGV_SCHEDULER_SIM_FIKIT_WORLD_H
#define FGV_SCHEDULER_SIM_FIKIT_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include "scheduler/sim/sim.h"

#define FIKIT_SERVICES 2
#define FIKIT_ENDLESS  UINT64_MAX /* tasks */

/* A task is so many kernels, each with a gap behind it. */
struct fikit_service {
	const char *name;
	uint32_t kernels;
	uint64_t kernel_ns, gap_ns, long_gap_ns;
	uint32_t priority;
	uint32_t last_long; /* so many of the last have the long gap; 0: every eighth one has */
};

struct fikit_load {
	const struct fikit_service *service;
	uint64_t tasks;	   /* to do */
	uint64_t every_ns; /* one of them comes; 0: each follows the one before */
};

/* Of the tasks that were done: how long each took from its coming. */
struct fikit_result {
	uint64_t done;
	double done_s; /* when the last one was */
	double mean_ms, deviation_ms;
};

/*
 * Both loads at once, until those that are not endless are done, or, if @seconds is not 0, for so
 * long. 0 or a negative errno.
 */
int fikit_together(const struct sim_params *params, bool is_fikit,
		   const struct fikit_load loads[FIKIT_SERVICES], double seconds,
		   struct fikit_result results[FIKIT_SERVICES]);

/* How long so many tasks take alone, one after the other. */
double fikit_alone_s(const struct fikit_service *service, uint64_t tasks);

#endif
