/*
 * A VM's share of one GPU: its places with the schedulers of that GPU's engines, its quota of the
 * memory there, and the accounts of its sessions. A session's account has the same number in all
 * shares of its VM.
 *
 * Threads: the daemon's main one. The accounts are memory shared with the VM's vGPU processes; see
 * struct fgv_accounts.
 */
#ifndef FGV_BACKEND_SHARE_H
#define FGV_BACKEND_SHARE_H

#include "backend/devices.h"
#include "backend/sched/gpusched.h"
#include "backend/shared.h"

struct fgv_share {
	unsigned number; /* of the GPU, in the daemon's list */
	const struct fgv_device *device;
	struct fgv_gpusched_vgpu *vgpu;
	struct fgv_gpusched_vgpu *copying[FGV_COPY_ENGINES]; /* of engines that copy; or NULL */
	struct fgv_allowance *allowance;
	int allowance_fd;
	struct fgv_accounts *accounts;
	int accounts_fd;
	int accounts_read_fd; /* by which they can only be read */
};

/*
 * @device stays, and its schedulers run, and take it with its weight, but promise it nothing: that
 * promises are kept beside those to others is for the caller to see to. A negative errno where
 * memory is short.
 */
int fgv_share_init(struct fgv_share *share, const struct fgv_config_vm *config, unsigned number,
		   const struct fgv_device *device);
void fgv_share_fini(struct fgv_share *share);

/* Of each engine, from the next decision on. As fgv_gpusched_set_weight(), and so on. */
int fgv_share_set_weight(struct fgv_share *share, uint32_t weight);
int fgv_share_set_shares(struct fgv_share *share, const struct fgv_sched_shares *shares);
int fgv_share_set_priority(struct fgv_share *share, uint32_t priority);

/* The quota, for the next allocation. */
void fgv_share_set_memory(struct fgv_share *share, uint64_t bytes);

/* What of engine number @i that copies has been used; false: not granted by itself. */
bool fgv_share_copying_stats(const struct fgv_share *share, unsigned i,
			     struct fgv_gpusched_stats *stats);

/* What account number @account shows; and clears it, which others of the VM may be reading. */
void fgv_share_account(const struct fgv_share *share, unsigned account, struct fgv_account *now);
void fgv_share_clear(struct fgv_share *share, unsigned account);
/* What is charged for memory that sessions share; what one of them has of it; and clears that. */
uint64_t fgv_share_shared(const struct fgv_share *share);
uint64_t fgv_share_shared_by(const struct fgv_share *share, unsigned account);
void fgv_share_clear_shared(const struct fgv_share *share);
/* A session's part of it, where those that have it divide it in proportion to what they have. */
uint64_t fgv_share_shared_part(const struct fgv_share *share, unsigned account);
/* Adds up what two accounts show. */
void fgv_account_sum(struct fgv_account *sum, const struct fgv_account *account);

/* Bits of the accounts that are taken, and of those that are ending: as in struct fgv_allowance. */
void fgv_share_set_taken(struct fgv_share *share, uint64_t taken);
void fgv_share_set_ending(struct fgv_share *share, uint64_t ending);
/* Likewise of those that are to be frozen, whose processes are to be woken then. */
void fgv_share_set_frozen(struct fgv_share *share, uint64_t frozen);
/* Likewise of those whose memory is to be out; and of those that nobody makes room for. */
void fgv_share_set_out(struct fgv_share *share, unsigned account, bool is_out);
void fgv_share_set_alone(struct fgv_share *share, unsigned account, bool is_alone);
/* Whether the device is over-committed. */
void fgv_share_set_paged(struct fgv_share *share, bool is_paged);

#endif
