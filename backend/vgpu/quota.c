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
	quota->refused = 0;
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

/*
 * Of all sessions but those in @without; what is more than the quota counts as UINT64_MAX, so
 * it can't overflow.
 */
static uint64_t sum_use(const struct fgv_quota *quota, uint64_t without)
{
	uint64_t limit = quota->accounts->quota_bytes, sum = 0;

	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++) {
		uint64_t use = load_use(&quota->accounts->sessions[i]);

		if (without & UINT64_C(1) << i)
			continue;
		if (use > limit - sum)
			return UINT64_MAX;
		sum += use;
	}
	return sum;
}

int fgv_quota_take(struct fgv_quota *quota, uint64_t bytes)
{
	uint64_t before = load_use(quota->own);

	quota->refused = UINT64_MAX;
	if (quota->count >= FGV_ALLOCATIONS_MAX || bytes > quota->accounts->quota_bytes)
		return -ENOMEM;
	quota->refused = bytes;
	store_own(quota, before + fgv_align_up(bytes, GRANULE));
	if (sum_use(quota, 0) > quota->accounts->quota_bytes) {
		store_own(quota, before);
		return -ENOMEM;
	}
	quota->refused = 0;
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

static uint64_t own_bit(const struct fgv_quota *quota)
{
	return UINT64_C(1) << (quota->own - quota->accounts->sessions);
}

uint64_t fgv_quota_ending(const struct fgv_quota *quota)
{
	/* Pairs with the daemon's release: of what is not marked any more nothing is charged. */
	uint64_t ending = __atomic_load_n(&quota->accounts->ending, __ATOMIC_ACQUIRE);

	return ending & ~own_bit(quota);
}

bool fgv_quota_others(const struct fgv_quota *quota)
{
	return sum_use(quota, own_bit(quota)) > 0;
}

static uint64_t left_without(const struct fgv_quota *quota, uint64_t without)
{
	uint64_t use = sum_use(quota, without);

	return quota->accounts->quota_bytes - fgv_min_u64(use, quota->accounts->quota_bytes);
}

bool fgv_quota_would_fit(const struct fgv_quota *quota, uint64_t bytes, uint64_t without)
{
	uint64_t left = left_without(quota, without & ~own_bit(quota));

	return bytes <= left && fgv_align_up(bytes, GRANULE) <= left;
}

uint64_t fgv_quota_left(const struct fgv_quota *quota)
{
	return left_without(quota, fgv_quota_ending(quota));
}

uint64_t fgv_quota_returning(const struct fgv_quota *quota)
{
	uint64_t then = fgv_quota_left(quota);

	/* They may be gone between the two looks. */
	return then - fgv_min_u64(left_without(quota, 0), then);
}
