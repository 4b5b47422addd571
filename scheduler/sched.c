/*
 * Set-up of a scheduler: its vGPUs, their sessions, weights, and the change of policy. What
 * happens while it runs is in sched_grant.c.
 */
#include "scheduler/sched_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/admission.h"

static void *zeroed_lines(size_t size)
{
	size_t rounded = fgv_align_up(size, LINE);
	void *memory = aligned_alloc(LINE, rounded);

	return memory != NULL ? memset(memory, 0, rounded) : NULL;
}

void fgv_sched_params_init(struct fgv_sched_params *params)
{
	*params = (struct fgv_sched_params){
		.slice_ns = FGV_SCHED_SLICE_NS,
		.awake_lead_ns = 300000,
		.starve_ns = 10000000000ull,
		.interactive_window_ns = 10000000,
		.interactive_calls = 10,
		.share_window_ns = FGV_SCHED_SHARE_WINDOW_NS,
		.blocking_ns = FGV_SCHED_BLOCKING_NS,
	};
}

static void start_policy(struct fgv_sched *sched, const struct fgv_policy *policy, uint64_t now_ns)
{
	sched->policy = policy;
	sched->gpu = (struct fgv_policy_gpu){
		.params = &sched->params,
		.room = &sched->room,
		.gangs = policy->tell_gangs != NULL && sched->has_parts ? sched->gangs : NULL,
		.number = sched->number,
	};
	sched->tick_ns = FGV_SCHED_NEVER;
	if (policy->init != NULL)
		policy->init(&sched->gpu, now_ns);
}

static void stop_policy(struct fgv_sched *sched)
{
	if (sched->policy->fini != NULL)
		sched->policy->fini(&sched->gpu);
}

int fgv_sched_create(struct fgv_sched **out, const struct fgv_policy *policy,
		     const struct fgv_sched_params *params, uint64_t now_ns)
{
	struct fgv_sched *sched;

	if (params != NULL && params->slice_ns == 0)
		return -EINVAL;
	sched = calloc(1, sizeof(*sched));
	if (sched == NULL)
		return -ENOMEM;
	if (params != NULL)
		sched->params = *params;
	else
		fgv_sched_params_init(&sched->params);
	LIST_INIT(&sched->vgpus);
	TAILQ_INIT(&sched->waiting);
	TAILQ_INIT(&sched->holding);
	sched->now_ns = now_ns;
	fgv_sfq_room_init(&sched->room);
	start_policy(sched, policy, now_ns);
	fgv_sched_watch_reset(sched, now_ns);
	*out = sched;
	return 0;
}

void fgv_sched_destroy(struct fgv_sched *sched)
{
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;

	if (sched == NULL)
		return;
	while ((vgpu = LIST_FIRST(&sched->vgpus)) != NULL) {
		while ((session = LIST_FIRST(&vgpu->all)) != NULL)
			fgv_sched_detach_session(session, 0, sched->now_ns);
		fgv_sched_detach_vgpu(vgpu);
	}
	stop_policy(sched);
	fgv_sfq_room_fini(&sched->room);
	free(sched);
}

/* --- Change of policy ------------------------------------------------------ */

static void policy_detach(struct fgv_sched *sched, struct fgv_sched_vgpu *vgpu)
{
	const struct fgv_policy *policy = sched->policy;

	if (vgpu_active(vgpu) && policy->sleep != NULL)
		policy->sleep(&sched->gpu, &vgpu->pub, sched->now_ns);
	if (policy->detach != NULL)
		policy->detach(&sched->gpu, &vgpu->pub);
}

static int policy_attach(struct fgv_sched *sched, struct fgv_sched_vgpu *vgpu)
{
	const struct fgv_policy *policy = sched->policy;
	int err = 0;

	memset(vgpu->pub.own, 0, sizeof(vgpu->pub.own));
	if (policy->attach != NULL)
		err = policy->attach(&sched->gpu, &vgpu->pub, sched->now_ns);
	if (err == 0 && vgpu->claims != 0 && policy->claim != NULL)
		policy->claim(&sched->gpu, &vgpu->pub, true, sched->now_ns);
	if (err == 0 && vgpu_active(vgpu))
		fgv_sched_wake(vgpu);
	return err;
}

/* Attaches all; on failure none. */
static int attach_all(struct fgv_sched *sched)
{
	struct fgv_sched_vgpu *vgpu, *done;
	int err;

	LIST_FOREACH(vgpu, &sched->vgpus, link) {
		err = policy_attach(sched, vgpu);
		if (err != 0)
			goto detach;
	}
	return 0;
detach:
	LIST_FOREACH(done, &sched->vgpus, link) {
		if (done == vgpu)
			break;
		policy_detach(sched, done);
	}
	return err;
}

int fgv_sched_set_policy(struct fgv_sched *sched, const struct fgv_policy *policy, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
	int err;

	now_ns = sched_advance(sched, now_ns);
	fgv_sched_settle(sched, now_ns);
	LIST_FOREACH(vgpu, &sched->vgpus, link) {
		policy_detach(sched, vgpu);
		if (vgpu->pub.part.gang != NULL)
			fgv_gang_tell(&vgpu->pub.part, &(struct fgv_gang_view){0});
	}
	stop_policy(sched);
	start_policy(sched, policy, now_ns);
	err = attach_all(sched);
	if (err != 0) {
		stop_policy(sched);
		start_policy(sched, &fgv_policy_fair, now_ns);
		attach_all(sched); /* fair's attach cannot fail */
	}
	TAILQ_FOREACH(session, &sched->holding, state_link) {
		session->revoke = false;
		session->is_bounded = false;
		session->end_ns = FGV_SCHED_NEVER;
		session->settled_ns = now_ns;
	}
	fgv_sched_watch_reset(sched, now_ns);
	return err;
}

const struct fgv_policy *fgv_sched_policy(const struct fgv_sched *sched)
{
	return sched->policy;
}

/* --- vGPUs and sessions ---------------------------------------------------- */

int fgv_sched_attach_vgpu(struct fgv_sched *sched, uint32_t weight, void *owner, uint64_t now_ns,
			  struct fgv_sched_vgpu **out)
{
	struct fgv_sched_vgpu *vgpu;
	int err;

	sched_advance(sched, now_ns);
	if (weight == 0 || weight > FGV_SCHED_WEIGHT_MAX)
		return -EINVAL;
	err = fgv_sfq_room_grow(&sched->room, sched->load.vgpus + 1);
	if (err != 0)
		return err;
	vgpu = zeroed_lines(sizeof(*vgpu));
	if (vgpu == NULL)
		return -ENOMEM;
	vgpu->sched = sched;
	vgpu->owner = owner;
	vgpu->pub.id = sched->next_id++;
	vgpu->pub.weight = weight;
	vgpu->pub.shares.limit = FGV_SCHED_WHOLE;
	vgpu->pub.priority = FGV_SCHED_PRIORITY_DEFAULT;
	vgpu->pub.taken_ns = UINT32_MAX;
	vgpu->seen_service = sched->service;
	LIST_INIT(&vgpu->all);
	fgv_sfq_room_init(&vgpu->room);
	fgv_sfq_init(&vgpu->sessions, &vgpu->room, sched->params.first_tag);
	err = policy_attach(sched, vgpu);
	if (err != 0) {
		free(vgpu);
		return err;
	}
	LIST_INSERT_HEAD(&sched->vgpus, vgpu, link);
	sched->load.vgpus++;
	*out = vgpu;
	return 0;
}

int fgv_sched_detach_vgpu(struct fgv_sched_vgpu *vgpu)
{
	if (!LIST_EMPTY(&vgpu->all))
		return -EBUSY;
	policy_detach(vgpu->sched, vgpu);
	if (vgpu->pub.part.gang != NULL)
		fgv_gang_leave(&vgpu->pub.part);
	LIST_REMOVE(vgpu, link);
	vgpu->sched->requested -= vgpu->pub.shares.request;
	vgpu->sched->load.vgpus--;
	fgv_sfq_room_fini(&vgpu->room);
	free(vgpu);
	return 0;
}

int fgv_sched_set_weight(struct fgv_sched_vgpu *vgpu, uint32_t weight)
{
	struct fgv_sched *sched = vgpu->sched;
	uint32_t old = vgpu->pub.weight;

	if (weight == 0 || weight > FGV_SCHED_WEIGHT_MAX)
		return -EINVAL;
	if (vgpu_active(vgpu))
		sched->load.active_weight += (uint64_t)weight - old;
	vgpu->pub.weight = weight;
	if (sched->policy->set_weight != NULL)
		sched->policy->set_weight(&sched->gpu, &vgpu->pub, old);
	return 0;
}

static bool has_shares(const struct fgv_sched_shares *shares)
{
	return shares->request != 0 || shares->limit != FGV_SCHED_WHOLE || shares->bound_ns != 0;
}

/* With @shares for @vgpu, beside the others. */
static int check_bounds(const struct fgv_sched_vgpu *vgpu, const struct fgv_sched_shares *shares)
{
	const struct fgv_sched *sched = vgpu->sched;
	const struct fgv_sched_vgpu *other;
	struct fgv_sched_shares *all;
	size_t count = 0;
	bool is_kept;

	if (shares->bound_ns == 0)
		return 0;
	all = malloc(sched->load.vgpus * sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	LIST_FOREACH(other, &sched->vgpus, link)
		if (other != vgpu && other->pub.shares.bound_ns != 0)
			all[count++] = other->pub.shares;
	all[count++] = *shares;
	is_kept = fgv_admission_keeps(all, count, sched->params.blocking_ns);
	free(all);
	return is_kept ? 0 : -ERANGE;
}

static int check_shares(const struct fgv_sched_vgpu *vgpu, const struct fgv_sched_shares *shares)
{
	uint64_t others = vgpu->sched->requested - vgpu->pub.shares.request;

	if (shares->limit == 0 || shares->limit > FGV_SCHED_WHOLE ||
	    shares->request > shares->limit || (shares->bound_ns != 0 && shares->request == 0))
		return -EINVAL;
	if (has_shares(shares) && vgpu->sched->policy->set_shares == NULL)
		return -EOPNOTSUPP;
	if (others + shares->request > FGV_SCHED_WHOLE)
		return -ENOSPC;
	return check_bounds(vgpu, shares);
}

int fgv_sched_set_shares(struct fgv_sched_vgpu *vgpu, const struct fgv_sched_shares *shares,
			 uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;
	struct fgv_sched_shares old = vgpu->pub.shares;
	struct fgv_sched_session *holder;
	int err = check_shares(vgpu, shares);

	now_ns = sched_advance(sched, now_ns);
	if (err != 0)
		return err;
	vgpu->pub.shares = *shares;
	if (sched->policy->set_shares != NULL)
		err = sched->policy->set_shares(&sched->gpu, &vgpu->pub, &old, now_ns);
	if (err != 0) {
		vgpu->pub.shares = old;
		return err;
	}
	sched->requested += (uint64_t)shares->request - old.request;
	TAILQ_FOREACH(holder, &sched->holding, state_link)
		if (holder->vgpu == vgpu && shares->limit != FGV_SCHED_WHOLE)
			holder->is_bounded = true;
	return 0;
}

int fgv_sched_set_priority(struct fgv_sched_vgpu *vgpu, uint32_t priority, uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;
	uint32_t old = vgpu->pub.priority;
	int err;

	now_ns = sched_advance(sched, now_ns);
	if (priority >= FGV_SCHED_PRIORITIES)
		return -EINVAL;
	if (priority == old)
		return 0;
	if (sched->policy->set_priority == NULL)
		return -EOPNOTSUPP;
	vgpu->pub.priority = priority;
	err = sched->policy->set_priority(&sched->gpu, &vgpu->pub, old, now_ns);
	if (err != 0) {
		vgpu->pub.priority = old;
		return err;
	}
	fgv_sched_reorder(vgpu, now_ns);
	return 0;
}

uint32_t fgv_sched_vgpu_priority(const struct fgv_sched_vgpu *vgpu)
{
	return vgpu->pub.priority;
}

int fgv_sched_set_units(struct fgv_sched_vgpu *vgpu, uint32_t units, uint32_t limit)
{
	struct fgv_sched *sched = vgpu->sched;
	uint32_t most = limit != 0 ? limit : sched->params.units;
	int err;

	if (sched->policy->set_units == NULL)
		return units != 0 || limit != 0 ? -EOPNOTSUPP : 0;
	if (units != 0 && !sched->params.lends && sched->load.sessions > 0)
		return -EBUSY;
	err = sched->policy->set_units(&sched->gpu, &vgpu->pub, units, most);
	if (err != 0)
		return err;
	vgpu->pub.units = units;
	vgpu->pub.units_limit = most;
	return 0;
}

uint64_t fgv_sched_units(const struct fgv_sched_vgpu *vgpu)
{
	const struct fgv_sched *sched = vgpu->sched;

	return sched->policy->units != NULL ? sched->policy->units(&sched->gpu, &vgpu->pub) : 0;
}

uint64_t fgv_sched_held_units(const struct fgv_sched_vgpu *vgpu)
{
	const struct fgv_sched *sched = vgpu->sched;

	return sched->policy->held != NULL ? sched->policy->held(&sched->gpu, &vgpu->pub) : 0;
}

void fgv_sched_set_taken(struct fgv_sched_vgpu *vgpu, uint64_t taken_ns)
{
	vgpu->pub.taken_ns = (uint32_t)fgv_min_u64(taken_ns, UINT32_MAX);
}

void fgv_sched_advise(struct fgv_sched_session *session, const struct fgv_sched_advice *advice)
{
	session->vgpu->pub.advice = *advice;
}

int fgv_sched_attach_session(struct fgv_sched_vgpu *vgpu, void *owner, uint64_t now_ns,
			     struct fgv_sched_session **out)
{
	struct fgv_sched_session *session;
	int err = fgv_sfq_room_grow(&vgpu->room, vgpu->sessions.nodes + 1);

	sched_advance(vgpu->sched, now_ns);
	if (err != 0)
		return err;
	session = zeroed_lines(sizeof(*session));
	if (session == NULL)
		return -ENOMEM;
	session->vgpu = vgpu;
	session->owner = owner;
	session->vcpu = -1;
	fgv_sfq_node_init(&vgpu->sessions, &session->node, vgpu->sched->next_id++, 1);
	LIST_INSERT_HEAD(&vgpu->all, session, vgpu_link);
	vgpu->sched->load.sessions++;
	*out = session;
	return 0;
}

int fgv_sched_move_session(struct fgv_sched_session *session, struct fgv_sched_vgpu *to,
			   uint64_t now_ns)
{
	uint64_t id = session->node.id;
	bool waits = session->state == SESSION_WAITING, claims = session->claims;

	if (session->state == SESSION_HOLDING) {
		fgv_sched_end_within(session, sched_advance(to->sched, now_ns));
		return -EBUSY;
	}
	if (fgv_sfq_room_grow(&to->room, to->sessions.nodes + 1) != 0)
		return -ENOMEM;
	fgv_sched_withdraw(session, now_ns);
	fgv_sched_claim(session, false, now_ns);
	LIST_REMOVE(session, vgpu_link);
	fgv_sfq_node_fini(&session->vgpu->sessions, &session->node);
	session->vgpu = to;
	fgv_sfq_node_init(&to->sessions, &session->node, id, 1);
	LIST_INSERT_HEAD(&to->all, session, vgpu_link);
	fgv_sched_claim(session, claims, now_ns);
	if (waits)
		fgv_sched_request(session, now_ns);
	return 0;
}

void fgv_sched_detach_session(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns)
{
	struct fgv_sched *sched = session->vgpu->sched;

	if (session->state == SESSION_HOLDING)
		fgv_sched_release(session, used_ns, false, now_ns);
	fgv_sched_withdraw(session, now_ns);
	fgv_sched_claim(session, false, now_ns);
	if (sched->told_awake == session)
		sched->told_awake = NULL;
	LIST_REMOVE(session, vgpu_link);
	fgv_sfq_node_fini(&session->vgpu->sessions, &session->node);
	fgv_sched_stats_add(&session->vgpu->gone, &session->stats);
	fgv_recent_merge(&session->vgpu->gone_recent, &session->recent, sched->now_ns);
	sched->load.sessions--;
	free(session);
}
