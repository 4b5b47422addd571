/* A holder may have to end its grant earlier because of another vGPU, as the policy says. */
#include "scheduler/sched_priv.h"

#include "common/util.h"

static void ask_all_back(struct fgv_sched *sched)
{
	struct fgv_sched_session *holder;

	TAILQ_FOREACH(holder, &sched->holding, state_link)
		holder->revoke = true;
}

void fgv_sched_preempt(struct fgv_sched_vgpu *vgpu, bool vcpu_runs, uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;

	if (sched->policy->preempts != NULL &&
	    sched->policy->preempts(&sched->gpu, &vgpu->pub, vcpu_runs, now_ns))
		ask_all_back(sched);
}

static void end_within(struct fgv_sched_session *holder, uint64_t left_ns, uint64_t now_ns)
{
	if (left_ns < holder->end_ns - fgv_min_u64(holder->end_ns, now_ns))
		holder->end_ns = now_ns + left_ns;
}

static void shorten(struct fgv_sched_session *holder, struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;

	end_within(holder,
		   sched->policy->leave_ns(&sched->gpu, &holder->vgpu->pub, &vgpu->pub, now_ns),
		   now_ns);
}

void fgv_sched_shorten(struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sched_session *holder;

	if (vgpu->sched->policy->leave_ns == NULL)
		return;
	TAILQ_FOREACH(holder, &vgpu->sched->holding, state_link)
		shorten(holder, vgpu, now_ns);
}

void fgv_sched_shorten_own(struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sched_session *holder;

	if (vgpu->sched->policy->leave_ns == NULL || vgpu->pub.holding == 0)
		return;
	TAILQ_FOREACH(holder, &vgpu->sched->holding, state_link)
		if (holder->vgpu == vgpu)
			shorten(holder, vgpu, now_ns);
}

void fgv_sched_end_within(struct fgv_sched_session *holder, uint64_t now_ns)
{
	end_within(holder, holder->vgpu->sched->params.slice_ns, now_ns);
}

void fgv_sched_reorder(struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;
	struct fgv_sched_session *holder;

	if (vgpu->pub.waiting > 0)
		fgv_sched_shorten(vgpu, now_ns);
	TAILQ_FOREACH(holder, &sched->holding, state_link)
		if (holder->vgpu == vgpu)
			fgv_sched_end_within(holder, now_ns);
}
