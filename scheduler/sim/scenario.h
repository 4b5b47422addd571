/* A scenario of one's own: a libconfig file, described in fairgv-sim(1). */
#ifndef FGV_SCHEDULER_SIM_SCENARIO_H
#define FGV_SCHEDULER_SIM_SCENARIO_H

#include "scheduler/sim/report.h"
#include "scheduler/sim/sim.h"

#define SCENARIO_POLICIES_MAX 16

struct scenario {
	struct sim_params params;
	const struct fgv_policy *policies[SCENARIO_POLICIES_MAX];
	size_t policy_count;
	struct sim_vm vms[SIM_VMS_MAX];
	unsigned int vm_count;
	char names[SIM_VMS_MAX][32];
};

/*
 * Reads @path over the defaults. -EINVAL (or another negative errno) with one line in @why:
 * file, line, key, and what is wrong.
 */
int scenario_read(struct scenario *scenario, const char *path, char *why, size_t size);

/* Runs it under each of its policies: a row per VM and policy. */
int scenario_run(const struct scenario *scenario, struct report *report);

#endif
