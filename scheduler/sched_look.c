/*
 * What a scheduler says of itself: what its vGPUs and sessions have used, and what they are owed.
 */
#include "scheduler/sched_priv.h"

#include "common/util.h"

void fgv_sched_stats_add(struct fgv_sched_stats *sum, const struct fgv_sched_stats *stats)
{
	sum->gpu_ns += stats->gpu_ns;
	sum->held_ns += stats->held_ns;
	sum->grants += stats->grants;
	sum->overruns += stats->overruns;
	sum->overrun_ns += stats->overrun_ns;
	sum->starved += stats->starved;
	fgv_hist_merge(&sum->wait, &stats->wait);
}

uint64_t fgv_sched_vgpu_recent_ns(const struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	const struct fgv_sched_session *session;
	uint64_t sum_ns = fgv_recent_ns(&vgpu->gone_recent, now_ns);

	LIST_FOREACH(session, &vgpu->all, vgpu_link)
		sum_ns += fgv_recent_ns(&session->recent, now_ns);
	return sum_ns;
}

uint64_t fgv_sched_session_recent_ns(const struct fgv_sched_session *session, uint64_t now_ns)
{
	return fgv_recent_ns(&session->recent, now_ns);
}

void *fgv_sched_vgpu_owner(const struct fgv_sched_vgpu *vgpu)
{
	return vgpu->owner;
}

void *fgv_sched_session_owner(const struct fgv_sched_session *session)
{
	return session->owner;
}

struct fgv_sched_vgpu *fgv_sched_session_vgpu(const struct fgv_sched_session *session)
{
	return session->vgpu;
}

void fgv_sched_vgpu_stats(const struct fgv_sched_vgpu *vgpu, struct fgv_sched_stats *stats)
{
	const struct fgv_sched_session *session;

	*stats = vgpu->gone;
	LIST_FOREACH(session, &vgpu->all, vgpu_link)
		fgv_sched_stats_add(stats, &session->stats);
}

const struct fgv_sched_stats *fgv_sched_session_stats(const struct fgv_sched_session *session)
{
	return &session->stats;
}

uint32_t fgv_sched_vgpu_weight(const struct fgv_sched_vgpu *vgpu)
{
	return vgpu->pub.weight;
}

const struct fgv_sched_shares *fgv_sched_vgpu_shares(const struct fgv_sched_vgpu *vgpu)
{
	return &vgpu->pub.shares;
}

bool fgv_sched_interactive(const struct fgv_sched_session *session)
{
	return session->interactive;
}

bool fgv_sched_tags(const struct fgv_sched_vgpu *vgpu, struct fgv_policy_tags *tags)
{
	const struct fgv_sched *sched = vgpu->sched;

	return sched->policy->tags != NULL && sched->policy->tags(&sched->gpu, &vgpu->pub, tags);
}

void fgv_sched_load(const struct fgv_sched *sched, struct fgv_sched_load *load)
{
	*load = sched->load;
}
