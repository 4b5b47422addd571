/* Splits, joins and barriers, for the handlers of control operations; see block.c. */
#ifndef FGV_SOFTGPU_BLOCK_H
#define FGV_SOFTGPU_BLOCK_H

#include "softgpu/machine.h"

/* One way of a branch that divides a split. */
struct side {
	const struct insn *pc;
	uint32_t mask;
};

/*
 * Each returns the next instruction of whatever runs then, or NULL. The split that runs
 * divides; has come to its join; ends with its lanes; lets others run first.
 */
const struct insn *fgv_softgpu_diverge(struct warp *w, const struct insn *join,
				       const struct side *sides, unsigned count);
const struct insn *fgv_softgpu_join(struct warp *w);
const struct insn *fgv_softgpu_exit(struct warp *w);
/* A record for a call, NULL where calls nest too deep. */
struct call_record *fgv_softgpu_take_call(struct warp *w);
const struct insn *fgv_softgpu_yield(struct warp *w, const struct insn *next);

#endif
