/*
 * Priorities in a running scheduler. To the library a VM is a vGPU for each priority that its
 * sessions have, made when the first one needs it; so sessions of one priority share what a VM of
 * that weight has there, however many they are. All but what the header has is under the lock.
 */
#include "backend/sched/gpusched_priv.h"

#include <errno.h>
#include "common/log.h"
#include "common/util.h"

int fgv_gpusched_levels_attach(struct fgv_gpusched_vgpu *vgpu, uint32_t weight)
{
	int ret = fgv_sched_attach_vgpu(vgpu->gpusched->sched, weight, vgpu, fgv_now_ns(),
					&vgpu->sched);

	vgpu->priority = FGV_SCHED_PRIORITY_DEFAULT;
	if (!ret)
		vgpu->levels[vgpu->priority] = vgpu->sched;
	return ret;
}

void fgv_gpusched_levels_detach(struct fgv_gpusched_vgpu *vgpu)
{
	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES; i++) {
		if (vgpu->levels[i])
			fgv_sched_detach_vgpu(vgpu->levels[i]);
	}
}

int fgv_gpusched_levels_weigh(struct fgv_gpusched_vgpu *vgpu, uint32_t weight)
{
	int ret = 0;

	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES && !ret; i++) {
		if (vgpu->levels[i])
			ret = fgv_sched_set_weight(vgpu->levels[i], weight);
	}
	return ret;
}

void fgv_gpusched_levels_sum(const struct fgv_gpusched_vgpu *vgpu, struct fgv_gpusched_stats *stats)
{
	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES; i++) {
		struct fgv_sched_stats level;

		if (!vgpu->levels[i])
			continue;
		fgv_sched_vgpu_stats(vgpu->levels[i], &level);
		fgv_sched_stats_add(&stats->sched, &level);
		stats->recent_ns += fgv_sched_vgpu_recent_ns(vgpu->levels[i], fgv_now_ns());
	}
}

/* The vGPU of @priority, which is made if there is none. */
static int make_level(struct fgv_gpusched_vgpu *vgpu, uint32_t priority)
{
	struct fgv_sched *sched = vgpu->gpusched->sched;
	struct fgv_sched_vgpu *level;
	uint64_t now_ns = fgv_now_ns();
	int ret;

	if (vgpu->levels[priority])
		return 0;
	ret = fgv_sched_attach_vgpu(sched, fgv_sched_vgpu_weight(vgpu->sched), vgpu, now_ns,
				    &level);
	if (ret)
		return ret;
	ret = fgv_sched_set_priority(level, priority, now_ns);
	if (ret)
		fgv_sched_detach_vgpu(level);
	else
		vgpu->levels[priority] = level;
	return ret;
}

/* No session is more urgent than its VM. */
static uint32_t priority_of(const struct fgv_gpusched_session *session)
{
	return (uint32_t)fgv_max_u64(session->priority, session->vgpu->priority);
}

int fgv_gpusched_levels_place(struct fgv_gpusched_session *session)
{
	struct fgv_gpusched_vgpu *vgpu = session->vgpu;
	uint32_t priority = priority_of(session);
	int ret;

	session->is_misplaced = false;
	if (fgv_sched_session_vgpu(session->sched) == vgpu->levels[priority])
		return 0;
	ret = make_level(vgpu, priority);
	if (!ret)
		ret = fgv_sched_move_session(session->sched, vgpu->levels[priority], fgv_now_ns());
	/* One that holds the grant is moved when that ends. */
	session->is_misplaced = ret == -EBUSY;
	return session->is_misplaced ? 0 : ret;
}

static int place_all(struct fgv_gpusched_vgpu *vgpu)
{
	struct fgv_gpusched_session *session;
	int ret = 0;

	LIST_FOREACH(session, &vgpu->sessions, vgpu_link) {
		if (!ret)
			ret = fgv_gpusched_levels_place(session);
	}
	return ret;
}

static int set_priority(struct fgv_gpusched_vgpu *vgpu, uint32_t priority)
{
	uint32_t old = vgpu->priority;
	int ret;

	if (priority == old)
		return 0;
	if (priority >= FGV_SCHED_PRIORITIES)
		return -EINVAL;
	if (!LIST_EMPTY(&vgpu->sessions) || vgpu->levels[priority]) {
		ret = make_level(vgpu, priority);
	} else {
		ret = fgv_sched_set_priority(vgpu->sched, priority, fgv_now_ns());
		if (!ret)
			vgpu->levels[old] = NULL;
	}
	if (ret)
		return ret;
	if (!vgpu->levels[priority])
		vgpu->levels[priority] = vgpu->sched;
	vgpu->sched = vgpu->levels[priority];
	vgpu->priority = priority;
	ret = place_all(vgpu);
	if (!ret)
		return 0;
	vgpu->sched = vgpu->levels[old];
	vgpu->priority = old;
	place_all(vgpu); /* where there was room before */
	return ret;
}

int fgv_gpusched_set_priority(struct fgv_gpusched_vgpu *vgpu, uint32_t priority)
{
	struct fgv_gpusched *gpusched = vgpu->gpusched;
	int ret;

	pthread_mutex_lock(&gpusched->lock);
	ret = set_priority(vgpu, priority);
	pthread_mutex_unlock(&gpusched->lock);
	fgv_bells_kick(&gpusched->bells);
	return ret;
}

uint32_t fgv_gpusched_priority(const struct fgv_gpusched_vgpu *vgpu)
{
	uint32_t priority;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	priority = vgpu->priority;
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return priority;
}

int fgv_gpusched_session_priority(struct fgv_gpusched_session *session, uint32_t priority)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;
	int ret = 0;

	pthread_mutex_lock(&gpusched->lock);
	session->priority = priority;
	if (fgv_sched_policy(gpusched->sched)->set_priority)
		ret = fgv_gpusched_levels_place(session);
	pthread_mutex_unlock(&gpusched->lock);
	return ret;
}

/* --- Advice ------------------------------------------------------------------ */

/* How long it takes to hold one of those that can be held at a cost. */
#define HOLD_NS FGV_NS_PER_MS

void fgv_gpusched_advise(const struct fgv_gpusched_session *session)
{
	const struct fgv_grant *grant = session->grant;
	const struct fgv_sched_advice advice = {
		.gap_ns = __atomic_load_n(&grant->gap_ns, __ATOMIC_RELAXED),
		.next_ns = __atomic_load_n(&grant->next_ns, __ATOMIC_RELAXED),
	};
	uint64_t taken_ns = FGV_SCHED_NEVER;

	if (!fgv_sched_policy(session->vgpu->gpusched->sched)->fills_gaps)
		return;
	if (fgv_gpusched_hold_ends(session))
		taken_ns = session->hold->holder->is_free ? 0 : HOLD_NS;
	fgv_sched_set_taken(fgv_sched_session_vgpu(session->sched), taken_ns);
	fgv_sched_advise(session->sched, &advice);
}
