/*
 * Device memory of a session: what it has allocated, and its VM's quota.
 *
 * The VM's use is the sum over the accounts of its sessions (backend/shared.h). A
 * session adds first and looks second, so of two that race for the last bytes at least
 * one sees the other; both may then fail.
 *
 * Threads: the dispatcher's. Other processes change the other accounts meanwhile.
 */
#ifndef FGV_VGPU_QUOTA_H
#define FGV_VGPU_QUOTA_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include "backend/shared.h"

#define FGV_ALLOCATIONS_MAX (1u << 20) /* of one session at a time */

struct fgv_allocation;
RB_HEAD(fgv_allocation_tree, fgv_allocation);

struct fgv_quota {
	struct fgv_accounts *accounts;
	struct fgv_account *own;
	struct fgv_allocation_tree allocations;
	uint32_t count;
	uint64_t refused; /* bytes of the last charge, if it was refused; 0: it was not */
};

/* @accounts stays mapped; @index is below FGV_SESSIONS_MAX. */
void fgv_quota_init(struct fgv_quota *quota, struct fgv_accounts *accounts, uint32_t index);
/* Frees the bookkeeping and clears what the account says is in use. */
void fgv_quota_fini(struct fgv_quota *quota);

/*
 * Charges the VM with an allocation of @bytes that is about to be made. 0, or -ENOMEM
 * where the quota or the number of allocations would be exceeded.
 */
int fgv_quota_take(struct fgv_quota *quota, uint64_t bytes);
/* Takes that back. */
void fgv_quota_give(struct fgv_quota *quota, uint64_t bytes);

/* Remembers an allocation that was charged. 0, -EEXIST or -ENOMEM. */
int fgv_quota_add(struct fgv_quota *quota, uint64_t address, uint64_t bytes);
/* Forgets it, and no longer charges it: 0 and its size, or -ENOENT. */
int fgv_quota_remove(struct fgv_quota *quota, uint64_t address, uint64_t *bytes);

/* The VM's other sessions that are ending, a bit for each. */
uint64_t fgv_quota_ending(const struct fgv_quota *quota);

/* Whether the VM's other sessions have memory. */
bool fgv_quota_others(const struct fgv_quota *quota);

/* Whether @bytes more could be charged if the other sessions in @without were gone. */
bool fgv_quota_would_fit(const struct fgv_quota *quota, uint64_t bytes, uint64_t without);

/* What the VM may still allocate, with what its ending sessions are about to give back. */
uint64_t fgv_quota_left(const struct fgv_quota *quota);

/* What those are about to give back. */
uint64_t fgv_quota_returning(const struct fgv_quota *quota);

#endif
