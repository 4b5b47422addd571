/*
 * The gates of a session's engines; see engines.h. What a request needs is read from its message
 * before anybody has checked that, so a message that is too short counts as computing: its handler
 * refuses it.
 */
#include "backend/vgpu/engines.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/park.h"
#include "shmring/spin.h"

/*
 * Copies of up to SMALL_BYTES go with computing at first SMALL_BURST times, and then once in
 * SMALL_EACH_NS. One takes an engine about 2 us, so they can take 4 % of it without its grant.
 */
#define SMALL_BYTES   (16u << 10)
#define SMALL_BURST   64
#define SMALL_EACH_NS (50 * FGV_NS_PER_US)

/* What a copy is taken to need before one of its size was measured, for each 16 bytes. */
#define BYTES_PER_NS 16
#define COPY_NS_MIN  2000

int fgv_engines_init(struct fgv_session *session)
{
	struct fgv_engines *engines = &session->engines;
	int err = fgv_gate_init(session, &session->gate, FGV_ENGINE_COMPUTE, FGV_SETUP_GRANT);

	if (err < 0 || !session->setup.engines)
		return err;
	err = fgv_gate_init(session, &engines->copying[0], FGV_ENGINE_IN, FGV_SETUP_GRANT_IN);
	if (err < 0)
		goto put_compute;
	err = fgv_gate_init(session, &engines->copying[1], FGV_ENGINE_OUT, FGV_SETUP_GRANT_OUT);
	if (err < 0)
		goto put_in;
	engines->are_granted = true;
	engines->small = SMALL_BURST;
	return 0;
put_in:
	fgv_gate_fini(session, &engines->copying[0]);
put_compute:
	fgv_gate_fini(session, &session->gate);
	return err;
}

/* How many gates there are. */
static unsigned count(const struct fgv_session *session)
{
	return session->engines.are_granted ? FGV_ENGINES : 1;
}

void fgv_engines_fini(struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++)
		fgv_gate_fini(session, fgv_engines_gate(session, i));
}

struct fgv_gate *fgv_engines_gate(const struct fgv_session *session, enum fgv_engine engine)
{
	struct fgv_session *of = (struct fgv_session *)session;

	return engine == FGV_ENGINE_COMPUTE ? &of->gate : &of->engines.copying[engine - 1];
}

/* --- The order of streams ----------------------------------------------------- */

static struct fgv_place place_of(const struct fgv_session *session,
				 const struct fgv_object *stream)
{
	const struct fgv_engines *engines = &session->engines;
	struct fgv_place place = stream ? stream->place : engines->legacy;

	if (!stream)
		fgv_place_join(&place, &engines->blocking);
	else if (stream->is_blocking)
		fgv_place_join(&place, &engines->legacy);
	return place;
}

static void set_place(struct fgv_session *session, struct fgv_object *stream,
		      const struct fgv_place *place)
{
	struct fgv_engines *engines = &session->engines;

	if (stream)
		stream->place = *place;
	else
		engines->legacy = *place;
	if (!stream || stream->is_blocking)
		fgv_place_join(&engines->blocking, place);
}

bool fgv_engines_have_done(const struct fgv_session *session, const struct fgv_place *place,
			   enum fgv_engine engine)
{
	for (unsigned i = 0; i < FGV_ENGINES; i++) {
		if (i != engine && place->last[i] > fgv_engines_gate(session, i)->finished)
			return false;
	}
	return true;
}

struct fgv_object *fgv_engines_object_at(struct fgv_session *session, enum fgv_kind kind,
					 const uint8_t *message, size_t off)
{
	uint32_t handle;

	memcpy(&handle, message + off, sizeof(handle));
	return handle ? fgv_session_lookup(session, kind, handle) : NULL;
}

struct fgv_object *fgv_engines_stream_of(struct fgv_session *session, uint16_t op,
					 const uint8_t *message)
{
	uint16_t off = fgv_op_infos[op].stream_off;

	if (off == FGV_OP_NO_STREAM)
		return NULL;
	return fgv_engines_object_at(session, FGV_KIND_STREAM, message, off);
}

/* --- Which engine ------------------------------------------------------------- */

struct copy {
	enum fgv_engine engine;
	uint64_t bytes;
};

static bool is_host(const struct fgv_session *session, uint64_t address)
{
	return fgv_mapped_find(&session->mapped, address, 1) != NULL;
}

static enum fgv_engine engine_between(const struct fgv_session *session, uint64_t to, uint64_t from)
{
	bool from_host = is_host(session, from);

	if (from_host == is_host(session, to))
		return FGV_ENGINE_COMPUTE;
	return from_host ? FGV_ENGINE_IN : FGV_ENGINE_OUT;
}

static struct copy copy_device(const struct fgv_session *session, const uint8_t *message)
{
	struct fgv_copy_device_request in;

	memcpy(&in, message, sizeof(in));
	return (struct copy){engine_between(session, in.to, in.from), in.size};
}

/* Arrays are on the device. */
static struct copy copy_box(const struct fgv_session *session, const uint8_t *message)
{
	struct fgv_copy_box_request in;

	memcpy(&in, message, sizeof(in));
	return (struct copy){engine_between(session, in.to_array ? 0 : in.to[0],
					    in.from_array ? 0 : in.from[0]),
			     in.box[0] * in.box[1] * in.box[2]};
}

/* Where an operation's fixed part has @field, the length of its data. */
#define LENGTH_AT(engine, type, field)                                                             \
	({                                                                                         \
		struct type in;                                                                    \
                                                                                                   \
		memcpy(&in, message, sizeof(in));                                                  \
		(struct copy){engine, in.field};                                                   \
	})

/* Of a message that is as long as its fixed part at least. */
static struct copy copy_of(const struct fgv_session *session, uint16_t op, const uint8_t *message,
			   uint32_t len)
{
	switch (op) {
	case FGV_OP_COPY_IN:
	case FGV_OP_BOX_IN:
		return (struct copy){FGV_ENGINE_IN, len - fgv_op_infos[op].request_len};
	case FGV_OP_COPY_IN_BULK:
		return LENGTH_AT(FGV_ENGINE_IN, fgv_copy_in_bulk_request, data_len);
	case FGV_OP_BOX_IN_BULK:
		return LENGTH_AT(FGV_ENGINE_IN, fgv_box_in_bulk_request, data_len);
	case FGV_OP_COPY_OUT:
		return LENGTH_AT(FGV_ENGINE_OUT, fgv_copy_out_request, data_len);
	case FGV_OP_BOX_OUT:
		return LENGTH_AT(FGV_ENGINE_OUT, fgv_box_out_request, data_len);
	case FGV_OP_COPY_DEVICE:
		return copy_device(session, message);
	case FGV_OP_COPY_BOX:
		return copy_box(session, message);
	default:
		return (struct copy){FGV_ENGINE_COMPUTE, 0};
	}
}

/* What takes no engine's time, but has a place in the order of a stream. */
static bool is_mark(uint16_t op)
{
	switch (op) {
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
	case FGV_OP_HOST_FUNC:
	case FGV_OP_VALUE_WAIT:
		return true;
	default:
		return false;
	}
}

static bool has_allowance(struct fgv_engines *engines)
{
	uint64_t now_ns, more;

	if (engines->small)
		return true;
	now_ns = fgv_now_ns();
	more = (now_ns - engines->small_ns) / SMALL_EACH_NS;
	if (!more)
		return false;
	engines->small = (uint32_t)fgv_min_u64(more, SMALL_BURST);
	engines->small_ns = now_ns;
	return true;
}

static enum fgv_engine engine_of(struct fgv_session *session, uint16_t op, const uint8_t *message,
				 uint32_t len)
{
	struct fgv_engines *engines = &session->engines;
	struct fgv_object *stream;
	struct copy copy;

	if (len < fgv_op_infos[op].request_len)
		return FGV_ENGINE_COMPUTE;
	if (is_mark(op)) {
		stream = fgv_engines_stream_of(session, op, message);
		return stream ? stream->engine : engines->legacy_engine;
	}
	copy = copy_of(session, op, message, len);
	if (copy.engine != FGV_ENGINE_COMPUTE && copy.bytes <= SMALL_BYTES &&
	    has_allowance(engines))
		return FGV_ENGINE_COMPUTE;
	return copy.engine;
}

/* --- Admitting ---------------------------------------------------------------- */

static uint16_t kind_of_copy(enum fgv_engine engine, uint64_t bytes)
{
	return fgv_cost_place(FGV_OP_MAX + 1 + (uint32_t)engine, bytes);
}

static uint64_t expect_copy(const struct fgv_session *session, enum fgv_engine engine,
			    uint64_t bytes)
{
	uint32_t known = session->gate.forecast.costs.ns[kind_of_copy(engine, bytes)];

	return known ? known : fgv_max_u64(bytes / BYTES_PER_NS, COPY_NS_MIN);
}

/* Whether others want @gate's engine, as far as is known: then it is not to be kept in vain. */
static bool is_wanted(const struct fgv_gate *gate)
{
	switch (fgv_grant_state(gate->word)) {
	case FGV_GRANT_NONE:
		return true;
	case FGV_GRANT_BUSY:
		return __atomic_load_n(&gate->grant->limit_ns, __ATOMIC_RELAXED) !=
		       FGV_GRANT_NO_LIMIT;
	case FGV_GRANT_IDLE:
		return false;
	}
	return false;
}

static bool others_have_work(const struct fgv_session *session, enum fgv_engine engine)
{
	for (unsigned i = 0; i < FGV_ENGINES; i++) {
		if (i != engine && fgv_gate_has_work(fgv_engines_gate(session, i)))
			return true;
	}
	return false;
}

/* Whether @request's stream has not reached it, and would keep an engine that others want. */
static bool is_early(struct fgv_session *session, uint16_t op, const uint8_t *message,
		     uint32_t len, enum fgv_engine engine)
{
	struct fgv_place place;

	if (!others_have_work(session, engine) || is_mark(op) ||
	    len < fgv_op_infos[op].request_len || !is_wanted(fgv_engines_gate(session, engine)))
		return false;
	place = place_of(session, fgv_engines_stream_of(session, op, message));
	if (fgv_engines_have_done(session, &place, engine))
		return false;
	for (unsigned i = 0; i < FGV_ENGINES; i++)
		fgv_engines_gate(session, i)->awaited |= i != engine;
	return true;
}

bool fgv_engines_admit(struct fgv_session *session, const struct fgv_request *request,
		       const uint8_t *message, uint32_t len)
{
	enum fgv_engine engine = FGV_ENGINE_COMPUTE;
	struct fgv_gate *gate = &session->gate;
	uint64_t ns = 0;

	if (!session->engines.are_granted)
		return fgv_gate_admits(session, gate, request, message, len);
	if (request->op != FGV_OP_LAUNCH)
		engine = engine_of(session, request->op, message, len);
	session->engines.current = engine;
	if (is_early(session, request->op, message, len, engine))
		return false;
	if (engine == FGV_ENGINE_COMPUTE)
		return fgv_gate_admits(session, gate, request, message, len);
	if (!is_mark(request->op))
		ns = expect_copy(session, engine,
				 copy_of(session, request->op, message, len).bytes);
	return fgv_gate_admits_copy(fgv_engines_gate(session, engine), ns);
}

/* What is in the stream of event @message names comes after what that was recorded behind. */
static void join_event(struct fgv_session *session, const uint8_t *message,
		       struct fgv_place *place)
{
	const struct fgv_object *event =
		fgv_engines_object_at(session, FGV_KIND_EVENT, message,
			  offsetof(struct fgv_stream_wait_event_request, event));

	if (event)
		fgv_place_join(place, &event->place);
}

static void record_event(struct fgv_session *session, const uint8_t *message,
			 const struct fgv_place *place)
{
	struct fgv_object *event = fgv_engines_object_at(session, FGV_KIND_EVENT, message,
					     offsetof(struct fgv_event_record_request, event));

	if (event)
		event->place = *place;
}

/* Something of @request went to the gate of @engine. */
static void let(struct fgv_session *session, const struct fgv_request *request,
		enum fgv_engine engine, struct fgv_object *stream, const struct fgv_place *after)
{
	struct fgv_gate *gate = fgv_engines_gate(session, engine);

	if (engine == FGV_ENGINE_COMPUTE) {
		fgv_gate_let(session, request);
		return;
	}
	if (is_mark(request->op))
		return;
	fgv_gate_let_copy(session, gate, stream, after, kind_of_copy(engine, request->amount),
			  expect_copy(session, engine, request->amount));
}

static bool is_small_copy(const struct fgv_request *request)
{
	switch (request->op) {
	case FGV_OP_COPY_IN:
	case FGV_OP_COPY_IN_BULK:
	case FGV_OP_COPY_OUT:
	case FGV_OP_COPY_DEVICE:
	case FGV_OP_BOX_IN:
	case FGV_OP_BOX_IN_BULK:
	case FGV_OP_BOX_OUT:
		return request->amount <= SMALL_BYTES;
	default:
		return false;
	}
}

/* What is launched is mostly all that there is: of its stream's place one number changes. */
static void let_launch(struct fgv_session *session, const struct fgv_request *request)
{
	struct fgv_engines *engines = &session->engines;
	struct fgv_object *stream = fgv_gate_let(session, request);
	uint64_t number = session->gate.submitted;

	(stream ? &stream->place : &engines->legacy)->last[FGV_ENGINE_COMPUTE] = number;
	*(stream ? &stream->engine : &engines->legacy_engine) = FGV_ENGINE_COMPUTE;
	if (!stream || stream->is_blocking)
		engines->blocking.last[FGV_ENGINE_COMPUTE] = number;
}

void fgv_engines_let(struct fgv_session *session, const struct fgv_request *request)
{
	struct fgv_engines *engines = &session->engines;
	enum fgv_engine engine = engines->current;
	struct fgv_object *stream;
	struct fgv_place place;

	if (!engines->are_granted || request->is_work) {
		fgv_gate_let(session, request);
		return;
	}
	if (request->op == FGV_OP_LAUNCH) {
		let_launch(session, request);
		return;
	}
	if (engine == FGV_ENGINE_COMPUTE && engines->small && is_small_copy(request))
		engines->small--;
	stream = fgv_engines_stream_of(session, request->op, session->message);
	place = place_of(session, stream);
	let(session, request, engine, stream, &place);
	place.last[engine] = fgv_engines_gate(session, engine)->submitted;
	if (request->op == FGV_OP_STREAM_WAIT_EVENT)
		join_event(session, session->message, &place);
	else if (request->op == FGV_OP_EVENT_RECORD)
		record_event(session, session->message, &place);
	set_place(session, stream, &place);
	if (stream)
		stream->engine = engine;
	else
		engines->legacy_engine = engine;
}

/* --- All gates ---------------------------------------------------------------- */

void fgv_engines_begin_turn(struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++) {
		struct fgv_gate *gate = fgv_engines_gate(session, i);

		gate->blocked = gate->awaited = false;
		gate->retry_ns = UINT64_MAX;
	}
}

/* Whether a session that does not compute has an engine that copies, or keeps it. */
static bool is_copying(const struct fgv_session *session)
{
	const struct fgv_engines *engines = &session->engines;

	for (unsigned i = FGV_ENGINE_IN; i < count(session); i++) {
		switch (fgv_grant_state(fgv_engines_gate(session, i)->word)) {
		case FGV_GRANT_BUSY:
			return true;
		case FGV_GRANT_IDLE:
			return engines->online;
		case FGV_GRANT_NONE:
			break;
		}
	}
	return false;
}

static bool is_online(const struct fgv_session *session)
{
	const struct fgv_gate *gate = &session->gate;

	switch (fgv_grant_state(gate->word)) {
	case FGV_GRANT_BUSY:
		return true;
	case FGV_GRANT_IDLE:
		return session->engines.online;
	case FGV_GRANT_NONE:
		return __atomic_load_n(&gate->grant->is_next, __ATOMIC_ACQUIRE) ||
		       (!gate->blocked && is_copying(session));
	}
	return false;
}

/*
 * Tells the guest whether it pays to look for replies without sleeping, and has its threads
 * awake by the time that they come: a wake-up in each slice would keep the GPU idle.
 */
static void set_online(struct fgv_session *session, bool online)
{
	if (session->engines.online == online)
		return;
	session->engines.online = online;
	__atomic_store_n(&fgv_window_head(&session->window)->online, online, __ATOMIC_RELAXED);
	if (online && fgv_spin_is_cheap())
		fgv_lanes_wake(session->lanes);
}

/* Most programs copy little: then there is nothing to look at. */
static bool is_at_rest(const struct fgv_gate *gate)
{
	return fgv_grant_state(gate->word) != FGV_GRANT_BUSY && !gate->blocked &&
	       fgv_grant_load(gate->grant) == gate->word && !fgv_gate_has_work(gate) &&
	       !gate->linger_ns && !__atomic_load_n(&gate->grant->wants, __ATOMIC_RELAXED);
}

int fgv_engines_turn(struct fgv_session *session)
{
	int changed = fgv_gate_turn(session, &session->gate);

	for (unsigned i = FGV_ENGINE_IN; i < count(session); i++) {
		struct fgv_gate *gate = fgv_engines_gate(session, i);

		if (!is_at_rest(gate))
			changed += fgv_gate_turn(session, gate);
	}
	set_online(session, is_online(session));
	return changed;
}

bool fgv_engines_have_work(const struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++) {
		if (fgv_gate_has_work(fgv_engines_gate(session, i)))
			return true;
	}
	return false;
}

void fgv_engines_note_waking(struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++)
		fgv_engines_gate(session, i)->woke = true;
}

bool fgv_engines_may_sleep(struct fgv_session *session, uint64_t waited_ns, bool is_told,
			   uint64_t *limit_ns)
{
	for (unsigned i = 0; i < count(session); i++) {
		if (!fgv_gate_may_sleep(session, fgv_engines_gate(session, i), waited_ns, is_told,
					limit_ns))
			return false;
	}
	return true;
}

bool fgv_engines_have_news(const struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++) {
		if (fgv_gate_has_news(fgv_engines_gate(session, i)))
			return true;
	}
	return false;
}

void fgv_engines_announce_sleep(struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++)
		fgv_park_announce(&fgv_engines_gate(session, i)->grant->parked);
}

void fgv_engines_withdraw_sleep(struct fgv_session *session)
{
	for (unsigned i = 0; i < count(session); i++) {
		struct fgv_gate *gate = fgv_engines_gate(session, i);

		fgv_park_withdraw(&gate->grant->parked);
		fgv_doorbell_clear(gate->bell_fd);
	}
}

void fgv_engines_bells(const struct fgv_session *session, struct pollfd *fds)
{
	for (unsigned i = 0; i < FGV_ENGINES; i++)
		fds[i] = (struct pollfd){
			.fd = i < count(session) ? fgv_engines_gate(session, i)->bell_fd : -1,
			.events = POLLIN,
		};
}
