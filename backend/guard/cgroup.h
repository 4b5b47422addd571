/*
 * A control group (version 2) for each VM's vGPU processes: memory, threads and processor time
 * that they may take together. Where the daemon may not make any, one line says so, and the
 * limits that each process has of its own are all.
 *
 *	BASE/daemon	the daemon, and processes that serve nobody yet
 *	BASE/vm-NAME	the VM's
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_GUARD_CGROUP_H
#define FGV_BACKEND_GUARD_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "backend/config/config.h"

struct fgv_cgroups {
	char base[PATH_MAX]; /* "": there are none */
	bool made;	     /* the base is this daemon's, and goes with it */
};

/*
 * As key "cgroup" says: its own group if it is the only one in there and may write to it, or
 * one at a path. *@why says why there are none, for the log; -EINVAL where a path was configured
 * that can't be used.
 */
int fgv_cgroups_init(struct fgv_cgroups *cgroups, const char *choice, char *why, size_t why_len);
/* All groups of VMs are closed. */
void fgv_cgroups_fini(struct fgv_cgroups *cgroups);

/*
 * A descriptor: a thread that writes "0" to it is in @vm's group from then on. Where there are no
 * groups, it is one of /dev/null. A negative errno, and @why.
 */
int fgv_cgroups_open(const struct fgv_cgroups *cgroups, const struct fgv_config_vm *vm,
		     uint64_t threads, char *why, size_t why_len);
/* Removes the group of the VM called @name, which has no process any more. */
void fgv_cgroups_close(const struct fgv_cgroups *cgroups, const char *name);

/* The limits of a group that is open, from now on. A negative errno. */
int fgv_cgroups_limit(const struct fgv_cgroups *cgroups, const struct fgv_config_vm *vm,
		      uint64_t threads);

#endif
