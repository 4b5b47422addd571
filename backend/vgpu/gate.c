/*
 * The gate; see gate.h. Requests are numbered as they are let through. Those up to `finished`
 * are done; behind them come the marks, oldest first, and then what has no mark yet. The grant is
 * in gate_grant.c.
 *
 * An engine that copies does one thing at a time. What is ahead there is the sum of what its copies
 * take, and a mark is a place in the stream of its last copy; so each covers copies of one stream.
 */
#include "backend/vgpu/gate_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

int fgv_gate_init(struct fgv_session *session, struct fgv_gate *gate, enum fgv_engine engine,
		  enum fgv_setup_fd fd)
{
	void *grant = mmap(NULL, sizeof(*gate->grant), PROT_READ | PROT_WRITE, MAP_SHARED,
			   session->fds[fd], 0);
	struct fgv_device_info info;

	if (grant == MAP_FAILED)
		return -errno;
	gate->engine = engine;
	gate->grant = grant;
	gate->bell_fd = session->fds[fd + 1];
	gate->sched_bell_fd = session->fds[fd + 2];
	gate->retry_ns = UINT64_MAX;
	gate->slice_ns = session->setup.slice_ns;
	gate->idle_ns = session->setup.idle_ns;
	gate->most_ns = gate->slice_ns;
	gate->mark_ns = gate->slice_ns / FGV_GATE_MARK_SHARE;
	gate->kernels = &session->kernels;
	gate->word = fgv_grant_load(gate->grant);
	if (engine != FGV_ENGINE_COMPUTE)
		return 0;
	gate->learns = session->kernels.book != NULL;
	if (session->gpu->ops->info(session->gpu, &info) != CUDA_SUCCESS)
		memset(&info, 0, sizeof(info));
	if (session->setup.sms)
		info.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] =
			(int)session->setup.sms;
	gate->units = session->setup.units;
	fgv_forecast_init(&gate->forecast, &info, gate->slice_ns);
	return 0;
}

static struct fgv_mark *oldest(struct fgv_gate *gate)
{
	return &gate->marks[gate->oldest % FGV_GATE_MARKS];
}

static void drop_oldest(struct fgv_session *session, struct fgv_gate *gate)
{
	session->gpu->ops->fence_put(session->gpu, oldest(gate)->fence);
	gate->oldest++;
	gate->mark_count--;
}

static void drop_open(struct fgv_session *session, struct fgv_gate *gate)
{
	gate->open = (struct fgv_mark){0};
	if (gate->open_stream)
		fgv_session_put(session, gate->open_stream);
	gate->open_stream = NULL;
}

void fgv_gate_fini(struct fgv_session *session, struct fgv_gate *gate)
{
	while (gate->mark_count)
		drop_oldest(session, gate);
	drop_open(session, gate);
	munmap(gate->grant, sizeof(*gate->grant));
}

/* --- Measuring ------------------------------------------------------------- */

static void publish(struct fgv_gate *gate, uint64_t used_ns)
{
	__atomic_store_n(&gate->grant->used_ns, used_ns, __ATOMIC_RELAXED);
}

void fgv_gate_stop_clock(struct fgv_gate *gate, uint64_t now_ns)
{
	gate->used_ns = fgv_gate_used_until(gate, now_ns);
	gate->since_ns = 0;
	publish(gate, gate->used_ns);
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
	all->is_behind |= mark->is_behind;
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
 * A kind that was never measured is taken to be as long as a slice, so until its request is done or
 * overdue nothing more is let through. The others of a measurement that were late count as they
 * were expected: the time since the last of them went is the new kind's.
 */
static void learn(struct fgv_costs *costs, uint64_t slice_ns, const struct fgv_mark *done,
		  uint64_t measured_ns)
{
	if (done->has_first)
		fgv_cost_learn_first(costs, done->first_place,
				     done->predicted_ns - fgv_min_u64(slice_ns, done->predicted_ns),
				     measured_ns);
	else if (!done->is_behind && done->kinds <= FGV_MARK_KINDS && done->predicted_ns)
		fgv_cost_learn(costs, done->places, done->kinds, done->predicted_ns, measured_ns);
}

/* The work of @done is done. */
static void retire(struct fgv_session *session, struct fgv_gate *gate, const struct fgv_mark *done)
{
	struct fgv_forecast *forecast = &session->gate.forecast;
	uint64_t now_ns = fgv_now_ns(), alone_ns = 0;

	/* What was done before it was known that it is held says little of what it takes. */
	if (fgv_grant_state(gate->word) != FGV_GRANT_NONE) {
		learn(&forecast->costs, gate->slice_ns, done, now_ns - gate->passed_ns);
		if (done->last - gate->finished == 1)
			alone_ns = now_ns - gate->passed_ns;
	}
	__atomic_store_n(&gate->grant->progress, done->last, __ATOMIC_RELAXED);
	if (gate->engine == FGV_ENGINE_COMPUTE) {
		fgv_overlap_done(&forecast->overlap, done->until_ns);
		gate->ahead_ns = fgv_overlap_ahead_ns(&forecast->overlap);
	} else {
		gate->ahead_ns -= done->predicted_ns;
	}
	gate->finished = done->last;
	gate->passed_ns = now_ns;
	gate->patience_ns = 0;
	if (fgv_gate_has_work(gate)) {
		publish(gate, fgv_gate_used_until(gate, now_ns));
		return;
	}
	gate->taken = false;
	if (gate->learns)
		fgv_kernels_drained(session, alone_ns, now_ns);
	if (gate->blocked)
		fgv_account_add(&gate->grant->stalls, 1);
	if (!fgv_gate_is_limited(gate))
		fgv_gate_stop_clock(gate, now_ns);
}

void fgv_gate_finished(struct fgv_session *session, struct fgv_gate *gate, uint64_t last)
{
	struct fgv_mark done = {0};

	while (gate->mark_count && oldest(gate)->last <= last) {
		merge(&done, oldest(gate));
		drop_oldest(session, gate);
	}
	if (gate->open.last && gate->open.last <= last) {
		merge(&done, &gate->open);
		drop_open(session, gate);
	}
	if (done.last)
		retire(session, gate, &done);
}

static CUresult fence(const struct fgv_session *session, const struct fgv_gate *gate,
		      struct fgv_gpu_fence **fence)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;

	if (gate->engine != FGV_ENGINE_COMPUTE)
		return ops->fence(session->gpu, gate->open_stream ? gate->open_stream->stream : NULL,
				  fence);
	return session->engines.are_granted ? ops->fence_computing(session->gpu, fence)
					    : ops->fence_all(session->gpu, fence);
}

/* Where no fence can be had any more, there is no GPU left to wait for. */
static void mark(struct fgv_session *session, struct fgv_gate *gate)
{
	struct fgv_mark *next = &gate->marks[(gate->oldest + gate->mark_count) % FGV_GATE_MARKS];
	CUresult status;

	if (gate->mark_count == FGV_GATE_MARKS)
		return;
	if (gate->engine == FGV_ENGINE_COMPUTE)
		fgv_batch_send(session);
	status = fence(session, gate, &gate->open.fence);
	if (status != CUDA_SUCCESS) {
		fgv_session_note_end(session, status);
		fgv_gate_finished(session, gate, gate->submitted);
		return;
	}
	*next = gate->open;
	gate->mark_count++;
	drop_open(session, gate);
}

/* Launches that wait for others would have to go now. */
static bool is_mark_due(const struct fgv_session *session, const struct fgv_gate *gate)
{
	bool keeps = gate->engine == FGV_ENGINE_COMPUTE && session->batch.is_waiting;

	return (gate->blocked || session->waits.on_gpu == 0) && !keeps;
}

int fgv_gate_look(struct fgv_session *session, struct fgv_gate *gate)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	uint64_t passed = gate->finished;
	struct fgv_mark *next;
	CUresult status;

	if (gate->open.last && (gate->awaited || is_mark_due(session, gate)))
		mark(session, gate);
	for (uint32_t i = 0; i < gate->mark_count; i++) {
		next = &gate->marks[(gate->oldest + i) % FGV_GATE_MARKS];
		status = ops->fence_query(session->gpu, next->fence);
		if (status == CUDA_ERROR_NOT_READY)
			break;
		fgv_session_note_end(session, status);
		passed = next->last;
	}
	if (passed == gate->finished)
		return 0;
	fgv_gate_finished(session, gate, passed);
	return 1;
}

/* --- Letting work through -------------------------------------------------- */

/*
 * Whether work may go although there is as much ahead as there may be, once that is overdue. A
 * session that is held can't be late, and the gap that a grant is for does not get longer.
 */
static bool may_overtake(const struct fgv_gate *gate)
{
	return !gate->is_held && !gate->is_filling && !gate->forecast.overlap.is_serial &&
	       gate->submitted - gate->finished < FGV_GATE_QUEUED_MAX;
}

/* A session that can't be held keeps a newcomer waiting for all that it has on the GPU. */
static bool piles_up(struct fgv_session *session, const struct fgv_request *request,
		     const uint8_t *message, uint32_t len)
{
	return !__atomic_load_n(&session->gate.grant->is_holdable, __ATOMIC_RELAXED) &&
	       fgv_forecast_is_behind(session, request->op, message, len);
}

/* Until what is on the GPU has taken so long. */
static bool put_off(struct fgv_gate *gate, uint64_t late_ns)
{
	gate->retry_ns = fgv_min_u64(gate->retry_ns, gate->passed_ns + late_ns);
	return false;
}

/*
 * Whether @request goes although what is on the GPU takes longer than expected. That may be waiting
 * for @request, as kernels of different streams may wait for each other. What begins at once goes
 * as soon as the rest is overdue; what comes behind unfinished work of its own stream, when all has
 * taken twice as long as when such work last went, so that little piles up behind long kernels.
 */
static bool goes_beside_late_work(struct fgv_session *session, const struct fgv_request *request,
				  const uint8_t *message, uint32_t len)
{
	struct fgv_gate *gate = &session->gate;
	uint64_t late_ns;

	if (!may_overtake(gate))
		return false;
	late_ns = fgv_now_ns() - gate->passed_ns;
	if (late_ns < gate->ahead_ns)
		return put_off(gate, gate->ahead_ns);
	if (!piles_up(session, request, message, len))
		return true;
	if (late_ns < gate->patience_ns)
		return put_off(gate, gate->patience_ns);
	gate->patience_ns = 2 * late_ns;
	return true;
}

bool fgv_gate_admits_beside(struct fgv_session *session, const struct fgv_request *request,
			    const uint8_t *message, uint32_t len)
{
	return fgv_forecast_fits(session, request, message, len) ||
	       goes_beside_late_work(session, request, message, len);
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

static bool may_queue(const struct fgv_gate *gate, const struct fgv_request *request)
{
	switch (request->op) {
	case FGV_OP_LAUNCH:
	case FGV_OP_LAUNCH_COOPERATIVE:
	case FGV_OP_LAUNCH_CLUSTERS:
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
		return gate->submitted - gate->finished < FGV_GATE_QUEUED_MAX;
	default:
		return false; /* engines that copy are not held */
	}
}

static bool fits_gap(struct fgv_session *session, struct fgv_gate *gate,
		     const struct fgv_request *request, const uint8_t *message, uint32_t len)
{
	uint32_t ns = fgv_kernels_next_ns(session, request, message, len);

	return ns && gate->ahead_ns + ns <= fgv_gate_left_ns(gate);
}

bool fgv_gate_may_pass(struct fgv_session *session, struct fgv_gate *gate,
		       const struct fgv_request *request, const uint8_t *message, uint32_t len)
{
	if (gate->is_held)
		return may_queue(gate, request);
	return !gate->learns || fits_gap(session, gate, request, message, len);
}

void fgv_gate_foresee(struct fgv_session *session, struct fgv_gate *gate,
		      const struct fgv_request *request, const uint8_t *message, uint32_t len)
{
	if (gate->next_for == gate->submitted + 1)
		return;
	gate->next_for = gate->submitted + 1;
	gate->next_ns = fgv_kernels_next_ns(session, request, message, len);
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
	       gate->open.predicted_ns < 2 * gate->mark_ns;
}

/* Of trifles nothing is learned: what follows is a gap of what came before them. */
static void note_last(struct fgv_session *session, const struct fgv_request *request)
{
	struct fgv_kernels *kernels = &session->kernels;

	if (kernels->idle_ns)
		fgv_kernels_resume(kernels, session->gate.passed_ns);
	if (request->subject || request->amount)
		fgv_kernels_note(kernels, request, session->message);
}

struct fgv_object *fgv_gate_let(struct fgv_session *session, const struct fgv_request *request)
{
	struct fgv_gate *gate = &session->gate;
	struct fgv_expected expected;

	fgv_forecast_expect(session, request, session->message, &expected);
	note_expected(gate, &expected);
	if (!fgv_gate_has_work(gate) && !gate->begun)
		start_clock(gate);
	if (gate->learns)
		note_last(session, request);
	gate->begun = false;
	gate->woke = false;
	gate->open.last = ++gate->submitted;
	gate->open.predicted_ns += fgv_forecast_add(session, request, session->message, &expected);
	gate->open.until_ns = gate->forecast.overlap.ends_ns;
	gate->ahead_ns = fgv_overlap_ahead_ns(&gate->forecast.overlap);
	if (gate->open.predicted_ns >= gate->mark_ns &&
	    !may_put_off_mark(session))
		mark(session, gate);
	return expected.piece.stream;
}

/* --- Copies ------------------------------------------------------------------ */

bool fgv_gate_admits_copy(struct fgv_gate *gate, uint64_t ns)
{
	bool is_full = gate->mark_count == FGV_GATE_MARKS;

	/* One that takes longer than there is room goes alone. */
	gate->blocked = is_full || !gate->room_ns ||
			(fgv_gate_has_work(gate) && gate->ahead_ns + ns > gate->room_ns);
	return !gate->blocked;
}

void fgv_gate_let_copy(struct fgv_session *session, struct fgv_gate *gate,
		       struct fgv_object *stream, const struct fgv_place *after, uint16_t kind,
		       uint64_t ns)
{
	if (gate->open.last && gate->open_stream != stream)
		mark(session, gate);
	if (!fgv_gate_has_work(gate))
		start_clock(gate);
	gate->woke = false;
	note_kind(&gate->open, kind);
	gate->open.last = ++gate->submitted;
	gate->open.predicted_ns += ns;
	gate->ahead_ns += ns;
	for (unsigned i = 0; i < FGV_ENGINES; i++)
		gate->open.is_behind |= i != gate->engine &&
					after->last[i] > fgv_engines_gate(session, i)->finished;
	gate->open.after = *after;
	if (stream && !gate->open_stream)
		fgv_object_get(stream);
	gate->open_stream = stream;
	if (gate->open.predicted_ns >= gate->mark_ns)
		mark(session, gate);
}

bool fgv_gate_is_running(const struct fgv_session *session, struct fgv_gate *gate)
{
	const struct fgv_mark *first = gate->mark_count ? oldest(gate) : &gate->open;

	return fgv_gate_has_work(gate) &&
	       (gate->engine == FGV_ENGINE_COMPUTE ||
		fgv_engines_have_done(session, &first->after, gate->engine));
}

