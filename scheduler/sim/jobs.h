/*
 * A batch of jobs on the GPUs of one host, placed by the rules of scheduler/place.h: the
 * experiment of the paper on MGB. Workers take jobs from a queue that is full from the beginning.
 * A job works on the processor, then waits until it is placed, and then holds its memory on one
 * GPU until its end, while kernels and other work alternate. Kernels that run on a GPU at the same
 * time share its warps (MPS). What is assumed is in docs/design/0002-simulator.md.
 *
 * One call of jobs_run() is one run; the same input gives the same output.
 */
#ifndef FGV_SCHEDULER_SIM_JOBS_H
#define FGV_SCHEDULER_SIM_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/place.h"

#define JOBS_MAX 128

struct jobs_kind {
	const char *name;
	double memory_gib;	      /* on the GPU, as long as it is there */
	double host_s;		      /* before it needs the GPU */
	double task_s;		      /* from there to its end, alone */
	double kernels;		      /* the part of that in which a kernel runs */
	uint32_t blocks, block_warps; /* of these */
	uint32_t count;		      /* how many there are, one after the other */
};

struct jobs_params {
	const struct fgv_place_gpu *gpus;
	uint32_t gpu_count;
	const struct fgv_place_rule *rule;
	uint32_t workers;
	uint32_t per_gpu; /* jobs on a GPU at most, of the rule `cores`; 0: no limit */
	double claim; /* the part of a GPU's warps that a job says it needs at most: 1, or less */
	uint64_t seed;
};

struct jobs_result {
	double makespan_s;
	double turnaround_s; /* from the beginning to a job's end, the mean; of those that end well
			      */
	double waited_s;     /* to be placed, the mean */
	double slowdown;     /* of kernels: their time over their time alone */
	uint32_t crashed;    /* their GPU had too little memory when they came */
};

/* 0 or -EINVAL, -ENOMEM; -E2BIG if a job fits no GPU. */
int jobs_run(const struct jobs_params *params, const struct jobs_kind *const *jobs, uint32_t count,
	     struct jobs_result *result);

#endif
