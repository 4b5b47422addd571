/*
 * The quota and the tree of allocations. Allocations are charged in GRANULES, about
 * what the smallest one costs on a GPU.
 */
#include "backend/vgpu/quota.h"

#include <errno.h>
#include <stdlib.h>
#include "common/util.h"

#define GRANULE 512u

struct fgv_allocation {
	RB_ENTRY(fgv_allocation) node;
	uint64_t address;
	uint64_t bytes;
};

static int compare(const struct fgv_allocation *a, const struct fgv_allocation *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

/* RB_GENERATE_STATIC() needs __unused, which Debian's libbsd leaves undefined. */
RB_GENERATE_INTERNAL(fgv_allocation_tree, fgv_allocation, node, compare,
		     __attribute__((unused)) static)

void fgv_quota_init(struct fgv_quota *quota, struct fgv_accounts *accounts, uint32_t index)
{
	quota->accounts = accounts;
	quota->own = &accounts->sessions[index];
	quota->count = 0;
	RB_INIT(&quota->allocations);
}

/* Sequentially consistent, as is load_use(): each session stores its own, then loads the others'.
 */
static void store_own(struct fgv_quota *quota, uint64_t bytes)
{
	__atomic_store_n(&quota->own->memory_bytes, bytes, __ATOMIC_SEQ_CST);
}

static uint64_t load_use(const struct fgv_account *account)
{
	return __atomic_load_n(&account->memory_bytes, __ATOMIC_SEQ_CST);
}

void fgv_quota_fini(struct fgv_quota *quota)
{
	struct fgv_allocation *at, *next;

	RB_FOREACH_SAFE(at, fgv_allocation_tree, &quota->allocations, next)
	{
		RB_REMOVE(fgv_allocation_tree, &quota->allocations, at);
		free(at);
	}
	quota->count = 0;
	store_own(quota, 0);
}

/* Of all sessions; what is more than the quota counts as the quota, so it can't overflow. */
static uint64_t sum_use(const struct fgv_quota *quota)
{
	uint64_t limit = quota->accounts->quota_bytes, sum = 0;

	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++) {
		uint64_t use = load_use(&quota->accounts->sessions[i]);

		if (use > limit - sum)
			return UINT64_MAX;
		sum += use;
	}
	return sum;
}

int fgv_quota_take(struct fgv_quota *quota, uint64_t bytes)
{
	uint64_t before = load_use(quota->own);

	if (quota->count >= FGV_ALLOCATIONS_MAX || bytes > quota->accounts->quota_bytes)
		return -ENOMEM;
	store_own(quota, before + fgv_align_up(bytes, GRANULE));
	if (sum_use(quota) > quota->accounts->quota_bytes) {
		store_own(quota, before);
		return -ENOMEM;
	}
	return 0;
}

void fgv_quota_give(struct fgv_quota *quota, uint64_t bytes)
{
	store_own(quota, load_use(quota->own) - fgv_align_up(bytes, GRANULE));
}

int fgv_quota_add(struct fgv_quota *quota, uint64_t address, uint64_t bytes)
{
	struct fgv_allocation *made = malloc(sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->address = address;
	made->bytes = bytes;
	if (RB_INSERT(fgv_allocation_tree, &quota->allocations, made)) {
		free(made);
		return -EEXIST;
	}
	quota->count++;
	return 0;
}

int fgv_quota_remove(struct fgv_quota *quota, uint64_t address, uint64_t *bytes)
{
	struct fgv_allocation key = {.address = address};
	struct fgv_allocation *found = RB_FIND(fgv_allocation_tree, &quota->allocations, &key);

	if (!found)
		return -ENOENT;
	RB_REMOVE(fgv_allocation_tree, &quota->allocations, found);
	*bytes = found->bytes;
	free(found);
	quota->count--;
	fgv_quota_give(quota, *bytes);
	return 0;
}

uint64_t fgv_quota_left(const struct fgv_quota *quota)
{
	uint64_t use = sum_use(quota);

	return quota->accounts->quota_bytes - fgv_min_u64(use, quota->accounts->quota_bytes);
}
