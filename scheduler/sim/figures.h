/* The paper's experiments, each filling an empty report. */
#ifndef FGV_SCHEDULER_SIM_FIGURES_H
#define FGV_SCHEDULER_SIM_FIGURES_H

#include "scheduler/sim/report.h"
#include "scheduler/sim/sim.h"

/* Figure 4, 8, 9, 10 or 11; -EINVAL for any other. */
int figure_make(int number, const struct sim_params *params, struct report *report);

/* Figure 13 of the Gemini paper. */
int figure_gemini_13(const struct sim_params *params, struct report *report);

/* Table 2 and figure 18 of the FIKIT paper. */
int figure_fikit_table_2(const struct sim_params *params, struct report *report);
int figure_fikit_18(const struct sim_params *params, struct report *report);
/* The same by name, or fikit-16, -17, -19, -20, -21 or -table-3; -EINVAL for any other. */
int figure_fikit(const char *name, const struct sim_params *params, struct report *report);

/* smguard-11 to -15 of the SMGuard paper; -EINVAL for any other. */
int figure_smguard(const char *name, const struct sim_params *params, struct report *report);

/* Table 3, against what the simulator makes of each row alone. */
int figure_workloads(const struct sim_params *params, struct report *report);

/* One experiment: the first part is the caller's, the rest is filled in. */
struct figure_run {
	const struct sim_params *params;
	const struct fgv_policy *policy;
	const struct sim_vm *vms;
	unsigned int count;

	double alone[SIM_VMS_MAX];    /* kernels per second, by figure_alone() */
	double progress[SIM_VMS_MAX]; /* against alone, by figure_together() like all below */
	struct sim_result result;
	double mmr, overhead;
};

/* The rates of each VM's program alone on its processor and the GPU. */
int figure_alone(struct figure_run *run);

/* Runs all, and computes the paper's metrics (section 5.4.1). */
int figure_together(struct figure_run *run);

#endif
