/*
 * Operations that lanes of a warp do together: shuffles, votes, matches, reductions, bar.warp. Each lane
 * names the members; it waits until all of them that have not exited are at an operation of the
 * same kind and name the same. That need not be the same instruction, nor need its lanes have come
 * by the same way: what each gives (o[1]) is gathered in w->given, and then each split runs
 * its own instruction. Splits that can become one do so before.
 *
 * Handlers come here only where lanes are missing (warp.c).
 */
#include "softgpu/ops/block.h"
#include "softgpu/ops/lanes.h"

/* Do two splits wait for each other? */
static bool is_alike(const struct split *a, const struct split *b)
{
	return a->state == SPLIT_GATHER && a->pc->op == b->pc->op && a->awaited == b->awaited;
}

static u32 lanes_alike(const struct warp *w, const struct split *like)
{
	u32 mask = 0;

	for (unsigned i = 0; i < w->splits_used; i++)
		mask |= is_alike(&w->splits[i], like) ? w->splits[i].mask & w->alive : 0;
	return mask;
}

/* What the lanes that run give, beside what others gave; in->vec: its bytes, 0: a predicate. */
static void give(struct warp *w, const struct insn *in)
{
	u32 *words = (u32 *)w->given;

	if (in->o[1] == OPERAND_NONE)
		return;
	if (!in->vec)
		*words = (*words & ~w->active) | (predicate(w, in->o[1]) & w->active);
	else if (in->vec == 4)
		LANE_LOOP words[i] = w->lanes[i] ? ROW(u32, in->o[1])[i] : words[i];
	else
		LANE_LOOP w->given[i] = w->lanes[i] ? ROW(u64, in->o[1])[i] : w->given[i];
}

/* All have come: those that wait like split @index give, and only then does any take. */
static void perform(struct warp *w, unsigned index)
{
	const struct split like = w->splits[index];
	u32 together = lanes_alike(w, &like);

	for (unsigned i = 0; i < w->splits_used; i++) {
		if (!is_alike(&w->splits[i], &like))
			continue;
		fgv_softgpu_reunite(w, i);
		give(w, fgv_softgpu_enter_split(w, i));
	}
	w->together = together;
	for (unsigned i = 0; i < w->splits_used; i++) {
		struct split *s = &w->splits[i];

		if (!is_alike(s, &like))
			continue;
		fgv_softgpu_enter_split(w, i);
		s->pc = s->pc->run(w, s->pc);
		s->state = SPLIT_READY;
	}
	w->together = 0;
}

void fgv_softgpu_gathered_check(struct warp *w)
{
	for (unsigned i = 0; i < w->splits_used; i++) {
		const struct split *s = &w->splits[i];

		if (s->state == SPLIT_GATHER && !(s->awaited & w->alive & ~lanes_alike(w, s)))
			perform(w, i);
	}
}

/* Lanes that name other members wait by themselves. */
const struct insn *fgv_softgpu_gather(struct warp *w, const struct insn *in)
{
	const u32 *members = ROW(u32, in->o[5]);
	unsigned whole = w->split;
	u32 same;

	w->splits[whole].pc = in;
	w->splits[whole].state = SPLIT_GATHER;
	for (u32 left = w->active; left; left &= ~same) {
		u32 wanted = members[__builtin_ctz(left)];
		int index;

		same = 0;
		for (unsigned i = 0; i < LANES; i++)
			same |= (u32)(members[i] == wanted) << i;
		same &= left;
		index = same == left ? (int)whole : fgv_softgpu_part(w, whole, same);
		if (index < 0)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
		w->splits[index].awaited = wanted;
	}
	fgv_softgpu_gathered_check(w);
	return fgv_softgpu_switch_split(w);
}

const struct insn *fgv_softgpu_gathering(const struct warp *w, const struct code **code)
{
	for (unsigned i = 0; i < w->splits_used; i++) {
		const struct split *s = &w->splits[i];

		if (s->state != SPLIT_GATHER)
			continue;
		*code = s->call->code;
		return s->pc;
	}
	return NULL;
}
