/* What a VM was promised of a device: requests and limits of its time, and multiprocessors. */
#include "backend/sched/gpusched_priv.h"

#include "common/util.h"

/* What a session holds without limit is used up to now: the promise is for what follows. */
static int set_shares(struct fgv_gpusched_vgpu *vgpu, const struct fgv_sched_shares *shares)
{
	struct fgv_gpusched_session *session;

	LIST_FOREACH(session, &vgpu->sessions, vgpu_link)
		fgv_gpusched_charge(session);
	return fgv_sched_set_shares(vgpu->sched, shares, fgv_now_ns());
}

int fgv_gpusched_set_shares(struct fgv_gpusched_vgpu *vgpu, const struct fgv_sched_shares *shares)
{
	struct fgv_gpusched *gpusched = vgpu->gpusched;
	int ret;

	pthread_mutex_lock(&gpusched->lock);
	ret = set_shares(vgpu, shares);
	pthread_mutex_unlock(&gpusched->lock);
	fgv_bells_kick(&gpusched->bells);
	return ret;
}

void fgv_gpusched_shares(const struct fgv_gpusched_vgpu *vgpu, struct fgv_sched_shares *shares)
{
	pthread_mutex_lock(&vgpu->gpusched->lock);
	*shares = *fgv_sched_vgpu_shares(vgpu->sched);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
}

void fgv_gpusched_session_claim(struct fgv_gpusched_session *session, bool claims)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;

	pthread_mutex_lock(&gpusched->lock);
	fgv_gpusched_settle_unlimited(gpusched);
	fgv_sched_claim(session->sched, claims, fgv_now_ns());
	pthread_mutex_unlock(&gpusched->lock);
}

int fgv_gpusched_set_units(struct fgv_gpusched_vgpu *vgpu, uint32_t units, uint32_t limit)
{
	int ret;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	ret = fgv_sched_set_units(vgpu->sched, units, limit);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return ret;
}

uint64_t fgv_gpusched_units(const struct fgv_gpusched_vgpu *vgpu, uint64_t *held)
{
	uint64_t units;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	units = fgv_sched_units(vgpu->sched);
	if (held)
		*held = fgv_sched_held_units(vgpu->sched);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return units;
}
