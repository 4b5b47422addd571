/* One experiment; see share_trial.h. */
#include "scheduler/sim/share_trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void trial_fini(struct trial *trial)
{
	free(trial->alone);
	free(trial->progress);
	free(trial->result.vm);
}

int trial_init(struct trial *trial, const struct share_params *params, struct share_vm *vms,
	       uint32_t count)
{
	*trial = (struct trial){.params = *params, .vms = vms, .count = count, .kinds = count};
	trial->alone = calloc(count, sizeof(*trial->alone));
	trial->progress = calloc(count, sizeof(*trial->progress));
	trial->result.vm = calloc(count, sizeof(*trial->result.vm));
	if (trial->alone != NULL && trial->progress != NULL && trial->result.vm != NULL)
		return 0;
	trial_fini(trial);
	return -ENOMEM;
}

static double work_of(const struct share_vm_result *vm)
{
	return vm->work_ns[SHARE_COMPUTE] + vm->work_ns[SHARE_COPY_IN] +
	       vm->work_ns[SHARE_COPY_OUT];
}

int trial_alone(struct trial *trial)
{
	struct share_params params = trial->params;
	struct share_vm_result vm;
	struct share_result result = {.vm = &vm};
	int err = 0;

	params.policy = &fgv_policy_fair;
	params.gate = SHARE_MAKESPAN;
	params.measure_ns = fgv_min_u64(params.measure_ns, 3 * FGV_NS_PER_SEC);
	for (uint32_t i = 0; i < trial->count && err == 0; i++) {
		if (i < trial->kinds) {
			memset(&vm, 0, sizeof(vm));
			err = share_run(&params, &trial->vms[i], 1, &result);
			trial->alone[i] = work_of(&vm);
		} else {
			trial->alone[i] = trial->alone[i % trial->kinds];
		}
	}
	return err;
}

int trial_run(struct trial *trial)
{
	double least = INFINITY, most = 0, weights = 0;
	int err;

	memset(trial->result.vm, 0, trial->count * sizeof(*trial->result.vm));
	trial->sum = trial->longest_wait_ms = 0;
	err = share_run(&trial->params, trial->vms, trial->count, &trial->result);
	for (uint32_t i = 0; i < trial->count; i++)
		weights += trial->vms[i].weight;
	for (uint32_t i = 0; i < trial->count && err == 0; i++) {
		const struct share_vm_result *vm = &trial->result.vm[i];
		double due = trial->vms[i].weight / weights;

		trial->progress[i] = work_of(vm) / trial->alone[i];
		trial->sum += trial->progress[i];
		least = fmin(least, trial->progress[i] / due);
		most = fmax(most, trial->progress[i] / due);
		trial->longest_wait_ms =
			fmax(trial->longest_wait_ms, (double)vm->longest_wait_ns / FGV_NS_PER_MS);
	}
	trial->mmr = least / most;
	return err;
}

static bool is_tried(const struct fgv_policy *policy)
{
	return policy->pick != NULL && !policy->time_shared;
}

int trial_policies(struct trial *trial, int (*rows)(struct trial *, const void *, struct report *),
		   const void *arg, struct report *report)
{
	int err = 0;

	for (size_t p = 0; fgv_policies[p] != NULL && err == 0; p++) {
		if (!is_tried(fgv_policies[p]))
			continue;
		trial->params.policy = fgv_policies[p];
		err = rows(trial, arg, report);
	}
	return err;
}
