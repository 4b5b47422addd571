/*
 * Instructions that compute: the name of the machine's operation is put together from opcode,
 * modifiers and types, and the table of operations says what operands it takes. What
 * is not computed has a rule of its own at the end.
 */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

/* The type that has the bits of another and no sign. */
enum ptx_type fgv_lower_unsigned_type(enum ptx_type type)
{
	switch (type) {
	case PTX_B8:
	case PTX_S8:
		return PTX_U8;
	case PTX_B16:
	case PTX_S16:
		return PTX_U16;
	case PTX_B32:
	case PTX_S32:
		return PTX_U32;
	case PTX_B64:
	case PTX_S64:
		return PTX_U64;
	default:
		return type;
	}
}

/* @as_unsigned: of how many types the sign does not matter. */
static enum op find_typed(const char *opcode, const struct mods *m, unsigned as_unsigned)
{
	char key[160];
	int n = snprintf(key, sizeof(key), "%.40s%s%s%s", opcode, m->rest,
			 m->sat && m->types[0] == PTX_S32 ? "_sat" : "", m->ftz ? "_ftz" : "");

	for (unsigned i = 0; i < m->types_count; i++) {
		enum ptx_type type =
			i < as_unsigned ? fgv_lower_unsigned_type(m->types[i]) : m->types[i];

		if (n < 0 || (size_t)n >= sizeof(key))
			return OP_NONE;
		n += snprintf(key + n, sizeof(key) - (size_t)n, "_%s", fgv_ptx_type_name(type));
	}
	return n > 0 && (size_t)n < sizeof(key) ? fgv_softgpu_op_find(key) : OP_NONE;
}

static enum op find_op(const char *opcode, const struct mods *m)
{
	enum op op = find_typed(opcode, m, 0);

	return op == OP_NONE ? find_typed(opcode, m, 1) : op;
}

/* Does an operation have an .approx form? Exact results are allowed there. */
static bool is_approximate(const char *opcode)
{
	static const char *const words[] = {"div", "rcp", "sqrt", "rsqrt", "sin",
					    "cos", "lg2", "ex2",  "tanh"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!strcmp(words[i], opcode))
			return true;
	}
	return false;
}

/* The type of each half of a register; PTX_NOTYPE where it is one value. */
static enum ptx_type half_type(enum ptx_type type)
{
	switch (type) {
	case PTX_F16X2:
		return PTX_F16;
	case PTX_BF16X2:
		return PTX_BF16;
	case PTX_U16X2:
		return PTX_U16;
	case PTX_S16X2:
		return PTX_S16;
	default:
		return PTX_NOTYPE;
	}
}

/* Are the modifiers that are no part of an operation's name such as it can have? */
static bool fits_type(const char *opcode, const struct mods *m)
{
	enum ptx_type type = m->types[0];
	bool single = type == PTX_F32 || type == PTX_F64;
	bool half = type == PTX_F16 || type == PTX_BF16 || half_type(type) != PTX_NOTYPE;

	if (m->control || m->satfinite || m->integral || m->vec != 1 || m->space != PTX_NOSPACE)
		return false;
	if (m->approx && (!(single || half) || !is_approximate(opcode)))
		return false;
	if (m->round && !single && !(half && m->round == 'n'))
		return false;
	if (m->sat && type != PTX_F32 && type != PTX_F16 && type != PTX_S32)
		return false;
	return !m->relu || half || type == PTX_S32 || type == PTX_S16;
}

static unsigned operand_size(uint8_t type)
{
	static const uint8_t sizes[] = {
		[TY_u8] = 2,   [TY_s8] = 2,  [TY_u16] = 2,  [TY_s16] = 2, [TY_f16] = 2,
		[TY_bf16] = 2, [TY_u32] = 4, [TY_s32] = 4,  [TY_f32] = 4, [TY_u64] = 8,
		[TY_s64] = 8,  [TY_f64] = 8, [TY_pred] = 0,
	};

	return sizes[type];
}

void fgv_lower_round(struct lower *l, char round)
{
	static const char modes[] = "nmpz"; /* in the order of MXCSR */
	const char *mode = round ? strchr(modes, round) : NULL;

	if (mode && mode != modes)
		fgv_lower_emit(l, OP_round)->insn.aux = (uint8_t)(mode - modes);
}

void fgv_lower_emit_op(struct lower *l, const char *key, uint32_t d, const uint32_t *sources,
		       unsigned count)
{
	enum op op = fgv_softgpu_op_find(key);
	struct draft *draft;

	if (op == OP_NONE) {
		fgv_lower_fail(l, "instruction is not supported (%s)", key);
		return;
	}
	draft = fgv_lower_emit(l, op);
	draft->insn.o[0] = d;
	for (unsigned i = 0; i < count; i++)
		draft->insn.o[1 + i] = sources[i];
}

/* How many sources an operation of the table has. */
static unsigned sources_of(const struct op_info *info)
{
	unsigned count = 0;

	while (count < 4 && info->types[count + 1] != TY_none)
		count++;
	return count;
}

/* Operations on predicates: the operands are masks. */
static void lower_pred_alu(struct lower *l, const struct ptx_insn *insn)
{
	char key[64];
	uint32_t sources[2] = {0};
	uint32_t d = fgv_lower_dest(l, insn->operands, 0);
	unsigned count = strcmp(insn->opcode, "not") ? 2 : 1;

	if (insn->operands_count != count + 1 || insn->mods_count != 1) {
		fgv_lower_fail(l, "'%s' on predicates with these operands is not supported",
			       insn->opcode);
		return;
	}
	for (unsigned i = 0; i < count; i++)
		sources[i] = fgv_lower_predicate(l, fgv_lower_operand(insn, i + 1));
	snprintf(key, sizeof(key), "%.40s_pred", insn->opcode);
	fgv_lower_emit_op(l, key, d, sources, count);
}

static void finish_alu(struct lower *l, const struct mods *m, enum op op, uint32_t d,
		       const uint32_t *sources)
{
	const struct op_info *info = &fgv_softgpu_ops[op];
	struct draft *draft;
	char key[48];

	if (info->types[0] == TY_f32 || info->types[0] == TY_f64)
		fgv_lower_round(l, m->round);
	draft = fgv_lower_emit(l, op);
	draft->insn.o[0] = d;
	for (unsigned i = 0; i < 4; i++)
		draft->insn.o[1 + i] = sources[i];
	if (m->sat && (info->types[0] == TY_f32 || info->types[0] == TY_f16))
		fgv_lower_emit_op(l, info->types[0] == TY_f32 ? "sat_f32" : "sat_f16", d, &d, 1);
	if (m->relu) {
		snprintf(key, sizeof(key), "relu_%s", fgv_ptx_type_name(m->types[0]));
		fgv_lower_emit_op(l, key, d, &d, 1);
	}
}

uint32_t fgv_lower_half(struct lower *l, uint32_t whole, bool high)
{
	uint32_t d = fgv_lower_temp(l, 2);

	fgv_lower_emit_op(l, high ? "high_u16_u32" : "low_u16_u32", d, &whole, 1);
	return d;
}

static void refuse(struct lower *l, const struct ptx_insn *insn)
{
	char text[96] = "";
	size_t used = 0;

	for (unsigned i = 0; i < insn->mods_count && used < sizeof(text); i++) {
		int n = snprintf(text + used, sizeof(text) - used, ".%s", insn->mods[i]);

		used += n > 0 ? (size_t)n : 0;
	}
	fgv_lower_fail(l, "instruction '%.40s%s' is not supported", insn->opcode, text);
}

/* Two halves in one register: each by itself. */
static void lower_halves(struct lower *l, const struct ptx_insn *insn, struct mods *m)
{
	unsigned count = insn->operands_count - 1;
	uint32_t d;
	uint32_t halves[2];
	enum op op;

	m->types[0] = half_type(m->types[0]);
	op = m->types_count == 1 ? find_op(insn->opcode, m) : OP_NONE;
	if (op == OP_NONE || !fgv_softgpu_ops[op].computes || !fits_type(insn->opcode, m) ||
	    count < 1 || count > 3 || operand_size(fgv_softgpu_ops[op].types[0]) != 2 ||
	    fgv_softgpu_ops[op].types[count] == TY_none ||
	    fgv_softgpu_ops[op].types[count + 1] != TY_none) {
		refuse(l, insn);
		return;
	}
	d = fgv_lower_dest(l, insn->operands, 4);
	for (unsigned half = 0; half < 2; half++) {
		uint32_t sources[4] = {OPERAND_NONE, OPERAND_NONE, OPERAND_NONE, OPERAND_NONE};

		for (unsigned i = 0; i < count; i++)
			sources[i] = fgv_lower_half(
				l, fgv_lower_source(l, fgv_lower_operand(insn, i + 1), 4), half);
		halves[half] = fgv_lower_temp(l, 2);
		finish_alu(l, m, op, halves[half], sources);
	}
	fgv_lower_emit_op(l, "pack_u32_u16", d, halves, 2);
}

static const char *alias(const char *opcode, const struct mods *m)
{
	bool is_float = m->types_count && (m->types[0] == PTX_F32 || m->types[0] == PTX_F64 ||
					   m->types[0] == PTX_F16 || m->types[0] == PTX_BF16);

	return is_float && !strcmp(opcode, "mad") ? "fma" : opcode;
}

void fgv_lower_alu(struct lower *l, const struct ptx_insn *insn)
{
	uint32_t sources[4] = {OPERAND_NONE, OPERAND_NONE, OPERAND_NONE, OPERAND_NONE};
	const struct op_info *info;
	struct mods m;
	unsigned count;
	uint32_t d;
	enum op op;

	fgv_lower_mods(l, insn, &m);
	if (!m.types_count || !insn->operands_count) {
		fgv_lower_fail(l, "instruction '%s' without a type or operands", insn->opcode);
		return;
	}
	if (m.types[0] == PTX_PRED) {
		lower_pred_alu(l, insn);
		return;
	}
	op = find_op(alias(insn->opcode, &m), &m);
	if (half_type(m.types[0]) != PTX_NOTYPE && (op == OP_NONE || m.sat || m.relu)) {
		lower_halves(l, insn, &m);
		return;
	}
	if (op == OP_NONE || !fgv_softgpu_ops[op].computes || !fits_type(insn->opcode, &m)) {
		refuse(l, insn);
		return;
	}
	info = &fgv_softgpu_ops[op];
	count = sources_of(info);
	/* The second source of testp is none of the program's. */
	if (insn->operands_count != (strcmp(insn->opcode, "testp") ? count + 1 : 2)) {
		fgv_lower_fail(l, "wrong number of operands for '%s'", insn->opcode);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		const struct ptx_operand *operand = fgv_lower_operand(insn, i + 1);

		sources[i] =
			operand ? fgv_lower_source(l, operand, operand_size(info->types[i + 1]))
				: sources[0];
	}
	d = fgv_lower_dest(l, insn->operands, operand_size(info->types[0]));
	finish_alu(l, &m, op, d, sources);
}

#define ACCESS_WORDS                                                                               \
	"global shared shared::cta shared::cluster local param param::entry param::func const v2 " \
	"v4 "                                                                                      \
	"volatile relaxed acquire release weak mmio cta cluster gpu sys ca cg cs lu cv wb wt nc "  \
	"unified L1::* L2::*"
#define ATOMIC_WORDS                                                                               \
	"global shared shared::cta shared::cluster relaxed acquire release acq_rel cta cluster "   \
	"gpu "                                                                                     \
	"sys add and or xor exch cas inc dec min max noftz v2 v4 L2::cache_hint"
#define COMPARE_WORDS "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz"
#define BARRIER_WORDS "sync arrive red popc and or cta aligned"
#define ROUND_WORDS   "rn rz rm rp rni rzi rmi rpi rna"

/* Opcodes that are lowered by more than their name, with the modifiers that each knows. */
static const struct rule {
	const char *opcode;
	lower_fn lower;
	bool flow;     /* may stop, turn or wait: guarded by a branch */
	uint8_t least; /* operands */
	uint8_t most;
	const char *words;
} rules[] = {
	{"mov", fgv_lower_mov, false, 2, 2, ""},
	{"ld", fgv_lower_ld, false, 2, 3, ACCESS_WORDS},
	{"ldu", fgv_lower_ld, false, 2, 2, "global v2 v4"},
	{"st", fgv_lower_st, true, 2, 3, ACCESS_WORDS},
	{"cvt", fgv_lower_cvt, false, 2, 4, ROUND_WORDS " ftz sat satfinite relu pack"},
	{"cvta", fgv_lower_cvta, false, 2, 2,
	 "to global shared shared::cta shared::cluster local const param param::entry"},
	{"setp", fgv_lower_setp, false, 3, 4, COMPARE_WORDS},
	{"set", fgv_lower_set, false, 3, 4, COMPARE_WORDS},
	{"selp", fgv_lower_selp, false, 4, 4, ""},
	{"lop3", fgv_lower_lop3, false, 5, 6, "and or"},
	{"bra", fgv_lower_bra, true, 1, 1, "uni"},
	{"brx", fgv_lower_brx, true, 2, 2, "idx uni"},
	{"call", fgv_lower_call, true, 1, 4, "uni"},
	{"ret", fgv_lower_ret, true, 0, 0, "uni"},
	{"exit", fgv_lower_exit, true, 0, 0, ""},
	{"trap", fgv_lower_trap, true, 0, 0, ""},
	{"bar", fgv_lower_bar, true, 0, 4, BARRIER_WORDS " warp"},
	{"barrier", fgv_lower_bar, true, 0, 4,
	 BARRIER_WORDS " cluster wait acquire release relaxed"},
	{"atom", fgv_lower_atom, false, 3, 5, ATOMIC_WORDS},
	{"red", fgv_lower_atom, false, 2, 4, ATOMIC_WORDS},
	{"isspacep", fgv_lower_isspacep, false, 2, 2,
	 "global shared shared::cta shared::cluster local const param param::entry"},
	{"membar", fgv_lower_fence, false, 0, 0, "cta gl sys proxy alias"},
	{"fence", fgv_lower_fence, false, 0, 2,
	 "sc acq_rel acquire release cta cluster gpu sys proxy alias async global shared::* "
	 "sync_restrict::* mbarrier_init tensormap::* async::*"},
	{"vote", fgv_lower_vote, true, 2, 3, "sync all any uni ballot"},
	{"match", fgv_lower_match, true, 3, 3, "any all sync"},
	{"redux", fgv_lower_redux, true, 3, 3, "sync add min max and or xor"},
	{"shfl", fgv_lower_shfl, true, 4, 5, "sync up down bfly idx"},
	{"activemask", fgv_lower_activemask, false, 1, 1, ""},
	{"elect", fgv_lower_elect, true, 2, 2, "sync"},
	{"tex", fgv_lower_tex, false, 2, 3, "1d 2d 3d a1d a2d cube acube level v4"},
	{"suld", fgv_lower_suld, false, 2, 2, "b 1d 2d 3d a1d a2d trap clamp zero v2 v4"},
	{"sust", fgv_lower_sust, false, 2, 2, "b 1d 2d 3d a1d a2d trap clamp zero v2 v4"},
	{"wmma", fgv_lower_wmma, true, 2, 4,
	 "load store mma a b c d sync aligned row col m16n16k16 m32n8k16 m8n32k16 m16n16k8 m8n8k4 "
	 "global shared shared::cta rn satfinite"},
	{"mma", fgv_lower_mma, true, 4, 4,
	 "sync aligned row col m8n8k4 m8n8k16 m16n8k4 m16n8k8 m16n8k16 m16n8k32 rn satfinite"},
	{"ldmatrix", fgv_lower_ldmatrix, true, 2, 2,
	 "sync aligned m8n8 x1 x2 x4 trans shared shared::cta"},
	{"movmatrix", fgv_lower_movmatrix, true, 2, 2, "sync aligned m8n8 trans"},
	{"brkpt", fgv_lower_nothing, false, 0, 0, ""},
	{"nanosleep", fgv_lower_nothing, false, 1, 1, ""},
	{"pmevent", fgv_lower_nothing, false, 1, 1, "mask"},
	{"prefetch", fgv_lower_nothing, false, 1, 1,
	 "global local const param tensormap L1 L2 L2::*"},
	{"prefetchu", fgv_lower_nothing, false, 1, 1, "L1"},
	{"applypriority", fgv_lower_nothing, false, 2, 2, "global L2::evict_normal"},
	{"discard", fgv_lower_nothing, false, 2, 2, "global L2"},
	{"mbarrier", fgv_lower_mbarrier, false, 1, 5,
	 "init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait parity "
	 "pending_count "
	 "noComplete release acquire relaxed cta cluster shared shared::cta shared::cluster"},
	{"cp", fgv_lower_cp, false, 0, 6,
	 "async ca cg shared shared::cta shared::cluster global bulk bulk_group read prefetch L2 "
	 "L2::cache_hint L2::64B L2::128B L2::256B commit_group wait_group wait_all mbarrier "
	 "arrive "
	 "noinc mbarrier::complete_tx::bytes"},
	{"createpolicy", fgv_lower_zero, false, 1, 4, "fractional range cvt global L2 L2::*"},
	{"getctarank", fgv_lower_zero, false, 2, 2, "shared::cluster"},
	{"mapa", fgv_lower_mapa, false, 3, 3, "shared::cluster"},
	{"griddepcontrol", fgv_lower_nothing, false, 0, 0, "wait launch_dependents"},
	{"setmaxnreg", fgv_lower_nothing, false, 1, 1, "inc dec sync aligned"},
};

/* vadd, vadd2, vadd4 and so on. */
static const struct rule video_rule = {
	"v*", fgv_lower_video, false, 3, 4, "sat add min max clamp wrap eq ne lt le gt ge"};

static const struct rule *find_rule(const char *opcode)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (rules[i].opcode[0] == opcode[0] && !strcmp(rules[i].opcode, opcode))
			return &rules[i];
	}
	return fgv_lower_is_video(opcode) ? &video_rule : NULL;
}

static uint32_t guard_predicate(struct lower *l, const struct ptx_insn *insn)
{
	struct ptx_operand p = {
		.kind = PTX_OP_NAME, .name = insn->guard, .negated = insn->guard_negated};

	return fgv_lower_predicate(l, &p);
}

/* @p flow: branch around it where p does not hold. */
static void lower_around(struct lower *l, const struct ptx_insn *insn, lower_fn fn)
{
	uint32_t label = fgv_lower_new_label(l);
	uint32_t p = guard_predicate(l, insn);
	struct draft *branch = fgv_lower_emit(l, OP_bra_if);

	branch->insn.o[0] = p ^ OPERAND_NOT;
	branch->target = label;
	fgv_lower_place_label(l, fgv_lower_new_label(l));
	fn(l, insn);
	fgv_lower_place_label(l, label);
}

static bool check_rule(struct lower *l, const struct ptx_insn *insn, const struct rule *rule)
{
	if (insn->operands_count < rule->least || insn->operands_count > rule->most) {
		fgv_lower_fail(l, "wrong number of operands for '%s'", insn->opcode);
		return false;
	}
	return fgv_lower_check_mods(l, insn, rule->words);
}

bool fgv_lower_insn(struct lower *l, const struct ptx_insn *insn)
{
	const struct rule *rule = find_rule(insn->opcode);
	lower_fn fn = rule ? rule->lower : fgv_lower_alu;
	uint32_t guard;

	if (rule && !check_rule(l, insn, rule))
		return false;
	if (!insn->guard || fn == fgv_lower_bra) {
		fn(l, insn);
	} else if (rule && rule->flow) {
		lower_around(l, insn, fn);
	} else {
		uint32_t p = guard_predicate(l, insn);

		guard = l->count;
		fgv_lower_emit(l, OP_guard)->insn.o[0] = p;
		fn(l, insn);
		if (!l->failed)
			l->drafts[guard].insn.imm = l->count - guard - 1;
	}
	return !l->failed;
}
