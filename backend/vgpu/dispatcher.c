/*
 * One turn of the loop runs a batch of requests, those held first, looks at what waits for
 * the GPU, at the grant, and at the words that say that there is something to read or that the
 * session is over. A turn that found nothing is followed by a pause, and after the time to
 * spin by sleep.
 */
#define _GNU_SOURCE
#include "backend/vgpu/dispatcher.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/vgpu/control.h"
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/park.h"
#include "shmring/spin.h"

/* Requests in one turn, so that what waits for the GPU is not forgotten over them. */
#define BATCH 64

/*
 * Where the GPU can only be polled, the sleep is a SLEEP_SHARE of the time waited so
 * far, between these.
 */
#define SLEEP_SHARE  16
#define SLEEP_NS_MIN (50 * FGV_NS_PER_US)
#define SLEEP_NS_MAX (1 * FGV_NS_PER_MS)

/* What execute() returns where a request must wait for the gate. */
#define CLOSED 1

static int violation(struct fgv_session *session, const struct fgv_request *request,
		     const char *why)
{
	snprintf(session->reason, sizeof(session->reason), "lane %u, operation %u: %s",
		 request->lane, request->op, why);
	return -EPROTO;
}

/* Copies the message of the request in @slot, itself a private copy, and ends it with a NUL. */
static int copy_message(struct fgv_session *session, const struct fgv_request *request,
			const struct fgv_slot *slot)
{
	const void *from;

	if (slot->len <= FGV_SLOT_INLINE) {
		/* All of one line or of both: a copy without a length to look at. */
		if (slot->len <= FGV_SLOT_FIRST)
			memcpy(session->message, slot->data, FGV_SLOT_FIRST);
		else
			memcpy(session->message, slot->data, FGV_SLOT_INLINE);
		session->message[slot->len] = '\0';
		return 0;
	}
	if (slot->len > FGV_MESSAGE_MAX)
		return violation(session, request, "the message is too long");
	from = fgv_window_resolve(&session->window, slot->heap_off, slot->len);
	if (!from)
		return violation(session, request, "the message lies outside the window");
	memcpy(session->message, from, slot->len);
	session->message[slot->len] = '\0';
	return 0;
}

/* Replies now, or after the lane's earlier calls. */
static int reply(struct fgv_session *session, const struct fgv_request *request, CUresult status,
		 const void *data, uint32_t len)
{
	struct fgv_wait wait = {
		.lane = request->lane,
		.call = request->call,
		.op = request->op,
		.status = status,
		.reply_len = len,
	};

	if (!fgv_waits_has(&session->waits, request->lane)) {
		struct fgv_reply now = {request->op, request->call, status, data, len};

		return fgv_session_reply(session, request->lane, &now);
	}
	memcpy(wait.reply, data, len);
	fgv_waits_add(&session->waits, &wait);
	return 0;
}

/* What there is to know of @op, whatever that is. */
static inline const struct fgv_op_info *info_of(uint16_t op)
{
	static const struct fgv_op_info unknown = {.stream_off = FGV_OP_NO_STREAM};

	return op <= FGV_OP_MAX ? &fgv_op_infos[op] : &unknown;
}

static bool is_call(uint16_t op)
{
	return info_of(op)->call;
}

static bool is_work(const struct fgv_request *request)
{
	return request->is_work || info_of(request->op)->work;
}

/*
 * An errand of the kind that waits without credit. What the guest names itself it asks for at once,
 * and finds it there; it destroys it by one that waits.
 */
static bool may_wait(uint16_t op)
{
	return info_of(op)->errand && op != FGV_OP_STREAM_MAKE && op != FGV_OP_EVENT_MAKE;
}

/* Whose call it was is what the guest says: the daemon judges what that is worth. */
static void count_sync_call(struct fgv_session *session, const struct fgv_request *request)
{
	const struct fgv_lane_head *head = fgv_window_lane_head(&session->window, request->lane);
	struct fgv_grant *grant = session->gate.grant;

	__atomic_store_n(&grant->vcpu, request->vcpu, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->thread, __atomic_load_n(&head->guest_thread, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	fgv_account_add(&grant->sync_calls, 1);
}

/* Whether it is work of an engine that copies. */
static bool is_copy(const struct fgv_session *session, const struct fgv_request *request)
{
	return session->engines.current != FGV_ENGINE_COMPUTE && is_work(request);
}

/* What fgv_dispatch() has put on the GPU. Where that can't be told it is taken to be some. */
static void let(struct fgv_session *session, const struct fgv_request *request, CUresult status)
{
	if (request->is_work ||
	    (is_work(request) && (status == CUDA_SUCCESS || status == FGV_PENDING)))
		fgv_engines_let(session, request);
}

/* A call that has found no memory: whether it waits for a session that is ending. */
static bool wait_for_room(struct fgv_session *session, const struct fgv_request *request,
			  uint32_t len, uint64_t since_ns)
{
	uint64_t bytes = session->quota.refused;

	session->quota.refused = 0;
	return fgv_room_may_come(session, bytes, since_ns) &&
	       !fgv_room_add(session, request, session->message, len, since_ns, bytes);
}

/* Whether it uses none, or its handler sees to it that what it uses is there (pieces.h). */
static bool says_what_it_uses(uint16_t op)
{
	switch (op) {
	case FGV_OP_COPY_IN:
	case FGV_OP_COPY_IN_BULK:
	case FGV_OP_COPY_OUT:
	case FGV_OP_COPY_DEVICE:
	case FGV_OP_FILL:
	case FGV_OP_FILL_ROWS:
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
	case FGV_OP_HOST_FUNC:
		return true;
	default:
		return false;
	}
}

/* Work may be about to use memory that has not been used before. */
static CUresult touch_all(struct fgv_session *session, const struct fgv_request *request)
{
	if (!is_work(request) || says_what_it_uses(request->op))
		return CUDA_SUCCESS;
	return fgv_freezer_touch(session, 0, UINT64_MAX);
}

/* As fgv_dispatch(). */
static inline int decode(struct fgv_session *session, struct fgv_request *request, uint32_t len,
			 uint8_t *data, uint32_t *data_len, CUresult *status)
{
	if (session->pieces.missing) {
		*status = touch_all(session, request);
		if (*status != CUDA_SUCCESS)
			return 0;
	}
	return fgv_dispatch(session, request, session->message, len, data, data_len, status);
}

/* What fgv_dispatch() says of the request whose message has been copied. */
struct answer {
	CUresult status;
	uint8_t data[FGV_SLOT_FIRST];
	uint32_t data_len;
};

/* 0, or a negative errno. */
static int dispatch(struct fgv_session *session, struct fgv_request *request, uint32_t len,
		    struct answer *answer)
{
	bool errand = info_of(request->op)->errand;
	uint64_t begun_ns;
	int err;

	if (request->op != FGV_OP_LAUNCH)
		fgv_batch_flush(session);
	fgv_gate_begin_calls(&session->gate);
	session->gpu->copies = is_copy(session, request);
	begun_ns = errand ? fgv_errands_begin(session) : 0;
	answer->data_len = 0;
	err = decode(session, request, len, answer->data, &answer->data_len, &answer->status);
	session->gpu->copies = false;
	if (err < 0)
		return violation(session, request, request->violation);
	if (begun_ns && answer->status != FGV_CLOSED)
		fgv_errands_end(session, request->op, begun_ns);
	if (errand)
		fgv_errands_settle(session);
	return 0;
}

static void fail_post(struct fgv_session *session, const struct fgv_request *request, uint32_t len,
		      CUresult status)
{
	fgv_loans_refuse(session, request->op, session->message, len);
	fgv_session_defer(session, status);
}

/* A post that is work: it has no reply, and is no errand. As execute(). */
static int execute_post(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	uint32_t no_reply;
	CUresult status;
	int err;

	if (request->op != FGV_OP_LAUNCH)
		fgv_batch_flush(session);
	fgv_gate_begin_calls(&session->gate);
	session->gpu->copies = is_copy(session, request);
	err = decode(session, request, len, NULL, &no_reply, &status);
	session->gpu->copies = false;
	if (err < 0)
		return violation(session, request, request->violation);
	if (status == FGV_CLOSED)
		return CLOSED;
	if (status == CUDA_SUCCESS || request->is_work)
		fgv_engines_let(session, request);
	if (status != CUDA_SUCCESS)
		fail_post(session, request, len, status);
	return 0;
}

/*
 * 0, or a negative errno; CLOSED: it is an errand that must wait, or turned out to be work, and the
 * gate is closed. @since_ns: of its first try, if this is not the first; else 0.
 */
static int execute_since(struct fgv_session *session, struct fgv_request *request, uint32_t len,
			 uint64_t since_ns)
{
	bool is_deferred = session->deferred != CUDA_SUCCESS;
	struct answer answer;
	CUresult status;
	int err;

	if (may_wait(request->op) && !since_ns && !fgv_errands_admit(session, request->op))
		return CLOSED;
	err = dispatch(session, request, len, &answer);
	if (err < 0)
		return err;
	status = answer.status;
	if (status == FGV_CLOSED)
		return CLOSED;
	let(session, request, status);
	if (!is_call(request->op)) {
		if (status != CUDA_SUCCESS)
			fail_post(session, request, len, status);
		return 0;
	}
	if (status == CUDA_ERROR_OUT_OF_MEMORY && !is_deferred &&
	    wait_for_room(session, request, len, since_ns ? since_ns : fgv_now_ns()))
		return 0;
	fgv_account_add(&session->account->round_trips, 1);
	if (status == FGV_PENDING) {
		count_sync_call(session, request);
		return 0;
	}
	return reply(session, request, status, answer.data, answer.data_len);
}

static int execute(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	const struct fgv_op_info *info = info_of(request->op);

	/* What is launched comes in numbers. */
	if (info->work && !info->call)
		return execute_post(session, request, len);
	return execute_since(session, request, len, 0);
}

/* Whether it is a call behind one of its lane that waits for memory. */
static bool is_behind(const struct fgv_session *session, const struct fgv_request *request)
{
	return fgv_room_holds(&session->room, request->lane) && is_call(request->op);
}

static int wait_behind(struct fgv_session *session, const struct fgv_request *request,
		       const uint8_t *message, uint32_t len)
{
	return fgv_room_add(session, request, message, len, 0, 0);
}

/* A query for work that waits here. */
static int reply_not_ready(struct fgv_session *session, const struct fgv_request *request)
{
	fgv_account_add(&session->account->round_trips, 1);
	return reply(session, request, CUDA_ERROR_NOT_READY, "", 0);
}

static bool may_run(struct fgv_session *session, const struct fgv_request *request,
		    const uint8_t *message, uint32_t len)
{
	return !is_work(request) || fgv_engines_admit(session, request, message, len);
}

/*
 * Executes the request whose message has been copied, unless it has to wait for a function. As
 * execute().
 */
static int run(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	if (is_behind(session, request))
		return wait_behind(session, request, session->message, len);
	if (!fgv_stall_is_used(&session->stall))
		return execute(session, request, len);
	switch (fgv_stall_judge(session, request, session->message, len)) {
	case FGV_HELD_RUN:
		return execute(session, request, len);
	case FGV_HELD_HOLD:
		return fgv_stall_add(session, request, session->message, len);
	case FGV_HELD_NOT_READY:
		return reply_not_ready(session, request);
	}
	return 0;
}

/* One of those that waited: 1 if that is over, 0 if it waits on, or a negative errno. */
static int run_again(struct fgv_session *session, struct fgv_held_request *entry)
{
	struct fgv_stall *stall = &session->stall;
	struct fgv_request *request = &entry->request;
	enum fgv_held_way way;
	int err;

	if (is_behind(session, request)) {
		err = wait_behind(session, request, entry->message, entry->len);
		return err < 0 ? err : 1;
	}
	memcpy(session->message, entry->message, entry->len + 1);
	way = fgv_stall_judge(session, request, session->message, entry->len);
	if (way == FGV_HELD_NOT_READY)
		err = reply_not_ready(session, request);
	else if (way == FGV_HELD_RUN && may_run(session, request, entry->message, entry->len))
		err = execute(session, request, entry->len);
	else
		err = CLOSED;
	if (err != CLOSED)
		return err < 0 ? err : 1;
	stall->look |= way == FGV_HELD_RUN;
	return fgv_stall_add(session, request, session->message, entry->len);
}

/*
 * After a function has returned: runs what waited for it. What the gate does not let through
 * goes on waiting, and is looked at again.
 */
static int run_stalled(struct fgv_session *session)
{
	struct fgv_stall *stall = &session->stall;
	uint32_t count = fgv_stall_begin_look(stall);
	int done = 0, err = 0;

	for (uint32_t i = 0; i < count && err >= 0; i++) {
		struct fgv_held_request *entry = fgv_held_take(&stall->waiting);

		err = run_again(session, entry);
		done += err > 0;
		free(entry);
	}
	/* What ran late in the list may have been waited for early in it. */
	stall->look |= done && stall->earlier;
	return err < 0 ? err : done;
}

/* Runs the first of those held: 1, 0 if there is none that may run, or a negative errno. */
static int run_held(struct fgv_session *session)
{
	struct fgv_held_request *entry = fgv_held_first(&session->held);
	int err;

	if (!entry || fgv_stall_is_full(&session->stall) ||
	    !may_run(session, &entry->request, entry->message, entry->len))
		return 0;
	fgv_held_take(&session->held);
	memcpy(session->message, entry->message, entry->len + 1);
	err = run(session, &entry->request, entry->len);
	if (err == CLOSED) {
		fgv_held_put_back(&session->held, entry);
		return 0;
	}
	free(entry);
	return err < 0 ? err : 1;
}

static bool has_room_for_reply(const struct fgv_session *session, uint32_t lane)
{
	return session->waits.in_lane[lane] + session->held.in_lane[lane] +
		       session->stall.waiting.in_lane[lane] + session->room.in_lane[lane] <
	       FGV_REPLY_SLOTS;
}

static int hold(struct fgv_session *session, const struct fgv_request *request, uint32_t len)
{
	return fgv_held_add(&session->held, request, session->message, len);
}

/* Runs the request whose message has been copied, or holds it. */
static int handle(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	enum fgv_held_way way = FGV_HELD_RUN;
	int err;

	if (is_behind(session, request))
		return wait_behind(session, request, session->message, len);
	if (fgv_held_first(&session->held))
		way = fgv_held_judge(&session->held, request, session->message, len);
	else if (!may_run(session, request, session->message, len))
		way = FGV_HELD_HOLD;
	switch (way) {
	case FGV_HELD_RUN:
		err = run(session, request, len);
		return err == CLOSED ? hold(session, request, len) : err;
	case FGV_HELD_HOLD:
		return hold(session, request, len);
	case FGV_HELD_NOT_READY:
		return reply_not_ready(session, request);
	}
	return 0;
}

/* Tries again what found no memory; what was behind it is judged like what is new. */
static int try_again(struct fgv_session *session, struct fgv_room_request *entry)
{
	struct fgv_request *request = &entry->request;
	int err = CLOSED;

	memcpy(session->message, entry->message, entry->len + 1);
	if (!entry->since_ns)
		return handle(session, request, entry->len);
	if (may_run(session, request, entry->message, entry->len))
		err = execute_since(session, request, entry->len, entry->since_ns);
	if (err == CLOSED)
		err = fgv_room_add(session, request, entry->message, entry->len, entry->since_ns,
				   entry->bytes);
	return err;
}

/* How many of those that wait for memory were tried, or a negative errno. */
static int run_room(struct fgv_session *session)
{
	struct fgv_room_request *entry;
	struct fgv_room_list taken;
	int tried = 0, err = 0;

	fgv_room_begin(session, &taken);
	while ((entry = STAILQ_FIRST(&taken))) {
		STAILQ_REMOVE_HEAD(&taken, link);
		if (err >= 0)
			err = try_again(session, entry);
		tried++;
		free(entry);
	}
	session->room.is_last = false;
	if (!session->room.count && session->freezer.state == FGV_FREEZER_RUNNING)
		fgv_freezer_ask(session, FGV_ASKS_NOTHING);
	return err < 0 ? err : tried;
}

/* A call of a lane with another that waits would have to wait behind that. */
static bool has_no_call_that_waits(const void *of, uint32_t lane)
{
	const struct fgv_session *session = of;

	return !session->held.in_lane[lane] && !session->stall.waiting.in_lane[lane] &&
	       !session->room.in_lane[lane];
}

/*
 * Where all is full of what waits for functions, the guest must still be able to say that one has
 * returned: by a request that will not wait itself, as nothing more can be kept.
 */
static const struct fgv_slot *look_for_returns(struct fgv_session *session, uint32_t *lane)
{
	return fgv_lanes_next_of(session->lanes, FGV_OP_HOST_FUNC_NEXT, has_no_call_that_waits,
				 session, lane);
}

/* What comes next from the lanes, NULL if nothing can be taken. */
static const struct fgv_slot *look_into_lanes(struct fgv_session *session, uint32_t *lane)
{
	if (fgv_stall_is_full(&session->stall))
		return look_for_returns(session, lane);
	if (fgv_held_is_full(&session->held))
		return NULL;
	return fgv_lanes_next(session->lanes, lane);
}

/* Takes the next request from the lanes: 1, 0 if there is none to take, or a negative errno. */
static int take_next(struct fgv_session *session)
{
	struct fgv_request request = {0};
	const struct fgv_slot *slot = look_into_lanes(session, &request.lane);
	uint32_t len;
	int err;

	if (!slot)
		return 0;
	request.op = slot->op;
	request.vcpu = slot->vcpu;
	request.call = slot->call;
	len = slot->len;
	if (is_call(request.op) && !has_room_for_reply(session, request.lane))
		return violation(session, &request, "too many calls without their replies");
	err = copy_message(session, &request, slot);
	if (err < 0)
		return err;
	fgv_lanes_release(session->lanes, request.lane);
	fgv_account_add(&session->account->requests, 1);
	err = handle(session, &request, len);
	return err < 0 ? err : 1;
}

static int run_next(struct fgv_session *session)
{
	int err = run_held(session);

	return err ? err : take_next(session);
}

/* Sends the replies that are due and gives back what is: how many, or a negative errno. */
static int poll_waits(struct fgv_session *session)
{
	int sent = session->waits.count > 0 ? fgv_waits_poll(session) : 0;
	int told = sent < 0 ? sent : 0;

	/* What is waited for may lie in memory that is not there. */
	if (sent >= 0 && fgv_freezer_lets_in(session))
		told = fgv_stall_poll(session);
	return told < 0 ? told : sent + told + fgv_loans_turn(session);
}

/* Most turns have rung nobody: then the daemon's copy stays as it is. */
static void tell_rings(struct fgv_session *session)
{
	uint64_t *told = &session->account->doorbells_rung;
	uint64_t rings = fgv_lanes_rings(session->lanes);

	if (__atomic_load_n(told, __ATOMIC_RELAXED) != rings)
		__atomic_store_n(told, rings, __ATOMIC_RELAXED);
}

/* A batch of requests: *@done of them. As run_next() of the last one. */
static int run_batch(struct fgv_session *session, int *done)
{
	int err = 1;

	if (session->room.count && fgv_room_is_due(session)) {
		err = run_room(session);
		*done = err;
	}
	if (err >= 0 && session->stall.look) {
		err = run_stalled(session);
		*done += err;
	}
	while (err >= 0 && *done < BATCH && (err = run_next(session)) > 0)
		++*done;
	return err;
}

int fgv_dispatcher_turn(struct fgv_session *session)
{
	int done = 0, err;

	fgv_engines_begin_turn(session);
	err = fgv_freezer_lets_in(session) ? run_batch(session, &done) : 0;
	/* A turn that was cut short leaves more in the rings. */
	fgv_batch_settle(session, err > 0);
	if (err >= 0) {
		err = poll_waits(session);
		done += err;
	}
	if (err >= 0) {
		done += fgv_freezer_turn(session);
		done += fgv_engines_turn(session);
		fgv_errands_settle(session);
		fgv_gate_end_calls(session);
		err = fgv_control_look(session);
	}
	tell_rings(session);
	return err < 0 ? err : done;
}

/* How long to sleep at most where nobody tells when the GPU is done. */
static uint64_t poll_after_ns(uint64_t waited_ns)
{
	return fgv_min_u64(fgv_max_u64(waited_ns / SLEEP_SHARE, SLEEP_NS_MIN), SLEEP_NS_MAX);
}

/* Sleeps until something happens; a socket with something on it is read. */
static int sleep_on(struct fgv_session *session, int completion_fd, uint64_t limit_ns)
{
	struct pollfd fds[] = {
		{.fd = session->fds[FGV_SETUP_DOORBELL], .events = POLLIN},
		{.fd = session->fds[FGV_SETUP_CONNECTION], .events = POLLIN | POLLRDHUP},
		{.fd = FGV_CONTROL_FD, .events = POLLIN | POLLRDHUP},
		{.fd = completion_fd, .events = POLLIN},
		[4 ... 3 + FGV_ENGINES] = {.fd = -1},
	};
	struct timespec limit = {
		.tv_sec = (time_t)(limit_ns / FGV_NS_PER_SEC),
		.tv_nsec = (long)(limit_ns % FGV_NS_PER_SEC),
	};
	int ready;

	fgv_engines_bells(session, &fds[4]);
	session->waits.slept = true;
	fgv_account_add(&session->account->parks, 1);
	ready = ppoll(fds, FGV_ARRAY_LEN(fds), limit_ns == UINT64_MAX ? NULL : &limit, NULL);
	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		fgv_account_add(&session->account->doorbells_received, 1);
	if (fds[2].revents)
		__atomic_store_n(&session->is_over, 1, __ATOMIC_RELAXED);
	if (fds[1].revents)
		return fgv_control_read(session);
	return 0;
}

/* Whether something has happened that might have come before the announcement to sleep. */
static int look_again(struct fgv_session *session, int completion_fd)
{
	uint32_t lane;
	int err = 0;

	if (completion_fd >= 0) {
		session->gpu->ops->arm(session->gpu);
		err = poll_waits(session) + fgv_loans_look(session) + fgv_engines_turn(session);
	}
	if (err || fgv_freezer_has_news(session))
		return err ? err : 1;
	if (!fgv_freezer_lets_in(session))
		return fgv_engines_have_news(session);
	if (fgv_stall_is_full(&session->stall))
		err = look_for_returns(session, &lane) != NULL;
	else if (!fgv_held_is_full(&session->held))
		err = fgv_lanes_any_ordered(session->lanes);
	return err ? err : fgv_engines_have_news(session);
}

/*
 * Announces that it sleeps, then looks again: at the lanes, the grant and the GPU, each of
 * which may have moved before it could know. A session that can't take more requests does not
 * ask to be woken by them.
 */
static int park(struct fgv_session *session, uint64_t waited_ns)
{
	struct fgv_window_head *head = fgv_window_head(&session->window);
	bool is_on_gpu = session->waits.on_gpu > 0 || session->loans.count > 0 ||
			 fgv_engines_have_work(session);
	int completion_fd = is_on_gpu ? session->gpu->ops->completion_fd(session->gpu) : -1;
	bool is_polled = is_on_gpu && completion_fd < 0, takes = fgv_freezer_lets_in(session);
	uint64_t limit_ns = is_polled ? poll_after_ns(waited_ns) : UINT64_MAX;
	int err;

	fgv_batch_send(session);
	if (!fgv_engines_may_sleep(session, waited_ns, completion_fd >= 0, &limit_ns))
		return 0;
	/* Which lane the one request that can be taken comes by is not known. */
	if (takes && fgv_stall_is_full(&session->stall))
		limit_ns = fgv_min_u64(limit_ns, SLEEP_NS_MAX);
	/* Nobody rings where a value is written. */
	if (takes && session->stall.value_count)
		limit_ns = fgv_min_u64(limit_ns, poll_after_ns(waited_ns));
	/* Nobody rings where another session has ended. */
	if (takes && session->room.count)
		limit_ns = fgv_min_u64(limit_ns, SLEEP_NS_MAX);
	limit_ns = fgv_min_u64(limit_ns, fgv_freezer_limit_ns(session));
	if ((takes && !fgv_held_is_full(&session->held)) || fgv_freezer_listens(session))
		fgv_park_announce(&head->host_parked);
	fgv_engines_announce_sleep(session);
	err = look_again(session, completion_fd);
	if (err == 0)
		err = sleep_on(session, completion_fd, limit_ns);
	fgv_engines_withdraw_sleep(session);
	fgv_park_withdraw(&head->host_parked);
	fgv_doorbell_clear(session->fds[FGV_SETUP_DOORBELL]);
	return err < 0 ? err : 0;
}

int fgv_dispatcher_run(struct fgv_session *session)
{
	struct fgv_spin spin = fgv_spin_start();
	uint64_t idle_since_ns = 0;
	int err = 0;

	while (err >= 0 && !__atomic_load_n(&session->is_over, __ATOMIC_RELAXED)) {
		err = fgv_dispatcher_turn(session);
		if (err > 0) {
			spin = fgv_spin_start();
			idle_since_ns = 0;
		} else if (err == 0 && !fgv_spin_again(&spin)) {
			if (idle_since_ns == 0)
				idle_since_ns = fgv_now_ns();
			err = park(session, fgv_now_ns() - idle_since_ns);
		}
	}
	return err < 0 && err != -ECONNRESET ? err : 0;
}
