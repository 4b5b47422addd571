/*
 * A VM as it runs: who may use it, its share of a device, and the accounts of its sessions.
 *
 * Threads: the daemon's main one. The accounts are memory shared with the VM's vGPU
 * processes; see struct fgv_accounts. What the VM may have they can only read.
 */
#ifndef FGV_BACKEND_VM_H
#define FGV_BACKEND_VM_H

#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/guard/peer.h"
#include "backend/guard/rate.h"
#include "backend/keeper.h"
#include "backend/sched/gpusched.h"

struct fgv_vm {
	const struct fgv_config_vm *config;
	const struct fgv_device *device;
	struct fgv_gpusched_vgpu *vgpu; /* its share of the device */
	struct fgv_gpusched_vgpu *copying[FGV_COPY_ENGINES]; /* of engines that copy; or NULL */
	struct fgv_allowance *allowance;
	int allowance_fd;
	struct fgv_accounts *accounts;
	int accounts_fd;
	int accounts_read_fd; /* by which they can only be read */
	int cgroup_fd;	      /* as of fgv_cgroups_open(); -1 until then */
	struct fgv_rate_bucket starts;
	struct fgv_keeper keeper; /* of its modules' images */
	struct fgv_vcpus vcpus;	  /* of its QEMU, if it has one */
	pid_t qemu_pid;		  /* the QEMU that is connected; 0: none */
	uint64_t taken;		  /* a bit for each account in use */
	uint64_t ending;	  /* of them, those whose programs have gone */
	struct fgv_account gone;  /* the sum over the sessions that have ended */
};

/*
 * @config and @device stay as long as @vm; the device's scheduler runs. A negative errno where
 * memory is short.
 */
int fgv_vm_init(struct fgv_vm *vm, const struct fgv_config_vm *config,
		const struct fgv_device *device);
void fgv_vm_fini(struct fgv_vm *vm);

/* Its share, of each engine, from the next decision on. As fgv_gpusched_set_weight(), _set_shares(). */
int fgv_vm_set_weight(struct fgv_vm *vm, uint32_t weight);
int fgv_vm_set_shares(struct fgv_vm *vm, const struct fgv_sched_shares *shares);

/* What its sessions have used of engine number @i that copies; false: not granted by itself. */
bool fgv_vm_copying_stats(const struct fgv_vm *vm, unsigned i, struct fgv_gpusched_stats *stats);

/* Whether @peer may use @vm: one of its users, or the daemon's own. */
bool fgv_vm_admits(const struct fgv_vm *vm, const struct fgv_peer *peer);

/* How many threads its vGPU processes may have together. */
uint64_t fgv_vm_threads(const struct fgv_config_vm *config);

/* The number of a free account for a new session; -EUSERS where there are too many. */
int fgv_vm_take_account(struct fgv_vm *vm);

/* Whether all accounts are taken. */
bool fgv_vm_is_full(const struct fgv_vm *vm);

/* The program of the session with @account has gone; and whether that is so for any. */
void fgv_vm_set_ending(struct fgv_vm *vm, unsigned account);
bool fgv_vm_has_ending(const struct fgv_vm *vm);

/* The session has ended: what its account showed goes to @last, and it is free again. */
void fgv_vm_put_account(struct fgv_vm *vm, unsigned account, struct fgv_account *last);

/* What account number @account shows; and the sum of all, those of ended sessions included. */
void fgv_vm_account(const struct fgv_vm *vm, unsigned account, struct fgv_account *now);
void fgv_vm_usage(const struct fgv_vm *vm, struct fgv_account *sum);

#endif
