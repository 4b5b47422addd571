/*
 * Runs one block: its warps in turns, and the barriers between them. All of it is one worker
 * thread's.
 */
#include "softgpu/ops/block.h"

#include <string.h>

const struct insn *fgv_softgpu_fault(struct warp *w, const struct insn *in, CUresult code)
{
	if (w->block->fault == CUDA_SUCCESS) {
		w->block->fault = code;
		w->block->fault_insn = in;
		w->block->fault_code = w->splits[w->split].call->code;
	}
	return NULL;
}

static bool is_complete(const struct block *block, const struct barrier *b)
{
	return b->waiters && b->count >= (b->expected ? b->expected : block->alive);
}

/*
 * Programs rely on more than barriers promise: what a barrier made visible they read, and
 * overwrite a little later, and warps that issue in turns have all read by then. So a warp's first
 * store since its start or a barrier waits until the others have come as far.
 */
const struct insn *fgv_softgpu_store_later(struct warp *w, const struct insn *store)
{
	w->quiet = false;
	w->splits[w->split].pc = store;
	return NULL;
}

/* All warps have come: those that sleep here go on, and the next round begins. */
static void release(struct block *block, unsigned id)
{
	struct barrier *b = &block->barriers[id];

	b->result_and = b->reduce_and;
	b->result_or = b->reduce_or;
	b->result_count = b->reduce_count;
	b->reduce_and = true;
	b->reduce_or = false;
	b->reduce_count = 0;
	b->count = 0;
	b->waiters = 0;
	for (uint32_t i = 0; i < block->warps_count; i++) {
		struct warp *w = &block->warps[i];

		for (unsigned k = 0; k < w->splits_used; k++) {
			struct split *s = &w->splits[k];

			if (s->state != SPLIT_BARRIER || s->awaited != id)
				continue;
			fgv_softgpu_reunite(w, k);
			s->state = SPLIT_READY;
			w->quiet = block->warps_count > 1;
		}
	}
}

void fgv_softgpu_barriers_check(struct block *block)
{
	for (unsigned id = 0; id < BARRIERS; id++) {
		if (is_complete(block, &block->barriers[id]))
			release(block, id);
	}
}

/*
 * Without a count all threads of the block come, and each lane counts. With one,
 * a warp counts as 32 even where the block's size leaves it fewer.
 */
static void arrive(struct warp *w, struct barrier *b, uint32_t expected)
{
	b->count += expected && w->full ? LANES : (uint32_t)__builtin_popcount(w->active);
	b->expected = expected;
}

void fgv_softgpu_barrier_arrive(struct warp *w, unsigned id, uint32_t expected)
{
	struct barrier *b = &w->block->barriers[id];

	arrive(w, b, expected);
	if (is_complete(w->block, b))
		release(w->block, id);
}

const struct insn *fgv_softgpu_barrier_wait(struct warp *w, const struct insn *next, unsigned id,
					    uint32_t expected)
{
	struct barrier *b = &w->block->barriers[id];
	struct split *s = &w->splits[w->split];

	s->pc = next;
	s->state = SPLIT_BARRIER;
	s->awaited = id;
	b->waiters++;
	arrive(w, b, expected);
	if (!is_complete(w->block, b))
		return fgv_softgpu_switch_split(w);
	release(w->block, id);
	if (s->state == SPLIT_READY && (s->mask & w->alive) == w->active)
		return next;
	return fgv_softgpu_switch_split(w);
}

static void init_calls(struct warp *w, const struct code *code)
{
	struct call_record *root = &w->calls[0];

	*root = (struct call_record){.code = code};
	w->free_calls = NULL;
	w->calls_used = 1;
	w->splits[0] = (struct split){
		.pc = code->insns, .call = root, .mask = w->alive, .state = SPLIT_READY};
	w->splits_used = 1;
}

static void init_tids(struct warp *w, const struct block *block)
{
	uint32_t thread = w->index * LANES;
	uint32_t x = thread % block->ntid[0];
	uint32_t y = thread / block->ntid[0] % block->ntid[1];
	uint32_t z = thread / block->ntid[0] / block->ntid[1];

	for (int i = 0; i < LANES; i++) {
		w->tid[0][i] = x;
		w->tid[1][i] = y;
		w->tid[2][i] = z;
		if (++x == block->ntid[0]) {
			x = 0;
			if (++y == block->ntid[1]) {
				y = 0;
				z++;
			}
		}
	}
}

static void init_warp(struct block *block, struct warp *w, uint32_t index, const struct code *code)
{
	uint32_t left = block->threads - index * LANES;

	w->index = (uint16_t)index;
	w->alive = left >= LANES ? ALL_LANES : (1u << left) - 1;
	w->cc = 0;
	w->together = 0;
	w->quiet = block->warps_count > 1;
	w->block = block;
	w->view = &block->view;
	w->param = block->param;
	w->param_bytes = block->param_bytes;
	w->frames = block->frames + (size_t)index * block->frame_bytes;
	w->local_memory = block->local + (size_t)index * block->local_bytes * LANES;
	init_calls(w, code);
	if (!block->tids_ready)
		init_tids(w, block);
}

void fgv_softgpu_block_start(struct block *block, const struct code *code)
{
	block->alive = block->threads;
	block->yields = 0;
	block->fault = CUDA_SUCCESS;
	memset(block->barriers, 0, sizeof(block->barriers));
	for (unsigned id = 0; id < BARRIERS; id++)
		block->barriers[id].reduce_and = true;
	for (uint32_t i = 0; i < block->warps_count; i++)
		init_warp(block, &block->warps[i], i, code);
	block->tids_ready = true;
}

/*
 * One turn of a warp; false: it can do nothing. Where none of its lanes runs, the other warps may
 * wait for lanes of it that wait at joins.
 */
static bool run_warp(struct warp *w)
{
	const struct insn *in = fgv_softgpu_switch_split(w);

	if (!in)
		return fgv_softgpu_let_waiting_go(w);
	w->turn = TURN_BRANCHES;
	do {
		in = in->run(w, in);
	} while (in);
	return true;
}

/* Threads wait for what nobody is left to come to: a barrier, or an operation of their warp. */
static CUresult deadlock(struct block *block, const struct code *code)
{
	block->fault_code = code;
	block->fault_insn = NULL;
	for (uint32_t i = 0; i < block->warps_count && !block->fault_insn; i++)
		block->fault_insn = fgv_softgpu_gathering(&block->warps[i], &block->fault_code);
	return block->fault = CUDA_ERROR_LAUNCH_FAILED;
}

CUresult fgv_softgpu_block_turn(struct block *block, const struct code *code)
{
	bool progress = false;

	for (uint32_t i = 0; i < block->warps_count; i++) {
		if (!block->warps[i].alive)
			continue;
		progress |= run_warp(&block->warps[i]);
		if (block->fault != CUDA_SUCCESS)
			return block->fault;
		if (__atomic_load_n(block->stop, __ATOMIC_RELAXED))
			return CUDA_ERROR_LAUNCH_FAILED;
	}
	if (!progress)
		return deadlock(block, code);
	return block->alive ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
