/*
 * The tree of splits of a warp: which lanes run together, where they part and where they
 * meet. What a split waits for but its children is the business of block.c and gather.c.
 */
#include "softgpu/ops/block.h"

#include <emmintrin.h>
#include <errno.h>

#define SPLITS_LET_GO 96 /* half of SPLITS_MAX */

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

static void use_frame(struct warp *w, const struct call_record *call)
{
	w->base[0] = w->frames + call->frame;
	w->base[1] = call->code->consts;
	w->local = call->local;
}

const struct insn *fgv_softgpu_enter_split(struct warp *w, unsigned index)
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
			return fgv_softgpu_enter_split(w, index);
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
	else if (w->calls_used < CALL_RECORDS)
		r = &w->calls[w->calls_used++];
	return r;
}

/* Frames lie one behind the other along a chain of calls. */
static const struct call_record *find_in_the_way(const struct warp *w, uint32_t frame,
						 const struct code *callee)
{
	for (unsigned i = 0; i < w->splits_used; i++) {
		const struct split *s = &w->splits[i];

		for (const struct call_record *r = s->state == SPLIT_FREE ? NULL : s->call;
		     r && r->frame + r->code->frame_bytes > frame; r = r->caller) {
			if (r->frame < (uint64_t)frame + callee->frame_bytes &&
			    (r->frame != frame || r->code != callee))
				return r;
		}
	}
	return NULL;
}

/*
 * A frame has a row of all lanes for each register, and each function rows of its own. So lanes
 * that are in one function may share a frame, and lanes in different ones must not.
 */
uint32_t fgv_softgpu_place_frame(const struct warp *w, const struct code *callee)
{
	const struct call_record *caller = w->splits[w->split].call;
	const struct call_record *r;
	uint32_t frame = caller->frame + caller->code->frame_bytes;

	while ((r = find_in_the_way(w, frame, callee)))
		frame = r->frame + r->code->frame_bytes;
	return frame;
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
	fgv_softgpu_gathered_check(w);
	fgv_softgpu_barriers_check(w->block);
	return fgv_softgpu_switch_split(w);
}

static bool has_room(const struct warp *w, unsigned count)
{
	unsigned in_use = 0;

	for (unsigned i = 0; i < w->splits_used; i++)
		in_use += w->splits[i].state != SPLIT_FREE;
	return in_use + count <= SPLITS_MAX;
}

/* There is room. */
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

/* Does every lane go straight to where they meet? Then nothing divides. */
static bool all_meet(const struct side *sides, unsigned count, const struct insn *join)
{
	for (unsigned i = 0; i < count; i++) {
		if (sides[i].mask && sides[i].pc != join)
			return false;
	}
	return true;
}

/*
 * Whether @s, which parts at a branch with @join, needs no join of its own: its parent is the join
 * there, or one to which nobody comes, as its lanes never meet.
 */
static bool shares_parent(const struct warp *w, const struct split *s, const struct insn *join)
{
	const struct split *parent = &w->splits[s->parent];

	return parent != s && s->join == join && (join || parent->call == s->call);
}

/*
 * The sets of lanes that splits stand for are nested or disjoint, so 63 different ones at most. A
 * join may have the same lanes as its only child: where waiting lanes were let go, of which there
 * are few (SPLITS_LET_GO), and where all children have been reunited before they met. Of the
 * latter there are as many as a program nests branches, so it may run out of splits.
 */
const struct insn *fgv_softgpu_diverge(struct warp *w, const struct insn *in,
				       const struct insn *join, const struct side *sides,
				       unsigned count)
{
	struct split *s = &w->splits[w->split];
	struct split like = *s;
	unsigned parent = w->split;

	if (all_meet(sides, count, join))
		return join;
	if (!has_room(w, count))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
	if (shares_parent(w, s, join)) {
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

int fgv_softgpu_part(struct warp *w, unsigned index, uint32_t mask)
{
	struct split *p = &w->splits[index], *s;
	bool root = p->parent == index;
	unsigned part;

	if (!has_room(w, 1))
		return -ENOMEM;
	part = take_split(w);
	s = &w->splits[part];
	*s = *p;
	s->mask = mask;
	s->children = 0;
	if (!copy_calls(w, s, root ? NULL : w->splits[p->parent].call)) {
		s->state = SPLIT_FREE;
		return -ENOMEM;
	}
	p->mask &= ~mask;
	if (root)
		s->parent = (uint8_t)part;
	else
		w->splits[p->parent].children++;
	return (int)part;
}

bool fgv_softgpu_let_waiting_go(struct warp *w)
{
	unsigned in_use = 0;
	bool any = false;

	for (unsigned i = 0; i < w->splits_used; i++)
		in_use += w->splits[i].state != SPLIT_FREE;
	for (unsigned i = 0, count = w->splits_used; i < count && in_use < SPLITS_LET_GO; i++) {
		uint32_t mask;
		int part;

		if (w->splits[i].state != SPLIT_JOIN || !w->splits[i].pc)
			continue;
		mask = waiting_lanes(w, i);
		part = mask ? fgv_softgpu_part(w, i, mask) : -ENOENT;
		if (part < 0)
			continue;
		w->splits[part].state = SPLIT_READY;
		any = true;
		in_use++;
	}
	return any;
}

const struct insn *fgv_softgpu_yield(struct warp *w, const struct insn *next)
{
	w->splits[w->split].pc = next;
	w->block->yields++;
	fgv_softgpu_let_waiting_go(w);
	return NULL;
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

void fgv_softgpu_reunite(struct warp *w, unsigned index)
{
	struct split *s = &w->splits[index];

	for (unsigned i = index + 1; i < w->splits_used; i++) {
		struct split *other = &w->splits[i];
		bool roots = s->parent == index && other->parent == i;

		if (other->state != s->state || other->awaited != s->awaited ||
		    other->pc != s->pc || other->join != s->join ||
		    (!roots && other->parent != s->parent) || !same_calls(other->call, s->call))
			continue;
		s->mask |= other->mask;
		free_calls(w, other->call, roots ? NULL : w->splits[s->parent].call);
		w->splits[s->parent].children -= !roots;
		other->state = SPLIT_FREE;
	}
}
