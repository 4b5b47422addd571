/*
 * Waiting for a lane's replies: looking for a moment, or asleep for the most of what such a wait
 * usually lasts, then looking, and at last parked.
 */
#include <string.h>

#include "frontend/client/lane.h"
#include "frontend/client/session.h"
#include "frontend/client/text.h"
#include "frontend/client/transport.h"
#include "shmring/park.h"
#include "shmring/spin.h"
#include "shmring/usual.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* With the GPU at the session's disposal what is waited for is under way. */
static bool look_on(const struct fgv_lane *lane, struct fgv_spin *spin)
{
	const uint32_t *online = &fgv_window_head(&lane->client->window)->online;

	return fgv_spin_again(spin) ||
	       (__atomic_load_n(online, __ATOMIC_RELAXED) && fgv_spin_longer(spin));
}

/* Until it is rung, for @limit_ns at most unless that is 0. */
static void park(struct fgv_lane *lane, uint64_t limit_ns)
{
	fgv_park_announce(&lane->head->guest_parked);
	if (!fgv_ring_peek_ordered(&lane->replies)) {
		if (limit_ns)
			fgv_lane_doze(lane, limit_ns);
		else
			fgv_lane_sleep(lane, -1);
	}
	fgv_park_withdraw(&lane->head->guest_parked);
}

/*
 * Waits for the next reply on @lane, whatever it answers. False: there will be none. The clock is
 * not looked at for a reply that comes in a moment. Out of line, so that bench instructions can
 * leave out how long that takes.
 */
static __attribute__((noinline)) bool wait_for_reply(struct fgv_lane *lane)
{
	uint32_t *usual_ns = &lane->counts[lane->open_op].usual_ns;
	uint64_t first_ns = fgv_lane_rest_ns(*usual_ns);
	uint64_t since_ns = first_ns ? fgv_now_ns() : 0;
	struct fgv_spin spin = fgv_spin_start();
	bool overslept = false;

	if (first_ns) {
		park(lane, first_ns);
		overslept = fgv_ring_peek(&lane->replies);
	}
	while (!fgv_ring_peek(&lane->replies)) {
		if (fgv_session_status(lane->client))
			return false;
		if (look_on(lane, &spin))
			continue;
		if (!since_ns)
			since_ns = fgv_spin_since_ns(&spin);
		park(lane, 0);
		spin = fgv_spin_start();
	}
	if (!since_ns)
		since_ns = fgv_spin_since_ns(&spin);
	fgv_usual_note(usual_ns, since_ns ? fgv_now_ns() - since_ns : 0, overslept);
	return true;
}

/* Errors after which the GPU's context is of no use, as CUDA has it. */
static bool is_sticky(CUresult res)
{
	switch (res) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
	case CUDA_ERROR_MPS_CLIENT_TERMINATED:
	case CUDA_ERROR_EXTERNAL_DEVICE:
		return true;
	default:
		return false;
	}
}

static CUresult read_reply(struct fgv_lane *lane, const struct fgv_slot *got, void *reply,
			   uint32_t reply_len)
{
	CUresult res = fgv_connect_status(got->status);

	if (is_sticky(res))
		fgv_session_end(lane->client, res);
	if (res)
		return res;
	if (got->len != reply_len || reply_len > FGV_SLOT_INLINE)
		return CUDA_ERROR_UNKNOWN;
	if (reply_len)
		memcpy(reply, got->data, reply_len);
	return CUDA_SUCCESS;
}

static CUresult wait_for_call(struct fgv_lane *lane, uint32_t call, void *reply, uint32_t reply_len)
{
	struct fgv_slot got;
	CUresult refused = lane->refused;

	if (unlikely(refused)) {
		lane->refused = CUDA_SUCCESS;
		return refused;
	}
	if (!wait_for_reply(lane))
		return fgv_session_status(lane->client);
	got = *fgv_ring_peek(&lane->replies);
	fgv_ring_release(&lane->replies);
	/* Before an error ends the session, and with it all ways to fetch text. */
	if (unlikely(fgv_text_waits(lane->client)) && got.op != FGV_OP_TEXT_READ)
		fgv_text_print(lane);
	if (got.call == call)
		return read_reply(lane, &got, reply, reply_len);
	fgv_session_lose(lane->client, "the backend answers what was not asked");
	return fgv_session_status(lane->client);
}

CUresult fgv_lane_wait(struct fgv_lane *lane, uint32_t call, void *reply, uint32_t reply_len)
{
	if (likely(!lane->refused))
		fgv_count_up(&lane->counts[lane->open_op].round_trips);
	return wait_for_call(lane, call, reply, reply_len);
}

CUresult fgv_lane_wait_more(struct fgv_lane *lane, uint32_t call)
{
	return wait_for_call(lane, call, NULL, 0);
}
