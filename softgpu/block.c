/*
 * Runs one block: its warps in turns, the barriers between them, and the tree of splits
 * within each. All of it is one worker thread's.
 */
#include "softgpu/block.h"

#include <emmintrin.h>
#include <string.h>

#define SPLITS_LET_GO 96 /* with 63 more: below SPLITS_MAX */

void fgv_softgpu_set_active(struct warp *w, uint32_t mask)
{
	const __m128i bits = _mm_setr_epi32(1, 2, 4, 8);

	w->active = mask;
	w->full = mask == w->alive;
	for (int i = 0; i < LANES; i += 4) {
		__m128i four = _mm_and_si128(_mm_set1_epi32((int)(mask >> i)), bits);

		_mm_store_si128((__m128i *)(w->lanes + i), _mm_cmpeq_epi32(four, bits));
	}
}

const struct insn *fgv_softgpu_fault(struct warp *w, const struct insn *in, CUresult code)
{
	if (w->block->fault == CUDA_SUCCESS) {
		w->block->fault = code;
		w->block->fault_insn = in;
		w->block->fault_code = w->splits[w->split].call->code;
	}
	return NULL;
}

static void use_frame(struct warp *w, const struct call_record *call)
{
	w->base[0] = w->frames + call->frame;
	w->base[1] = call->code->consts;
	w->local = call->local;
}

/* Makes split @index the one that runs; its next instruction. */
static const struct insn *enter_split(struct warp *w, unsigned index)
{
	struct split *s = &w->splits[index];

	w->split = (uint8_t)index;
	use_frame(w, s->call);
	fgv_softgpu_set_active(w, s->mask & w->alive);
	return s->pc;
}

const struct insn *fgv_softgpu_switch_split(struct warp *w)
{
	unsigned count = w->splits_used;

	for (unsigned n = 1; n <= count; n++) {
		unsigned index = (w->split + n) % count;

		if (w->splits[index].state == SPLIT_READY)
			return enter_split(w, index);
	}
	return NULL;
}

static void free_calls(struct warp *w, struct call_record *call, const struct call_record *keep)
{
	while (call != keep) {
		struct call_record *caller = call->caller;

		call->caller = w->free_calls;
		w->free_calls = call;
		call = caller;
	}
}

/* A split is gone; a join that waited for it only runs on, or goes, too. */
static void drop_split(struct warp *w, unsigned index)
{
	for (;;) {
		struct split *s = &w->splits[index];
		unsigned parent = s->parent;
		struct split *p = &w->splits[parent];

		s->state = SPLIT_FREE;
		if (parent == index) {
			free_calls(w, s->call, NULL);
			return;
		}
		free_calls(w, s->call, p->call);
		if (--p->children)
			return;
		p->state = SPLIT_READY;
		if (p->mask & w->alive)
			return;
		index = parent;
	}
}

struct call_record *fgv_softgpu_take_call(struct warp *w)
{
	struct call_record *r = w->free_calls;

	if (r)
		w->free_calls = r->caller;
	else if (w->calls_used < CALLS_MAX)
		r = &w->calls[w->calls_used++];
	return r;
}

const struct insn *fgv_softgpu_join(struct warp *w)
{
	drop_split(w, w->split);
	return fgv_softgpu_switch_split(w);
}

const struct insn *fgv_softgpu_exit(struct warp *w)
{
	w->alive &= ~w->active;
	w->block->alive -= (uint32_t)__builtin_popcount(w->active);
	drop_split(w, w->split);
	fgv_softgpu_barriers_check(w->block);
	return fgv_softgpu_switch_split(w);
}

static unsigned take_split(struct warp *w)
{
	unsigned index = 0;

	while (index < w->splits_used && w->splits[index].state != SPLIT_FREE)
		index++;
	if (index == w->splits_used)
		w->splits_used++;
	return index;
}

static void add_side(struct warp *w, unsigned parent, const struct split *like,
		     const struct insn *join, const struct insn *pc, uint32_t mask)
{
	struct split *s = &w->splits[take_split(w)];

	*s = (struct split){.pc = pc,
			    .join = join,
			    .call = like->call,
			    .mask = mask,
			    .state = SPLIT_READY,
			    .parent = (uint8_t)parent};
	w->splits[parent].children++;
}

/*
 * How many splits there can be: the sets of lanes that they stand for are nested or
 * disjoint, so 63 different ones at most. A join has strictly more lanes than each child, and a
 * split whose join is this branch's own shares that join's parent instead of becoming one; only a
 * join whose waiting lanes were let go may have the same lanes as its child, and let_go() makes no
 * such join when SPLITS_LET_GO exist.
 */
const struct insn *fgv_softgpu_diverge(struct warp *w, const struct insn *join,
				       const struct side *sides, unsigned count)
{
	struct split *s = &w->splits[w->split];
	struct split like = *s;
	unsigned parent = w->split;

	if (join && s->join == join) {
		parent = s->parent;
		s->state = SPLIT_FREE;
		w->splits[parent].children--;
	} else {
		s->state = SPLIT_JOIN;
		s->pc = join;
		s->mask = w->active;
		s->children = 0;
	}
	for (unsigned i = 0; i < count; i++) {
		if (sides[i].mask && (!join || sides[i].pc != join))
			add_side(w, parent, &like, join, sides[i].pc, sides[i].mask);
	}
	return fgv_softgpu_switch_split(w);
}

/* Copies a chain of calls, so that two splits can return from them each by itself. */
static bool copy_calls(struct warp *w, struct split *s, struct call_record *until)
{
	struct call_record **place = &s->call;

	while (*place != until) {
		struct call_record *copy = fgv_softgpu_take_call(w);

		if (!copy)
			return false;
		*copy = **place;
		*place = copy;
		place = &copy->caller;
	}
	return true;
}

/* Lanes that have come to a join and wait for the others there. */
static uint32_t waiting_lanes(const struct warp *w, unsigned join)
{
	uint32_t mask = w->splits[join].mask & w->alive;

	for (unsigned i = 0; i < w->splits_used; i++) {
		const struct split *s = &w->splits[i];

		if (s->state != SPLIT_FREE && s->parent == join && i != join)
			mask &= ~s->mask;
	}
	return mask;
}

static void let_go(struct warp *w, unsigned join, uint32_t mask)
{
	struct split *p = &w->splits[join];
	unsigned index = take_split(w);
	struct split *s = &w->splits[index];
	bool root = p->parent == join;

	*s = *p;
	s->mask = mask;
	s->state = SPLIT_READY;
	s->children = 0;
	if (!copy_calls(w, s, root ? NULL : w->splits[p->parent].call)) {
		s->state = SPLIT_FREE;
		return;
	}
	p->mask &= ~mask;
	if (root)
		s->parent = (uint8_t)index;
	else
		w->splits[p->parent].children++;
}

/*
 * Lanes that wait at a join may be what the others wait for: a lock that one of them
 * holds, a barrier that it must come to. So when nothing moves, they go on alone.
 */
static bool let_waiting_go(struct warp *w)
{
	unsigned in_use = 0;
	bool any = false;

	for (unsigned i = 0; i < w->splits_used; i++)
		in_use += w->splits[i].state != SPLIT_FREE;
	for (unsigned i = 0, count = w->splits_used; i < count && in_use < SPLITS_LET_GO; i++) {
		uint32_t mask;

		if (w->splits[i].state != SPLIT_JOIN || !w->splits[i].pc)
			continue;
		mask = waiting_lanes(w, i);
		if (mask) {
			let_go(w, i, mask);
			any = true;
			in_use++;
		}
	}
	return any;
}

const struct insn *fgv_softgpu_yield(struct warp *w, const struct insn *next)
{
	w->splits[w->split].pc = next;
	let_waiting_go(w);
	return NULL;
}

static bool is_complete(const struct block *block, const struct barrier *b)
{
	return b->waiters && b->count >= (b->expected ? b->expected : block->alive);
}

static bool same_calls(const struct call_record *a, const struct call_record *b)
{
	while (a != b) {
		if (!a || !b || a->code != b->code || a->frame != b->frame ||
		    a->resume != b->resume)
			return false;
		a = a->caller;
		b = b->caller;
	}
	return true;
}

/*
 * Lanes that were let go wait in the same place as those that they left: they become one
 * with split @index again, as what follows may be an operation of the whole warp.
 */
static void reunite(struct warp *w, unsigned index)
{
	struct split *s = &w->splits[index];

	for (unsigned i = index + 1; i < w->splits_used; i++) {
		struct split *other = &w->splits[i];
		bool roots = s->parent == index && other->parent == i;

		if (other->state != SPLIT_BARRIER || other->barrier != s->barrier ||
		    other->pc != s->pc || other->join != s->join ||
		    (!roots && other->parent != s->parent) || !same_calls(other->call, s->call))
			continue;
		s->mask |= other->mask;
		free_calls(w, other->call, roots ? NULL : w->splits[s->parent].call);
		w->splits[s->parent].children -= !roots;
		other->state = SPLIT_FREE;
	}
}

/* Everybody has come: those who sleep here go on, and the next round begins. */
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

			if (s->state != SPLIT_BARRIER || s->barrier != id)
				continue;
			reunite(w, k);
			s->state = SPLIT_READY;
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
	s->barrier = (uint8_t)id;
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
	block->fault = CUDA_SUCCESS;
	memset(block->barriers, 0, sizeof(block->barriers));
	for (unsigned id = 0; id < BARRIERS; id++)
		block->barriers[id].reduce_and = true;
	for (uint32_t i = 0; i < block->warps_count; i++)
		init_warp(block, &block->warps[i], i, code);
	block->tids_ready = true;
}

/* One turn of a warp; false: it could not run. */
static bool run_warp(struct warp *w)
{
	const struct insn *in = fgv_softgpu_switch_split(w);

	if (!in)
		return false;
	w->turn = TURN_BRANCHES;
	do {
		in = in->run(w, in);
	} while (in);
	return true;
}

/* Nobody can run: lanes that wait at joins are the last resort. */
static bool unblock(struct block *block)
{
	bool any = false;

	for (uint32_t i = 0; i < block->warps_count; i++)
		any |= let_waiting_go(&block->warps[i]);
	return any;
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
	}
	if (__atomic_load_n(block->stop, __ATOMIC_RELAXED))
		return CUDA_ERROR_LAUNCH_FAILED;
	/* Threads wait for a barrier that nobody is left to come to. */
	if (!progress && !unblock(block)) {
		block->fault_code = code;
		return block->fault = CUDA_ERROR_LAUNCH_FAILED;
	}
	return block->alive ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult fgv_softgpu_block_run(struct block *block, const struct code *code)
{
	CUresult result;

	fgv_softgpu_block_start(block, code);
	do {
		result = fgv_softgpu_block_turn(block, code);
	} while (result == CUDA_ERROR_NOT_READY);
	return result;
}
