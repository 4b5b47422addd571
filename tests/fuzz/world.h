/*
 * The daemon within this process, by its own parts: two VMs on a soft GPU, the sockets of programs,
 * and what the administrator asks about and changes. It starts no process: MPS, which its sessions
 * wait for, is never ready.
 */
#ifndef FGV_TESTS_FUZZ_WORLD_H
#define FGV_TESTS_FUZZ_WORLD_H

#include "backend/devices.h"
#include "backend/doors.h"
#include "backend/figures.h"
#include "backend/guard/cgroup.h"
#include "backend/live.h"
#include "backend/mps/mps.h"
#include "backend/session.h"
#include "backend/vms.h"
#include "backend/warm.h"

struct fuzz_world {
	int loop;
	char folder[40], socket[64]; /* the socket of all programs */
	char control[64];	     /* where the administrator's may be */
	struct fgv_config config;
	struct fgv_devices devices;
	struct fgv_cgroups cgroups;
	struct fgv_vms vms;
	struct fgv_mps mps;
	struct fgv_warm warm;
	struct fgv_figures figures;
	struct fgv_sessions sessions;
	struct fgv_doors doors;
	struct fgv_live live;
};

/* Whatever fails here aborts, and says what and why, also where standard error is closed. */
void fuzz_world_begin(struct fuzz_world *world);
void fuzz_world_end(struct fuzz_world *world);

/* Handles all events that there are. */
void fuzz_loop_turn(int loop);

/* The number that the next descriptor gets: the same as before where none has been left open. */
int fuzz_next_fd(void);

/* A client of the socket at @path, of @type; -1: it takes none for now. */
int fuzz_connect(const char *path, int type);

#endif
