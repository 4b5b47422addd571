/*
 * What happens while a scheduler runs: sessions ask, hold and give back, and usage is charged.
 * What is decided then is in sched_decide.c. Invariants:
 *
 * - A session is in exactly one of the queues `waiting` and `holding`, or idle in neither;
 *   its node is in its vGPU's queue unless it is idle.
 * - A vGPU is active, and known to the policy as such, while a session of it is not idle.
 * - A holder has no limit only while nobody waited since its grant, and never if the policy
 *   bounds it.
 */
#include "scheduler/sched_priv.h"

#include <errno.h>

#include "common/util.h"

/* --- States ---------------------------------------------------------------- */

uint64_t fgv_sched_enter(struct fgv_sched *sched, uint64_t now_ns)
{
	now_ns = sched_advance(sched, now_ns);
	if (now_ns >= sched->tick_ns) {
		fgv_sched_settle(sched, now_ns);
		sched->tick_ns = sched->policy->tick(&sched->gpu, now_ns);
	}
	return now_ns;
}

static void start_waiting(struct fgv_sched_session *session, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;

	session->state = SESSION_WAITING;
	session->since_ns = now_ns;
	TAILQ_INSERT_TAIL(&sched->waiting, session, state_link);
	sched->load.waiting++;
	vgpu->pub.waiting++;
	fgv_sched_watch_wait(vgpu, now_ns);
}

/* The session waits and holds no more; so does its vGPU, if it was the last. */
static void become_idle(struct fgv_sched_session *session, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;

	session->state = SESSION_IDLE;
	fgv_sfq_deactivate(&vgpu->sessions, &session->node, now_ns);
	if (vgpu_active(vgpu))
		return;
	sched->load.active_weight -= vgpu->pub.weight;
	if (sched->policy->sleep != NULL)
		sched->policy->sleep(&sched->gpu, &vgpu->pub, now_ns);
}

void fgv_sched_stop_waiting(struct fgv_sched_session *session)
{
	struct fgv_sched *sched = session->vgpu->sched;

	if (sched->watch_from == session)
		sched->watch_from = TAILQ_NEXT(session, state_link);
	TAILQ_REMOVE(&sched->waiting, session, state_link);
	sched->load.waiting--;
	session->vgpu->pub.waiting--;
}

void fgv_sched_wake(struct fgv_sched_vgpu *vgpu)
{
	struct fgv_sched *sched = vgpu->sched;

	if (sched->policy->wake != NULL)
		sched->policy->wake(&sched->gpu, &vgpu->pub, sched->now_ns);
	if (sched->policy->tick != NULL && sched->tick_ns == FGV_SCHED_NEVER)
		sched->tick_ns = sched->now_ns;
}

void fgv_sched_request(struct fgv_sched_session *session, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;
	bool woken = !vgpu_active(vgpu);

	now_ns = fgv_sched_enter(sched, now_ns);
	if (session->state != SESSION_IDLE)
		return;
	fgv_sfq_activate(&vgpu->sessions, &session->node, now_ns);
	start_waiting(session, now_ns);
	if (!woken) {
		fgv_sched_shorten_own(vgpu, now_ns);
		return;
	}
	sched->load.active_weight += vgpu->pub.weight;
	fgv_sched_wake(vgpu);
	fgv_sched_preempt(vgpu, false, now_ns);
	fgv_sched_shorten(vgpu, now_ns);
}

void fgv_sched_withdraw(struct fgv_sched_session *session, uint64_t now_ns)
{
	now_ns = fgv_sched_enter(session->vgpu->sched, now_ns);
	if (session->state != SESSION_WAITING)
		return;
	fgv_sched_stop_waiting(session);
	if (session->vgpu->sched->told_awake == session)
		session->vgpu->sched->told_awake = NULL;
	become_idle(session, now_ns);
}

void fgv_sched_claim(struct fgv_sched_session *session, bool claims, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;
	bool claimed = vgpu->claims != 0;

	now_ns = fgv_sched_enter(sched, now_ns);
	if (session->claims == claims)
		return;
	session->claims = claims;
	vgpu->claims = claims ? vgpu->claims + 1 : vgpu->claims - 1;
	if (claimed != (vgpu->claims != 0) && sched->policy->claim != NULL)
		sched->policy->claim(&sched->gpu, &vgpu->pub, claims, now_ns);
}

/* --- Charging -------------------------------------------------------------- */

/* Judges over a window of granted time: while offline a guest cannot make calls. */
static void judge_interactive(struct fgv_sched_session *session, uint64_t now_ns)
{
	const struct fgv_sched_params *params = &session->vgpu->sched->params;

	if (session->state == SESSION_HOLDING) {
		session->window_held_ns += now_ns - session->window_from_ns;
		session->window_from_ns = now_ns;
	}
	if (session->window_held_ns < params->interactive_window_ns)
		return;
	session->interactive =
		(double)session->window_calls * (double)params->interactive_window_ns >
		(double)params->interactive_calls * (double)session->window_held_ns;
	session->window_calls = 0;
	session->window_held_ns = 0;
}

/* A grant cannot have used more than the time that it was held. */
static uint64_t believable(const struct fgv_sched_session *session, uint64_t used_ns,
			   uint64_t now_ns)
{
	uint64_t held_ns = now_ns - session->granted_ns;

	if (session->vgpu->sched->policy->time_shared)
		return used_ns == FGV_SCHED_HELD ? now_ns - session->settled_ns : used_ns;
	return fgv_min_u64(used_ns, held_ns - fgv_min_u64(held_ns, session->charged_ns));
}

static void bill(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;

	fgv_sfq_charge(&vgpu->sessions, &session->node, used_ns);
	if (sched->policy->charge != NULL)
		sched->policy->charge(&sched->gpu, &vgpu->pub, used_ns, now_ns);
	fgv_sched_watch_charge(vgpu, used_ns);
}

static void charge(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns)
{
	used_ns = believable(session, used_ns, now_ns);
	session->charged_ns += used_ns;
	session->stats.gpu_ns += used_ns;
	fgv_recent_add(&session->recent, used_ns, session->settled_ns, now_ns);
	if (session->vgpu->sched->policy->time_shared)
		used_ns = now_ns - session->settled_ns;
	session->settled_ns = now_ns;
	judge_interactive(session, now_ns);
	bill(session, used_ns, now_ns);
}

/* What no grant was held for, up to now. */
static void bill_extra(struct fgv_sched_session *session, uint64_t ns, uint64_t now_ns)
{
	session->stats.gpu_ns += ns;
	fgv_recent_add(&session->recent, ns, now_ns - fgv_min_u64(ns, now_ns), now_ns);
	bill(session, ns, now_ns);
}

void fgv_sched_charge_late(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;

	now_ns = fgv_sched_enter(sched, now_ns);
	if (session->state != SESSION_WAITING)
		return;
	bill_extra(session, used_ns, now_ns);
	if (sched->policy->put != NULL)
		sched->policy->put(&sched->gpu, &vgpu->pub, now_ns);
}

void fgv_sched_surcharge(struct fgv_sched_session *session, uint64_t cost_ns, uint64_t now_ns)
{
	now_ns = fgv_sched_enter(session->vgpu->sched, now_ns);
	if (session->state == SESSION_HOLDING)
		bill_extra(session, cost_ns, now_ns);
}

void fgv_sched_settle(struct fgv_sched *sched, uint64_t now_ns)
{
	struct fgv_sched_session *holder;

	if (!sched->policy->time_shared)
		return;
	TAILQ_FOREACH(holder, &sched->holding, state_link)
		charge(holder, 0, now_ns);
}

int fgv_sched_charge(struct fgv_sched_session *session, uint64_t used_ns, uint64_t now_ns)
{
	now_ns = fgv_sched_enter(session->vgpu->sched, now_ns);
	if (session->state != SESSION_HOLDING)
		return -EINVAL;
	charge(session, used_ns, now_ns);
	return 0;
}

/* By how much a grant that ends exceeded its slice; of one limited late by the clock. */
static uint64_t overrun(const struct fgv_sched_session *session, uint64_t now_ns)
{
	uint64_t used_ns = session->charged_ns;

	if (session->limit_from_ns != session->granted_ns ||
	    session->vgpu->sched->policy->time_shared)
		used_ns = now_ns - session->limit_from_ns;
	return used_ns > session->slice_ns ? used_ns - session->slice_ns : 0;
}

int fgv_sched_release(struct fgv_sched_session *session, uint64_t used_ns, bool more,
		      uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu = session->vgpu;
	struct fgv_sched *sched = vgpu->sched;
	uint64_t over_ns;

	now_ns = fgv_sched_enter(sched, now_ns);
	if (session->state != SESSION_HOLDING)
		return -EINVAL;
	charge(session, used_ns, now_ns);
	over_ns = overrun(session, now_ns);
	session->stats.held_ns += now_ns - session->granted_ns;
	if (over_ns > 0) {
		session->stats.overruns++;
		session->stats.overrun_ns += over_ns;
	}
	TAILQ_REMOVE(&sched->holding, session, state_link);
	sched->told_awake = NULL;
	sched->awake_done = false;
	vgpu->pub.holding--;
	if (--sched->load.holding == 0)
		sched->free_since_ns = now_ns;
	if (more)
		start_waiting(session, now_ns);
	else if (vgpu->pub.waiting > 0)
		fgv_sched_watch_wait(vgpu, now_ns);
	if (sched->policy->put != NULL)
		sched->policy->put(&sched->gpu, &vgpu->pub, now_ns);
	if (!more)
		become_idle(session, now_ns);
	vgpu->pub.advice.gap_ns = 0; /* of this idle time */
	return 0;
}

void fgv_sched_sync_calls(struct fgv_sched_session *session, uint32_t count, int32_t vcpu,
			  uint64_t now_ns)
{
	session->window_calls += count;
	session->vcpu = vcpu;
	judge_interactive(session, fgv_sched_enter(session->vgpu->sched, now_ns));
}

void fgv_sched_vcpu_runs(struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;

	now_ns = fgv_sched_enter(sched, now_ns);
	if (sched->policy->cosched != FGV_POLICY_COSCHED_CPU || !vgpu_active(vgpu))
		return;
	fgv_sched_preempt(vgpu, true, now_ns);
}
