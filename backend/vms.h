/*
 * All VMs that there are: those of the configuration, in its order, and those that have been taken
 * out of it and whose sessions have not quite ended. A VM stays where it is as long as there is it.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_VMS_H
#define FGV_BACKEND_VMS_H

#include "backend/guard/cgroup.h"
#include "backend/vm.h"

struct fgv_vms {
	struct fgv_vm **list;
	size_t count;
	LIST_HEAD(, fgv_vm) leaving;
	struct fgv_cgroups *cgroups;
	uint64_t gone_ns[FGV_GPU_DEVICES_MAX]; /* GPU time of VMs that have gone, by device */
};

/* @cgroups stay as long as @vms, of which there are none yet. */
void fgv_vms_init(struct fgv_vms *vms, struct fgv_cgroups *cgroups);

/* Also those that are leaving, whose sessions have been given up. */
void fgv_vms_fini(struct fgv_vms *vms);

/*
 * A VM with its control group, which is on no list yet, and has a weight but no shares. A negative
 * errno and @why where there can be none.
 */
int fgv_vms_make(const struct fgv_vms *vms, const struct fgv_config_vm *config,
		 const struct fgv_devices *devices, struct fgv_vm **out, char *why, size_t why_len);
/* One that is on no list. */
void fgv_vms_unmake(const struct fgv_vms *vms, struct fgv_vm *vm);

/*
 * From now on the VMs are the @count ones of @list, which is taken over. Those that are not among
 * them leave.
 */
void fgv_vms_replace(struct fgv_vms *vms, struct fgv_vm **list, size_t count);

/* After sessions have been reaped: their keepers have been, and those that leave may go. */
void fgv_vms_reap(struct fgv_vms *vms);

/* GPU time that VMs have used of @device which the configuration has no more. */
uint64_t fgv_vms_gone_ns(const struct fgv_vms *vms, size_t device);

/* NULL: the configuration has none of that name. */
struct fgv_vm *fgv_vms_find(const struct fgv_vms *vms, const char *name);

/* Whether the configuration has @vm, which is on one of the lists. */
bool fgv_vms_has(const struct fgv_vms *vms, const struct fgv_vm *vm);

#endif
