/* The scheduler's side of gangs (gangs.h), which the policy decides about. */
#include "scheduler/sched_priv.h"

#include <errno.h>

#include "common/util.h"

void fgv_sched_join_gangs(struct fgv_sched *sched, struct fgv_gangs *gangs, unsigned gpu)
{
	sched->gangs = gangs;
	sched->number = gpu;
	sched->gpu.number = gpu;
}

int fgv_sched_set_gang(struct fgv_sched_vgpu *vgpu, struct fgv_gang *gang)
{
	struct fgv_sched *sched = vgpu->sched;

	if (sched->gangs == NULL)
		return -EINVAL;
	if (vgpu_active(vgpu) || vgpu->pub.part.gang != NULL)
		return -EBUSY;
	sched->has_parts = true;
	if (sched->policy->tell_gangs != NULL)
		sched->gpu.gangs = sched->gangs;
	vgpu->pub.part.owner = &vgpu->pub;
	fgv_gang_join(gang, &vgpu->pub.part, sched->number);
	return 0;
}

/* When the grant of @holder ends, if others wait. */
static uint64_t end_ns(const struct fgv_sched_session *holder)
{
	if (holder->slice_ns == FGV_SCHED_NO_LIMIT)
		return FGV_SCHED_NEVER;
	return fgv_min_u64(holder->end_ns, holder->limit_from_ns + holder->slice_ns);
}

void fgv_sched_follow_gangs(struct fgv_sched *sched, uint64_t now_ns)
{
	struct fgv_sched_session *holder = TAILQ_FIRST(&sched->holding);
	uint64_t by_ns;

	if (sched->gpu.gangs == NULL || holder == NULL || sched->load.waiting == 0)
		return;
	by_ns = sched->policy->leave_by_ns(&sched->gpu, &holder->vgpu->pub, end_ns(holder), now_ns);
	holder->end_ns = fgv_min_u64(holder->end_ns, fgv_max_u64(by_ns, now_ns));
}

bool fgv_sched_tell_gangs(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d)
{
	struct fgv_sched_session *holder = TAILQ_FIRST(&sched->holding);
	uint32_t gpus;

	if (sched->gpu.gangs == NULL)
		return false;
	sched->policy->tell_gangs(&sched->gpu, holder != NULL ? &holder->vgpu->pub : NULL,
				  holder != NULL ? end_ns(holder) : FGV_SCHED_NEVER, now_ns);
	gpus = fgv_gangs_take_knocks(sched->gangs, sched->number);
	if (gpus == 0)
		return false;
	*d = (struct fgv_sched_decision){.action = FGV_SCHED_KNOCK, .gpus = gpus};
	return true;
}
