/*
 * All sockets that programs connect to: the one for all users, and those that are one VM's own
 * (key "socket" in its group), which come and go with the configuration.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_DOORS_H
#define FGV_BACKEND_DOORS_H

#include "backend/transport.h"

struct fgv_door;

struct fgv_doors {
	int loop;
	struct fgv_sessions *sessions;
	const struct fgv_vms *vms;
	LIST_HEAD(, fgv_door) list;
};

/* With the socket for all users, at @path. As fgv_transport_init(). */
int fgv_doors_init(struct fgv_doors *doors, int loop, const char *path,
		   struct fgv_sessions *sessions, const struct fgv_vms *vms, char *why,
		   size_t why_len);
void fgv_doors_fini(struct fgv_doors *doors);

/*
 * A socket at @path, if there is none of a VM's yet. It leads nowhere before fgv_doors_settle(). A
 * negative errno and @why.
 */
int fgv_doors_open(struct fgv_doors *doors, const char *path, char *why, size_t why_len);

/*
 * Each socket leads to the VM that has it by its configuration; one that no VM has is closed.
 * Whoever waits for a VM that is no more is told so.
 */
void fgv_doors_settle(struct fgv_doors *doors);

uint64_t fgv_doors_deadline_ns(const struct fgv_doors *doors);
void fgv_doors_tick(struct fgv_doors *doors);
/* As fgv_transport_reaped(). */
void fgv_doors_reaped(struct fgv_doors *doors);

#endif
