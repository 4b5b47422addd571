/*
 * A VM as it runs: who may use it, its share of each of its GPUs, and which accounts are taken.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_VM_H
#define FGV_BACKEND_VM_H

#include <sys/queue.h>
#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/guard/peer.h"
#include "backend/guard/rate.h"
#include "backend/keeper.h"
#include "backend/relay.h"
#include "backend/share.h"
#include "backend/sched/gpusched.h"

struct fgv_vm {
	LIST_ENTRY(fgv_vm) link;	    /* of those that leave (vms.h) */
	const struct fgv_config_vm *config; /* its own */
	struct fgv_config_vm copy;
	struct fgv_share shares[FGV_GPU_DEVICES_MAX]; /* in the order of its list */
	unsigned share_count;			      /* at least one */
	struct fgv_gang *gang; /* that its shares are parts of; NULL: none */
	int cgroup_fd;				      /* as of fgv_cgroups_open(); -1 until then */
	struct fgv_rate_bucket starts;
	struct fgv_relay_limit lines; /* of what its processes log */
	struct fgv_keeper keeper;     /* of its modules' images */
	struct fgv_vcpus vcpus;	      /* of its QEMU, if it has one */
	pid_t qemu_pid;		      /* the QEMU that is connected; 0: none */
	uint64_t taken;		      /* a bit for each account in use */
	uint64_t frozen;	      /* of them, those that are to be frozen */
	uint64_t ending;	      /* of them, those whose programs have gone */
	struct fgv_account gone;      /* the sum over the sessions that have ended */
	uint64_t started, refused;    /* sessions */
	uint64_t failed; /* of those that started, those whose process failed or was killed */
};

/*
 * @devices stay as long as @vm; their schedulers run, and promise it nothing yet, as of
 * fgv_share_init(). Of @config it has a copy. A negative errno where memory is short.
 */
int fgv_vm_init(struct fgv_vm *vm, const struct fgv_config_vm *config,
		const struct fgv_devices *devices);
/* It has no session, no keeper and no control group any more. */
void fgv_vm_fini(struct fgv_vm *vm);

/* Its share of GPU number @device; NULL: it has none. */
const struct fgv_share *fgv_vm_share_of(const struct fgv_vm *vm, unsigned device);

/* On all of its GPUs, from the next decision on. As fgv_gpusched_set_weight(), and so on. */
int fgv_vm_set_weight(struct fgv_vm *vm, uint32_t weight);
int fgv_vm_set_shares(struct fgv_vm *vm, const struct fgv_sched_shares *shares);
int fgv_vm_set_priority(struct fgv_vm *vm, uint32_t priority);

/*
 * Takes @config over, as a change of its VM: from now on it is its own. What the schedulers and
 * control groups have of it is for the caller to change.
 */
void fgv_vm_take_config(struct fgv_vm *vm, struct fgv_config_vm *config);

/* Whether @peer may use @vm: one of its users, or the daemon's own. */
bool fgv_vm_admits(const struct fgv_vm *vm, const struct fgv_peer *peer);

/* How many threads its vGPU processes may have together. */
uint64_t fgv_vm_threads(const struct fgv_config_vm *config);

/* The number of a free account for a new session; -EUSERS where there are too many. */
int fgv_vm_take_account(struct fgv_vm *vm);

/* Whether all accounts are taken; whether none is; and how many are. */
bool fgv_vm_is_full(const struct fgv_vm *vm);
bool fgv_vm_is_empty(const struct fgv_vm *vm);
unsigned fgv_vm_sessions(const struct fgv_vm *vm);

/* The program of the session with @account has gone; and whether that is so for any. */
void fgv_vm_set_ending(struct fgv_vm *vm, unsigned account);
bool fgv_vm_has_ending(const struct fgv_vm *vm);

/* The session with @account is to be frozen, or not; its process has to be woken then. */
void fgv_vm_set_frozen(struct fgv_vm *vm, unsigned account, bool is_frozen);

/* The session has ended: what its account showed goes to @last, and it is free again. */
void fgv_vm_put_account(struct fgv_vm *vm, unsigned account, struct fgv_account *last);

/*
 * What account number @account shows, and the sum of all, those of ended sessions included; of all
 * GPUs together.
 */
void fgv_vm_account(const struct fgv_vm *vm, unsigned account, struct fgv_account *now);
void fgv_vm_usage(const struct fgv_vm *vm, struct fgv_account *sum);
/* The memory in use of @share's GPU. */
uint64_t fgv_vm_memory_on(const struct fgv_vm *vm, const struct fgv_share *share);

#endif
