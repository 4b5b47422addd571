/*
 * From the VMs that run to those of another configuration, in two steps: all that can fail, which
 * can be left at that, and then all the rest.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_LIVE_STEP_H
#define FGV_BACKEND_LIVE_STEP_H

#include "backend/doors.h"
#include "backend/mps/mps.h"
#include "backend/vms.h"
#include "backend/warm.h"

/* QEMU's sockets of a VM: opened where they are not there, and settled, as those of doors.h. */
struct fgv_live_guests {
	int (*open)(const struct fgv_config_vm *vm, char *why, size_t why_len);
	void (*settle)(void);
};

/* The parts of the daemon that are made of it, or look at it. They outlive it. */
struct fgv_live_parts {
	struct fgv_config *config; /* what runs; nobody else changes it */
	struct fgv_devices *devices;
	struct fgv_vms *vms;
	struct fgv_sessions *sessions;
	struct fgv_warm *warm;
	struct fgv_doors *doors;
	struct fgv_live_guests guests;
};

struct fgv_live_step {
	const struct fgv_live_parts *parts;
	const struct fgv_config *next;
	struct fgv_vm **list; /* of the VMs to be, in their order */
	struct fgv_config_vm *copies;
	bool *is_new;
};

/*
 * Makes new VMs and opens sockets. A negative errno and @why, and all is as before; else the step
 * is to be committed. @next stays until then.
 */
int fgv_live_step_prepare(struct fgv_live_step *step, const struct fgv_live_parts *parts,
			  const struct fgv_config *next, char *why, size_t why_len);

/* @parts' configuration is the one that was prepared. */
void fgv_live_step_commit(struct fgv_live_step *step);

#endif
