/*
 * A function's instructions before they may run: each has the operands that its handler uses, and
 * they lie in the function's frame or among its constants. The lowering refuses what is wrong
 * with a program by name; this holds for all of it, so that no handler meets an operand that is not
 * there.
 */
#include "softgpu/lower/lower.h"

#define O(n)	     (1u << (n))
#define O2	     (O(0) | O(1))
#define O3	     (O2 | O(2))
#define O4	     (O3 | O(3))
#define ADDRESS_SLOT 4

/* Operands of what is written by hand; the others have their types in the table. */
static const uint8_t needed[OPS] = {
	[OP_sreg] = O(0),
	[OP_sreg64] = O(0),
	[OP_local_address] = O(0),
	[OP_local_address32] = O(0),
	[OP_isspacep] = O2,
	[OP_video] = O4,
	[OP_mbarrier_init] = O(1) | O(2),
	[OP_mbarrier_inval] = O(1),
	[OP_mbarrier_arrive] = O(1) | O(2),
	[OP_mbarrier_tx] = O(1) | O(2),
	[OP_mbarrier_test] = O3,
	[OP_mbarrier_pending] = O2,
	[OP_cp_async] = O(1) | O(2) | O(3),
	[OP_cp_bulk] = O(1) | O(2) | O(3),
	[OP_bra_if] = O(0),
	[OP_brx] = O(0),
	[OP_call_indirect] = O(0),
	[OP_guard] = O(0),
	[OP_bar_sync] = O(0),
	[OP_bar_arrive] = O(0),
	[OP_bar_red] = O(0) | O(2),
	[OP_bar_red_result] = O(0) | O(2),
	[OP_vote_all] = O2,
	[OP_vote_any] = O2,
	[OP_vote_uni] = O2,
	[OP_vote_ballot] = O2,
	[OP_activemask] = O(0),
	[OP_match_any_u32] = O2,
	[OP_match_any_u64] = O2,
	[OP_match_all_u32] = O2,
	[OP_match_all_u64] = O2,
	[OP_shfl_up] = O4,
	[OP_shfl_down] = O4,
	[OP_shfl_bfly] = O4,
	[OP_shfl_idx] = O4,
	[OP_redux_add] = O2,
	[OP_redux_and] = O2,
	[OP_redux_or] = O2,
	[OP_redux_xor] = O2,
	[OP_redux_min_u32] = O2,
	[OP_redux_max_u32] = O2,
	[OP_redux_min_s32] = O2,
	[OP_redux_max_s32] = O2,
	[OP_elect] = O(1),
	[OP_selp_u16] = O4,
	[OP_selp_u32] = O4,
	[OP_selp_u64] = O4,
	[OP_and_pred] = O3,
	[OP_or_pred] = O3,
	[OP_xor_pred] = O3,
	[OP_not_pred] = O2,
	[OP_mov_pred] = O2,
	[OP_selp_pred] = O4,
	[OP_atom_add_f32] = O(1),
	[OP_atom_add_f64] = O(1),
	[OP_atom_add_f16] = O(1),
	[OP_atom_add_bf16] = O(1),
	[OP_atom_add_f16x2] = O(1),
	[OP_atom_add_bf16x2] = O(1),
#define LD(space, mem, width) [OP_ld_##space##_##mem##_##width] = O(0),
#define ST(space, mem, width) [OP_st_##space##_##mem##_##width] = O(0),
#define ATOM(key, ...)	      [OP_atom_##key] = O(1),
#include "softgpu/ops/ops.def"
};

/* Does it reach memory by an address, as in->aux says? */
static const bool by_address[OPS] = {
	[OP_atom_add_f32] = true,  [OP_atom_add_f64] = true,   [OP_atom_add_f16] = true,
	[OP_atom_add_bf16] = true, [OP_atom_add_f16x2] = true, [OP_atom_add_bf16x2] = true,
#define LD(space, mem, width) [OP_ld_##space##_##mem##_##width] = true,
#define ST(space, mem, width) [OP_st_##space##_##mem##_##width] = true,
#define ATOM(key, ...)	      [OP_atom_##key] = true,
#include "softgpu/ops/ops.def"
};

static bool is_access(enum op op)
{
	return by_address[op] && needed[op] == O(0);
}

static unsigned needs_of(const struct insn *in)
{
	const struct op_info *info = &fgv_softgpu_ops[in->op];
	bool typed = !needed[in->op];
	unsigned needs = needed[in->op];

	for (unsigned i = 0; typed && i < sizeof(info->types); i++)
		needs |= info->types[i] != TY_none ? O(i) : 0;
	for (unsigned i = 1; is_access((enum op)in->op) && i < in->vec; i++)
		needs |= O(i);
	if (by_address[in->op] && (in->aux == ADDRESS_REG64 || in->aux == ADDRESS_REG32))
		needs |= O(ADDRESS_SLOT);
	return needs;
}

static bool lies_inside(const struct lower *l, uint32_t o)
{
	uint32_t place = o & ~3u;

	return o & OPERAND_CONST ? place < l->consts_bytes : place < l->frame;
}

static bool check_insn(struct lower *l, const struct insn *in)
{
	unsigned needs = needs_of(in);
	/* isspacep has a size in its third. */
	unsigned used = in->op == OP_isspacep ? 2 : sizeof(in->o) / sizeof(*in->o);

	for (unsigned i = 0; i < used; i++) {
		if (in->o[i] == OPERAND_NONE ? needs & O(i) : !lies_inside(l, in->o[i])) {
			l->line = in->line;
			fgv_lower_fail(l, "operand missing (%s)", fgv_softgpu_ops[in->op].key);
			return false;
		}
	}
	return true;
}

bool fgv_lower_check(struct lower *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		if (!check_insn(l, &l->drafts[i].insn))
			return false;
	}
	return true;
}
