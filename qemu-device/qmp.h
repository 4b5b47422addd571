/*
 * Which threads a QEMU's vCPUs are, for coscheduling (cosched.h): QEMU connects a monitor to
 * the socket beside its VM's ivshmem socket, is asked once, in its protocol QMP, and left.
 *
 * What it says goes to the VM with the process that said it, and counts for sessions of that
 * very process only. A QEMU that says nothing, too much or nonsense is left with one line in
 * the log, and goes without favours.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_QEMU_DEVICE_QMP_H
#define FGV_QEMU_DEVICE_QMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct fgv_vm;
struct fgv_vms;
struct fgv_qmp_server;

struct fgv_qmp {
	int loop;
	bool asks; /* else a QEMU that connects is left at once */
	const struct fgv_vms *vms;
	LIST_HEAD(, fgv_qmp_server) servers; /* one for each VM with key ivshmem */
};

/* @asks: the answer is wanted. */
void fgv_qmp_init(struct fgv_qmp *qmp, int loop, bool asks, const struct fgv_vms *vms);
void fgv_qmp_fini(struct fgv_qmp *qmp);

/*
 * A socket beside @ivshmem, for user @uid; a new one if there is none there. It is no VM's before
 * fgv_qmp_settle(). On failure a negative errno, and @why says what is wrong.
 */
int fgv_qmp_open(struct fgv_qmp *qmp, const char *ivshmem, uid_t uid, char *why, size_t why_len);

/* Each socket is the VM's that has it by its configuration; one that is no VM's is closed. */
void fgv_qmp_settle(struct fgv_qmp *qmp);

/* When fgv_qmp_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_qmp_deadline_ns(const struct fgv_qmp *qmp);
void fgv_qmp_tick(struct fgv_qmp *qmp, uint64_t now_ns);

#endif
