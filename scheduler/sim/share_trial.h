/* One experiment on how a GPU is shared: VMs alone, and together under each policy. */
#ifndef FGV_SCHEDULER_SIM_SHARE_TRIAL_H
#define FGV_SCHEDULER_SIM_SHARE_TRIAL_H

#include "scheduler/sim/report.h"
#include "scheduler/sim/share.h"

/* The first part is the caller's, the rest is filled in; arrays are of @count. */
struct trial {
	struct share_params params;
	struct share_vm *vms;
	uint32_t count;
	uint32_t kinds; /* vms repeat after so many, but for their weights */

	double *alone;	  /* work per second, by trial_alone() */
	double *progress; /* against alone, by trial_run() like all below */
	struct share_result result;
	double sum, mmr, longest_wait_ms;
};

/* @vms are the caller's, and stay where they are. -ENOMEM. */
int trial_init(struct trial *trial, const struct share_params *params, struct share_vm *vms,
	       uint32_t count);
void trial_fini(struct trial *trial);

/* What each kind of VM does alone, with a gate that keeps nothing back. */
int trial_alone(struct trial *trial);
int trial_run(struct trial *trial);

/* @rows for each policy that picks by measured use; stops at the first error. */
int trial_policies(struct trial *trial, int (*rows)(struct trial *, const void *, struct report *),
		   const void *arg, struct report *report);

#endif
