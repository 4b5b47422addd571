/*
 * Spatial shares: which multiprocessors of a GPU each of several users has at a time. A GPU is
 * divided into units, groups of multiprocessors that can't be divided further; what a user has
 * is a set of them, a bit for each. The idea is SMGuard's (Yu et al., section 5.1): what is
 * reserved is there when its owner comes, what is not used is lent up to a limit.
 *
 * - A reservation is a fixed set of units, its home. It is admitted only if it fits beside the
 *   others.
 * - A share takes units for a turn and puts them back. An owner takes its whole home, or waits
 *   for it; what is beyond that comes from units that are free and belong to nobody, or to an
 *   owner that wants nothing. A share without a home takes such units only.
 * - Units are never taken from a user in the middle of its turn: an owner that comes back waits
 *   until those that are in its way have put back what they had.
 *
 * So no unit is in two sets at once, and none is free for long that a share that wants it may
 * have: only the home of an owner that waits for the rest of it, and what a share below its
 * limit will have with its next turn.
 *
 * Each function is O(1) in the number of shares; taking is O(units). Threads: none; the caller
 * serialises. No memory is allocated.
 */
#ifndef FGV_SCHEDULER_SPATIAL_H
#define FGV_SCHEDULER_SPATIAL_H

#include <stdbool.h>
#include <stdint.h>

#define FGV_SPATIAL_UNITS_MAX 64

struct fgv_spatial {
	uint64_t all;	   /* the units that there are */
	uint64_t reserved; /* homes */
	uint64_t wanted;   /* homes of owners that are active */
	uint64_t held;
	bool lends; /* homes of owners that are not */
};

/* All zero before fgv_spatial_join(). */
struct fgv_spatial_share {
	uint64_t home;
	uint64_t held;
	uint32_t limit; /* of units at a time; at least those of the home, and at least 1 */
	bool active;	/* holds units, or waits for them */
};

/* 1 to FGV_SPATIAL_UNITS_MAX @units. Without @lends each share has what is its own, always. */
void fgv_spatial_init(struct fgv_spatial *spatial, uint32_t units, bool lends);

/*
 * Gives @share, which is not active, a home of so many units, or none (0), in place of the one
 * that it had. -EINVAL: the limit is less than that, or 0; -ENOSPC: so many are not left;
 * -EBUSY: it is active. What is refused changes nothing.
 */
int fgv_spatial_join(struct fgv_spatial *spatial, struct fgv_spatial_share *share, uint32_t units,
		     uint32_t limit);
/* Its home is anybody's. It is not active. */
void fgv_spatial_leave(struct fgv_spatial *spatial, struct fgv_spatial_share *share);

/* It wants units from now on; or none any more, and has put back what it had. */
void fgv_spatial_wake(struct fgv_spatial *spatial, struct fgv_spatial_share *share);
void fgv_spatial_sleep(struct fgv_spatial *spatial, struct fgv_spatial_share *share);

/* What @share, which is active and holds nothing, may have now. 0: it has to wait. */
uint64_t fgv_spatial_usable(const struct fgv_spatial *spatial,
			    const struct fgv_spatial_share *share);

/*
 * Takes as much of that as its limit allows; without @extra an owner takes its home only. 0: it
 * has to wait. What it has taken, if it holds some already.
 */
uint64_t fgv_spatial_take(struct fgv_spatial *spatial, struct fgv_spatial_share *share, bool extra);
void fgv_spatial_put(struct fgv_spatial *spatial, struct fgv_spatial_share *share);

/* Whether @holder has units of @owner's home. */
bool fgv_spatial_is_in_way(const struct fgv_spatial_share *holder,
			   const struct fgv_spatial_share *owner);

/* What no owner has reserved. */
static inline uint64_t fgv_spatial_pool(const struct fgv_spatial *spatial)
{
	return spatial->all & ~spatial->reserved;
}

/*
 * The units that a configuration's share comes to, of @units with @each multiprocessors: of
 * multiprocessors, or of millionths of all that there are if @is_part. Rounded down, but not to
 * none, unless nothing is reserved.
 */
uint32_t fgv_spatial_units(uint64_t share, bool is_part, uint32_t units, uint32_t each);

#endif
