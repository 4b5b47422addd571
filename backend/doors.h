/*
 * All sockets that programs connect to: the one for all users, and those that are one VM's own
 * (key "socket" in its group).
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_DOORS_H
#define FGV_BACKEND_DOORS_H

#include "backend/transport.h"

struct fgv_doors {
	struct fgv_transport *list;
	size_t count;
};

/* As fgv_transport_init(), of which this is more than one. */
int fgv_doors_init(struct fgv_doors *doors, int loop, const char *path,
		   struct fgv_sessions *sessions, struct fgv_vm *vms, size_t vm_count, char *why,
		   size_t why_len);
void fgv_doors_fini(struct fgv_doors *doors);

uint64_t fgv_doors_deadline_ns(const struct fgv_doors *doors);
void fgv_doors_tick(struct fgv_doors *doors);
/* As fgv_transport_reaped(). */
void fgv_doors_reaped(struct fgv_doors *doors);

#endif
