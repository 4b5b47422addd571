/* Which multiprocessors each of several users has; see spatial.h. */
#include "scheduler/spatial.h"

#include <errno.h>

#include "common/util.h"
#include "scheduler/params.h"

static uint32_t count_of(uint64_t set)
{
	return (uint32_t)__builtin_popcountll(set);
}

/* The lowest @count of @set, or all if it has fewer. */
static uint64_t lowest(uint64_t set, uint32_t count)
{
	uint64_t rest = set;

	for (uint32_t i = 0; i < count; i++)
		rest &= rest - (rest != 0);
	return set & ~rest;
}

void fgv_spatial_init(struct fgv_spatial *spatial, uint32_t units, bool lends)
{
	*spatial = (struct fgv_spatial){
		.all = UINT64_MAX >> (FGV_SPATIAL_UNITS_MAX - units),
		.lends = lends,
	};
}

int fgv_spatial_join(struct fgv_spatial *spatial, struct fgv_spatial_share *share, uint32_t units,
		     uint32_t limit)
{
	uint64_t left = fgv_spatial_pool(spatial) | share->home;

	if (limit == 0 || limit < units)
		return -EINVAL;
	if (share->active)
		return -EBUSY;
	if (units > count_of(left))
		return -ENOSPC;
	spatial->reserved &= ~share->home;
	share->home = lowest(left, units);
	share->limit = limit;
	spatial->reserved |= share->home;
	return 0;
}

void fgv_spatial_leave(struct fgv_spatial *spatial, struct fgv_spatial_share *share)
{
	spatial->reserved &= ~share->home;
	share->home = 0;
}

void fgv_spatial_wake(struct fgv_spatial *spatial, struct fgv_spatial_share *share)
{
	share->active = true;
	spatial->wanted |= share->home;
}

void fgv_spatial_sleep(struct fgv_spatial *spatial, struct fgv_spatial_share *share)
{
	fgv_spatial_put(spatial, share);
	share->active = false;
	spatial->wanted &= ~share->home;
}

uint64_t fgv_spatial_usable(const struct fgv_spatial *spatial,
			    const struct fgv_spatial_share *share)
{
	uint64_t extra = spatial->all & ~spatial->held & ~spatial->wanted;

	if (share->home & spatial->held)
		return 0;
	if (!spatial->lends)
		extra = share->home ? 0 : extra & ~spatial->reserved;
	return share->home | extra;
}

uint64_t fgv_spatial_take(struct fgv_spatial *spatial, struct fgv_spatial_share *share, bool extra)
{
	uint64_t usable;

	if (share->held)
		return share->held;
	usable = fgv_spatial_usable(spatial, share);
	if (!usable)
		return 0;
	share->held = share->home;
	if (extra || !share->home)
		share->held |= lowest(usable & ~share->home, share->limit - count_of(share->home));
	spatial->held |= share->held;
	return share->held;
}

void fgv_spatial_put(struct fgv_spatial *spatial, struct fgv_spatial_share *share)
{
	spatial->held &= ~share->held;
	share->held = 0;
}

bool fgv_spatial_is_in_way(const struct fgv_spatial_share *holder,
			   const struct fgv_spatial_share *owner)
{
	return holder != owner && (holder->held & owner->home) != 0;
}

uint32_t fgv_spatial_units(uint64_t share, bool is_part, uint32_t units, uint32_t each)
{
	uint64_t wanted = is_part ? share * units / FGV_SCHED_WHOLE : share / each;

	return share ? (uint32_t)fgv_max_u64(1, fgv_min_u64(wanted, UINT32_MAX)) : 0;
}
