/*
 * All VMs; see vms.h.
 */
#include "backend/vms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fgv_vms_init(struct fgv_vms *vms, struct fgv_cgroups *cgroups)
{
	*vms = (struct fgv_vms){.cgroups = cgroups};
	LIST_INIT(&vms->leaving);
}

static bool has_name(const struct fgv_vms *vms, const struct fgv_vm *vm)
{
	const struct fgv_vm *other;

	if (fgv_vms_find(vms, vm->config->name))
		return true;
	LIST_FOREACH(other, &vms->leaving, link) {
		if (!strcmp(other->config->name, vm->config->name))
			return true;
	}
	return false;
}

void fgv_vms_unmake(const struct fgv_vms *vms, struct fgv_vm *vm)
{
	fgv_keeper_end(&vm->keeper);
	/* Of two VMs that had this name one after the other, the last one to go takes the group. */
	if (vm->cgroup_fd >= 0)
		close(vm->cgroup_fd);
	if (vm->cgroup_fd >= 0 && !has_name(vms, vm))
		fgv_cgroups_close(vms->cgroups, vm->config->name);
	fgv_vm_fini(vm);
	free(vm);
}

void fgv_vms_fini(struct fgv_vms *vms)
{
	struct fgv_vm *vm;

	while (vms->count)
		fgv_vms_unmake(vms, vms->list[--vms->count]);
	while ((vm = LIST_FIRST(&vms->leaving))) {
		LIST_REMOVE(vm, link);
		fgv_vms_unmake(vms, vm);
	}
	free(vms->list);
	vms->list = NULL;
}

int fgv_vms_make(const struct fgv_vms *vms, const struct fgv_config_vm *config,
		 const struct fgv_devices *devices, struct fgv_vm **out, char *why, size_t why_len)
{
	struct fgv_vm *vm = calloc(1, sizeof(*vm));
	int ret = vm ? fgv_vm_init(vm, config, devices) : -ENOMEM;

	if (ret) {
		snprintf(why, why_len, "vm %s: %s", config->name, strerror(-ret));
		free(vm);
		return ret;
	}
	ret = fgv_cgroups_open(vms->cgroups, config, fgv_vm_threads(config), why, why_len);
	if (ret < 0) {
		fgv_vms_unmake(vms, vm);
		return ret;
	}
	vm->cgroup_fd = ret;
	*out = vm;
	return 0;
}

void fgv_vms_replace(struct fgv_vms *vms, struct fgv_vm **list, size_t count)
{
	struct fgv_vm **before = vms->list;
	size_t before_count = vms->count;

	vms->list = list;
	vms->count = count;
	for (size_t i = 0; i < before_count; i++) {
		if (!fgv_vms_has(vms, before[i]))
			LIST_INSERT_HEAD(&vms->leaving, before[i], link);
	}
	free(before);
}

static uint64_t gpu_ns(const struct fgv_share *share)
{
	struct fgv_gpusched_stats stats;

	fgv_gpusched_vgpu_stats(share->vgpu, &stats);
	return stats.sched.gpu_ns;
}

static void remember_use(struct fgv_vms *vms, const struct fgv_vm *vm)
{
	for (unsigned i = 0; i < vm->share_count; i++)
		vms->gone_ns[vm->shares[i].number] += gpu_ns(&vm->shares[i]);
}

uint64_t fgv_vms_gone_ns(const struct fgv_vms *vms, size_t device)
{
	uint64_t sum_ns = vms->gone_ns[device];
	const struct fgv_vm *vm;

	LIST_FOREACH(vm, &vms->leaving, link) {
		const struct fgv_share *share = fgv_vm_share_of(vm, (unsigned)device);

		sum_ns += share ? gpu_ns(share) : 0;
	}
	return sum_ns;
}

void fgv_vms_reap(struct fgv_vms *vms)
{
	struct fgv_vm *vm, *after;

	for (size_t i = 0; i < vms->count; i++)
		fgv_keeper_reap(&vms->list[i]->keeper);
	for (vm = LIST_FIRST(&vms->leaving); vm; vm = after) {
		after = LIST_NEXT(vm, link);
		fgv_keeper_reap(&vm->keeper);
		if (!fgv_vm_is_empty(vm))
			continue;
		remember_use(vms, vm);
		LIST_REMOVE(vm, link);
		fgv_vms_unmake(vms, vm);
	}
}

struct fgv_vm *fgv_vms_find(const struct fgv_vms *vms, const char *name)
{
	for (size_t i = 0; i < vms->count; i++) {
		if (!strcmp(vms->list[i]->config->name, name))
			return vms->list[i];
	}
	return NULL;
}

bool fgv_vms_has(const struct fgv_vms *vms, const struct fgv_vm *vm)
{
	for (size_t i = 0; i < vms->count; i++) {
		if (vms->list[i] == vm)
			return true;
	}
	return false;
}
