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

struct fgv_vm;
struct fgv_qmp_server;

struct fgv_qmp {
	int loop;
	bool asks;			/* else who connects is left at once */
	struct fgv_qmp_server *servers; /* one for each VM with key ivshmem */
	size_t count;
};

/* On failure a negative errno, and @why says what is wrong. @asks: the answer is wanted. */
int fgv_qmp_init(struct fgv_qmp *qmp, int loop, bool asks, struct fgv_vm *vms, size_t vm_count,
		 char *why, size_t why_len);
void fgv_qmp_fini(struct fgv_qmp *qmp);

/* When fgv_qmp_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_qmp_deadline_ns(const struct fgv_qmp *qmp);
void fgv_qmp_tick(struct fgv_qmp *qmp, uint64_t now_ns);

#endif
