/*
 * Handlers of mbarrier and of copies that PTX calls asynchronous. A copy is done where it
 * is asked for, so that whoever waits for it finds it done; a block's warps share one
 * thread, so a barrier in its shared memory needs no atomics. Addresses are generic.
 *
 * A barrier's word: phase (1 bit), arrivals of each phase (20), arrivals that this one still
 * lacks (20), bytes that it still lacks (22, may be less than zero for a while).
 */
#include "softgpu/ops/lane_mem.h"

#define COUNT_MAX	((1u << 20) - 1)
#define EXPECTED(word)	((u32)((word) >> 1) & COUNT_MAX)
#define PENDING(word)	((u32)((word) >> 21) & COUNT_MAX)
#define TRANSFERS(word) ((s64)(word) >> 42)
#define WORD(phase, expected, pending, transfers)                                                  \
	((u64)(phase) | (u64)(expected) << 1 | (u64)(pending) << 21 | (u64)(transfers) << 42)

/* The barrier of a lane; NULL after a fault. */
static u64 *barrier_word(struct warp *w, const struct insn *in, unsigned index, unsigned lane)
{
	u64 address = ROW(u64, in->o[index])[lane];
	const u8 *shared = w->block->shared;
	u8 *p;

	if (address & 7) {
		fgv_softgpu_fault(w, in, CUDA_ERROR_MISALIGNED_ADDRESS);
		return NULL;
	}
	p = fgv_softgpu_lane_pointer(w, address, 8, lane);
	if (!p || p < shared || p >= shared + w->block->shared_bytes) {
		fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
		return NULL;
	}
	return (u64 *)p;
}

/* The next phase begins when nothing is lacking. */
static void put_word(u64 *word, u32 expected, u32 pending, s64 transfers)
{
	u64 phase = *word & 1;

	if (!pending && !transfers)
		*word = WORD(!phase, expected, expected, 0);
	else
		*word = WORD(phase, expected, pending, transfers);
}

/* @drop: also from the arrivals of the phases to come. */
static bool arrive(u64 *word, u32 count, bool drop)
{
	u32 expected = EXPECTED(*word);
	u32 pending = PENDING(*word);

	if (!count || count > pending || (drop && count > expected))
		return false;
	put_word(word, drop ? expected - count : expected, pending - count, TRANSFERS(*word));
	return true;
}

static void add_transfers(u64 *word, s64 bytes)
{
	s64 transfers = TRANSFERS(*word) + bytes;

	if (bytes < 0)
		put_word(word, EXPECTED(*word), PENDING(*word), transfers);
	else
		*word = WORD(*word & 1, EXPECTED(*word), PENDING(*word), transfers);
}

#define EACH_LANE(lane)                                                                            \
	for (u32 left_ = w->active, lane = 0; left_ && (lane = (u32)__builtin_ctz(left_), true);   \
	     left_ &= left_ - 1)

/* o[1]: address, o[2]: count. */
HANDLER(mbarrier_init)
{
	EACH_LANE(lane)
	{
		u64 *word = barrier_word(w, in, 1, lane);
		u32 count = ROW(u32, in->o[2])[lane];

		if (!word)
			return NULL;
		if (!count || count > COUNT_MAX)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
		*word = WORD(0, count, count, 0);
	}
	return in + 1;
}

HANDLER(mbarrier_inval)
{
	EACH_LANE(lane)
	{
		u64 *word = barrier_word(w, in, 1, lane);

		if (!word)
			return NULL;
		*word = 0;
	}
	return in + 1;
}

/* o[0]: the state before, or none; o[1]: address, o[2]: count; aux: 1 to drop out. */
HANDLER(mbarrier_arrive)
{
	EACH_LANE(lane)
	{
		u64 *word = barrier_word(w, in, 1, lane);
		u64 before;

		if (!word)
			return NULL;
		before = *word;
		if (!arrive(word, ROW(u32, in->o[2])[lane], in->aux))
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
		if (in->o[0] != OPERAND_NONE)
			ROW(u64, in->o[0])[lane] = before;
	}
	return in + 1;
}

/* o[1]: address, o[2]: bytes; aux: 1 where they have come. */
HANDLER(mbarrier_tx)
{
	EACH_LANE(lane)
	{
		u64 *word = barrier_word(w, in, 1, lane);
		s64 bytes = ROW(u32, in->o[2])[lane];

		if (!word)
			return NULL;
		add_transfers(word, in->aux ? -bytes : bytes);
	}
	return in + 1;
}

/*
 * o[0]: predicate, true where the phase is over; o[1]: address, o[2]: a state (64 bits) or, with
 * aux 1, the parity of a phase (32). A warp that must wait lets others run at its next backward
 * branch.
 */
HANDLER(mbarrier_test)
{
	u32 over = 0;

	EACH_LANE(lane)
	{
		const u64 *word = barrier_word(w, in, 1, lane);
		u64 phase;

		if (!word)
			return NULL;
		phase = in->aux ? ROW(u32, in->o[2])[lane] : ROW(u64, in->o[2])[lane];
		over |= (u32)((*word ^ phase) & 1) << lane;
	}
	set_predicate(w, in->o[0], over);
	if (over != w->active)
		w->turn = 1;
	return in + 1;
}

HANDLER(mbarrier_pending)
{
	u32 *d = ROW(u32, in->o[0]);
	const u64 *state = ROW(u64, in->o[1]);

	LANE_LOOP d[i] = w->lanes[i] ? PENDING(state[i]) : d[i];
	return in + 1;
}

/* @bytes from one address to another, and zeros up to @room, which aligns both; false after a fault. */
static bool copy(struct warp *w, const struct insn *in, unsigned lane, u64 to, u64 from, u32 bytes,
		 u32 room)
{
	void *d = fgv_softgpu_lane_pointer(w, to, room, lane);
	const void *s = bytes ? fgv_softgpu_lane_pointer(w, from, bytes, lane) : d;

	if (!d || !s) {
		fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
		return false;
	}
	if (bytes == room && room <= VECTOR_BYTES) {
		copy_whole(d, s, room);
		return true;
	}
	memmove(d, s, bytes);
	memset((u8 *)d + bytes, 0, room - bytes);
	return true;
}

/* o[1]: to, o[2]: from, o[3]: bytes of the source; aux: bytes of the destination. */
HANDLER(cp_async)
{
	EACH_LANE(lane)
	{
		u64 to = ROW(u64, in->o[1])[lane];
		u64 from = ROW(u64, in->o[2])[lane];
		u32 bytes = ROW(u32, in->o[3])[lane];

		if ((to | from) & (in->aux - 1u))
			return fgv_softgpu_fault(w, in, CUDA_ERROR_MISALIGNED_ADDRESS);
		if (bytes > in->aux)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
		if (!copy(w, in, lane, to, from, bytes, in->aux))
			return NULL;
	}
	return in + 1;
}

/* o[1]: to, o[2]: from, o[3]: bytes; o[4]: the barrier that learns of them, or none. */
HANDLER(cp_bulk)
{
	EACH_LANE(lane)
	{
		u64 to = ROW(u64, in->o[1])[lane];
		u64 from = ROW(u64, in->o[2])[lane];
		u32 bytes = ROW(u32, in->o[3])[lane];
		u64 *word = NULL;

		if ((to | from | bytes) & 15)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_MISALIGNED_ADDRESS);
		if (in->o[4] != OPERAND_NONE) {
			word = barrier_word(w, in, 4, lane);
			if (!word)
				return NULL;
		}
		if (bytes && !copy(w, in, lane, to, from, bytes, bytes))
			return NULL;
		if (word)
			add_transfers(word, -(s64)bytes);
	}
	return in + 1;
}

void fgv_softgpu_fill_async(handler *table)
{
#define H(key) table[OP_##key] = op_##key;
	H(mbarrier_init)
	H(mbarrier_inval) H(mbarrier_arrive) H(mbarrier_tx) H(mbarrier_test) H(mbarrier_pending)
		H(cp_async) H(cp_bulk)
}
