/*
 * The quota and the tree of allocations.
 */
#include "backend/vgpu/quota.h"

#include <errno.h>
#include <stdlib.h>
#include "common/util.h"

/* Blocks at the ends of an allocation, which it may share with its neighbours. */
#define ENDS 2

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

void fgv_quota_init(struct fgv_quota *quota, const struct fgv_allowance *allowance,
		    const struct fgv_accounts *accounts, struct fgv_account *own, uint32_t index,
		    uint64_t granule)
{
	*quota = (struct fgv_quota){
		.allowance = allowance,
		.accounts = accounts,
		.own = own,
		.own_bit = UINT64_C(1) << index,
		.granule = granule,
	};
	RB_INIT(&quota->allocations);
}

/* Sequentially consistent, as is load_use(): each session stores its own, then loads the others'.
 */
static void store_own(struct fgv_quota *quota, uint64_t bytes)
{
	__atomic_store_n(&quota->own->memory_bytes, bytes, __ATOMIC_SEQ_CST);
}

/* What of it is charged here. */
static uint64_t own_part(const struct fgv_quota *quota, uint64_t used)
{
	return used - fgv_min_u64(quota->shared, used);
}

/* What others see of it. */
static uint64_t shown(const struct fgv_quota *quota, uint64_t used)
{
	return fgv_max_u64(own_part(quota, used), quota->least);
}

static uint64_t load_use(const struct fgv_account *account)
{
	return __atomic_load_n(&account->memory_bytes, __ATOMIC_SEQ_CST);
}

static uint64_t limit_of(const struct fgv_quota *quota)
{
	return __atomic_load_n(&quota->allowance->memory_bytes, __ATOMIC_RELAXED);
}

void fgv_quota_fini(struct fgv_quota *quota)
{
	struct fgv_allocation *at, *next;

	RB_FOREACH_SAFE(at, fgv_allocation_tree, &quota->allocations, next)
	{
		RB_REMOVE(fgv_allocation_tree, &quota->allocations, at);
		free(at);
	}
	quota->blocks = quota->late = quota->spare = (struct fgv_charge){0};
	quota->count = 0;
	quota->used = quota->least = quota->shared = 0;
	store_own(quota, 0);
}

/* After this one has stored what it uses: a session that this does not show yet sees that. */
uint64_t fgv_quota_sessions(const struct fgv_quota *quota)
{
	return __atomic_load_n(&quota->allowance->taken, __ATOMIC_SEQ_CST) | quota->own_bit;
}

/* What they share, as long as it is no more than they may have. */
static uint64_t load_shared(const struct fgv_quota *quota, uint64_t limit)
{
	return fgv_min_u64(__atomic_load_n(&quota->accounts->shared.memory_bytes, __ATOMIC_SEQ_CST),
			   limit);
}

/*
 * Of all sessions but those in @without, and what they share; more than @limit is UINT64_MAX, so
 * that it can't overflow.
 */
static uint64_t sum_use(const struct fgv_quota *quota, uint64_t limit, uint64_t without)
{
	uint64_t sum = load_shared(quota, limit), left = fgv_quota_sessions(quota) & ~without;

	for (; left; left &= left - 1) {
		uint64_t use = load_use(&quota->accounts->sessions[__builtin_ctzll(left)]);

		if (use > limit - sum)
			return UINT64_MAX;
		sum += use;
	}
	return sum;
}

static uint64_t left_without(const struct fgv_quota *quota, uint64_t without)
{
	uint64_t limit = limit_of(quota);

	return limit - fgv_min_u64(sum_use(quota, limit, without), limit);
}

static void shrink(struct fgv_quota *quota, struct fgv_charge *charge, uint64_t bytes)
{
	quota->used -= charge->bytes - bytes;
	store_own(quota, shown(quota, quota->used));
	charge->bytes = bytes;
}

/* Shows @after in place of @before, if all sessions together have the room. */
static int show_more(struct fgv_quota *quota, uint64_t before, uint64_t after)
{
	uint64_t limit = limit_of(quota);

	if (after == before)
		return 0;
	store_own(quota, after);
	if (sum_use(quota, limit, 0) <= limit)
		return 0;
	store_own(quota, before);
	return -ENOMEM;
}

int fgv_quota_set_least(struct fgv_quota *quota, uint64_t bytes)
{
	uint64_t before = shown(quota, quota->used), after = fgv_max_u64(quota->used, bytes);

	if (show_more(quota, before, after) < 0)
		return -ENOMEM;
	quota->least = bytes;
	return 0;
}

static int grow(struct fgv_quota *quota, struct fgv_charge *charge, uint64_t bytes)
{
	uint64_t after;

	quota->refused = UINT64_MAX;
	if (__builtin_add_overflow(quota->used, bytes - charge->bytes, &after) ||
	    shown(quota, after) > limit_of(quota))
		return -ENOMEM;
	quota->refused = bytes - charge->bytes;
	if (show_more(quota, shown(quota, quota->used), shown(quota, after)) < 0)
		return -ENOMEM;
	quota->used = after;
	quota->refused = 0;
	charge->bytes = bytes;
	return 0;
}

/* Where there would be room without what is freed late, it is freed now. */
static bool make_room(struct fgv_quota *quota, uint64_t bytes)
{
	if (!quota->late.bytes || bytes > left_without(quota, 0) + quota->late.bytes)
		return false;
	shrink(quota, &quota->late, fgv_min_u64(quota->reclaim(quota->of), quota->late.bytes));
	return true;
}

int fgv_quota_charge(struct fgv_quota *quota, struct fgv_charge *charge, uint64_t bytes)
{
	if (bytes <= charge->bytes) {
		shrink(quota, charge, bytes);
		return 0;
	}
	if (grow(quota, charge, bytes) == 0)
		return 0;
	if (quota->spare.bytes && quota->give_up(quota->spare_of) &&
	    grow(quota, charge, bytes) == 0)
		return 0;
	if (!make_room(quota, bytes - charge->bytes))
		return -ENOMEM;
	return grow(quota, charge, bytes);
}

void fgv_quota_set_reclaim(struct fgv_quota *quota, fgv_quota_reclaim *reclaim, void *of)
{
	quota->reclaim = reclaim;
	quota->of = of;
}

void fgv_quota_set_late(struct fgv_quota *quota, uint64_t bytes)
{
	uint64_t refused = quota->refused;

	if (bytes > quota->late.bytes && grow(quota, &quota->late, bytes) < 0)
		bytes = fgv_min_u64(quota->reclaim(quota->of), quota->late.bytes);
	if (bytes < quota->late.bytes)
		shrink(quota, &quota->late, bytes);
	quota->refused = refused;
}

void fgv_quota_set_shared(struct fgv_quota *quota, uint64_t bytes)
{
	quota->shared = bytes;
	store_own(quota, shown(quota, quota->used));
}

void fgv_quota_set_give_up(struct fgv_quota *quota, fgv_quota_give_up *give_up, void *of)
{
	quota->give_up = give_up;
	quota->spare_of = of;
}

int fgv_quota_reserve(struct fgv_quota *quota, struct fgv_charge *ahead, uint64_t bytes)
{
	uint64_t blocks = bytes / quota->granule + (bytes % quota->granule != 0);

	quota->refused = UINT64_MAX;
	if (quota->count >= FGV_ALLOCATIONS_MAX || bytes > limit_of(quota))
		return -ENOMEM;
	blocks -= fgv_min_u64(blocks, ENDS);
	return fgv_quota_charge(quota, ahead, blocks * quota->granule);
}

static uint64_t first_block(const struct fgv_quota *quota, const struct fgv_allocation *allocation)
{
	return allocation->address / quota->granule;
}

static uint64_t last_block(const struct fgv_quota *quota, const struct fgv_allocation *allocation)
{
	return (allocation->address + allocation->bytes - 1) / quota->granule;
}

/* What @allocation, which is in the tree, has to itself: blocks with nothing else in them. */
static uint64_t own_bytes(const struct fgv_quota *quota, struct fgv_allocation *allocation)
{
	const struct fgv_allocation *before, *after;
	uint64_t first = first_block(quota, allocation), last = last_block(quota, allocation);

	before = RB_PREV(fgv_allocation_tree, &quota->allocations, allocation);
	after = RB_NEXT(fgv_allocation_tree, &quota->allocations, allocation);
	if (before && last_block(quota, before) == first)
		first++;
	if (after && first_block(quota, after) == last && first <= last)
		last--;
	return (last + 1 - first) * quota->granule;
}

static void forget(struct fgv_quota *quota, struct fgv_allocation *allocation)
{
	RB_REMOVE(fgv_allocation_tree, &quota->allocations, allocation);
	free(allocation);
	quota->count--;
}

int fgv_quota_add(struct fgv_quota *quota, uint64_t address, uint64_t bytes)
{
	struct fgv_allocation *made = malloc(sizeof(*made));

	if (!made)
		return -ENOMEM;
	*made = (struct fgv_allocation){.address = address, .bytes = bytes};
	if (RB_INSERT(fgv_allocation_tree, &quota->allocations, made)) {
		free(made);
		return -EEXIST;
	}
	quota->count++;
	if (fgv_quota_charge(quota, &quota->blocks, quota->blocks.bytes + own_bytes(quota, made)) <
	    0) {
		forget(quota, made);
		return -ENOMEM;
	}
	return 0;
}

int fgv_quota_remove(struct fgv_quota *quota, uint64_t address, uint64_t *bytes, uint64_t *charged)
{
	struct fgv_allocation key = {.address = address};
	struct fgv_allocation *found = RB_FIND(fgv_allocation_tree, &quota->allocations, &key);

	if (!found)
		return -ENOENT;
	*bytes = found->bytes;
	*charged = own_bytes(quota, found);
	shrink(quota, &quota->blocks, quota->blocks.bytes - *charged);
	forget(quota, found);
	return 0;
}

uint64_t fgv_quota_ending(const struct fgv_quota *quota)
{
	/* Pairs with the daemon's release: of what is not marked any more nothing is charged. */
	uint64_t ending = __atomic_load_n(&quota->allowance->ending, __ATOMIC_ACQUIRE);

	return ending & ~quota->own_bit;
}

bool fgv_quota_others(const struct fgv_quota *quota)
{
	return sum_use(quota, limit_of(quota), quota->own_bit) > 0;
}

/* What it has and does not use. */
static uint64_t unused(const struct fgv_quota *quota)
{
	return shown(quota, quota->used) - own_part(quota, quota->used);
}

bool fgv_quota_would_fit(const struct fgv_quota *quota, uint64_t bytes, uint64_t without)
{
	return bytes <= left_without(quota, without & ~quota->own_bit) + unused(quota);
}

uint64_t fgv_quota_left(const struct fgv_quota *quota)
{
	uint64_t left = left_without(quota, fgv_quota_ending(quota)) + unused(quota);

	return fgv_min_u64(left + quota->late.bytes + quota->spare.bytes, limit_of(quota));
}

uint64_t fgv_quota_returning(const struct fgv_quota *quota)
{
	uint64_t then = fgv_quota_left(quota);

	/* They may be gone between the two looks. */
	return then -
	       fgv_min_u64(left_without(quota, 0) + unused(quota) + quota->spare.bytes, then);
}
