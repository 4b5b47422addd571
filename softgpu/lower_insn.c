/*
 * Instructions that compute: modifiers are read into struct mods, the name of the machine's
 * operation is put together from opcode, modifiers and types, and the table of
 * operations says what operands it takes.
 */
#include "softgpu/lower.h"

#include <stdio.h>
#include <string.h>

/* Modifiers that say nothing to a machine that is always exact and has no caches. */
static bool is_noise(const char *mod)
{
	static const char *const words[] = {"approx", "full", "aligned", "sync"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!strcmp(words[i], mod))
			return true;
	}
	return false;
}

static bool take_round(struct mods *m, const char *mod)
{
	size_t length = strlen(mod);

	if (mod[0] != 'r' || length > 3 || length < 2 || !strchr("nzmp", mod[1]))
		return false;
	if (length == 3 && mod[2] != 'i')
		return false;
	m->round = mod[1];
	m->integral = length == 3;
	return true;
}

void fgv_lower_mods(struct lower *l, const struct ptx_insn *insn, struct mods *m)
{
	size_t used = 0;

	memset(m, 0, sizeof(*m));
	m->vec = 1;
	for (unsigned i = 0; i < insn->mods_count; i++) {
		const char *mod = insn->mods[i];
		enum ptx_type type = fgv_ptx_type_find(mod);

		if (type != PTX_NOTYPE && m->types_count < 4) {
			m->types[m->types_count++] = type;
		} else if (!strcmp(mod, "ftz")) {
			m->ftz = true;
		} else if (!strcmp(mod, "sat") || !strcmp(mod, "satfinite")) {
			m->sat = true;
		} else if (!strcmp(mod, "v2") || !strcmp(mod, "v4")) {
			m->vec = (unsigned)(mod[1] - '0');
		} else if (!strcmp(mod, "uni")) {
			m->uni = true;
		} else if (fgv_ptx_space_find(mod) != PTX_NOSPACE && m->space == PTX_NOSPACE) {
			m->space = fgv_ptx_space_find(mod);
		} else if (!is_noise(mod) && !take_round(m, mod)) {
			int n = snprintf(m->rest + used, sizeof(m->rest) - used, "_%s", mod);

			if (n < 0 || (size_t)n >= sizeof(m->rest) - used) {
				fgv_lower_fail(l, "modifiers too long");
				return;
			}
			used += (size_t)n;
		}
	}
}

bool fgv_lower_has_mod(const struct ptx_insn *insn, const char *mod)
{
	for (unsigned i = 0; i < insn->mods_count; i++) {
		if (!strcmp(insn->mods[i], mod))
			return true;
	}
	return false;
}

/* The type that has the bits of another and no sign. */
static enum ptx_type unsigned_type(enum ptx_type type)
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

static enum op find_typed(const char *opcode, const struct mods *m, bool ftz, bool all_types,
			  bool as_unsigned)
{
	char key[160];
	int n = snprintf(key, sizeof(key), "%s%s%s%s", opcode, m->rest,
			 m->sat && m->types[0] == PTX_S32 ? "_sat" : "", ftz ? "_ftz" : "");

	for (unsigned i = 0; i < (all_types ? m->types_count : 1) && n > 0; i++) {
		enum ptx_type type = as_unsigned ? unsigned_type(m->types[i]) : m->types[i];

		if ((size_t)n >= sizeof(key))
			return OP_NONE;
		n += snprintf(key + n, sizeof(key) - (size_t)n, "_%s", fgv_ptx_type_name(type));
	}
	return (size_t)n < sizeof(key) ? fgv_softgpu_op_find(key) : OP_NONE;
}

static enum op find_op(const char *opcode, const struct mods *m)
{
	for (int ftz = m->ftz; ftz >= 0; ftz--) {
		for (int all = m->types_count > 1; all >= 0; all--) {
			for (int as_unsigned = 0; as_unsigned < 2; as_unsigned++) {
				enum op op = find_typed(opcode, m, ftz, all, as_unsigned);

				if (op != OP_NONE)
					return op;
			}
		}
	}
	return OP_NONE;
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

/* The processor's rounding mode for the next instruction, where it is not the nearest. */
static void emit_round(struct lower *l, char round)
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

/* Operations on predicates: the operands are masks. */
static void lower_pred_alu(struct lower *l, const struct ptx_insn *insn)
{
	char key[64];
	uint32_t sources[2] = {0};
	uint32_t d = fgv_lower_dest(l, insn->operands, 0);
	unsigned count = insn->operands_count - 1;

	if (count < 1 || count > 2) {
		fgv_lower_fail(l, "wrong number of operands");
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

	if (info->types[0] == TY_f32 || info->types[0] == TY_f64)
		emit_round(l, m->round);
	draft = fgv_lower_emit(l, op);
	draft->insn.o[0] = d;
	for (unsigned i = 0; i < 4; i++)
		draft->insn.o[1 + i] = sources[i];
	if (m->sat && (info->types[0] == TY_f32 || info->types[0] == TY_f16))
		fgv_lower_emit_op(l, info->types[0] == TY_f32 ? "sat_f32" : "sat_f16", d, &d, 1);
}

/* Two halves in one register: each by itself. */
static void lower_halves(struct lower *l, const struct ptx_insn *insn, struct mods *m)
{
	static const char *const extract[2] = {"low_u16_u32", "high_u16_u32"};
	unsigned count = insn->operands_count - 1;
	uint32_t d = fgv_lower_dest(l, insn->operands, 4);
	uint32_t halves[2];
	enum op op;

	m->types[0] = m->types[0] == PTX_F16X2 ? PTX_F16 : PTX_BF16;
	m->types_count = 1;
	op = find_op(insn->opcode, m);
	if (op == OP_NONE || count < 1 || count > 3) {
		fgv_lower_fail(l, "instruction '%s' is not supported on two halves", insn->opcode);
		return;
	}
	for (unsigned half = 0; half < 2; half++) {
		uint32_t sources[4] = {OPERAND_NONE, OPERAND_NONE, OPERAND_NONE, OPERAND_NONE};

		for (unsigned i = 0; i < count; i++) {
			uint32_t whole = fgv_lower_source(l, fgv_lower_operand(insn, i + 1), 4);

			sources[i] = fgv_lower_temp(l, 2);
			fgv_lower_emit_op(l, extract[half], sources[i], &whole, 1);
		}
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
	unsigned count = 0;
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
	if (m.types[0] == PTX_F16X2 || m.types[0] == PTX_BF16X2) {
		lower_halves(l, insn, &m);
		return;
	}
	op = find_op(alias(insn->opcode, &m), &m);
	if (op == OP_NONE) {
		fgv_lower_fail(l, "instruction '%s%s.%s' is not supported", insn->opcode, m.rest,
			       fgv_ptx_type_name(m.types[0]));
		return;
	}
	info = &fgv_softgpu_ops[op];
	/* Operations with carry have no types in the table: all are the instruction's. */
	while (count < 4 && (info->types[0] == TY_none ? count + 1 < insn->operands_count
						       : info->types[count + 1] != TY_none)) {
		const struct ptx_operand *operand = fgv_lower_operand(insn, count + 1);
		unsigned size = info->types[0] == TY_none ? fgv_ptx_type_size(m.types[0])
							  : operand_size(info->types[count + 1]);

		if (!operand && !strcmp(insn->opcode, "testp"))
			sources[count] = sources[0];
		else
			sources[count] = fgv_lower_source(l, operand, size);
		count++;
	}
	if (insn->operands_count > count + 1) {
		fgv_lower_fail(l, "too many operands for '%s'", insn->opcode);
		return;
	}
	if (info->types[0] == TY_pred) {
		d = fgv_lower_dest(l, insn->operands, 0);
		sources[2] = sources[3] = OPERAND_NONE;
	} else {
		d = fgv_lower_dest(l, insn->operands,
				   info->types[0] == TY_none ? fgv_ptx_type_size(m.types[0])
							     : operand_size(info->types[0]));
	}
	finish_alu(l, &m, op, d, sources);
}

/* Puts a comparison's key together and takes the boolean operator from the modifiers. */
static enum op find_compare(struct lower *l, const struct ptx_insn *insn, struct mods *m,
			    unsigned type_index, uint8_t *combine)
{
	static const char *const words[] = {"and", "or", "xor"};
	enum ptx_type type;
	char cmp[8] = "";
	char key[64];
	enum op op;

	*combine = 0;
	for (unsigned i = 0; i < insn->mods_count; i++) {
		for (uint8_t k = 0; k < 3; k++) {
			if (!strcmp(insn->mods[i], words[k]))
				*combine = (uint8_t)(k + 1);
		}
	}
	if (insn->mods_count)
		snprintf(cmp, sizeof(cmp), "%.7s", insn->mods[0]);
	if (m->types_count <= type_index) {
		fgv_lower_fail(l, "comparison without a type");
		return OP_NONE;
	}
	type = m->types[type_index];
	snprintf(key, sizeof(key), "setp_%s%s_%s", cmp, m->ftz && type == PTX_F32 ? "_ftz" : "",
		 fgv_ptx_type_name(type));
	op = fgv_softgpu_op_find(key);
	if (op == OP_NONE) {
		snprintf(key, sizeof(key), "setp_%s_%s", cmp,
			 fgv_ptx_type_name(unsigned_type(type)));
		op = fgv_softgpu_op_find(key);
	}
	if (op == OP_NONE)
		fgv_lower_fail(l, "comparison '%s.%s.%s' is not supported", insn->opcode, cmp,
			       fgv_ptx_type_name(type));
	return op;
}

static void emit_compare(struct lower *l, const struct ptx_insn *insn, enum op op, uint8_t combine,
			 uint32_t d, uint32_t other)
{
	unsigned size = operand_size(fgv_softgpu_ops[op].types[1]);
	uint32_t a = fgv_lower_source(l, fgv_lower_operand(insn, 1), size);
	uint32_t b = fgv_lower_source(l, fgv_lower_operand(insn, 2), size);
	uint32_t c = combine ? fgv_lower_predicate(l, fgv_lower_operand(insn, 3)) : OPERAND_NONE;
	struct draft *draft = fgv_lower_emit(l, op);

	draft->insn.aux = combine;
	draft->insn.o[0] = d;
	draft->insn.o[1] = a;
	draft->insn.o[2] = b;
	draft->insn.o[3] = other;
	draft->insn.o[4] = c;
}

void fgv_lower_setp(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	uint8_t combine;
	uint32_t d;
	uint32_t other = OPERAND_NONE;
	enum op op;

	fgv_lower_mods(l, insn, &m);
	op = find_compare(l, insn, &m, 0, &combine);
	if (op == OP_NONE || !insn->operands)
		return;
	d = fgv_lower_dest(l, insn->operands, 0);
	if (insn->operands->pipe)
		other = fgv_lower_dest(l, insn->operands->pipe, 0);
	emit_compare(l, insn, op, combine, d, other);
}

/* set: all ones or 1.0 where the comparison holds. */
void fgv_lower_set(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	uint8_t combine;
	uint32_t p;
	uint32_t sources[3];
	unsigned size;
	enum op op;

	fgv_lower_mods(l, insn, &m);
	op = find_compare(l, insn, &m, 1, &combine);
	if (op == OP_NONE || !insn->operands)
		return;
	size = fgv_ptx_type_size(m.types[0]);
	if (size != 4 && size != 2) {
		fgv_lower_fail(l, "instruction 'set.%s' is not supported",
			       fgv_ptx_type_name(m.types[0]));
		return;
	}
	p = fgv_lower_temp(l, 0);
	emit_compare(l, insn, op, combine, p, OPERAND_NONE);
	sources[0] = fgv_lower_const(l,
				     m.types[0] == PTX_F32    ? 0x3f800000
				     : m.types[0] == PTX_F16  ? 0x3c00
				     : m.types[0] == PTX_BF16 ? 0x3f80
							      : ~0ull,
				     size);
	sources[1] = fgv_lower_const(l, 0, size);
	sources[2] = p;
	fgv_lower_emit_op(l, size == 4 ? "selp_u32" : "selp_u16",
			  fgv_lower_dest(l, insn->operands, size), sources, 3);
}

void fgv_lower_selp(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	unsigned size;
	uint32_t sources[3];

	fgv_lower_mods(l, insn, &m);
	size = m.types_count ? fgv_ptx_type_size(m.types[0]) : 0;
	sources[0] = fgv_lower_source(l, fgv_lower_operand(insn, 1), size);
	sources[1] = fgv_lower_source(l, fgv_lower_operand(insn, 2), size);
	sources[2] = fgv_lower_predicate(l, fgv_lower_operand(insn, 3));
	fgv_lower_emit_op(l,
			  size == 8   ? "selp_u64"
			  : size == 4 ? "selp_u32"
			  : size == 2 ? "selp_u16"
				      : "selp_pred",
			  fgv_lower_dest(l, insn->operands, size), sources, 3);
}

static const struct rule {
	const char *opcode;
	lower_fn lower;
	bool flow; /* may stop or turn the flow: guarded by a branch */
} rules[] = {
	{"mov", fgv_lower_mov, false},
	{"ld", fgv_lower_ld, false},
	{"ldu", fgv_lower_ld, false},
	{"st", fgv_lower_st, false},
	{"cvt", fgv_lower_cvt, false},
	{"cvta", fgv_lower_cvta, false},
	{"setp", fgv_lower_setp, false},
	{"set", fgv_lower_set, false},
	{"selp", fgv_lower_selp, false},
	{"bra", fgv_lower_bra, true},
	{"brx", fgv_lower_brx, true},
	{"call", fgv_lower_call, true},
	{"ret", fgv_lower_ret, true},
	{"exit", fgv_lower_exit, true},
	{"trap", fgv_lower_trap, true},
	{"bar", fgv_lower_bar, true},
	{"barrier", fgv_lower_bar, true},
	{"atom", fgv_lower_atom, false},
	{"red", fgv_lower_atom, false},
	{"isspacep", fgv_lower_isspacep, false},
	{"membar", fgv_lower_fence, false},
	{"fence", fgv_lower_fence, false},
	{"vote", fgv_lower_vote, false},
	{"match", fgv_lower_match, false},
	{"redux", fgv_lower_redux, false},
	{"shfl", fgv_lower_shfl, false},
	{"activemask", fgv_lower_activemask, false},
	{"elect", fgv_lower_elect, false},
	{"brkpt", fgv_lower_nothing, false},
	{"nanosleep", fgv_lower_nothing, false},
	{"pmevent", fgv_lower_nothing, false},
	{"prefetch", fgv_lower_nothing, false},
	{"prefetchu", fgv_lower_nothing, false},
	{"applypriority", fgv_lower_nothing, false},
	{"discard", fgv_lower_nothing, false},
	{"griddepcontrol", fgv_lower_nothing, false},
	{"setmaxnreg", fgv_lower_nothing, false},
};

static const struct rule *find_rule(const char *opcode)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (!strcmp(rules[i].opcode, opcode))
			return &rules[i];
	}
	return NULL;
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

bool fgv_lower_insn(struct lower *l, const struct ptx_insn *insn)
{
	const struct rule *rule = find_rule(insn->opcode);
	lower_fn fn = rule ? rule->lower : fgv_lower_alu;
	uint32_t guard;

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
