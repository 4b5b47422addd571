/*
 * Freezing; see freezer.h.
 */
#include "backend/vgpu/freezer.h"

#include <string.h>
#include "backend/vgpu/freezer_priv.h"
#include "common/log.h"
#include "common/util.h"

/* So often it is looked at what nobody rings for. */
#define LOOK_NS (100 * FGV_NS_PER_US)

/* A GPU without room for what comes in is asked again after this time. */
#define RETRY_NS (5 * FGV_NS_PER_MS)

/* --- Over-commitment ------------------------------------------------------------- */

bool fgv_freezer_may_wait(const struct fgv_session *session)
{
	const struct fgv_allowance *allowance = session->allowance;

	return __atomic_load_n(&allowance->paged, __ATOMIC_RELAXED) &&
	       !fgv_freezer_is_mine(session, &allowance->alone);
}

void fgv_freezer_ask(struct fgv_session *session, enum fgv_asks asks)
{
	if (asks == FGV_ASKS_ROOM)
		fgv_account_add(&session->account->tries, 1);
	__atomic_store_n(&session->account->asks, asks, __ATOMIC_RELEASE);
}

/* There is no room yet: it is tried again. */
static void ask_for_room(struct fgv_session *session)
{
	fgv_freezer_ask(session, FGV_ASKS_ROOM);
	session->freezer.retry_ns = fgv_now_ns() + RETRY_NS;
}

static bool asks(const struct fgv_session *session)
{
	return __atomic_load_n(&session->account->asks, __ATOMIC_RELAXED) != FGV_ASKS_NOTHING;
}

CUresult fgv_freezer_touch(struct fgv_session *session, uint64_t address, uint64_t bytes)
{
	struct fgv_freezer *freezer = &session->freezer;
	CUresult status = fgv_pieces_touch(&session->pieces, address, bytes);

	if (status != CUDA_ERROR_OUT_OF_MEMORY)
		return status;
	if (freezer->gives_up || !fgv_freezer_may_wait(session)) {
		freezer->gives_up = false;
		return status;
	}
	freezer->state = FGV_FREEZER_SHORT;
	freezer->short_address = address;
	freezer->short_bytes = bytes;
	ask_for_room(session);
	return FGV_CLOSED;
}

bool fgv_freezer_listens(const struct fgv_session *session)
{
	return session->freezer.state == FGV_FREEZER_FROZEN && !asks(session);
}

/* Whether there is anything that it would do if its memory were in. */
static bool has_work(const struct fgv_session *session)
{
	return fgv_held_first(&session->held) || fgv_stall_is_used(&session->stall) ||
	       session->room.count || fgv_lanes_any_ordered(session->lanes);
}

bool fgv_freezer_lets_in(const struct fgv_session *session)
{
	const struct fgv_freezer *freezer = &session->freezer;

	if (!fgv_pieces_are_used(&session->pieces))
		return true;
	return freezer->state == FGV_FREEZER_RUNNING &&
	       (freezer->has_failed || !fgv_freezer_is_wanted(session));
}

bool fgv_freezer_has_news(const struct fgv_session *session)
{
	const struct fgv_freezer *freezer = &session->freezer;

	if (!fgv_pieces_are_used(&session->pieces))
		return false;
	switch (freezer->state) {
	case FGV_FREEZER_RUNNING:
		return fgv_freezer_is_wanted(session) != freezer->has_failed;
	case FGV_FREEZER_FROZEN:
		return (!fgv_freezer_is_wanted(session) && !freezer->retry_ns) ||
		       (!asks(session) && has_work(session));
	case FGV_FREEZER_SHORT:
		return fgv_freezer_is_wanted(session);
	case FGV_FREEZER_SAVING:
		return !fgv_freezer_is_wanted(session);
	default:
		return false;
	}
}

uint64_t fgv_freezer_limit_ns(const struct fgv_session *session)
{
	const struct fgv_freezer *freezer = &session->freezer;

	switch (freezer->state) {
	case FGV_FREEZER_RUNNING:
	case FGV_FREEZER_SAVING:
	case FGV_FREEZER_SAVED:
	case FGV_FREEZER_LOADING:
		return UINT64_MAX;
	case FGV_FREEZER_FROZEN:
		return freezer->retry_ns ? RETRY_NS : UINT64_MAX;
	case FGV_FREEZER_SHORT:
	case FGV_FREEZER_COMING:
	case FGV_FREEZER_OUT:
		return freezer->retry_ns ? RETRY_NS : LOOK_NS;
	default:
		return LOOK_NS;
	}
}

/* --- What stays ------------------------------------------------------------------ */

static uint64_t charged_for(struct fgv_session *session, enum fgv_kind kind)
{
	const struct fgv_object *object;
	uint64_t bytes = 0;
	uint32_t at = 0;

	while ((object = fgv_handles_next(&session->handles, kind, &at)))
		bytes += object->charge.bytes;
	return bytes;
}

static void say_what_stays(struct fgv_session *session)
{
	static const enum fgv_kind kinds[FGV_STAYS] = {
		[FGV_STAYS_MODULES] = FGV_KIND_MODULE,
		[FGV_STAYS_ARRAYS] = FGV_KIND_ARRAY,
		[FGV_STAYS_MAPPED] = FGV_KIND_MEMORY,
	};

	for (unsigned i = 0; i < FGV_STAYS; i++)
		__atomic_store_n(&session->account->stays_bytes[i], charged_for(session, kinds[i]),
				 __ATOMIC_RELAXED);
}

/* --- What it needs -------------------------------------------------------------- */

static void drop_haul(struct fgv_freezer *freezer)
{
	fgv_haul_fini(freezer->haul);
	freezer->haul = NULL;
}

static void drop_fence(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;

	if (freezer->fence)
		session->gpu->ops->fence_put(session->gpu, freezer->fence);
	freezer->fence = NULL;
}

void fgv_freezer_fini(struct fgv_session *session)
{
	drop_haul(&session->freezer);
	drop_fence(session);
	fgv_freezer_stop_file(session);
	fgv_store_drop(&session->freezer.store);
}

/* --- States ---------------------------------------------------------------------- */

/* All is on the GPU, and requests are taken again. */
static int run_on(struct fgv_session *session)
{
	bool has_failed = session->freezer.has_failed;

	fgv_freezer_fini(session);
	fgv_pieces_forget(&session->pieces);
	fgv_freezer_ask(session, FGV_ASKS_NOTHING);
	fgv_freezer_say(session, has_failed ? FGV_FROZEN_FAILED : FGV_FROZEN_NOT);
	return fgv_freezer_go_to(session, FGV_FREEZER_RUNNING);
}

/* What has gone out, if anything, comes in. */
static int turn_back(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;

	if (!fgv_pieces_bytes(&session->pieces, FGV_PIECE_OUT))
		return run_on(session);
	if (fgv_freezer_begin_sweep(session, FGV_HAUL_IN) != CUDA_SUCCESS) {
		freezer->retry_ns = fgv_now_ns() + RETRY_NS;
		return 0;
	}
	fgv_freezer_say(session, FGV_FROZEN_COMING);
	return fgv_freezer_go_to(session, FGV_FREEZER_COMING);
}

/* Moving has failed: of the host's memory there is not enough, or the GPU has had a fault. */
static int note_failure(struct fgv_session *session, const char *why)
{
	fgv_warning("can't be frozen: %s", why);
	session->freezer.has_failed = true;
	return 1;
}

static int begin_draining(struct fgv_session *session)
{
	fgv_freezer_ask(session, FGV_ASKS_NOTHING);
	fgv_batch_flush(session);
	fgv_freezer_say(session, FGV_FROZEN_GOING);
	return fgv_freezer_go_to(session, FGV_FREEZER_DRAINING);
}

static int run(struct fgv_session *session)
{
	if (!fgv_freezer_is_wanted(session)) {
		if (session->freezer.has_failed)
			fgv_freezer_say(session, FGV_FROZEN_NOT);
		session->freezer.has_failed = false;
		return 0;
	}
	return session->freezer.has_failed ? 0 : begin_draining(session);
}

/*
 * Where no fence can be had for want of memory it is tried again later; where none can be had at
 * all there is no GPU left to wait for.
 */
bool fgv_freezer_has_passed(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	struct fgv_gpu *gpu = session->gpu;
	CUresult status = CUDA_SUCCESS;

	if (!freezer->fence)
		status = gpu->ops->fence_all(gpu, &freezer->fence);
	if (status != CUDA_SUCCESS)
		return status != CUDA_ERROR_OUT_OF_MEMORY;
	if (gpu->ops->fence_query(gpu, freezer->fence) == CUDA_ERROR_NOT_READY)
		return false;
	drop_fence(session);
	return true;
}

static int begin_out(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;

	if (!fgv_store_make(&freezer->store, fgv_pieces_bytes(&session->pieces, FGV_PIECE_IN)) ||
	    fgv_freezer_begin_sweep(session, FGV_HAUL_OUT) != CUDA_SUCCESS) {
		note_failure(session, "the host's memory is short (key process_memory)");
		return run_on(session);
	}
	return fgv_freezer_go_to(session, FGV_FREEZER_OUT);
}

static int drain(struct fgv_session *session)
{
	if (!fgv_freezer_is_wanted(session))
		return run_on(session);
	if (fgv_engines_have_work(session) || session->waits.on_gpu || session->loans.count ||
	    !fgv_freezer_has_passed(session))
		return 0;
	fgv_pieces_collect(&session->pieces, false);
	return session->pieces.fence ? 0 : begin_out(session);
}

/* Nothing more goes out; what has begun to leave does. */
static int withdraw(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;

	if (freezer->retry_ns && fgv_now_ns() < freezer->retry_ns)
		return 0;
	freezer->retry_ns = 0;
	if (!fgv_haul_settle(freezer->haul))
		return 0;
	if (freezer->is_leaving)
		return fgv_freezer_release(session);
	return turn_back(session);
}

static int move_out(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	unsigned moved;
	CUresult status;
	int left;

	if (freezer->has_failed || !fgv_freezer_is_wanted(session))
		return withdraw(session);
	freezer->retry_ns = 0;
	status = fgv_freezer_sweep(session, &moved);
	if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_FOUND)
		return note_failure(session, "the GPU has failed");
	left = fgv_freezer_release(session);
	if (freezer->left.block)
		return (int)moved + left;
	say_what_stays(session);
	drop_haul(freezer);
	fgv_freezer_say(session, FGV_FROZEN);
	return fgv_freezer_go_to(session, FGV_FREEZER_FROZEN);
}

static int thaw(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	uint64_t now_ns = fgv_now_ns();

	if (!asks(session) && has_work(session))
		fgv_freezer_ask(session, FGV_ASKS_TURN);
	if (fgv_freezer_is_wanted(session))
		freezer->retry_ns = 0;
	if (fgv_freezer_is_wanted(session) || now_ns < freezer->retry_ns)
		return 0;
	freezer->retry_ns = 0;
	return turn_back(session);
}

/* The fault of a GPU reaches the program with its next call. */
static int give_up(struct fgv_session *session, CUresult status)
{
	fgv_error("its memory can't come back: CUDA error %d", (int)status);
	fgv_session_defer(session, status);
	return run_on(session);
}

/* The host still has all that was out. */
static int go_out_again(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;

	fgv_freezer_ask(session, FGV_ASKS_NOTHING);
	if (!fgv_haul_settle(freezer->haul) ||
	    fgv_freezer_begin_sweep(session, FGV_HAUL_OUT) != CUDA_SUCCESS)
		return 0;
	fgv_freezer_say(session, FGV_FROZEN_GOING);
	return fgv_freezer_go_to(session, FGV_FREEZER_OUT);
}

static int move_in(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	unsigned moved;
	CUresult status;

	if (!freezer->has_failed && fgv_freezer_is_wanted(session)) {
		freezer->retry_ns = 0;
		return go_out_again(session);
	}
	if (freezer->retry_ns && fgv_now_ns() < freezer->retry_ns)
		return 0;
	freezer->retry_ns = 0;
	status = fgv_freezer_sweep(session, &moved);
	if (status == CUDA_SUCCESS)
		return (int)moved;
	if (status == CUDA_ERROR_NOT_FOUND)
		return run_on(session);
	if (status != CUDA_ERROR_OUT_OF_MEMORY)
		return give_up(session, status);
	ask_for_room(session);
	return 0;
}

/* Its work waits for memory: others' is on its way out, or it was looked whether that can be. */
static int find_room(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	CUresult status;

	if (fgv_freezer_is_wanted(session)) {
		freezer->retry_ns = 0;
		return begin_draining(session);
	}
	if (fgv_now_ns() < freezer->retry_ns)
		return 0;
	status = fgv_pieces_touch(&session->pieces, freezer->short_address, freezer->short_bytes);
	if (status == CUDA_ERROR_OUT_OF_MEMORY && fgv_freezer_may_wait(session)) {
		ask_for_room(session);
		return 0;
	}
	freezer->gives_up = status == CUDA_ERROR_OUT_OF_MEMORY;
	freezer->retry_ns = 0;
	return run_on(session);
}

int fgv_freezer_turn(struct fgv_session *session)
{
	if (!fgv_pieces_are_used(&session->pieces))
		return 0;
	switch (session->freezer.state) {
	case FGV_FREEZER_RUNNING:
		return run(session);
	case FGV_FREEZER_DRAINING:
		return drain(session);
	case FGV_FREEZER_OUT:
		return move_out(session);
	case FGV_FREEZER_FROZEN:
		return thaw(session);
	case FGV_FREEZER_COMING:
		return move_in(session);
	case FGV_FREEZER_SHORT:
		return find_room(session);
	case FGV_FREEZER_SAVING:
		return fgv_freezer_save(session);
	case FGV_FREEZER_LOADING:
		return fgv_freezer_load(session);
	case FGV_FREEZER_SAVED:
		break;
	}
	return 0;
}
