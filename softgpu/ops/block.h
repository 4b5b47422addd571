/* Splits, joins and barriers: splits.c, block.c, gather.c, and the handlers of control operations. */
#ifndef FGV_SOFTGPU_OPS_BLOCK_H
#define FGV_SOFTGPU_OPS_BLOCK_H

#include "softgpu/machine.h"

/* One way of a branch that divides a split. */
struct side {
	const struct insn *pc;
	uint32_t mask;
};

/*
 * Each returns the next instruction of whatever runs then, or NULL. The split that runs
 * divides at @in, a fault where splits nest too deep; has come to its join; ends with its lanes;
 * lets others run first.
 */
const struct insn *fgv_softgpu_diverge(struct warp *w, const struct insn *in,
				       const struct insn *join, const struct side *sides,
				       unsigned count);
const struct insn *fgv_softgpu_join(struct warp *w);
const struct insn *fgv_softgpu_exit(struct warp *w);
/* A record for a call, NULL where calls nest too deep. */
struct call_record *fgv_softgpu_take_call(struct warp *w);
/* Where the split that runs may have a frame for what it calls; the end of memory is not seen. */
uint32_t fgv_softgpu_place_frame(const struct warp *w, const struct code *callee);
const struct insn *fgv_softgpu_yield(struct warp *w, const struct insn *next);
const struct insn *fgv_softgpu_store_later(struct warp *w, const struct insn *store);

/* Makes split @index the one that runs; its next instruction. */
const struct insn *fgv_softgpu_enter_split(struct warp *w, unsigned index);
/*
 * Takes the lanes of @mask out of a split or a join: they become another in the same place and
 * state, with the same parent. Its index, or -ENOMEM where calls nest too deep.
 */
int fgv_softgpu_part(struct warp *w, unsigned index, uint32_t mask);
/*
 * Splits that wait for the same in the same place, as do lanes that were let go and those that
 * they left, become one with split @index.
 */
void fgv_softgpu_reunite(struct warp *w, unsigned index);
/*
 * Lanes that wait at a join may be what the others wait for: a lock that one of them
 * holds, a barrier that it must come to. So when nothing moves, they go on alone; false: there
 * are none.
 */
bool fgv_softgpu_let_waiting_go(struct warp *w);

/* gather.c: operations may be complete now that lanes have exited. */
void fgv_softgpu_gathered_check(struct warp *w);
/* An operation that lanes of the warp wait at, and whose code it is; or NULL. */
const struct insn *fgv_softgpu_gathering(const struct warp *w, const struct code **code);

#endif
