/*
 * One turn of a device's scheduler: what the sessions have written is read, the library
 * decides, and the decisions are written back. All under the lock.
 *
 * The words of a grant pair with those of the vGPU process as grant.h has it. Where each side
 * writes one and then reads the other's (the limit against the state, all of them against
 * `parked`), both accesses are sequentially consistent, so that not both can miss.
 */
#include "backend/sched/gpusched_priv.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include "backend/sched/gpugangs.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

#define EVENTS 16 /* taken at a time; more of them wait for the next turn */

/* The thread stays awake for a grant that is late by this part of its slice. */
#define LATE_SHARE 4

/*
 * While somebody may hang the thread looks so often, and if it comes so late for that, it was
 * stopped itself.
 */
#define HANG_LOOK_NS (FGV_NS_PER_SEC / 2)
#define STOPPED_NS   FGV_NS_PER_SEC

/* --- Charging -------------------------------------------------------------- */

static bool is_limited(const struct fgv_gpusched_session *session)
{
	return session->slice_ns != FGV_SCHED_NO_LIMIT;
}

/*
 * While others wait, the GPU is kept for the holder, whatever it says that it does with it: nobody
 * can have it for less than the time. An honest process reports that time, too. Where time
 * is what is shared, the library sees to it.
 */
static bool pays_for_time(const struct fgv_gpusched_session *session)
{
	return is_limited(session) && !(session->flags & FGV_GRANT_UNDRAINED);
}

/*
 * GPU time since the last charge, as the process says, or as the clock does. What went back comes
 * out as a huge number: the library cuts what a grant cannot have used. The time of the charge is
 * taken after the report was read, or it would be cut where this thread did not run in between.
 */
uint64_t fgv_gpusched_take_used(struct fgv_gpusched_session *session)
{
	uint64_t used_ns = __atomic_load_n(&session->grant->used_ns, __ATOMIC_RELAXED);
	uint64_t since_ns = used_ns - session->used_ns, from_ns = session->charged_at_ns;

	session->used_ns = used_ns;
	session->charged_at_ns = fgv_now_ns();
	if (pays_for_time(session))
		since_ns = fgv_max_u64(since_ns, session->charged_at_ns - from_ns);
	return fgv_min_u64(since_ns, session->charged_at_ns - session->attached_ns);
}

void fgv_gpusched_charge(struct fgv_gpusched_session *session)
{
	uint64_t used_ns;

	if (session->state != SESSION_HOLDING)
		return;
	used_ns = fgv_gpusched_take_used(session);
	fgv_sched_charge(session->sched, used_ns, session->charged_at_ns);
}

/* What the session's turn, which ends, costs the next one beyond its time. */
static void surcharge(struct fgv_gpusched_session *session)
{
	uint32_t changes = __atomic_load_n(&session->grant->changes, __ATOMIC_RELAXED);

	if (changes != session->changes && pays_for_time(session))
		fgv_sched_surcharge(session->sched, FGV_GRANT_CHANGE_NS, session->charged_at_ns);
	session->changes = changes;
}

/* The grant has ended, or does now. */
void fgv_gpusched_end_grant(struct fgv_gpusched_session *session, uint64_t used_ns, bool more)
{
	LIST_REMOVE(session, holder_link);
	session->favour = FGV_GPUSCHED_NOBODY;
	session->state = more ? SESSION_WAITING : SESSION_IDLE;
	fgv_gpusched_advise(session);
	surcharge(session);
	fgv_sched_release(session->sched, used_ns, more, session->charged_at_ns);
	if (session->is_misplaced && fgv_gpusched_levels_place(session))
		fgv_gpusched_condemn(session, "there is no memory to change its priority");
	fgv_gpusched_hold_loosen(session, session->charged_at_ns);
}

/* Takes the grant from a holder that has nothing to do; false: it has. */
static bool take_idle(struct fgv_gpusched_session *session)
{
	uint64_t word = __atomic_load_n(&session->grant->word, __ATOMIC_SEQ_CST);

	if (fgv_grant_state(word) != FGV_GRANT_IDLE ||
	    !fgv_grant_move(session->grant, word, FGV_GRANT_NONE))
		return false;
	fgv_gpusched_end_grant(session, fgv_gpusched_take_used(session), false);
	return true;
}

/* --- Looking --------------------------------------------------------------- */

static bool has_queue(const struct fgv_gpusched *gpusched)
{
	return fgv_sched_policy(gpusched->sched)->pick != NULL;
}

static bool anybody_waits(const struct fgv_gpusched *gpusched)
{
	struct fgv_sched_load load;

	fgv_sched_load(gpusched->sched, &load);
	return load.waiting > 0;
}

/* A newcomer starts at the virtual time, which must not be older than now. */
void fgv_gpusched_settle_unlimited(struct fgv_gpusched *gpusched)
{
	struct fgv_gpusched_session *holder, *after;

	for (holder = LIST_FIRST(&gpusched->holders); holder; holder = after) {
		after = LIST_NEXT(holder, holder_link);
		if (is_limited(holder))
			continue;
		if (!has_queue(gpusched) || !take_idle(holder))
			fgv_gpusched_charge(holder);
	}
}

static void forget_next(struct fgv_gpusched *gpusched)
{
	if (gpusched->next)
		fgv_store_ordered(&gpusched->next->grant->is_next, 0);
	gpusched->next = NULL;
}

static void withdraw(struct fgv_gpusched_session *session)
{
	session->state = SESSION_IDLE;
	fgv_sched_withdraw(session->sched, fgv_now_ns());
	if (session->vgpu->gpusched->next == session)
		forget_next(session->vgpu->gpusched);
}

void fgv_gpusched_condemn(struct fgv_gpusched_session *session, const char *why)
{
	if (session->condemned)
		return;
	session->condemned = why;
	fgv_debug_of(&session->subject, "is killed: %s", why);
	if (session->pid)
		kill(session->pid, SIGKILL);
	if (session->state == SESSION_WAITING)
		withdraw(session);
}

static void count_calls(struct fgv_gpusched_session *session)
{
	const struct fgv_grant *grant = session->grant;
	uint64_t calls = __atomic_load_n(&grant->sync_calls, __ATOMIC_RELAXED);
	uint64_t since = calls - session->sync_calls;

	if (!since)
		return;
	session->sync_calls = calls;
	session->vcpu = fgv_gpusched_waiting_vcpu(session);
	fgv_sched_sync_calls(session->sched, (uint32_t)fgv_min_u64(since, UINT32_MAX),
			     session->vcpu, fgv_now_ns());
}

/* One that is held and calls the driver may be waiting for the GPU there. */
static bool wants(const struct fgv_gpusched_session *session)
{
	const struct fgv_grant *grant = session->grant;

	return __atomic_load_n(&grant->wants, __ATOMIC_ACQUIRE) != 0 ||
	       (session->is_held && __atomic_load_n(&grant->in_call, __ATOMIC_SEQ_CST) != 0);
}

static void look_at_holder(struct fgv_gpusched_session *session)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;
	bool keeps = (session->flags & FGV_GRANT_KEEP) && is_limited(session);

	session->word = fgv_grant_load(session->grant);
	if (fgv_grant_state(session->word) == FGV_GRANT_NONE)
		fgv_gpusched_end_grant(session, fgv_gpusched_take_used(session), wants(session));
	else if (!keeps && has_queue(gpusched) && anybody_waits(gpusched))
		take_idle(session);
}

void fgv_gpusched_look(struct fgv_gpusched_session *session)
{
	if (session->condemned)
		return;
	count_calls(session);
	if (session->state == SESSION_HOLDING) {
		look_at_holder(session);
	} else if (fgv_grant_state(fgv_grant_load(session->grant)) != FGV_GRANT_NONE) {
		fgv_gpusched_condemn(session, "it took a grant that it was not given");
	} else if (session->state == SESSION_IDLE && wants(session)) {
		fgv_gpusched_settle_unlimited(session->vgpu->gpusched);
		fgv_gpusched_advise(session);
		fgv_sched_request(session->sched, fgv_now_ns());
		session->state = SESSION_WAITING;
	} else if (session->state == SESSION_WAITING && !wants(session)) {
		withdraw(session);
	}
}

static void look_at_holders(struct fgv_gpusched *gpusched)
{
	struct fgv_gpusched_session *holder, *after;

	for (holder = LIST_FIRST(&gpusched->holders); holder; holder = after) {
		after = LIST_NEXT(holder, holder_link);
		fgv_gpusched_look(holder);
	}
}

/* False: there may be more. A session is detached under the lock, so none of these is gone. */
static bool look_at_rung(struct fgv_gpusched *gpusched)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(gpusched->bells.epoll_fd, events, EVENTS, 0);

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			fgv_gpusched_look(events[i].data.ptr);
	}
	return count < EVENTS;
}

/* --- Carrying out ---------------------------------------------------------- */

void fgv_gpusched_wake(struct fgv_gpusched_session *session)
{
	if (!fgv_park_is_announced(&session->grant->parked))
		return;
	if (!fgv_bell_ring(&session->vgpu->gpusched->bells.bell, session->bell_fd))
		fgv_gpusched_condemn(session, "it has made its doorbell block");
}

static void set_slice(struct fgv_gpusched_session *session, uint64_t slice_ns, uint64_t now_ns)
{
	struct fgv_grant *grant = session->grant;
	uint64_t from_ns = __atomic_load_n(&grant->used_ns, __ATOMIC_RELAXED);
	uint64_t limit_ns;

	if (session->flags & FGV_GRANT_UNDRAINED)
		from_ns = now_ns;
	if (slice_ns == FGV_SCHED_NO_LIMIT)
		limit_ns = FGV_GRANT_NO_LIMIT;
	else if (__builtin_add_overflow(from_ns, slice_ns, &limit_ns))
		limit_ns = FGV_GRANT_NO_LIMIT - 1;
	session->slice_ns = slice_ns;
	session->slice_from_ns = now_ns;
	__atomic_store_n(&grant->limit_ns, limit_ns, __ATOMIC_SEQ_CST);
}

static uint32_t flags_of(const struct fgv_policy *policy)
{
	uint32_t flags = 0;

	if (policy->time_shared)
		flags |= FGV_GRANT_UNDRAINED;
	if (policy->gpu_wait == FGV_POLICY_WAIT_POLL)
		flags |= FGV_GRANT_KEEP;
	return flags;
}

static void give(struct fgv_gpusched_session *session, const struct fgv_sched_decision *d,
		 uint64_t now_ns)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;
	struct fgv_grant *grant = session->grant;
	uint64_t word = fgv_grant_load(grant);
	bool is_free = fgv_gpusched_hold_free(session);

	session->state = SESSION_HOLDING;
	LIST_INSERT_HEAD(&gpusched->holders, session, holder_link);
	session->charged_at_ns = now_ns;
	session->flags = flags_of(fgv_sched_policy(gpusched->sched));
	if (d->must_fit)
		session->flags |= FGV_GRANT_FIT;
	__atomic_store_n(&grant->flags, session->flags, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->ahead_ns, d->ahead_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->units, d->units, __ATOMIC_RELAXED);
	set_slice(session, d->slice_ns, now_ns);
	forget_next(gpusched);
	if (!is_free)
		return;
	if (fgv_grant_state(word) != FGV_GRANT_NONE ||
	    !fgv_grant_move(grant, word, FGV_GRANT_BUSY)) {
		fgv_gpusched_condemn(session, "it took a grant that it was not given");
		return;
	}
	session->word = fgv_grant_load(grant);
	fgv_gpusched_wake(session);
}

/*
 * A holder that becomes idle looks at its limit once more, and one that is seen busy here
 * has not done so yet: one of the two sees what the other has written.
 */
static void limit(struct fgv_gpusched_session *session, uint64_t slice_ns, uint64_t now_ns)
{
	set_slice(session, slice_ns, now_ns);
	if (take_idle(session))
		return;
	fgv_gpusched_wake(session);
	fgv_gpusched_limit_favours(session);
}

static void announce_next(struct fgv_gpusched_session *session)
{
	forget_next(session->vgpu->gpusched);
	session->vgpu->gpusched->next = session;
	fgv_store_ordered(&session->grant->is_next, 1);
	fgv_gpusched_wake(session);
}

static void relieve(struct fgv_gpusched *gpusched, const struct fgv_sched_decision *d,
		    uint64_t now_ns)
{
	const struct fgv_gpusched_session *session = fgv_sched_session_owner(d->session);
	const struct fgv_policy *policy = fgv_sched_policy(gpusched->sched);
	bool is_fair = policy == &fgv_policy_fair;

	fgv_warning_of(
		&session->subject,
		"waits in vain for the GPU, of which %.3f s are owed to its VM: policy %s starves "
		"it%s",
		(double)d->owed_ns / FGV_NS_PER_SEC, policy->name,
		is_fair ? "" : ", fair takes over");
	if (!is_fair)
		fgv_sched_set_policy(gpusched->sched, &fgv_policy_fair, now_ns);
}

static void decide(struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	struct fgv_sched_decision d;

	while (fgv_sched_decide(gpusched->sched, now_ns, &d)) {
		struct fgv_gpusched_session *session =
			d.session ? fgv_sched_session_owner(d.session) : NULL;

		switch (d.action) {
		case FGV_SCHED_GRANT:
			give(session, &d, now_ns);
			if (d.cosched)
				fgv_gpusched_favour(session, d.vcpu);
			break;
		case FGV_SCHED_LIMIT:
			limit(session, d.slice_ns, now_ns);
			break;
		case FGV_SCHED_AWAKE:
			announce_next(session);
			break;
		case FGV_SCHED_STARVED:
			relieve(gpusched, &d, now_ns);
			break;
		case FGV_SCHED_KNOCK:
			fgv_gpugangs_knock(gpusched->config.gangs, d.gpus);
			break;
		}
	}
}

/* --- Time ------------------------------------------------------------------ */

/* Only a holder with a limit, while others wait, can be late. */
static bool is_due(const struct fgv_gpusched_session *session)
{
	return !session->condemned && is_limited(session) &&
	       session->vgpu->gpusched->waited_since_ns;
}

/* Ends sessions that hang. Returns when to look again. */
static uint64_t end_hung(struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	uint64_t hang_ns = gpusched->config.hang_ns, next_ns = FGV_SCHED_NEVER, end_ns;
	struct fgv_gpusched_session *holder;

	LIST_FOREACH(holder, &gpusched->holders, holder_link) {
		if (!hang_ns || !is_due(holder) || fgv_gpusched_hold_ends(holder))
			continue;
		end_ns = fgv_max_u64(holder->slice_from_ns + holder->slice_ns,
				     gpusched->waited_since_ns) +
			 hang_ns;
		if (now_ns < end_ns) {
			next_ns = fgv_min_u64(next_ns, fgv_min_u64(end_ns, now_ns + HANG_LOOK_NS));
			continue;
		}
		fgv_gpusched_condemn(holder, "it does not give the GPU back (key \"hang\")");
	}
	return next_ns;
}

/* If the thread was stopped, the holders may have been, too: their time begins anew. */
static void forgive(struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	struct fgv_gpusched_session *holder;

	if (now_ns < gpusched->look_ns || now_ns - gpusched->look_ns < STOPPED_NS)
		return;
	LIST_FOREACH(holder, &gpusched->holders, holder_link)
		holder->slice_from_ns = now_ns;
}

/*
 * From shortly before the end of a slice by the clock until the grant comes back. A holder
 * may be late by a request; but one that is much too late is not waited for awake.
 */
static bool is_close(const struct fgv_gpusched *gpusched, uint64_t now_ns)
{
	uint64_t lead_ns = gpusched->config.params.awake_lead_ns;
	const struct fgv_gpusched_session *holder;

	LIST_FOREACH(holder, &gpusched->holders, holder_link) {
		uint64_t end_ns = holder->slice_from_ns + holder->slice_ns;

		if (fgv_gpusched_hold_ends(holder) && now_ns > fgv_gpusched_hold_end_ns(holder))
			continue;
		if (is_due(holder) && now_ns + lead_ns >= end_ns &&
		    now_ns < end_ns + lead_ns + holder->slice_ns / LATE_SHARE)
			return true;
	}
	return false;
}

/* What hangs is judged by the beginning: the thread may be stopped in the middle, too. */
uint64_t fgv_gpusched_turn(struct fgv_gpusched *gpusched, bool *close)
{
	uint64_t begun_ns = fgv_now_ns(), now_ns, next_ns, hold_ns;
	bool is_all;

	forgive(gpusched, begun_ns);
	look_at_holders(gpusched);
	is_all = look_at_rung(gpusched);
	now_ns = fgv_now_ns();
	fgv_gpusched_hold_take(gpusched, now_ns);
	decide(gpusched, fgv_now_ns());
	hold_ns = fgv_min_u64(fgv_gpusched_hold_settle(gpusched, now_ns),
			      fgv_gpusched_hold_next_ns(gpusched, now_ns));
	fgv_gpusched_settle_favours(gpusched);
	if (!anybody_waits(gpusched))
		gpusched->waited_since_ns = 0;
	else if (!gpusched->waited_since_ns)
		gpusched->waited_since_ns = now_ns;
	next_ns = fgv_min_u64(end_hung(gpusched, begun_ns),
			      fgv_sched_next_ns(gpusched->sched, now_ns));
	next_ns = fgv_min_u64(next_ns, hold_ns);
	*close = is_close(gpusched, now_ns);
	if (!is_all)
		next_ns = now_ns;
	gpusched->look_ns = *close ? begun_ns : next_ns;
	return next_ns;
}

bool fgv_gpusched_has_news(const struct fgv_gpusched *gpusched)
{
	const struct fgv_gpusched_session *holder;

	LIST_FOREACH(holder, &gpusched->holders, holder_link) {
		if (!holder->condemned && fgv_grant_load(holder->grant) != holder->word)
			return true;
	}
	return false;
}

/* --- The end --------------------------------------------------------------- */

/*
 * A process that was killed at work has not reported all of it. If others waited for it, it
 * pays for the time; alone it has cost nobody anything.
 */
static uint64_t last_use(struct fgv_gpusched_session *session)
{
	bool is_busy = fgv_grant_state(fgv_grant_load(session->grant)) == FGV_GRANT_BUSY;
	uint64_t from_ns = session->charged_at_ns;
	uint64_t used_ns = fgv_gpusched_take_used(session);

	return is_busy && is_limited(session) ? session->charged_at_ns - from_ns : used_ns;
}

void fgv_gpusched_leave(struct fgv_gpusched_session *session)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;

	if (gpusched->next == session)
		forget_next(gpusched);
	if (session->state == SESSION_HOLDING)
		fgv_gpusched_end_grant(session, last_use(session), false);
	fgv_gpusched_hold_leave(session);
	fgv_gpusched_put_back(session);
}
