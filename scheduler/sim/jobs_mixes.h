/* The job mixes of the MGB paper's section V-A, and the two machines that it ran them on. */
#ifndef FGV_SCHEDULER_SIM_JOBS_MIXES_H
#define FGV_SCHEDULER_SIM_JOBS_MIXES_H

#include "scheduler/sim/engine.h"
#include "scheduler/sim/jobs.h"

struct jobs_machine {
	const char *name;
	struct fgv_place_gpu gpus[4];
	uint32_t gpu_count;
	uint32_t workers; /* of MGB, as the paper found them best */
};

enum { JOBS_P100, JOBS_V100, JOBS_MACHINES };

extern const struct jobs_machine jobs_machines[JOBS_MACHINES];

/* So many large jobs to a small one. */
struct jobs_mix {
	const char *name; /* as in table I */
	uint32_t count, large;
};

#define JOBS_MIXES 8

extern const struct jobs_mix jobs_mixes[JOBS_MIXES];

/* Draws its jobs at random, in random order. */
void jobs_mix_draw(const struct jobs_mix *mix, struct engine *random,
		   const struct jobs_kind *jobs[JOBS_MAX]);

#endif
