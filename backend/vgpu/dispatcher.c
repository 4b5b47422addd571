/*
 * One turn of the loop runs a batch of requests, those held first, looks at what waits for
 * the GPU, at the grant, and at the words that say that there is something to read or that the
 * session is over. A turn that found nothing is followed by a pause, and after the time to
 * spin by sleep (dispatcher_sleep.c). Requests that waited for functions or memory are in
 * dispatcher_again.c.
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
#include "backend/vgpu/dispatcher_priv.h"
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/park.h"
#include "shmring/spin.h"

/* Requests in one turn, so that what waits for the GPU is not forgotten over them. */
#define BATCH 64

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

/*
 * An errand of the kind that waits without credit. What the guest names itself it asks for at once,
 * and finds it there; it destroys it by one that waits.
 */
static bool may_wait(uint16_t op)
{
	return fgv_request_info(op)->errand && op != FGV_OP_STREAM_MAKE && op != FGV_OP_EVENT_MAKE;
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
	return session->engines.current != FGV_ENGINE_COMPUTE && fgv_request_is_work(request);
}

/* What fgv_dispatch() has put on the GPU. Where that can't be told it is taken to be some. */
static void let(struct fgv_session *session, const struct fgv_request *request, CUresult status)
{
	if (request->is_work ||
	    (fgv_request_is_work(request) && (status == CUDA_SUCCESS || status == FGV_PENDING)))
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
	if (!fgv_request_is_work(request) || says_what_it_uses(request->op))
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
	bool errand = fgv_request_info(request->op)->errand;
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

/* A post that is work: it has no reply, and is no errand. As fgv_dispatcher_execute(). */
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
		return FGV_DISPATCH_CLOSED;
	if (status == CUDA_SUCCESS || request->is_work)
		fgv_engines_let(session, request);
	if (status != CUDA_SUCCESS)
		fail_post(session, request, len, status);
	return 0;
}

/*
 * 0, or a negative errno; FGV_DISPATCH_CLOSED: it is an errand that must wait, or turned out to be
 * work, and the gate is closed. @since_ns: of its first try, if this is not the first; else 0.
 */
int fgv_dispatcher_execute_since(struct fgv_session *session, struct fgv_request *request,
				 uint32_t len, uint64_t since_ns)
{
	bool is_deferred = session->deferred != CUDA_SUCCESS;
	struct answer answer;
	CUresult status;
	int err;

	if (may_wait(request->op) && !since_ns && !fgv_errands_admit(session, request->op))
		return FGV_DISPATCH_CLOSED;
	err = dispatch(session, request, len, &answer);
	if (err < 0)
		return err;
	status = answer.status;
	if (status == FGV_CLOSED)
		return FGV_DISPATCH_CLOSED;
	let(session, request, status);
	if (!fgv_request_is_call(request->op)) {
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

int fgv_dispatcher_execute(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	const struct fgv_op_info *info = fgv_request_info(request->op);

	/* What is launched comes in numbers. */
	if (info->work && !info->call)
		return execute_post(session, request, len);
	return fgv_dispatcher_execute_since(session, request, len, 0);
}

/* Whether it is a call behind one of its lane that waits for memory. */
bool fgv_dispatcher_is_behind(const struct fgv_session *session, const struct fgv_request *request)
{
	return fgv_room_holds(&session->room, request->lane) && fgv_request_is_call(request->op);
}

int fgv_dispatcher_wait_behind(struct fgv_session *session, const struct fgv_request *request,
			       const uint8_t *message, uint32_t len)
{
	return fgv_room_add(session, request, message, len, 0, 0);
}

/* A query for work that waits here. */
int fgv_dispatcher_not_ready(struct fgv_session *session, const struct fgv_request *request)
{
	fgv_account_add(&session->account->round_trips, 1);
	return reply(session, request, CUDA_ERROR_NOT_READY, "", 0);
}

bool fgv_dispatcher_may_run(struct fgv_session *session, const struct fgv_request *request,
			    const uint8_t *message, uint32_t len)
{
	return !fgv_request_is_work(request) || fgv_engines_admit(session, request, message, len);
}

/*
 * Executes the request whose message has been copied, unless it has to wait for a function. As
 * fgv_dispatcher_execute().
 */
static int run(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	if (fgv_dispatcher_is_behind(session, request))
		return fgv_dispatcher_wait_behind(session, request, session->message, len);
	if (!fgv_stall_is_used(&session->stall))
		return fgv_dispatcher_execute(session, request, len);
	switch (fgv_stall_judge(session, request, session->message, len)) {
	case FGV_HELD_RUN:
		return fgv_dispatcher_execute(session, request, len);
	case FGV_HELD_HOLD:
		return fgv_stall_add(session, request, session->message, len);
	case FGV_HELD_NOT_READY:
		return fgv_dispatcher_not_ready(session, request);
	}
	return 0;
}

/* Runs the first of those held: 1, 0 if there is none that may run, or a negative errno. */
static int run_held(struct fgv_session *session)
{
	struct fgv_held_request *entry = fgv_held_first(&session->held);
	int err;

	if (!entry || fgv_stall_is_full(&session->stall) ||
	    !fgv_dispatcher_may_run(session, &entry->request, entry->message, entry->len))
		return 0;
	fgv_held_take(&session->held);
	memcpy(session->message, entry->message, entry->len + 1);
	err = run(session, &entry->request, entry->len);
	if (err == FGV_DISPATCH_CLOSED) {
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
int fgv_dispatcher_handle(struct fgv_session *session, struct fgv_request *request, uint32_t len)
{
	enum fgv_held_way way = FGV_HELD_RUN;
	int err;

	if (fgv_dispatcher_is_behind(session, request))
		return fgv_dispatcher_wait_behind(session, request, session->message, len);
	if (fgv_held_first(&session->held))
		way = fgv_held_judge(&session->held, request, session->message, len);
	else if (!fgv_dispatcher_may_run(session, request, session->message, len))
		way = FGV_HELD_HOLD;
	switch (way) {
	case FGV_HELD_RUN:
		err = run(session, request, len);
		return err == FGV_DISPATCH_CLOSED ? hold(session, request, len) : err;
	case FGV_HELD_HOLD:
		return hold(session, request, len);
	case FGV_HELD_NOT_READY:
		return fgv_dispatcher_not_ready(session, request);
	}
	return 0;
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
const struct fgv_slot *fgv_dispatcher_look_for_returns(struct fgv_session *session, uint32_t *lane)
{
	return fgv_lanes_next_of(session->lanes, FGV_OP_HOST_FUNC_NEXT, has_no_call_that_waits,
				 session, lane);
}

/* What comes next from the lanes, NULL if nothing can be taken. */
static const struct fgv_slot *look_into_lanes(struct fgv_session *session, uint32_t *lane)
{
	if (fgv_stall_is_full(&session->stall))
		return fgv_dispatcher_look_for_returns(session, lane);
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
	if (fgv_request_is_call(request.op) && !has_room_for_reply(session, request.lane))
		return violation(session, &request, "too many calls without their replies");
	err = copy_message(session, &request, slot);
	if (err < 0)
		return err;
	fgv_lanes_release(session->lanes, request.lane);
	fgv_account_add(&session->account->requests, 1);
	err = fgv_dispatcher_handle(session, &request, len);
	return err < 0 ? err : 1;
}

static int run_next(struct fgv_session *session)
{
	int err = run_held(session);

	return err ? err : take_next(session);
}

/* Sends the replies that are due and gives back what is: how many, or a negative errno. */
int fgv_dispatcher_poll_waits(struct fgv_session *session)
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
		err = fgv_dispatcher_run_room(session);
		*done = err;
	}
	if (err >= 0 && session->stall.look) {
		err = fgv_dispatcher_run_stalled(session);
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
		err = fgv_dispatcher_poll_waits(session);
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
			err = fgv_dispatcher_sleep(session, fgv_now_ns() - idle_since_ns);
		}
	}
	return err < 0 && err != -ECONNRESET ? err : 0;
}
