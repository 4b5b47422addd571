/*
 * Applications that share a GPU's multiprocessors, as in the experiments of the SMGuard paper (Yu
 * et al.): each launches kernels of many blocks, one after the other. Either the GPU places blocks
 * wherever there is room, those of the kernel that came first before the others' (the paper's
 * MPS), or each kernel has the multiprocessors that the policy `smguard` grants its application.
 *
 * A multiprocessor holds a number of blocks of a kernel at a time, and room for one block is room
 * for another of that size, on whichever multiprocessor. A block takes the same time wherever it
 * runs: caches and memory are not modelled.
 *
 * Threads: none; all state is the caller's.
 */
#ifndef FGV_SCHEDULER_SIM_SPATIAL_WORLD_H
#define FGV_SCHEDULER_SIM_SPATIAL_WORLD_H

#include <stdint.h>
#include "scheduler/sim/sim.h"

#define SPATIAL_APPS	2
#define SPATIAL_SMS	13	   /* of the paper's GPU */
#define SPATIAL_ENDLESS UINT64_MAX /* kernels */

struct spatial_kernel {
	const char *name;
	uint32_t blocks;
	uint32_t per_sm; /* blocks at a time on a multiprocessor; a divisor of 240 */
	double ms;	 /* that it takes alone on the whole GPU */
};

enum spatial_mode {
	SPATIAL_MPS,
	SPATIAL_OWNED, /* by the policy, where each has its own */
	SPATIAL_LENT,  /* the same, where what its owner does not use is lent */
};

struct spatial_load {
	const struct spatial_kernel *kernel;
	uint64_t kernels; /* to run; those of the others end where only endless ones are left */
	uint64_t from_ns; /* the first is launched */
	uint64_t gap_ns;  /* mean of a random time from a kernel's end to the next; 0: none */
	uint32_t sms;	  /* reserved; 0: what others leave */
};

/* Of the kernels that are done: from launch to end, and from launch to the first block's start. */
struct spatial_result {
	uint64_t done;
	double mean_ms, wait_ms;
};

/* 0 or a negative errno. */
int spatial_together(const struct sim_params *params, enum spatial_mode mode,
		     const struct spatial_load loads[SPATIAL_APPS],
		     struct spatial_result results[SPATIAL_APPS]);

#endif
