/*
 * When to start processes that are kept ready; see warm_plan.h.
 */
#include "backend/warm_plan.h"

#include "common/util.h"

void fgv_warm_plan_init(struct fgv_warm_plan *plan, unsigned wanted, uint64_t now_ns)
{
	*plan = (struct fgv_warm_plan){.wanted = wanted, .quiet_until_ns = now_ns};
}

uint64_t fgv_warm_plan_due_ns(const struct fgv_warm_plan *plan)
{
	if (plan->opening || plan->ready >= plan->wanted)
		return 0;
	return fgv_max_u64(plan->quiet_until_ns, plan->again_ns);
}

void fgv_warm_plan_started(struct fgv_warm_plan *plan)
{
	plan->opening++;
	plan->quiet_since_ns = 0;
}

void fgv_warm_plan_opened(struct fgv_warm_plan *plan)
{
	plan->opening--;
	plan->ready++;
}

void fgv_warm_plan_session(struct fgv_warm_plan *plan, uint64_t now_ns)
{
	if (!plan->quiet_since_ns)
		plan->quiet_since_ns = now_ns;
	plan->quiet_until_ns = fgv_min_u64(now_ns + FGV_WARM_QUIET_NS,
					   plan->quiet_since_ns + FGV_WARM_QUIET_MAX_NS);
}

void fgv_warm_plan_dropped(struct fgv_warm_plan *plan, bool was_ready)
{
	if (was_ready)
		plan->ready--;
	else
		plan->opening--;
}

void fgv_warm_plan_taken(struct fgv_warm_plan *plan, bool was_ready)
{
	fgv_warm_plan_dropped(plan, was_ready);
	if (was_ready)
		plan->failures = 0;
}

uint64_t fgv_warm_plan_failed(struct fgv_warm_plan *plan, bool was_ready, uint64_t lived_ns,
			      uint64_t now_ns)
{
	uint64_t pause_ns = FGV_WARM_AGAIN_MIN_NS;

	fgv_warm_plan_dropped(plan, was_ready);
	if (lived_ns >= FGV_WARM_AGAIN_MAX_NS)
		plan->failures = 0;
	for (unsigned i = 0; i < plan->failures && pause_ns < FGV_WARM_AGAIN_MAX_NS; i++)
		pause_ns *= 2;
	pause_ns = fgv_min_u64(pause_ns, FGV_WARM_AGAIN_MAX_NS);
	plan->failures++;
	plan->again_ns = now_ns + pause_ns;
	return pause_ns;
}
