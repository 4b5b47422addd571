/*
 * The steps to another configuration; see live_step.h.
 */
#define _GNU_SOURCE
#include "backend/live_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/session.h"
#include "common/log.h"
#include "common/util.h"

/* --- Preparing ------------------------------------------------------------------ */

static void free_step(struct fgv_live_step *step)
{
	for (size_t i = 0; step->copies && i < step->next->vm_count; i++)
		fgv_config_free_vm(&step->copies[i]);
	free(step->copies);
	free(step->is_new);
}

static int allocate(struct fgv_live_step *step)
{
	size_t count = step->next->vm_count;

	step->list = calloc(count, sizeof(struct fgv_vm *));
	step->copies = calloc(count, sizeof(*step->copies));
	step->is_new = calloc(count, sizeof(*step->is_new));
	return step->list && step->copies && step->is_new ? 0 : -ENOMEM;
}

/* One that runs gets a copy of what it will be. */
static int prepare_vm(struct fgv_live_step *step, size_t i, char *why, size_t why_len)
{
	const struct fgv_config_vm *next = &step->next->vms[i];
	const struct fgv_live_parts *parts = step->parts;
	struct fgv_vm *vm = fgv_vms_find(parts->vms, next->name);
	int ret;

	if (!vm) {
		ret = fgv_vms_make(parts->vms, next, parts->devices, &vm, why, why_len);
		step->is_new[i] = !ret;
	} else {
		ret = fgv_config_copy_vm(&step->copies[i], next);
		if (ret)
			snprintf(why, why_len, "out of memory");
	}
	if (!ret)
		step->list[i] = vm;
	return ret;
}

static int open_sockets(const struct fgv_live_step *step, char *why, size_t why_len)
{
	const struct fgv_live_parts *parts = step->parts;
	int ret = 0;

	for (size_t i = 0; i < step->next->vm_count && !ret; i++) {
		const struct fgv_config_vm *vm = &step->next->vms[i];

		if (vm->socket)
			ret = fgv_doors_open(parts->doors, vm->socket, why, why_len);
		if (!ret && vm->ivshmem)
			ret = parts->guests.open(vm, why, why_len);
	}
	return ret;
}

static void settle_sockets(const struct fgv_live_parts *parts)
{
	fgv_doors_settle(parts->doors);
	parts->guests.settle();
}

static void take_back(struct fgv_live_step *step)
{
	settle_sockets(step->parts);
	for (size_t i = 0; step->list && step->is_new && i < step->next->vm_count; i++) {
		if (step->is_new[i])
			fgv_vms_unmake(step->parts->vms, step->list[i]);
	}
	free(step->list);
	free_step(step);
}

int fgv_live_step_prepare(struct fgv_live_step *step, const struct fgv_live_parts *parts,
			  const struct fgv_config *next, char *why, size_t why_len)
{
	int ret;

	*step = (struct fgv_live_step){.parts = parts, .next = next};
	ret = allocate(step);
	if (ret)
		snprintf(why, why_len, "out of memory");
	for (size_t i = 0; i < next->vm_count && !ret; i++)
		ret = prepare_vm(step, i, why, why_len);
	if (!ret)
		ret = open_sockets(step, why, why_len);
	if (ret)
		take_back(step);
	return ret;
}

/* --- Committing ----------------------------------------------------------------- */

static struct fgv_sched_shares shares_of(const struct fgv_config_vm *config)
{
	return (struct fgv_sched_shares){
		.request = (uint32_t)config->request,
		.limit = (uint32_t)config->limit,
		.bound_ns = config->slo_ns,
	};
}

static bool has_same_shares(const struct fgv_config_vm *a, const struct fgv_config_vm *b)
{
	return a->request == b->request && a->limit == b->limit && a->slo_ns == b->slo_ns;
}

/* Both configurations keep their promises, so nothing but memory can be short. */
static void set_shares(struct fgv_vm *vm, const struct fgv_sched_shares *shares)
{
	int ret = fgv_vm_set_shares(vm, shares);

	if (ret)
		fgv_error_of(FGV_LOG_VM(vm->config->name), "its shares can't be changed: %s",
			     strerror(-ret));
}

/* Until all others have theirs @vm is promised nothing that is not promised before and after. */
static void relax_shares(struct fgv_vm *vm, const struct fgv_config_vm *next)
{
	const struct fgv_sched_shares shares = {
		.request = (uint32_t)fgv_min_u64(vm->config->request, next->request),
		.limit = (uint32_t)fgv_max_u64(vm->config->limit, next->limit),
	};

	if (!has_same_shares(vm->config, next))
		set_shares(vm, &shares);
}

static void limit_group(const struct fgv_live_parts *parts, const struct fgv_vm *vm)
{
	int ret = fgv_cgroups_limit(parts->vms->cgroups, vm->config, fgv_vm_threads(vm->config));

	if (ret)
		fgv_error_of(FGV_LOG_VM(vm->config->name),
			     "the limits of its control group can't be changed: %s",
			     strerror(-ret));
}

static bool has_same_limits(const struct fgv_config_vm *a, const struct fgv_config_vm *b)
{
	return a->host_memory_bytes == b->host_memory_bytes && a->processors == b->processors &&
	       a->sessions == b->sessions;
}

/* A VM that runs on gets the values of @next, which is taken over. */
static void change_vm(const struct fgv_live_parts *parts, struct fgv_vm *vm,
		      struct fgv_config_vm *next)
{
	const struct fgv_sched_shares shares = shares_of(next);
	bool is_share_new = !has_same_shares(vm->config, next);
	bool is_limit_new = !has_same_limits(vm->config, next);
	bool has_more_sessions = next->sessions > vm->config->sessions;
	int ret = 0;

	if (vm->config->weight != next->weight)
		ret = fgv_vm_set_weight(vm, (uint32_t)next->weight);
	if (!ret && vm->config->priority != next->priority)
		ret = fgv_vm_set_priority(vm, (uint32_t)next->priority);
	if (ret)
		fgv_error_of(FGV_LOG_VM(next->name), "its weight or priority can't be changed: %s",
			     strerror(-ret));
	fgv_vm_take_config(vm, next);
	if (is_share_new)
		set_shares(vm, &shares);
	if (is_limit_new)
		limit_group(parts, vm);
	if (has_more_sessions)
		fgv_sessions_limit_threads(parts->sessions, vm);
}

/* Nothing is promised any more to what leaves. */
static void release(struct fgv_vm *vm)
{
	const struct fgv_sched_shares none = {.limit = FGV_SCHED_WHOLE};
	const struct fgv_sched_shares now = shares_of(vm->config);

	if (now.request || now.limit != none.limit || now.bound_ns)
		set_shares(vm, &none);
}

static void relax_all(const struct fgv_live_step *step)
{
	const struct fgv_vms *vms = step->parts->vms;
	struct fgv_vm *vm;

	LIST_FOREACH(vm, &vms->leaving, link)
		release(vm);
	for (size_t i = 0; i < vms->count; i++) {
		if (!step->is_new[i])
			relax_shares(vms->list[i], &step->copies[i]);
	}
}

static void end_removed(const struct fgv_live_parts *parts)
{
	const struct fgv_vm *vm;

	LIST_FOREACH(vm, &parts->vms->leaving, link)
		fgv_sessions_end_vm(parts->sessions, vm,
				    "the host's administrator has removed its VM");
}

/* MPS limits its clients by their VMs' quotas when they start; those that are ready have started.
 */
static void limit_clients(const struct fgv_live_parts *parts)
{
	if (!parts->warm->mps->keeper || !fgv_mps_limit_clients(parts->config, parts->devices))
		return;
	for (unsigned i = 0; i < parts->devices->count; i++)
		fgv_warm_suspect(parts->warm, i);
}

void fgv_live_step_commit(struct fgv_live_step *step)
{
	const struct fgv_live_parts *parts = step->parts;
	struct fgv_vms *vms = parts->vms;

	fgv_vms_replace(vms, step->list, step->next->vm_count);
	relax_all(step);
	for (size_t i = 0; i < vms->count; i++) {
		const struct fgv_sched_shares shares = shares_of(vms->list[i]->config);

		if (step->is_new[i])
			set_shares(vms->list[i], &shares);
		else
			change_vm(parts, vms->list[i], &step->copies[i]);
	}
	settle_sockets(parts);
	end_removed(parts);
	fgv_warm_configure(parts->warm);
	limit_clients(parts);
	fgv_vms_reap(vms);
	free_step(step);
}
