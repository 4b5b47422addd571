/*
 * Which vCPUs are favoured: those of interactive sessions that have the grant for a slice
 * (cosched.h). What the decisions choose is carried out behind them, so that no hand-over waits
 * for it, and a session that goes on with the next slice is left as it is. All under the lock.
 */
#include "backend/sched/gpusched_priv.h"

int32_t fgv_gpusched_waiting_vcpu(const struct fgv_gpusched_session *session)
{
	const struct fgv_grant *grant = session->grant;
	bool is_thread = session->guest && fgv_cosched_is_local(session->guest);

	return (int32_t)__atomic_load_n(is_thread ? &grant->thread : &grant->vcpu,
					__ATOMIC_RELAXED);
}

void fgv_gpusched_favour(struct fgv_gpusched_session *session, int32_t vcpu)
{
	/* A session that is alone takes the GPU from nobody; one that is to give it back needs no
	 * favour. */
	if (session->slice_ns == FGV_SCHED_NO_LIMIT || session->slice_ns == 0)
		return;
	session->favour = vcpu;
	session->is_chosen = true;
}

void fgv_gpusched_limit_favours(struct fgv_gpusched_session *session)
{
	const struct fgv_policy *policy = fgv_sched_policy(session->vgpu->gpusched->sched);

	if (policy->cosched == FGV_POLICY_COSCHED_GPU && fgv_sched_interactive(session->sched))
		fgv_gpusched_favour(session, session->vcpu);
}

void fgv_gpusched_put_back(struct fgv_gpusched_session *session)
{
	if (!session->is_favoured)
		return;
	LIST_REMOVE(session, favoured_link);
	session->is_favoured = false;
	fgv_cosched_put_back(session->guest);
}

void fgv_gpusched_settle_favours(struct fgv_gpusched *gpusched)
{
	struct fgv_gpusched_session *session, *after;

	for (session = LIST_FIRST(&gpusched->favoured); session; session = after) {
		after = LIST_NEXT(session, favoured_link);
		if (session->favour == FGV_GPUSCHED_NOBODY)
			fgv_gpusched_put_back(session);
	}
	LIST_FOREACH(session, &gpusched->holders, holder_link) {
		if (!session->guest || !session->is_chosen ||
		    session->favour == FGV_GPUSCHED_NOBODY)
			continue;
		if (!session->is_favoured)
			LIST_INSERT_HEAD(&gpusched->favoured, session, favoured_link);
		session->is_favoured = true;
		session->is_chosen = false;
		fgv_cosched_favour(session->guest, session->favour);
	}
}
