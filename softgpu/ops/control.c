/*
 * Handlers that change what runs: branches, calls, barriers, exits; and the
 * instructions that set up another: guards and rounding modes.
 */
#include "softgpu/ops/block.h"
#include "softgpu/ops/lanes.h"

#include <xmmintrin.h>

HANDLER(nop)
{
	(void)w;
	return in + 1;
}

HANDLER(bra)
{
	(void)w;
	return in->target;
}

/*
 * Backward: here a warp that spins lets others run, and is stopped. Of a loop with many
 * instructions fewer rounds make a turn.
 */
static bool turn_is_over(struct warp *w, const struct insn *in, const struct insn *target)
{
	w->turn -= 1 + (int)((in - target) / TURN_INSNS);
	return __builtin_expect(w->turn <= 0, 0);
}

HANDLER(bra_back)
{
	if (turn_is_over(w, in, in->target))
		return fgv_softgpu_yield(w, in->target);
	return in->target;
}

static const struct insn *divide(struct warp *w, const struct insn *in, u32 taken)
{
	struct side sides[2] = {{in + 1, w->active & ~taken}, {in->target, taken}};

	return fgv_softgpu_diverge(w, in, in->join, sides, 2);
}

HANDLER(bra_if)
{
	u32 taken = predicate(w, in->o[0]) & w->active;

	if (taken == w->active)
		return in->target;
	if (!taken)
		return in + 1;
	return divide(w, in, taken);
}

HANDLER(bra_if_back)
{
	u32 taken = predicate(w, in->o[0]) & w->active;

	if (!taken)
		return in + 1;
	if (turn_is_over(w, in, in->target)) {
		/* The branch is decided when the warp runs again. */
		w->turn = TURN_BRANCHES;
		return fgv_softgpu_yield(w, in);
	}
	return taken == w->active ? in->target : divide(w, in, taken);
}

static const struct insn *branch_target(const struct branch_table *table, u32 index)
{
	return table->targets[index < table->count ? index : table->count - 1];
}

/*
 * o[0]: the index; imm: the table. An index beyond it is undefined: the last target. Lanes that
 * go to one place are one side, whatever their indices. Backward it is a loop like others.
 */
HANDLER(brx)
{
	const struct branch_table *table = (const void *)(uintptr_t)in->imm;
	const u32 *index = ROW(u32, in->o[0]);
	const struct insn *back = in + 1;
	struct side sides[LANES];
	unsigned count = 0;

	for (u32 left = w->active; left; count++) {
		const struct insn *target = branch_target(table, index[__builtin_ctz(left)]);
		u32 mask = 0;

		for (unsigned i = 0; i < LANES; i++)
			mask |= (left >> i & 1 && branch_target(table, index[i]) == target)
					? 1u << i
					: 0;
		sides[count] = (struct side){target, mask};
		back = target < back ? target : back;
		left &= ~mask;
	}
	if (back <= in && turn_is_over(w, in, back)) {
		w->turn = TURN_BRANCHES;
		return fgv_softgpu_yield(w, in);
	}
	if (count == 1)
		return sides[0].pc;
	return fgv_softgpu_diverge(w, in, in->join, sides, count);
}

HANDLER(join)
{
	if (w->splits[w->split].join == in)
		return fgv_softgpu_join(w);
	return in + 1;
}

HANDLER(exit)
{
	(void)in;
	return fgv_softgpu_exit(w);
}

/* Copies words of local memory between frames, in the lanes that run. */
static void copy_local(struct warp *w, u32 to, u32 from, u32 bytes)
{
	for (u32 k = 0; k < bytes; k += 4) {
		u32 *d = (u32 *)(w->local_memory + (size_t)((to + k) >> 2) * 4 * LANES);
		const u32 *s = (u32 *)(w->local_memory + (size_t)((from + k) >> 2) * 4 * LANES);

		LANE_LOOP d[i] = w->lanes[i] ? s[i] : d[i];
	}
}

static const struct insn *call(struct warp *w, const struct insn *in, const struct call_site *site,
			       const struct code *callee)
{
	struct split *s = &w->splits[w->split];
	struct call_record *caller = s->call;
	struct call_record *r;
	u32 frame = fgv_softgpu_place_frame(w, callee);
	u32 local = caller->local + caller->code->local_bytes;

	if (callee->frame_bytes > w->block->frame_bytes - frame ||
	    callee->local_bytes > w->block->local_bytes - local)
		return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
	r = fgv_softgpu_take_call(w);
	if (!r)
		return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
	for (u32 i = 0; i < site->args_count; i++)
		copy_local(w, local + callee->params[i].offset, w->local + site->args[i].offset,
			   site->args[i].bytes);
	*r = (struct call_record){.caller = caller,
				  .code = callee,
				  .frame = frame,
				  .local = local,
				  .site = site,
				  .resume = in + 1,
				  .join = s->join};
	s->call = r;
	s->join = NULL;
	w->base[0] = w->frames + frame;
	w->base[1] = callee->consts;
	w->local = local;
	return callee->insns;
}

HANDLER(call)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;

	return call(w, in, site, site->callee);
}

/* Does a function take and return what the call has? */
static bool fits(const struct call_site *site, const struct code *callee)
{
	if (!callee->defined || callee->entry || callee->params_count != site->args_count ||
	    callee->returned.bytes != site->returned.bytes)
		return false;
	for (u32 i = 0; i < site->args_count; i++) {
		if (callee->params[i].bytes != site->args[i].bytes)
			return false;
	}
	return true;
}

/*
 * o[0]: the function's address. Lanes with different functions go one group after
 * another and meet at the join behind the call.
 */
HANDLER(call_indirect)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;
	const u64 *address = ROW(u64, in->o[0]);
	u64 wanted = address[__builtin_ctz(w->active)];
	u64 index = (wanted - FUNCTION_WINDOW) / FUNCTION_STRIDE;
	u32 mask = 0;

	for (unsigned i = 0; i < LANES; i++)
		mask |= (w->active >> i & 1 && address[i] == wanted) ? 1u << i : 0;
	if (mask != w->active) {
		struct side sides[2] = {{in, mask}, {in, w->active & ~mask}};

		return fgv_softgpu_diverge(w, in, in + 1, sides, 2);
	}
	if (wanted < FUNCTION_WINDOW || index >= site->functions_count ||
	    !fits(site, site->functions[index]))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_INVALID_PC);
	return call(w, in, site, site->functions[index]);
}

HANDLER(ret)
{
	struct split *s = &w->splits[w->split];
	struct call_record *r = s->call;
	struct call_record *caller = r->caller;
	const struct insn *resume = r->resume;

	(void)in;
	copy_local(w, caller->local + r->site->returned.offset, r->local + r->code->returned.offset,
		   r->site->returned.bytes);
	s->call = caller;
	s->join = r->join;
	r->caller = w->free_calls;
	w->free_calls = r;
	w->base[0] = w->frames + caller->frame;
	w->base[1] = caller->code->consts;
	w->local = caller->local;
	return resume;
}

HANDLER(trap)
{
	return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
}

HANDLER(brkpt)
{
	(void)w;
	return in + 1;
}

/* @p: the next imm instructions run in the lanes of o[0]. None changes the flow. */
HANDLER(guard)
{
	const struct insn *end = in + 1 + in->imm;
	const struct insn *next = in + 1;
	u32 active = w->active;
	u32 mask = predicate(w, in->o[0]) & active;

	if (!mask)
		return end;
	if (mask == active)
		return next;
	fgv_softgpu_set_active(w, mask);
	while (next && next < end)
		next = next->run(w, next);
	if (next)
		fgv_softgpu_set_active(w, active);
	return next;
}

/* The next instruction runs with the rounding mode in aux (MXCSR's encoding). */
HANDLER(round)
{
	unsigned saved = _mm_getcsr();
	const struct insn *next;

	_mm_setcsr((saved & ~_MM_ROUND_MASK) | (unsigned)in->aux << 13);
	next = in[1].run(w, in + 1);
	_mm_setcsr(saved);
	return next;
}

/* o[0]: number, o[1]: threads or none; the first lane's say. */
static bool barrier_operands(struct warp *w, const struct insn *in, unsigned *id, u32 *expected)
{
	unsigned lane = (unsigned)__builtin_ctz(w->active);

	*id = ROW(u32, in->o[0])[lane];
	*expected = in->o[1] == OPERAND_NONE ? 0 : ROW(u32, in->o[1])[lane];
	return *id < BARRIERS && !(*expected % LANES);
}

HANDLER(bar_sync)
{
	unsigned id;
	u32 expected;

	if (!barrier_operands(w, in, &id, &expected))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	return fgv_softgpu_barrier_wait(w, in + 1, id, expected);
}

HANDLER(bar_arrive)
{
	unsigned id;
	u32 expected;

	if (!barrier_operands(w, in, &id, &expected) || !expected)
		return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	fgv_softgpu_barrier_arrive(w, id, expected);
	return in + 1;
}

/* o[2]: predicate. The result is read by the next instruction. */
HANDLER(bar_red)
{
	struct barrier *b;
	unsigned id;
	u32 expected;
	u32 p = predicate(w, in->o[2]) & w->active;

	if (!barrier_operands(w, in, &id, &expected))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	b = &w->block->barriers[id];
	b->reduce_and &= p == w->active;
	b->reduce_or |= p != 0;
	b->reduce_count += (u32)__builtin_popcount(p);
	return fgv_softgpu_barrier_wait(w, in + 1, id, expected);
}

/* o[0]: number, o[2]: destination; aux: 0 popc, 1 and, 2 or. */
HANDLER(bar_red_result)
{
	unsigned lane = (unsigned)__builtin_ctz(w->active);
	const struct barrier *b = &w->block->barriers[ROW(u32, in->o[0])[lane] % BARRIERS];

	if (in->aux) {
		set_predicate(w, in->o[2], (in->aux == 1 ? b->result_and : b->result_or) ? ~0u : 0);
	} else {
		u32 *d = ROW(u32, in->o[2]);

		LANE_LOOP d[i] = w->lanes[i] ? b->result_count : d[i];
	}
	return in + 1;
}

/* Pairs with the fences and atomics of kernels' other blocks, which other workers run. */
HANDLER(fence)
{
	(void)w;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return in + 1;
}

void fgv_softgpu_fill_control(handler *table)
{
#define H(key) table[OP_##key] = op_##key;
	H(nop) H(bra) H(bra_back) H(bra_if) H(bra_if_back) H(brx) H(join) H(exit) H(ret) H(call)
	H(call_indirect) H(trap) H(brkpt) H(guard) H(round) H(bar_sync) H(bar_arrive) H(bar_red)
	H(bar_red_result) H(fence)
}
