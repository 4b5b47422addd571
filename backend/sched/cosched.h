/*
 * GPU-centric coscheduling (the FairGV paper, section 3.2.3, algorithms 3 and 4): while a
 * CPU-GPU interactive session has the grant for a slice, the processor that its guest runs on
 * is favoured. That is a thread: of QEMU for a virtual machine, of the program itself for a
 * local one.
 *
 * Favoured is: runs soon when it wakes. The thread gets a better nice value, and a shorter
 * slice of the processor where the kernel has such (Linux 6.12); of the two, what the kernel
 * allows. Real-time policies would also run it soon, but at the cost of all others for as long
 * as the guest likes. At the end of the grant it has what it had before.
 *
 * A thread that hardly waits for processors needs no favour, and the system calls cost the GPU
 * up to half a percent. So each is favoured for a second, and then for as long as it waits.
 *
 * Which thread it is, the guest says. It is believed only if the thread belongs to the very
 * process that the session is of, so that a guest can have nobody favoured but itself. The
 * search for a thread, which takes the time of many system calls, is the daemon's main
 * thread's; the scheduler's favours only those that were found before.
 *
 * Threads: the functions for a guest are called under its scheduler's lock, but for
 * fgv_cosched_find().
 */
#ifndef FGV_BACKEND_SCHED_COSCHED_H
#define FGV_BACKEND_SCHED_COSCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FGV_VCPUS_MAX 1024

/* The threads of a QEMU's vCPUs, as it says (qmp.h). */
struct fgv_vcpus {
	pid_t pid; /* QEMU's; 0: nothing is known */
	uint32_t count;
	pid_t threads[FGV_VCPUS_MAX]; /* by number; 0: there is none such */
};

/* What the scheduler threads share. */
struct fgv_cosched {
	int bell_fd;	   /* rung when the main thread is to look for threads */
	uint64_t slice_ns; /* a thread's usual slice; 0: the kernel has no others */
	uint32_t said;	   /* atomic: bits of enum fgv_cosched_means, in the log already */
};

/* What favours a thread. */
enum fgv_cosched_means {
	FGV_COSCHED_NICE = 1, /* and a shorter slice where there is such */
	FGV_COSCHED_SLICE = 2,
	FGV_COSCHED_NONE = 4,
};

/* 0 or a negative errno. */
int fgv_cosched_init(struct fgv_cosched *cosched);
void fgv_cosched_fini(struct fgv_cosched *cosched);

/* The process whose threads are a session's vCPUs. */
struct fgv_cosched_owner {
	pid_t pid;
	uid_t uid;
	const struct fgv_vcpus *vcpus; /* of a QEMU; NULL: a vCPU is called by its thread's id */
};

struct fgv_cosched_guest;

/* NULL where memory is short. Whatever else is missing, the guest is not favoured. */
struct fgv_cosched_guest *fgv_cosched_attach(struct fgv_cosched *cosched,
					     const struct fgv_cosched_owner *owner);
/* It is favoured no more. */
void fgv_cosched_detach(struct fgv_cosched_guest *guest);

/* Whether a vCPU is called by its thread's id. */
bool fgv_cosched_is_local(const struct fgv_cosched_guest *guest);

/*
 * Favours vCPU @vcpu, any number, and no other. One that is not known is looked for, and
 * favoured another time.
 */
void fgv_cosched_favour(struct fgv_cosched_guest *guest, int32_t vcpu);
/* None is favoured any more. */
void fgv_cosched_put_back(struct fgv_cosched_guest *guest);

/* The vCPU to look for, and then its thread, of the main thread only; -1: none. */
int32_t fgv_cosched_asks(const struct fgv_cosched_guest *guest);
/* Without the lock. 0: there is no such thread. */
pid_t fgv_cosched_find(const struct fgv_cosched_guest *guest, int32_t vcpu);
/* What was found is from now on known. */
void fgv_cosched_learn(struct fgv_cosched_guest *guest, int32_t vcpu, pid_t thread);

/* How often a vCPU was favoured. */
uint64_t fgv_cosched_count(const struct fgv_cosched_guest *guest);

#endif
