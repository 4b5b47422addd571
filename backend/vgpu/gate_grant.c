/*
 * The gate and its grant: when to ask, when to give back, and when it is safe to sleep; see gate.h.
 */
#include "backend/vgpu/gate_priv.h"

#include "backend/vgpu/session.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

/* Looks at the marks are rare while a reply waits for the GPU, as both ask the driver. */
#define LOOK_TURNS 8

/* A wait for the end of a slice sleeps until so long before it is expected. */
#define WATCH_NS (100 * FGV_NS_PER_US)

/* Where little may be unfinished, a mark covers half of it or this: each costs the GPU some time.
 */
#define MARK_NS (100 * FGV_NS_PER_US)

/* What a thread may take to wake up: a pause after that is not for want of work. */
#define WAKE_NS (200 * FGV_NS_PER_US)

/*
 * What is queued while the session is held is this part of a slice: the next turn begins with work
 * at hand, and can still end by itself. With a whole slice, each turn would be late by what
 * letting go and the change of context take, and its grant would be taken again.
 */
#define QUEUED_SHARE 2

/* --- Asking for it, and giving it back --------------------------------------- */

static void ring_daemon(struct fgv_gate *gate)
{
	fgv_doorbell_ring(gate->sched_bell_fd);
}

static void say_wants(struct fgv_gate *gate, bool wants)
{
	__atomic_store_n(&gate->grant->wants, wants, __ATOMIC_RELEASE);
}

/* What it expects: an idle time, and of the next request. */
static void say_expected(struct fgv_gate *gate, uint32_t gap_ns)
{
	if (!gate->learns)
		return;
	__atomic_store_n(&gate->grant->gap_ns, gap_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&gate->grant->next_ns, gate->blocked ? gate->next_ns : 0,
			 __ATOMIC_RELAXED);
}

static bool lingers(struct fgv_gate *gate)
{
	if (gate->linger_ns && fgv_now_ns() >= gate->linger_ns)
		gate->linger_ns = 0;
	return gate->linger_ns != 0;
}

void fgv_gate_begin_calls(struct fgv_gate *gate)
{
	struct fgv_grant *grant = gate->grant;

	if (gate->in_call || !__atomic_load_n(&grant->is_holdable, __ATOMIC_RELAXED))
		return;
	gate->in_call = true;
	/* Both ordered, as are the daemon's of is_held and in_call: one of the two sees the
	 * other's. */
	fgv_store_ordered(&grant->in_call, 1);
	if (!fgv_load_ordered(&grant->is_held) || __atomic_load_n(&grant->wants, __ATOMIC_RELAXED))
		return;
	gate->told_call = true;
	ring_daemon(gate);
}

void fgv_gate_end_calls(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;

	if (!gate->in_call || fgv_engines_have_work(session) || session->waits.on_gpu ||
	    session->loans.count)
		return;
	gate->in_call = false;
	fgv_store_ordered(&gate->grant->in_call, 0);
	if (gate->told_call)
		ring_daemon(gate);
	gate->told_call = false;
}

/* Whether there is work that was let through under an earlier grant, and needs another. */
static bool has_left(const struct fgv_session *session, struct fgv_gate *gate)
{
	if (gate->engine == FGV_ENGINE_COMPUTE)
		return (gate->taken || gate->is_held) && fgv_gate_has_work(gate);
	return fgv_gate_is_running(session, gate);
}

/* Without the grant: asks for it, or asks no more. What waits on the GPU needs it, too. */
static int ask(const struct fgv_session *session, struct fgv_gate *gate)
{
	bool wants = gate->blocked || lingers(gate) || has_left(session, gate);

	gate->room_ns = gate->is_held ? gate->slice_ns / QUEUED_SHARE : 0;
	if (__atomic_load_n(&gate->grant->wants, __ATOMIC_RELAXED) == wants)
		return 0;
	say_expected(gate, 0);
	if (gate->learns && gate->blocked)
		fgv_kernels_resume(gate->kernels, fgv_now_ns());
	say_wants(gate, wants);
	ring_daemon(gate);
	return 1;
}

/* From the state last seen; false if the daemon was faster. */
static bool move(struct fgv_gate *gate, enum fgv_grant_state state)
{
	bool moved = fgv_grant_move(gate->grant, gate->word, state);

	gate->word = fgv_grant_load(gate->grant);
	return moved;
}

static int give_back(struct fgv_gate *gate, uint64_t now_ns, bool more)
{
	bool is_idle = gate->learns && !more && !gate->blocked;

	fgv_gate_stop_clock(gate, now_ns);
	say_expected(gate, is_idle ? fgv_kernels_gap_ns(gate->kernels, now_ns) : 0);
	gate->room_ns = 0;
	gate->over = false;
	gate->off_ns = now_ns;
	say_wants(gate, more);
	move(gate, FGV_GRANT_NONE);
	ring_daemon(gate);
	return 1;
}

/*
 * Its slice is used up. A guest that has just got a reply has nothing to do for a moment, but would
 * have gone on: it keeps its place in the queue for as long as it might have kept the GPU.
 */
static int give_back_used_up(struct fgv_gate *gate, uint64_t now_ns)
{
	gate->linger_ns = now_ns + gate->idle_ns;
	return give_back(gate, now_ns, true);
}

static int give_back_idle(struct fgv_session *session, struct fgv_gate *gate, uint64_t now_ns)
{
	/* What comes in the lanes mostly computes. */
	return give_back(gate, now_ns, gate->engine == FGV_ENGINE_COMPUTE &&
					       fgv_freezer_lets_in(session) &&
					       fgv_lanes_any_ordered(session->lanes));
}

/* Whether a holder with a limit has been without work for so long that it gives back. */
static bool is_idle(const struct fgv_session *session, struct fgv_gate *gate, uint64_t now_ns)
{
	if (fgv_gate_is_running(session, gate) || gate->blocked) {
		gate->free_ns = 0;
		return false;
	}
	if (!gate->free_ns)
		gate->free_ns = now_ns;
	/* A gap that is worth it is somebody else's from its beginning. */
	if (gate->learns && fgv_kernels_gap_ns(gate->kernels, gate->free_ns) >= FGV_KERNELS_GAP_NS)
		return true;
	return now_ns - gate->free_ns >= gate->idle_ns + (gate->woke ? WAKE_NS : 0);
}

uint64_t fgv_gate_left_ns(const struct fgv_gate *gate)
{
	bool is_by_clock = gate->grant->flags & FGV_GRANT_UNDRAINED;
	uint64_t now_ns = fgv_now_ns();
	uint64_t at_ns = is_by_clock ? now_ns : fgv_gate_used_until(gate, now_ns);

	return gate->limit_ns > at_ns ? gate->limit_ns - at_ns : 0;
}

/* How much may be unfinished under the grant that has come. */
static void fit_room(struct fgv_gate *gate)
{
	uint64_t ahead_ns = __atomic_load_n(&gate->grant->ahead_ns, __ATOMIC_RELAXED);

	gate->most_ns = ahead_ns ? fgv_min_u64(ahead_ns, gate->slice_ns) : gate->slice_ns;
	gate->mark_ns = fgv_max_u64(gate->most_ns / FGV_GATE_MARK_SHARE,
				    fgv_min_u64(gate->most_ns / 2, MARK_NS));
	gate->tried = false;
	gate->is_filling = __atomic_load_n(&gate->grant->flags, __ATOMIC_RELAXED) & FGV_GRANT_FIT;
}

/* What comes next does not fit into the gap. Under a new grant nothing was tried yet. */
static bool fits_not(const struct fgv_session *session, struct fgv_gate *gate)
{
	bool was_tried = gate->tried;

	gate->tried = true;
	return gate->is_filling && was_tried && gate->blocked &&
	       !fgv_gate_is_running(session, gate);
}

/* While it has the grant: how much more there may be on the GPU, and whether it was enough. */
static int hold(struct fgv_session *session, struct fgv_gate *gate)
{
	uint64_t now_ns, at_ns;
	bool undrained;

	gate->limit_ns = __atomic_load_n(&gate->grant->limit_ns, __ATOMIC_SEQ_CST);
	gate->room_ns = gate->most_ns;
	if (gate->limit_ns == FGV_GRANT_NO_LIMIT) {
		gate->over = false;
		return 0;
	}
	now_ns = fgv_now_ns();
	undrained = gate->grant->flags & FGV_GRANT_UNDRAINED;
	/* From now on the GPU is kept for this session, and it pays for that, work or not. */
	if (!undrained && !gate->since_ns)
		gate->since_ns = now_ns;
	at_ns = undrained ? now_ns : fgv_gate_used_until(gate, now_ns);
	if (at_ns >= gate->limit_ns || gate->over)
		gate->room_ns = 0;
	else if (!undrained)
		gate->room_ns = fgv_min_u64(gate->limit_ns - at_ns, gate->most_ns);
	/* Copies that their streams have not reached are no reason to keep an engine. */
	if (gate->room_ns == 0 && (undrained || !fgv_gate_is_running(session, gate)))
		return give_back_used_up(gate, now_ns);
	if (fits_not(session, gate))
		return give_back(gate, now_ns, true);
	if (is_idle(session, gate, now_ns) && !(gate->grant->flags & FGV_GRANT_KEEP))
		return give_back_idle(session, gate, now_ns);
	return 0;
}

/*
 * The daemon took the grant. What is on the GPU goes on with the next one. How long this one was
 * the daemon knows better: nothing more is reported of it, as the next limit is counted from what
 * was.
 */
static void lose_grant(struct fgv_gate *gate)
{
	gate->used_ns = gate->grant->used_ns;
	gate->since_ns = 0;
	gate->room_ns = 0;
	gate->over = false;
	gate->off_ns = fgv_now_ns();
	gate->taken = fgv_gate_has_work(gate);
	/* It takes it that there is more. */
	if (!gate->taken)
		ring_daemon(gate);
}

/* Work that is there has not run since the grant went, and what was queued since, not at all. */
static void resume(struct fgv_gate *gate)
{
	uint64_t now_ns;

	gate->taken = false;
	if (!fgv_gate_has_work(gate) || (gate->grant->flags & FGV_GRANT_UNDRAINED))
		return;
	now_ns = fgv_now_ns();
	gate->passed_ns = now_ns - (gate->off_ns - fgv_min_u64(gate->off_ns, gate->passed_ns));
	gate->since_ns = now_ns;
}

/* The multiprocessors of the grant that has come. Nothing of this session computes yet. */
static void follow_units(struct fgv_session *session, struct fgv_gate *gate)
{
	uint64_t units = __atomic_load_n(&gate->grant->units, __ATOMIC_RELAXED);
	CUresult status;

	if (units == gate->units || !units)
		return;
	gate->units = units;
	status = session->gpu->ops->set_units(session->gpu, units);
	if (status != CUDA_SUCCESS)
		fgv_error("its multiprocessors can't be changed: CUDA error %d", (int)status);
}

static int follow_grant(struct fgv_session *session, struct fgv_gate *gate)
{
	uint64_t word = fgv_grant_load(gate->grant);
	int changed = word != gate->word;
	bool had = fgv_grant_state(gate->word) == FGV_GRANT_BUSY;

	gate->word = word;
	gate->is_held = fgv_grant_state(word) == FGV_GRANT_NONE &&
			__atomic_load_n(&gate->grant->is_held, __ATOMIC_ACQUIRE);
	if (changed && had)
		lose_grant(gate);
	switch (fgv_grant_state(word)) {
	case FGV_GRANT_NONE:
		return changed + ask(session, gate);
	case FGV_GRANT_IDLE:
		if (!gate->blocked || !move(gate, FGV_GRANT_BUSY))
			return changed;
		changed = 1;
		break;
	case FGV_GRANT_BUSY:
		if (changed) {
			follow_units(session, gate);
			fit_room(gate);
			resume(gate);
			say_wants(gate, false);
		}
		break;
	}
	return changed + hold(session, gate);
}

int fgv_gate_turn(struct fgv_session *session, struct fgv_gate *gate)
{
	int passed = 0;

	if (session->waits.on_gpu == 0 || gate->blocked || gate->awaited ||
	    ++gate->turns % LOOK_TURNS == 0)
		passed = fgv_gate_look(session, gate);
	return passed + follow_grant(session, gate);
}

/* --- Sleeping -------------------------------------------------------------- */

/* Alone, with nothing to do: the daemon may take the grant without waking this process. */
static bool lend(struct fgv_gate *gate)
{
	gate->room_ns = 0;
	if (!move(gate, FGV_GRANT_IDLE))
		return false;
	/* A limit that came meanwhile found the grant busy, and waits for it to come back. */
	if (fgv_gate_is_limited(gate) && move(gate, FGV_GRANT_NONE)) {
		ring_daemon(gate);
		return false;
	}
	return true;
}

/*
 * Whether the work on the GPU takes longer than was expected: then nobody knows how long. What is
 * ahead began when the last mark passed, however long all of it has been waited for.
 */
static bool is_late(const struct fgv_gate *gate)
{
	return fgv_now_ns() - gate->passed_ns > 2 * gate->ahead_ns + WATCH_NS;
}

/* The guest waits for the GPU, and nobody else does: be there when it is done. */
static bool may_sleep_before_reply(const struct fgv_session *session, const struct fgv_gate *gate,
				   uint64_t *limit_ns)
{
	uint64_t due_ns = fgv_waits_due_ns(&session->waits, gate->slice_ns);
	uint64_t now_ns = fgv_now_ns();

	if (due_ns <= now_ns)
		return is_late(gate) && fgv_waits_are_late(&session->waits);
	*limit_ns = due_ns - now_ns;
	return true;
}

/* Another session waits for the end of the work on the GPU: be there when it is done. */
static bool may_sleep_over_work(const struct fgv_gate *gate, uint64_t waited_ns, bool is_told,
				uint64_t *limit_ns)
{
	uint64_t now_ns;

	if (gate->grant->flags & FGV_GRANT_UNDRAINED) {
		now_ns = fgv_now_ns();
		*limit_ns = fgv_min_u64(*limit_ns,
					gate->limit_ns > now_ns ? gate->limit_ns - now_ns : 0);
		return *limit_ns > 0;
	}
	if (is_told)
		return true;
	if (waited_ns + 2 * WATCH_NS < gate->ahead_ns) {
		*limit_ns = fgv_min_u64(*limit_ns, gate->ahead_ns - waited_ns - WATCH_NS);
		return true;
	}
	return is_late(gate);
}

static bool may_sleep_with_work(const struct fgv_session *session, const struct fgv_gate *gate,
				uint64_t waited_ns, bool is_told, uint64_t *limit_ns)
{
	if (gate->limit_ns != FGV_GRANT_NO_LIMIT)
		return may_sleep_over_work(gate, waited_ns, is_told, limit_ns);
	return is_told || session->waits.on_gpu == 0 ||
	       may_sleep_before_reply(session, gate, limit_ns);
}

/* How long until more may go beside late work; 0: it may go now. */
static uint64_t until_retry_ns(const struct fgv_gate *gate)
{
	uint64_t now_ns = fgv_now_ns();

	if (gate->retry_ns == UINT64_MAX)
		return UINT64_MAX;
	return gate->retry_ns > now_ns ? gate->retry_ns - now_ns : 0;
}

static bool may_sleep_busy(struct fgv_session *session, struct fgv_gate *gate, uint64_t waited_ns,
			   bool is_told, uint64_t *limit_ns)
{
	if (!fgv_gate_has_work(gate))
		return gate->limit_ns == FGV_GRANT_NO_LIMIT && !gate->blocked && lend(gate);
	if (!may_sleep_with_work(session, gate, waited_ns, is_told, limit_ns))
		return false;
	*limit_ns = fgv_min_u64(*limit_ns, until_retry_ns(gate));
	return *limit_ns > 0;
}

bool fgv_gate_may_sleep(struct fgv_session *session, struct fgv_gate *gate, uint64_t waited_ns,
			bool is_told, uint64_t *limit_ns)
{
	switch (fgv_grant_state(gate->word)) {
	case FGV_GRANT_NONE:
		return !gate->linger_ns &&
		       !__atomic_load_n(&gate->grant->is_next, __ATOMIC_RELAXED);
	case FGV_GRANT_BUSY:
		return may_sleep_busy(session, gate, waited_ns, is_told, limit_ns);
	case FGV_GRANT_IDLE:
		return true;
	}
	return true;
}

bool fgv_gate_has_news(const struct fgv_gate *gate)
{
	const struct fgv_grant *grant = gate->grant;

	if (fgv_grant_load(grant) != gate->word)
		return true;
	switch (fgv_grant_state(gate->word)) {
	case FGV_GRANT_NONE:
		return __atomic_load_n(&grant->is_next, __ATOMIC_SEQ_CST) ||
		       fgv_load_ordered(&grant->is_held) != gate->is_held;
	case FGV_GRANT_BUSY:
		return __atomic_load_n(&grant->limit_ns, __ATOMIC_SEQ_CST) != gate->limit_ns;
	case FGV_GRANT_IDLE:
		return false;
	}
	return false;
}
