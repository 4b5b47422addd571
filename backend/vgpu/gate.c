/*
 * The gate; see gate.h. Requests are numbered as they are let through. Those up to `finished`
 * are done; behind them come the marks, oldest first, and then what has no mark yet.
 */
#include "backend/vgpu/gate.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/park.h"
#include "shmring/spin.h"

/* A mark covers this part of a slice. Each costs the GPU some 2 us between two kernels. */
#define MARK_SHARE 4

/* Looks at the marks are rare while a reply waits for the GPU, as both ask the driver. */
#define LOOK_TURNS 8

/* Who waits for the end of a slice sleeps until so long before it is expected. */
#define WATCH_NS (100 * FGV_NS_PER_US)

/* Requests that a session which is held may have on the GPU: fewer than the driver takes at once.
 */
#define QUEUED_MAX 256

/* What a thread may take to wake up: a pause after that is not for want of work. */
#define WAKE_NS (200 * FGV_NS_PER_US)

int fgv_gate_init(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
	int fd = session->fds[FGV_SETUP_GRANT];
	struct fgv_device_info info;

	gate->grant = mmap(NULL, sizeof(*gate->grant), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (gate->grant == MAP_FAILED)
		return -errno;
	gate->bell_fd = session->fds[FGV_SETUP_GRANT_BELL];
	gate->sched_bell_fd = session->fds[FGV_SETUP_SCHED_BELL];
	gate->slice_ns = session->setup.slice_ns;
	gate->idle_ns = session->setup.idle_ns;
	gate->word = fgv_grant_load(gate->grant);
	if (session->gpu->ops->info(session->gpu, &info) != CUDA_SUCCESS)
		memset(&info, 0, sizeof(info));
	fgv_forecast_init(&gate->forecast, &info, gate->slice_ns);
	return 0;
}

static struct fgv_mark *oldest(struct fgv_gate *gate)
{
	return &gate->marks[gate->oldest % FGV_GATE_MARKS];
}

static void drop_oldest(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;

	session->gpu->ops->fence_put(session->gpu, oldest(gate)->fence);
	gate->oldest++;
	gate->mark_count--;
}

void fgv_gate_fini(struct fgv_session *session)
{
	while (session->gate.mark_count)
		drop_oldest(session);
	munmap(session->gate.grant, sizeof(*session->gate.grant));
}

/* --- Measuring ------------------------------------------------------------- */

static uint64_t used_until(const struct fgv_gate *gate, uint64_t now_ns)
{
	return gate->used_ns + (gate->since_ns ? now_ns - gate->since_ns : 0);
}

static void publish(struct fgv_gate *gate, uint64_t used_ns)
{
	__atomic_store_n(&gate->grant->used_ns, used_ns, __ATOMIC_RELAXED);
}

static void stop_clock(struct fgv_gate *gate, uint64_t now_ns)
{
	gate->used_ns = used_until(gate, now_ns);
	gate->since_ns = 0;
	publish(gate, gate->used_ns);
}

static bool is_limited(const struct fgv_gate *gate)
{
	return __atomic_load_n(&gate->grant->limit_ns, __ATOMIC_SEQ_CST) != FGV_GRANT_NO_LIMIT;
}

static void note_kind(struct fgv_mark *mark, uint16_t place)
{
	unsigned kinds = mark->kinds;

	if (kinds > FGV_MARK_KINDS)
		return;
	for (unsigned i = 0; i < kinds; i++) {
		if (mark->places[i] == place)
			return;
	}
	if (kinds < FGV_MARK_KINDS)
		mark->places[kinds] = place;
	mark->kinds++;
}

/* What passed at one look is one measurement: when the first of it was done is not known. */
static void merge(struct fgv_mark *all, const struct fgv_mark *mark)
{
	all->last = mark->last;
	all->until_ns = mark->until_ns;
	all->predicted_ns += mark->predicted_ns;
	for (unsigned i = 0; i < mark->kinds && i < FGV_MARK_KINDS; i++)
		note_kind(all, mark->places[i]);
	if (mark->kinds > FGV_MARK_KINDS)
		all->kinds = mark->kinds;
	if (mark->has_first) {
		all->has_first = true;
		all->first_place = mark->first_place;
	}
}

/*
 * A kind that was never measured is taken to be as long as a slice, so nothing more is let
 * through before its request is done: there is no second such kind in a measurement.
 */
static void learn(struct fgv_gate *gate, const struct fgv_mark *done, uint64_t measured_ns)
{
	struct fgv_costs *costs = &gate->forecast.costs;

	if (done->has_first)
		fgv_cost_learn_first(costs, done->first_place, done->predicted_ns - gate->slice_ns,
				     measured_ns);
	else if (done->kinds <= FGV_MARK_KINDS && done->predicted_ns)
		fgv_cost_learn(costs, done->places, done->kinds, done->predicted_ns, measured_ns);
}

/* The work of @done is done. */
static void retire(struct fgv_gate *gate, const struct fgv_mark *done)
{
	uint64_t now_ns = fgv_now_ns();

	/* What was done before it was known that it is held says little of what it takes. */
	if (fgv_grant_state(gate->word) != FGV_GRANT_NONE)
		learn(gate, done, now_ns - gate->passed_ns);
	__atomic_store_n(&gate->grant->progress, done->last, __ATOMIC_RELAXED);
	fgv_overlap_done(&gate->forecast.overlap, done->until_ns);
	gate->ahead_ns = fgv_overlap_ahead_ns(&gate->forecast.overlap);
	gate->finished = done->last;
	gate->passed_ns = now_ns;
	if (fgv_gate_has_work(gate)) {
		publish(gate, used_until(gate, now_ns));
		return;
	}
	gate->taken = false;
	if (gate->blocked)
		fgv_account_add(&gate->grant->stalls, 1);
	if (!is_limited(gate))
		stop_clock(gate, now_ns);
}

void fgv_gate_finished(struct fgv_session *session, uint64_t last)
{
	struct fgv_gate *gate = &session->gate;
	struct fgv_mark done = {0};

	while (gate->mark_count && oldest(gate)->last <= last) {
		merge(&done, oldest(gate));
		drop_oldest(session);
	}
	if (gate->open.last && gate->open.last <= last) {
		merge(&done, &gate->open);
		gate->open = (struct fgv_mark){0};
	}
	if (done.last)
		retire(gate, &done);
}

/* Where no fence can be had any more, there is no GPU left to wait for. */
static void mark(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
	struct fgv_mark *next = &gate->marks[(gate->oldest + gate->mark_count) % FGV_GATE_MARKS];

	if (gate->mark_count == FGV_GATE_MARKS)
		return;
	fgv_batch_send(session);
	if (session->gpu->ops->fence_all(session->gpu, &gate->open.fence) != CUDA_SUCCESS) {
		fgv_gate_finished(session, gate->submitted);
		return;
	}
	*next = gate->open;
	gate->open = (struct fgv_mark){0};
	gate->mark_count++;
}

static int look_at_marks(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	uint64_t passed = gate->finished;
	struct fgv_mark *next;

	/* Launches that wait for others would have to go now. */
	if (gate->open.last && (gate->blocked || session->waits.on_gpu == 0) &&
	    !session->batch.is_waiting)
		mark(session);
	for (uint32_t i = 0; i < gate->mark_count; i++) {
		next = &gate->marks[(gate->oldest + i) % FGV_GATE_MARKS];
		if (ops->fence_query(session->gpu, next->fence) == CUDA_ERROR_NOT_READY)
			break;
		passed = next->last;
	}
	if (passed == gate->finished)
		return 0;
	fgv_gate_finished(session, passed);
	return 1;
}

/* --- Letting work through -------------------------------------------------- */

bool fgv_gate_admits_beside(struct fgv_session *session, const struct fgv_request *request,
			    const uint8_t *message, uint32_t len)
{
	return fgv_forecast_fits(session, request, message, len);
}

/* Notes the kind of what goes to the GPU with the open mark. */
static void note_expected(struct fgv_gate *gate, const struct fgv_expected *expected)
{
	if (expected->is_trifle)
		return;
	if (!expected->is_first) {
		note_kind(&gate->open, expected->place);
		return;
	}
	gate->open.has_first = true;
	gate->open.first_place = expected->place;
}

/* What is queued while the session is held begins later. */
static void start_clock(struct fgv_gate *gate)
{
	gate->passed_ns = fgv_now_ns();
	if (!gate->since_ns && !gate->is_held)
		gate->since_ns = gate->passed_ns;
}

bool fgv_gate_may_queue(const struct fgv_gate *gate, const struct fgv_request *request)
{
	switch (request->op) {
	case FGV_OP_LAUNCH:
	case FGV_OP_LAUNCH_COOPERATIVE:
	case FGV_OP_LAUNCH_CLUSTERS:
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
		return gate->submitted - gate->finished < QUEUED_MAX;
	default:
		return false; /* engines that copy are not held */
	}
}

void fgv_gate_begin(struct fgv_gate *gate)
{
	if (fgv_gate_has_work(gate))
		return;
	start_clock(gate);
	gate->begun = true;
}

bool fgv_gate_pay(struct fgv_gate *gate, uint64_t ns)
{
	if (fgv_grant_state(fgv_grant_load(gate->grant)) != FGV_GRANT_BUSY)
		return false;
	gate->room_ns -= fgv_min_u64(ns, gate->room_ns);
	gate->free_ns = 0;
	return true;
}

/* In the middle of a sequence that goes to the driver as one: a mark would divide it. */
static bool may_put_off_mark(const struct fgv_session *session)
{
	const struct fgv_gate *gate = &session->gate;

	return session->batch.followed &&
	       gate->open.predicted_ns < 2 * (gate->slice_ns / MARK_SHARE);
}

void fgv_gate_let(struct fgv_session *session, const struct fgv_request *request)
{
	struct fgv_gate *gate = &session->gate;
	struct fgv_expected expected;

	fgv_forecast_expect(session, request, session->message, &expected);
	note_expected(gate, &expected);
	if (!fgv_gate_has_work(gate) && !gate->begun)
		start_clock(gate);
	gate->begun = false;
	gate->woke = false;
	gate->open.last = ++gate->submitted;
	gate->open.predicted_ns += fgv_forecast_add(session, request, session->message, &expected);
	gate->open.until_ns = gate->forecast.overlap.ends_ns;
	gate->ahead_ns = fgv_overlap_ahead_ns(&gate->forecast.overlap);
	if (gate->open.predicted_ns >= gate->slice_ns / MARK_SHARE &&
	    !may_put_off_mark(session))
		mark(session);
}

/* --- The grant ------------------------------------------------------------- */

static void ring_daemon(struct fgv_gate *gate)
{
	fgv_doorbell_ring(gate->sched_bell_fd);
}

static void say_wants(struct fgv_gate *gate, bool wants)
{
	__atomic_store_n(&gate->grant->wants, wants, __ATOMIC_RELEASE);
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

	if (!gate->in_call || fgv_gate_has_work(gate) || session->waits.on_gpu ||
	    session->loans.count)
		return;
	gate->in_call = false;
	fgv_store_ordered(&gate->grant->in_call, 0);
	if (gate->told_call)
		ring_daemon(gate);
	gate->told_call = false;
}

/* Without the grant: asks for it, or asks no more. What waits on the GPU needs it, too. */
static int ask(struct fgv_gate *gate)
{
	bool wants = gate->blocked || lingers(gate) ||
		     ((gate->taken || gate->is_held) && fgv_gate_has_work(gate));

	gate->room_ns = gate->is_held ? gate->slice_ns : 0;
	if (__atomic_load_n(&gate->grant->wants, __ATOMIC_RELAXED) == wants)
		return 0;
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

/*
 * Tells the guest whether it pays to look for replies without sleeping, and has its threads
 * awake by the time that they come: a wake-up in each slice would keep the GPU idle.
 */
static void set_online(struct fgv_session *session, bool online)
{
	struct fgv_gate *gate = &session->gate;

	if (gate->online == online)
		return;
	gate->online = online;
	__atomic_store_n(&fgv_window_head(&session->window)->online, online, __ATOMIC_RELAXED);
	if (online && fgv_spin_is_cheap())
		fgv_lanes_wake(session->lanes);
}

static int give_back(struct fgv_gate *gate, uint64_t now_ns, bool more)
{
	stop_clock(gate, now_ns);
	gate->room_ns = 0;
	gate->over = false;
	gate->off_ns = now_ns;
	say_wants(gate, more);
	move(gate, FGV_GRANT_NONE);
	ring_daemon(gate);
	return 1;
}

/*
 * Its slice is used up. Who has just got a reply has nothing to do for a moment, but would
 * have gone on: it keeps its place in the queue for as long as it might have kept the GPU.
 */
static int give_back_used_up(struct fgv_gate *gate, uint64_t now_ns)
{
	gate->linger_ns = now_ns + gate->idle_ns;
	return give_back(gate, now_ns, true);
}

static int give_back_idle(struct fgv_session *session, uint64_t now_ns)
{
	return give_back(&session->gate, now_ns, fgv_lanes_any_ordered(session->lanes));
}

/* Whether a holder with a limit has been without work for so long that it gives back. */
static bool is_idle(struct fgv_gate *gate, uint64_t now_ns)
{
	if (fgv_gate_has_work(gate) || gate->blocked) {
		gate->free_ns = 0;
		return false;
	}
	if (!gate->free_ns)
		gate->free_ns = now_ns;
	return now_ns - gate->free_ns >= gate->idle_ns + (gate->woke ? WAKE_NS : 0);
}

/* While it has the grant: how much more there may be on the GPU, and whether it was enough. */
static int hold(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
	uint64_t now_ns, at_ns;
	bool undrained;

	gate->limit_ns = __atomic_load_n(&gate->grant->limit_ns, __ATOMIC_SEQ_CST);
	gate->room_ns = gate->slice_ns;
	if (gate->limit_ns == FGV_GRANT_NO_LIMIT) {
		gate->over = false;
		return 0;
	}
	now_ns = fgv_now_ns();
	undrained = gate->grant->flags & FGV_GRANT_UNDRAINED;
	/* From now on the GPU is kept for this session, and it pays for that, work or not. */
	if (!undrained && !gate->since_ns)
		gate->since_ns = now_ns;
	at_ns = undrained ? now_ns : used_until(gate, now_ns);
	if (at_ns >= gate->limit_ns || gate->over)
		gate->room_ns = 0;
	else if (!undrained)
		gate->room_ns = fgv_min_u64(gate->limit_ns - at_ns, gate->slice_ns);
	if (gate->room_ns == 0 && (undrained || !fgv_gate_has_work(gate)))
		return give_back_used_up(gate, now_ns);
	if (is_idle(gate, now_ns) && !(gate->grant->flags & FGV_GRANT_KEEP))
		return give_back_idle(session, now_ns);
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

static int follow_grant(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
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
		set_online(session, __atomic_load_n(&gate->grant->is_next, __ATOMIC_ACQUIRE));
		return changed + ask(gate);
	case FGV_GRANT_IDLE:
		if (!gate->blocked || !move(gate, FGV_GRANT_BUSY))
			return changed;
		changed = 1;
		break;
	case FGV_GRANT_BUSY:
		if (changed) {
			resume(gate);
			say_wants(gate, false);
		}
		set_online(session, true);
		break;
	}
	return changed + hold(session);
}

int fgv_gate_turn(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
	int passed = 0;

	if (session->waits.on_gpu == 0 || gate->blocked || ++gate->turns % LOOK_TURNS == 0)
		passed = look_at_marks(session);
	return passed + follow_grant(session);
}

/* --- Sleeping -------------------------------------------------------------- */

/* Alone, with nothing to do: the daemon may take the grant without waking this process. */
static bool lend(struct fgv_gate *gate)
{
	gate->room_ns = 0;
	if (!move(gate, FGV_GRANT_IDLE))
		return false;
	/* A limit that came meanwhile found the grant busy, and waits for it to come back. */
	if (is_limited(gate) && move(gate, FGV_GRANT_NONE)) {
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
static bool may_sleep_before_reply(const struct fgv_session *session, uint64_t *limit_ns)
{
	uint64_t due_ns = fgv_waits_due_ns(&session->waits, session->gate.slice_ns);
	uint64_t now_ns = fgv_now_ns();

	if (due_ns <= now_ns)
		return is_late(&session->gate) && fgv_waits_are_late(&session->waits);
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

static bool may_sleep_with_work(const struct fgv_session *session, uint64_t waited_ns, bool is_told,
				uint64_t *limit_ns)
{
	const struct fgv_gate *gate = &session->gate;

	if (gate->limit_ns != FGV_GRANT_NO_LIMIT)
		return may_sleep_over_work(gate, waited_ns, is_told, limit_ns);
	return is_told || session->waits.on_gpu == 0 || may_sleep_before_reply(session, limit_ns);
}

bool fgv_gate_may_sleep(struct fgv_session *session, uint64_t waited_ns, bool is_told,
			uint64_t *limit_ns)
{
	struct fgv_gate *gate = &session->gate;

	switch (fgv_grant_state(gate->word)) {
	case FGV_GRANT_NONE:
		return !gate->linger_ns &&
		       !__atomic_load_n(&gate->grant->is_next, __ATOMIC_RELAXED);
	case FGV_GRANT_BUSY:
		if (fgv_gate_has_work(gate))
			return may_sleep_with_work(session, waited_ns, is_told, limit_ns);
		return gate->limit_ns == FGV_GRANT_NO_LIMIT && !gate->blocked && lend(gate);
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
