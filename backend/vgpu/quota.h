/*
 * Device memory of a session: what it has allocated, what else it is charged, and its VM's quota.
 *
 * Whatever takes device memory has a struct fgv_charge, which fgv_quota_charge() alone changes: so
 * what is given back is what was taken, however often a charge grows and shrinks. Allocations
 * share one: the GPU hands out memory in blocks of a granule, and the session is charged for the
 * blocks in which it has anything.
 *
 * The VM's use is the sum over the accounts of its sessions, and of what they share
 * (backend/shared.h). A session adds first and looks second, so of two that race for the last bytes
 * at least one sees the other; both may then fail.
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

/* What one thing takes of the quota; all zero: nothing. */
struct fgv_charge {
	uint64_t bytes;
};

/*
 * Has what was freed late go now, which may wait for work of @of's. How many bytes are still to
 * go then.
 */
typedef uint64_t fgv_quota_reclaim(void *of);

/* Gives up at once what the spare charge is for, and that. False: it has to stay for now. */
typedef bool fgv_quota_give_up(void *of);

struct fgv_quota {
	const struct fgv_allowance *allowance;
	const struct fgv_accounts *accounts;
	struct fgv_account *own;
	uint64_t own_bit; /* among the VM's sessions */
	uint64_t granule;
	struct fgv_allocation_tree allocations;
	struct fgv_charge blocks; /* of all allocations */
	struct fgv_charge late;	  /* freed, and not yet given back to the driver */
	struct fgv_charge spare;  /* taken only to be faster, and given up for anything else */
	uint64_t used;		  /* all charges together */
	uint64_t least;		  /* the account shows so much, if less is used */
	uint64_t shared;	  /* of what is used, charged to what the VM's sessions share */
	fgv_quota_reclaim *reclaim;
	void *of;
	fgv_quota_give_up *give_up;
	void *spare_of;
	uint32_t count;
	/* Of the last charge that was to grow, by how much, if it was refused; UINT64_MAX: for
	 * good. */
	uint64_t refused;
};

/*
 * All stay mapped. @own is number @index of @accounts, which need not be writable. @granule: bytes.
 */
void fgv_quota_init(struct fgv_quota *quota, const struct fgv_allowance *allowance,
		    const struct fgv_accounts *accounts, struct fgv_account *own, uint32_t index,
		    uint64_t granule);
/* Frees the bookkeeping and clears what the account says is in use. */
void fgv_quota_fini(struct fgv_quota *quota);

/*
 * The session needs @bytes, and has them from now on: its account shows them before they are used,
 * so that what it uses up to that never finds the quota taken by others. -ENOMEM with nothing
 * changed where there is no room for them.
 */
int fgv_quota_set_least(struct fgv_quota *quota, uint64_t bytes);

/* Called where a charge finds no room, or the late one. */
void fgv_quota_set_reclaim(struct fgv_quota *quota, fgv_quota_reclaim *reclaim, void *of);
/* Called where a charge finds no room, and the spare one is not nothing. */
void fgv_quota_set_give_up(struct fgv_quota *quota, fgv_quota_give_up *give_up, void *of);

/*
 * Makes @charge one of @bytes. 0, or -ENOMEM with nothing changed where the quota would be
 * exceeded, which never happens to a charge that shrinks.
 */
int fgv_quota_charge(struct fgv_quota *quota, struct fgv_charge *charge, uint64_t bytes);
static inline void fgv_quota_release(struct fgv_quota *quota, struct fgv_charge *charge)
{
	fgv_quota_charge(quota, charge, 0);
}

/*
 * Charges @ahead with what an allocation of @bytes takes at least, wherever it will lie, before
 * it is made. -ENOMEM where the quota or the number of allocations would be exceeded.
 */
int fgv_quota_reserve(struct fgv_quota *quota, struct fgv_charge *ahead, uint64_t bytes);
/* Remembers an allocation, and charges it. 0, -EEXIST or -ENOMEM. */
int fgv_quota_add(struct fgv_quota *quota, uint64_t address, uint64_t bytes);
/* Forgets it, and no longer charges it: 0, its size and what was charged for it; or -ENOENT. */
int fgv_quota_remove(struct fgv_quota *quota, uint64_t address, uint64_t *bytes, uint64_t *charged);

/*
 * Of what is not charged any more, @bytes in all have not been given back to the driver: they are
 * charged until they are. Where another session has taken the room meanwhile, they are reclaimed.
 */
void fgv_quota_set_late(struct fgv_quota *quota, uint64_t bytes);

/* Of what is charged, @bytes in all are charged to what the VM's sessions share instead. */
void fgv_quota_set_shared(struct fgv_quota *quota, uint64_t bytes);

/* The VM's sessions, a bit for each, this one included. */
uint64_t fgv_quota_sessions(const struct fgv_quota *quota);

/* The VM's other sessions that are ending, a bit for each. */
uint64_t fgv_quota_ending(const struct fgv_quota *quota);

/* Whether the VM's other sessions have memory. */
bool fgv_quota_others(const struct fgv_quota *quota);

/* Whether @bytes more could be charged if the other sessions in @without were gone. */
bool fgv_quota_would_fit(const struct fgv_quota *quota, uint64_t bytes, uint64_t without);

/*
 * What the VM may still allocate, with what its ending sessions are about to give back, and what
 * this one would give up.
 */
uint64_t fgv_quota_left(const struct fgv_quota *quota);

/* What those are about to give back. */
uint64_t fgv_quota_returning(const struct fgv_quota *quota);

#endif
