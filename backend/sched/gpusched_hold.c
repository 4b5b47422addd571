/*
 * Holding, in a turn of a device's scheduler (docs/design/0019-holding.md). A slice that is over
 * and whose work does not end by itself is taken; then the decisions let the next one go; and
 * whoever is left without the grant is held after that, so that the GPU is never without work
 * meanwhile. All under the lock.
 *
 * Nobody is held while nobody else has the grant, unless the policy gives it to nobody
 * although somebody waits: a limit is to be kept.
 */
#include "backend/sched/gpusched_priv.h"

#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

/* What the work of one that is asked back for a more urgent one may take to end by itself. */
#define URGENT_DRAIN_NS (300 * FGV_NS_PER_US)

/* Where holding costs time, one that has given back by itself is held when it has not asked for the
 * GPU for so many slices.
 */
#define SETTLE_SLICES 4

/* A grant that moved while it was to be taken is looked at again. */
#define RACE_NS (20 * FGV_NS_PER_US)

static void tighten(struct fgv_gpusched_session *session)
{
	if (session->is_loose)
		LIST_REMOVE(session, loose_link);
	session->is_loose = false;
}

void fgv_gpusched_hold_loosen(struct fgv_gpusched_session *session, uint64_t now_ns)
{
	if (!session->hold || session->is_held || session->is_loose ||
	    session->state == SESSION_HOLDING)
		return;
	LIST_INSERT_HEAD(&session->vgpu->gpusched->loose, session, loose_link);
	session->is_loose = true;
	session->loose_ns = now_ns;
}

bool fgv_gpusched_hold_ends(const struct fgv_gpusched_session *session)
{
	const struct fgv_policy *policy = fgv_sched_policy(session->vgpu->gpusched->sched);

	return session->hold && policy->pick && !policy->time_shared;
}

/*
 * One that is asked back for a more urgent one is not waited for if that helps nothing: to hold it
 * costs less, or it says itself that it takes longer.
 */
static uint64_t patience_ns(const struct fgv_gpusched_session *session)
{
	const struct fgv_policy *policy = fgv_sched_policy(session->vgpu->gpusched->sched);
	uint32_t next_ns = __atomic_load_n(&session->grant->next_ns, __ATOMIC_RELAXED);

	if (!policy->fills_gaps || session->slice_ns)
		return session->hold->holder->drain_ns;
	return session->hold->holder->is_free || next_ns > URGENT_DRAIN_NS ? 0 : URGENT_DRAIN_NS;
}

uint64_t fgv_gpusched_hold_end_ns(const struct fgv_gpusched_session *session)
{
	return session->slice_from_ns + session->slice_ns + patience_ns(session);
}

/* --- Letting go ------------------------------------------------------------- */

static bool let_go(struct fgv_gpusched_session *session)
{
	struct fgv_grant *grant = session->grant;

	session->is_held = false;
	session->held_ns += fgv_now_ns() - session->held_at_ns;
	__atomic_store_n(&grant->held_ns, session->held_ns, __ATOMIC_RELAXED);
	fgv_store_ordered(&grant->is_held, 0);
	if (!session->hold->holder->release(session->hold))
		return true;
	fgv_gpusched_condemn(session, "it was held, and can't be let go");
	return false;
}

bool fgv_gpusched_hold_free(struct fgv_gpusched_session *session)
{
	tighten(session);
	session->is_undrained = false;
	return !session->is_held || let_go(session);
}

void fgv_gpusched_hold_leave(struct fgv_gpusched_session *session)
{
	tighten(session);
	session->is_held = false;
}

/* --- Taking grants ---------------------------------------------------------- */

/* Kernels that never end are no reason to end a program; unless the administrator says so. */
static void count_stuck(struct fgv_gpusched_session *session, uint64_t used_ns)
{
	uint64_t hang_ns = session->vgpu->gpusched->config.hang_held_ns;
	uint64_t progress = __atomic_load_n(&session->grant->progress, __ATOMIC_RELAXED);

	if (session->progress != progress)
		session->stuck_ns = 0;
	session->progress = progress;
	session->stuck_ns += used_ns;
	if (hang_ns && session->stuck_ns >= hang_ns)
		fgv_gpusched_condemn(session, "its work does not end (key \"hang\")");
}

/* Unless the process was faster, and may have given it back. */
static void take(struct fgv_gpusched_session *session)
{
	uint64_t word = fgv_grant_load(session->grant), used_ns;

	if (fgv_grant_state(word) != FGV_GRANT_BUSY ||
	    !fgv_grant_move(session->grant, word, FGV_GRANT_NONE))
		return;
	used_ns = fgv_gpusched_take_used(session);
	fgv_gpusched_end_grant(session, used_ns, true);
	session->is_undrained = true;
	count_stuck(session, used_ns);
	fgv_gpusched_wake(session);
}

/* When its grant is to be taken; FGV_SCHED_NEVER: not at all. */
static uint64_t take_ns(const struct fgv_gpusched_session *holder)
{
	if (holder->condemned || holder->slice_ns == FGV_SCHED_NO_LIMIT ||
	    !fgv_gpusched_hold_ends(holder))
		return FGV_SCHED_NEVER;
	return fgv_gpusched_hold_end_ns(holder);
}

void fgv_gpusched_hold_take(struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	struct fgv_gpusched_session *holder, *after;

	for (holder = LIST_FIRST(&gpusched->holders); holder; holder = after) {
		after = LIST_NEXT(holder, holder_link);
		if (now_ns >= take_ns(holder))
			take(holder);
	}
}

uint64_t fgv_gpusched_hold_next_ns(const struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	const struct fgv_gpusched_session *holder;
	uint64_t next_ns = FGV_SCHED_NEVER, at_ns;

	LIST_FOREACH(holder, &gpusched->holders, holder_link) {
		at_ns = take_ns(holder);
		/* One that was to be taken was faster, or it would be no holder. */
		next_ns = fgv_min_u64(next_ns, at_ns <= now_ns ? now_ns + RACE_NS : at_ns);
	}
	return next_ns;
}

/* --- Holding ---------------------------------------------------------------- */

/* Where nobody else got the GPU, its work went on until it was held: for that it pays, too. */
static void charge_until_held(struct fgv_gpusched_session *session)
{
	if (!session->is_undrained || session->state != SESSION_WAITING ||
	    !LIST_EMPTY(&session->vgpu->gpusched->holders))
		return;
	fgv_sched_charge_late(session->sched, session->held_at_ns - session->charged_at_ns,
			      session->held_at_ns);
}

/* False: the decisions are to be made once more. */
static bool hold(struct fgv_gpusched_session *session)
{
	struct fgv_hold *hold = session->hold;

	tighten(session);
	if (hold->holder->hold(hold)) {
		fgv_error_of(&session->subject, "can't be held any more");
		session->hold = NULL;
		hold->holder->forget(hold);
		fgv_store_ordered(&session->grant->is_holdable, 0);
		return true;
	}
	session->is_held = true;
	session->held_at_ns = fgv_now_ns();
	charge_until_held(session);
	session->holds += session->is_undrained;
	fgv_store_ordered(&session->grant->is_held, 1);
	if (session->state == SESSION_WAITING)
		fgv_gpusched_wake(session);
	if (session->state != SESSION_IDLE)
		return true;
	/* It may have gone into a call before it could see that it is held; later ones ring. */
	fgv_gpusched_look(session);
	return session->state == SESSION_IDLE;
}

/* When to hold it, if somebody else has the grant then. */
static uint64_t due_ns(const struct fgv_gpusched_session *session)
{
	if (session->is_undrained || session->hold->holder->is_free)
		return 0;
	if (session->state == SESSION_WAITING)
		return FGV_SCHED_NEVER;
	return session->loose_ns + SETTLE_SLICES * session->vgpu->gpusched->config.params.slice_ns;
}

/* Whether the GPU is for sessions other than those without a grant, or for none. */
static bool is_taken(const struct fgv_gpusched *gpusched)
{
	struct fgv_sched_load load;

	fgv_sched_load(gpusched->sched, &load);
	return !LIST_EMPTY(&gpusched->holders) || load.waiting > 0;
}

uint64_t fgv_gpusched_hold_settle(struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	struct fgv_gpusched_session *session, *after;
	uint64_t next_ns = FGV_SCHED_NEVER;

	if (!is_taken(gpusched))
		return next_ns;
	for (session = LIST_FIRST(&gpusched->loose); session; session = after) {
		uint64_t at_ns = due_ns(session);

		after = LIST_NEXT(session, loose_link);
		if (session->condemned || session == gpusched->next ||
		    !fgv_gpusched_hold_ends(session))
			continue;
		if (now_ns < at_ns)
			next_ns = fgv_min_u64(next_ns, at_ns);
		else if (!hold(session))
			next_ns = now_ns;
	}
	return next_ns;
}
