/*
 * What is to be done next, and when something is: a grant, the limit of one, a word to the session
 * that comes after it, or what the watchdog has found.
 */
#include "scheduler/sched_priv.h"

#include "common/util.h"

static uint32_t max_grants(const struct fgv_sched *sched)
{
	if (sched->policy->pick == NULL)
		return UINT32_MAX;
	return sched->policy->max_grants != 0 ? sched->policy->max_grants : 1;
}

static struct fgv_sched_session *first_waiting(const struct fgv_sched_vgpu *vgpu)
{
	struct fgv_sfq_node *node = fgv_sfq_first(&vgpu->sessions);

	while (node != NULL && session_of(node)->state != SESSION_WAITING)
		node = fgv_sfq_next(&vgpu->sessions, node);
	return node != NULL ? session_of(node) : NULL;
}

static struct fgv_sched_session *pick(struct fgv_sched *sched, uint64_t now_ns)
{
	struct fgv_policy_vgpu *vgpu;

	if (sched->policy->pick == NULL)
		return TAILQ_FIRST(&sched->waiting);
	vgpu = sched->policy->pick(&sched->gpu, now_ns);
	return vgpu != NULL ? first_waiting(vgpu_of(vgpu)) : NULL;
}

static struct fgv_policy_grant grant_for(struct fgv_sched *sched, struct fgv_sched_vgpu *vgpu,
					 uint64_t now_ns)
{
	struct fgv_policy_grant grant = {.slice_ns = sched->params.slice_ns};

	if (sched->policy->grant != NULL)
		sched->policy->grant(&sched->gpu, &vgpu->pub, &grant, now_ns);
	return grant;
}

static void start_holding(struct fgv_sched_session *session, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;

	fgv_hist_add(&session->stats.wait, now_ns - session->since_ns);
	session->stats.grants++;
	fgv_sched_stop_waiting(session);
	session->state = SESSION_HOLDING;
	session->granted_ns = session->settled_ns = session->limit_from_ns = now_ns;
	session->window_from_ns = now_ns;
	session->charged_ns = 0;
	session->revoke = session->told_zero = false;
	session->slice_ns = FGV_SCHED_NO_LIMIT;
	session->end_ns = FGV_SCHED_NEVER;
	TAILQ_INSERT_TAIL(&sched->holding, session, state_link);
	sched->load.holding++;
	sched->told_awake = NULL;
	sched->awake_done = false;
	vgpu->pub.holding++;
	fgv_sched_watch_grant(vgpu);
}

static bool cosched(const struct fgv_sched_session *session)
{
	return session->vgpu->sched->policy->cosched == FGV_POLICY_COSCHED_GPU &&
	       session->interactive;
}

/*
 * With many vGPUs, what the next hand-over touches comes from memory: have it come now. The
 * next will have waited for about as long as @holder has.
 */
static void fetch_successor(struct fgv_sched *sched, const struct fgv_sched_session *holder,
			    uint64_t now_ns)
{
	const struct fgv_policy_vgpu *next;
	const struct fgv_sched_session *session;

	if (sched->load.waiting < FGV_SFQ_MANY || sched->policy->next == NULL)
		return;
	next = sched->policy->next(&sched->gpu, &holder->vgpu->pub, holder->slice_ns, now_ns);
	if (next == NULL)
		return;
	session = (const struct fgv_sched_session *)fgv_sfq_first(&vgpu_of(next)->sessions);
	for (size_t at = 0; at < offsetof(struct fgv_sched_session, stats.wait.bucket); at += LINE)
		__builtin_prefetch((const char *)session + at);
	fgv_recent_fetch(&session->recent, now_ns);
	fgv_hist_fetch(&session->stats.wait, now_ns - holder->since_ns);
}

static bool decide_grant(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d)
{
	struct fgv_sched_session *session;
	struct fgv_policy_grant grant;

	if (sched->load.waiting == 0 || sched->load.holding >= max_grants(sched))
		return false;
	session = pick(sched, now_ns);
	if (session == NULL)
		return false;
	grant = grant_for(sched, session->vgpu, now_ns);
	start_holding(session, now_ns);
	session->is_bounded = grant.is_bounded;
	if (grant.is_bounded || (sched->load.waiting > 0 && sched->policy->pick != NULL))
		session->slice_ns = grant.slice_ns;
	fetch_successor(sched, session, now_ns);
	*d = (struct fgv_sched_decision){
		.action = FGV_SCHED_GRANT,
		.session = session,
		.slice_ns = session->slice_ns,
		.ahead_ns = grant.ahead_ns,
		.must_fit = grant.must_fit && session->slice_ns != FGV_SCHED_NO_LIMIT,
		.units = grant.units,
		.cosched = cosched(session),
		.vcpu = session->vcpu,
	};
	return true;
}

/* What a holder without limit may still use now that others wait: a slice since its last charge. */
static uint64_t late_limit(struct fgv_sched *sched, const struct fgv_sched_session *holder,
			   uint64_t now_ns)
{
	uint64_t slice_ns = grant_for(sched, holder->vgpu, now_ns).slice_ns;

	return slice_ns - fgv_min_u64(slice_ns, now_ns - holder->settled_ns);
}

static bool is_to_end_earlier(const struct fgv_sched_session *holder)
{
	return holder->end_ns != FGV_SCHED_NEVER && holder->slice_ns != FGV_SCHED_NO_LIMIT &&
	       holder->end_ns < holder->limit_from_ns + holder->slice_ns;
}

static bool decide_limit(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d)
{
	bool crowded = sched->load.holding > max_grants(sched);
	bool wanted = sched->load.waiting > 0 && sched->policy->pick != NULL;
	struct fgv_sched_session *holder;

	TAILQ_FOREACH(holder, &sched->holding, state_link) {
		if (crowded || holder->revoke) {
			if (holder->told_zero)
				continue;
			holder->told_zero = true;
			holder->slice_ns = 0;
		} else if ((wanted || holder->is_bounded) &&
			   holder->slice_ns == FGV_SCHED_NO_LIMIT) {
			holder->slice_ns = late_limit(sched, holder, now_ns);
		} else if (is_to_end_earlier(holder)) {
			holder->slice_ns = holder->end_ns - fgv_min_u64(holder->end_ns, now_ns);
			holder->end_ns = FGV_SCHED_NEVER;
		} else {
			continue;
		}
		holder->limit_from_ns = now_ns;
		sched->awake_done = false;
		*d = (struct fgv_sched_decision){
			.action = FGV_SCHED_LIMIT,
			.session = holder,
			.slice_ns = holder->slice_ns,
		};
		return true;
	}
	return false;
}

struct fgv_sched_session *fgv_sched_successor(struct fgv_sched *sched, uint64_t now_ns)
{
	struct fgv_sched_session *holder = TAILQ_FIRST(&sched->holding), *other;
	struct fgv_policy_vgpu *next;
	uint64_t used_ns;

	if (holder == NULL || sched->load.waiting == 0 || sched->policy->next == NULL)
		return NULL;
	used_ns = holder->slice_ns == FGV_SCHED_NO_LIMIT ? 0 : holder->slice_ns;
	used_ns -= fgv_min_u64(used_ns, holder->charged_ns);
	next = sched->policy->next(&sched->gpu, &holder->vgpu->pub, used_ns, now_ns);
	if (next == NULL)
		return NULL;
	other = first_waiting(vgpu_of(next));
	if (next != &holder->vgpu->pub)
		return other;
	if (other == NULL || fgv_sfq_precedes(&holder->node, fgv_sfq_finish(&holder->node, used_ns),
					      &other->node, other->node.start))
		return holder;
	return other;
}

/* When the successor of the holder whose slice ends first is to be awake. */
static uint64_t awake_ns(const struct fgv_sched *sched)
{
	const struct fgv_sched_session *holder = TAILQ_FIRST(&sched->holding);
	uint64_t end_ns;

	if (sched->load.waiting == 0 || holder == NULL || sched->policy->next == NULL ||
	    holder->slice_ns == FGV_SCHED_NO_LIMIT)
		return FGV_SCHED_NEVER;
	end_ns = holder->limit_from_ns + holder->slice_ns;
	return end_ns - fgv_min_u64(end_ns, sched->params.awake_lead_ns);
}

static bool decide_awake(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d)
{
	struct fgv_sched_session *next;

	if (now_ns < awake_ns(sched))
		return false;
	sched->awake_done = true;
	next = fgv_sched_successor(sched, now_ns);
	if (next == NULL || next == sched->told_awake)
		return false;
	sched->told_awake = next;
	if (next->state != SESSION_WAITING)
		return false;
	*d = (struct fgv_sched_decision){
		.action = FGV_SCHED_AWAKE,
		.session = next,
		.cosched = cosched(next),
		.vcpu = next->vcpu,
	};
	return true;
}

bool fgv_sched_decide(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d)
{
	now_ns = fgv_sched_enter(sched, now_ns);
	fgv_sched_follow_gangs(sched, now_ns);
	return decide_grant(sched, now_ns, d) || decide_limit(sched, now_ns, d) ||
	       decide_awake(sched, now_ns, d) || fgv_sched_watch_decide(sched, now_ns, d) ||
	       fgv_sched_tell_gangs(sched, now_ns, d);
}

uint64_t fgv_sched_next_ns(const struct fgv_sched *sched, uint64_t now_ns)
{
	uint64_t next_ns = fgv_min_u64(sched->tick_ns, fgv_sched_watch_ns(sched));

	if (sched->load.waiting > 0 && sched->policy->ready_ns != NULL &&
	    sched->load.holding < max_grants(sched))
		next_ns = fgv_min_u64(next_ns, sched->policy->ready_ns(&sched->gpu));
	if (!sched->awake_done)
		next_ns = fgv_min_u64(next_ns, awake_ns(sched));
	return next_ns == FGV_SCHED_NEVER ? next_ns : fgv_max_u64(next_ns, now_ns);
}
