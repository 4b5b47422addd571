/*
 * Holding on a soft GPU: the arbiter keeps the engine from a seat that is held (arbiter.h).
 */
#include "backend/sched/hold.h"

#include <errno.h>
#include <stdlib.h>
#include "backend/sched/arbiter.h"
#include "common/util.h"

struct soft_hold {
	struct fgv_hold hold; /* first */
	struct fgv_arbiter_seat *seat;
};

static int hold_soft(struct fgv_hold *hold)
{
	fgv_arbiter_hold(((struct soft_hold *)hold)->seat, true);
	return 0;
}

static int release_soft(struct fgv_hold *hold)
{
	fgv_arbiter_hold(((struct soft_hold *)hold)->seat, false);
	return 0;
}

static void forget_soft(struct fgv_hold *hold)
{
	free(hold);
}

static const struct fgv_holder soft_holder = {
	.name = "the soft GPU's arbiter",
	.is_free = true,
	.drain_ns = 300 * FGV_NS_PER_US,
	.hold = hold_soft,
	.release = release_soft,
	.forget = forget_soft,
};

int fgv_hold_soft_adopt(struct fgv_arbiter *arbiter, pid_t pid, struct fgv_hold **out)
{
	struct fgv_arbiter_seat *seat = fgv_arbiter_find(arbiter, pid);
	struct soft_hold *soft;

	if (!seat)
		return -ENOENT;
	soft = calloc(1, sizeof(*soft));
	if (!soft)
		return -ENOMEM;
	soft->hold.holder = &soft_holder;
	soft->seat = seat;
	*out = &soft->hold;
	return 0;
}
