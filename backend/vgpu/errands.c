/*
 * The credit that errands are paid from.
 */
#include "backend/vgpu/errands.h"

#include "backend/vgpu/session.h"
#include "common/util.h"

#define BEGINNING 4 /* of a turn: one in so many parts of a slice */
#define FILL_NS	  UINT64_C(1000000)

/* Of the session's VM, itself included. What has asked for nothing yet does not count. */
static uint64_t count_sessions(const struct fgv_session *session)
{
	uint64_t count = 0, left = fgv_quota_sessions(&session->quota);

	for (; left; left &= left - 1) {
		const struct fgv_account *account =
			&session->accounts->sessions[__builtin_ctzll(left)];

		count += __atomic_load_n(&account->requests, __ATOMIC_RELAXED) > 0;
	}
	return fgv_max_u64(count, 1);
}

/* While there is credit this is done now and then: it looks at a page of each session's. */
static void fill(struct fgv_session *session)
{
	struct fgv_errands *errands = &session->errands;
	uint64_t now_ns = fgv_now_ns(), sessions;
	uint64_t passed_ns = fgv_min_u64(now_ns - errands->filled_ns,
					 2 * FGV_ERRANDS_BURST_NS * FGV_ERRANDS_PART);
	int64_t most_ns;

	if (errands->credit_ns > 0 && passed_ns < FILL_NS)
		return;
	sessions = count_sessions(session);
	most_ns = (int64_t)(FGV_ERRANDS_BURST_NS / sessions);
	errands->filled_ns = now_ns;
	errands->credit_ns += (int64_t)(passed_ns / FGV_ERRANDS_PART / sessions);
	if (errands->credit_ns > most_ns)
		errands->credit_ns = most_ns;
}

void fgv_errands_init(struct fgv_session *session)
{
	session->errands = (struct fgv_errands){
		.credit_ns = (int64_t)FGV_ERRANDS_BURST_NS,
		.filled_ns = fgv_now_ns(),
	};
}

static bool is_load(uint16_t op)
{
	return op == FGV_OP_MODULE_LOAD || op == FGV_OP_MODULE_LOAD_PLACED ||
	       op == FGV_OP_MODULE_LOAD_KNOWN;
}

/* At the beginning of a turn anything fits: it would not later. */
bool fgv_errands_fit_load(struct fgv_session *session)
{
	struct fgv_gate *gate = &session->gate;
	uint64_t most_ns = gate->slice_ns - gate->slice_ns / BEGINNING;

	if (gate->is_held || fgv_gate_left_ns(gate) >= fgv_min_u64(session->errands.load_ns, most_ns))
		return true;
	fgv_gate_end_turn(gate);
	gate->blocked = true;
	return false;
}

bool fgv_errands_admit(struct fgv_session *session, uint16_t op)
{
	struct fgv_gate *gate = &session->gate;

	if (fgv_gate_is_alone(gate))
		return true;
	if (gate->room_ns > 0 && !gate->is_held)
		return !is_load(op) || fgv_errands_fit_load(session);
	fill(session);
	if (session->errands.credit_ns > 0)
		return true;
	gate->blocked = true;
	return false;
}

/* The time, without that in which the session was held: a call that waited for that took none. */
static uint64_t now_ns(const struct fgv_session *session)
{
	return fgv_now_ns() - __atomic_load_n(&session->gate.grant->held_ns, __ATOMIC_RELAXED);
}

uint64_t fgv_errands_begin(const struct fgv_session *session)
{
	return fgv_gate_is_alone(&session->gate) ? 0 : now_ns(session);
}

/* True: the grant pays. @credit_ns: what it counts for otherwise. */
static bool pay(struct fgv_session *session, uint64_t ns, uint64_t credit_ns)
{
	struct fgv_errands *errands = &session->errands;

	if (fgv_gate_pay(&session->gate, ns))
		return true;
	errands->credit_ns -= (int64_t)credit_ns;
	if (errands->credit_ns < -(int64_t)FGV_ERRANDS_BURST_NS)
		errands->credit_ns = -(int64_t)FGV_ERRANDS_BURST_NS;
	return false;
}

void fgv_errands_end(struct fgv_session *session, uint16_t op, uint64_t begun_ns)
{
	uint64_t took_ns = fgv_max_u64(now_ns(session), begun_ns) - begun_ns;
	struct fgv_errands *errands = &session->errands;
	struct fgv_grant *grant = session->gate.grant;
	bool is_change = is_load(op) || op == FGV_OP_MODULE_UNLOAD;
	uint64_t credit_ns = took_ns;

	session->gpu->late_ns = 0;
	if (is_load(op)) {
		errands->load_ns = errands->load_ns / 2 + took_ns / 2;
		credit_ns = fgv_min_u64(took_ns, FGV_ERRANDS_LOAD_NS);
	}
	if (is_change)
		credit_ns = fgv_max_u64(credit_ns, FGV_GRANT_CHANGE_NS);
	if (pay(session, took_ns, credit_ns) && is_change)
		__atomic_store_n(&grant->changes, grant->changes + 1, __ATOMIC_RELAXED);
}

void fgv_errands_settle(struct fgv_session *session)
{
	uint64_t late_ns = session->gpu->late_ns, late_bytes;

	fgv_pieces_collect(&session->pieces, false);
	late_bytes = session->gpu->late_bytes + session->pieces.late_bytes;
	if (late_bytes != session->quota.late.bytes)
		fgv_quota_set_late(&session->quota, late_bytes);
	if (session->pieces.shared_bytes != session->quota.shared)
		fgv_quota_set_shared(&session->quota, session->pieces.shared_bytes);
	if (!late_ns)
		return;
	session->gpu->late_ns = 0;
	if (!fgv_gate_is_alone(&session->gate))
		pay(session, late_ns, late_ns);
}
