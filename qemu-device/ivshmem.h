/*
 * The ivshmem server: QEMU's ivshmem-doorbell device connects to the socket of its VM and
 * gets the VM's region (api/region.h) with the eventfds of both peers.
 *
 * What is said is QEMU's docs/specs/ivshmem-spec: numbers of 8 bytes, little-endian, some with
 * a descriptor. Version 0; the client's number; -1 with the memory; then each peer's number
 * once for each of its vectors, with its eventfd, the client's own last. The client says
 * nothing; when it hangs up its guest has gone.
 *
 * One QEMU at a time for each VM. Each gets a region and eventfds that nobody had before it,
 * and its end ends the sessions of its guest. A guest whose daemon ends, however that comes, is
 * told (herald.h).
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_QEMU_DEVICE_IVSHMEM_H
#define FGV_QEMU_DEVICE_IVSHMEM_H

#include <stddef.h>
#include "backend/bell.h"
#include "backend/session.h"
#include "backend/vms.h"

struct fgv_ivshmem_server;

struct fgv_ivshmem {
	int loop;
	struct fgv_sessions *sessions;
	struct fgv_bell bell;
	const struct fgv_vms *vms;
	LIST_HEAD(, fgv_ivshmem_server) servers; /* one for each VM with key "ivshmem" */
};

/* On failure a negative errno, and @why says what is wrong. */
int fgv_ivshmem_init(struct fgv_ivshmem *ivshmem, int loop, struct fgv_sessions *sessions,
		     const struct fgv_vms *vms, char *why, size_t why_len);

/*
 * A socket at @path, for user @uid; a new one if there is none. It is no VM's before
 * fgv_ivshmem_settle(). On failure a negative errno, and @why says what is wrong.
 */
int fgv_ivshmem_open(struct fgv_ivshmem *ivshmem, const char *path, uid_t uid, char *why,
		     size_t why_len);

/*
 * Each socket is the VM's that has it by its configuration; one that is no VM's is closed, and the
 * QEMU of a VM that has it no more loses its region.
 */
void fgv_ivshmem_settle(struct fgv_ivshmem *ivshmem);

/* Tells the guests that their sessions are gone, and leaves every QEMU. */
void fgv_ivshmem_fini(struct fgv_ivshmem *ivshmem);

/* After processes have ended, and those of sessions have been reaped. */
void fgv_ivshmem_reaped(struct fgv_ivshmem *ivshmem);

/* When fgv_ivshmem_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_ivshmem_deadline_ns(const struct fgv_ivshmem *ivshmem);
void fgv_ivshmem_tick(struct fgv_ivshmem *ivshmem);

#endif
