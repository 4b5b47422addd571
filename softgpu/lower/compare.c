/* Comparisons and what chooses by a predicate: setp, set, selp, and lop3 with one. */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

/* How the comparison is combined with a third predicate: lanes.h has the numbers. */
static uint8_t find_combine(const struct ptx_insn *insn)
{
	static const char *const words[] = {"and", "or", "xor"};

	for (uint8_t i = 0; i < 3; i++) {
		if (fgv_lower_has_mod(insn, words[i]))
			return (uint8_t)(i + 1);
	}
	return 0;
}

static enum op find_compare(struct lower *l, const struct ptx_insn *insn, const struct mods *m,
			    enum ptx_type type)
{
	const char *cmp = insn->mods_count ? insn->mods[0] : "";
	char key[64];
	enum op op;

	snprintf(key, sizeof(key), "setp_%.7s%s_%s", cmp, m->ftz ? "_ftz" : "",
		 fgv_ptx_type_name(type));
	op = fgv_softgpu_op_find(key);
	if (op == OP_NONE && !m->ftz) {
		snprintf(key, sizeof(key), "setp_%.7s_%s", cmp,
			 fgv_ptx_type_name(fgv_lower_unsigned_type(type)));
		op = fgv_softgpu_op_find(key);
	}
	if (op == OP_NONE)
		fgv_lower_fail(l, "comparison '%s.%.7s%s.%s' is not supported", insn->opcode, cmp,
			       m->ftz ? ".ftz" : "", fgv_ptx_type_name(type));
	return op;
}

struct comparison {
	enum op op;
	uint8_t combine;
	uint32_t a;
	uint32_t b;
	uint32_t c; /* what it is combined with, or none */
};

static void emit_compare(struct lower *l, const struct comparison *cmp, uint32_t d, uint32_t other)
{
	struct draft *draft = fgv_lower_emit(l, cmp->op);

	draft->insn.aux = cmp->combine;
	draft->insn.o[0] = d;
	draft->insn.o[1] = cmp->a;
	draft->insn.o[2] = cmp->b;
	draft->insn.o[3] = other;
	draft->insn.o[4] = cmp->c;
}

static enum ptx_type half_of(enum ptx_type type)
{
	return type == PTX_F16X2 ? PTX_F16 : type == PTX_BF16X2 ? PTX_BF16 : PTX_NOTYPE;
}

/* Reads operands and operator of a comparison; those of the half that is asked for. */
static bool take_compare(struct lower *l, const struct ptx_insn *insn, const struct mods *m,
			 unsigned type_index, bool high, struct comparison *cmp)
{
	enum ptx_type type = m->types_count > type_index ? m->types[type_index] : PTX_NOTYPE;
	enum ptx_type half = half_of(type);
	unsigned size;

	if (type == PTX_NOTYPE || m->types_count != type_index + 1) {
		fgv_lower_fail(l, "comparison '%s' with these types is not supported",
			       insn->opcode);
		return false;
	}
	cmp->op = find_compare(l, insn, m, half != PTX_NOTYPE ? half : type);
	cmp->combine = find_combine(insn);
	if (cmp->op == OP_NONE || !insn->operands)
		return false;
	size = fgv_ptx_type_size(type);
	cmp->a = fgv_lower_source(l, fgv_lower_operand(insn, 1), size);
	cmp->b = fgv_lower_source(l, fgv_lower_operand(insn, 2), size);
	cmp->c = cmp->combine ? fgv_lower_predicate(l, fgv_lower_operand(insn, 3)) : OPERAND_NONE;
	if (half != PTX_NOTYPE) {
		cmp->a = fgv_lower_half(l, cmp->a, high);
		cmp->b = fgv_lower_half(l, cmp->b, high);
	}
	if (insn->operands_count != (cmp->combine ? 4u : 3u))
		fgv_lower_fail(l, "wrong number of operands for '%s'", insn->opcode);
	return !l->failed;
}

void fgv_lower_setp(struct lower *l, const struct ptx_insn *insn)
{
	struct comparison cmp;
	struct mods m;
	uint32_t d;
	uint32_t other = OPERAND_NONE;
	uint32_t low;

	fgv_lower_mods(l, insn, &m);
	if (!take_compare(l, insn, &m, 0, false, &cmp))
		return;
	d = fgv_lower_dest(l, insn->operands, 0);
	if (insn->operands->pipe)
		other = fgv_lower_dest(l, insn->operands->pipe, 0);
	if (half_of(m.types[0]) == PTX_NOTYPE) {
		emit_compare(l, &cmp, d, other);
		return;
	}
	/* Of two halves the second result is not the complement but the upper half's. */
	low = fgv_lower_temp(l, 0);
	emit_compare(l, &cmp, low, OPERAND_NONE);
	if (other != OPERAND_NONE && take_compare(l, insn, &m, 0, true, &cmp))
		emit_compare(l, &cmp, other, OPERAND_NONE);
	fgv_lower_emit_op(l, "mov_pred", d, &low, 1);
}

/* What set writes where the comparison holds, in a register of @size bytes. */
static uint64_t truth_of(enum ptx_type type)
{
	switch (type) {
	case PTX_F32:
		return 0x3f800000;
	case PTX_F16:
	case PTX_F16X2:
		return 0x3c00;
	case PTX_BF16:
	case PTX_BF16X2:
		return 0x3f80;
	default:
		return ~0ull;
	}
}

static uint32_t set_one(struct lower *l, const struct ptx_insn *insn, const struct mods *m,
			bool high, unsigned size, uint32_t d)
{
	struct comparison cmp;
	uint32_t sources[3];

	if (!take_compare(l, insn, m, 1, high, &cmp))
		return 0;
	if (d == OPERAND_NONE)
		d = fgv_lower_temp(l, size);
	sources[0] = fgv_lower_const(l, truth_of(m->types[0]), size);
	sources[1] = fgv_lower_const(l, 0, size);
	sources[2] = fgv_lower_temp(l, 0);
	emit_compare(l, &cmp, sources[2], OPERAND_NONE);
	fgv_lower_emit_op(l, size == 4 ? "selp_u32" : "selp_u16", d, sources, 3);
	return d;
}

/* set: all ones or 1.0 where the comparison holds; of two halves each by itself. */
void fgv_lower_set(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	unsigned size;
	uint32_t d;
	uint32_t halves[2];

	fgv_lower_mods(l, insn, &m);
	size = m.types_count ? fgv_ptx_type_size(m.types[0]) : 0;
	if (m.types_count != 2 || (size != 4 && size != 2) ||
	    (half_of(m.types[1]) == PTX_NOTYPE && half_of(m.types[0]) != PTX_NOTYPE) ||
	    (half_of(m.types[1]) != PTX_NOTYPE && (size != 4 || m.types[0] == PTX_F32))) {
		fgv_lower_fail(l, "instruction 'set' with these types is not supported");
		return;
	}
	d = fgv_lower_dest(l, insn->operands, size);
	if (half_of(m.types[1]) == PTX_NOTYPE) {
		set_one(l, insn, &m, false, size, d);
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		halves[i] = set_one(l, insn, &m, i, 2, OPERAND_NONE);
	fgv_lower_emit_op(l, "pack_u32_u16", d, halves, 2);
}

void fgv_lower_selp(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	unsigned size;
	uint32_t sources[3];

	fgv_lower_mods(l, insn, &m);
	size = m.types_count == 1 ? fgv_ptx_type_size(m.types[0]) : 1;
	if (size == 1 || size > 8) {
		fgv_lower_fail(l, "instruction 'selp' with this type is not supported");
		return;
	}
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

/* lop3.op.b32 d|p, a, b, c, table, q: p says whether d is not zero, combined with q. */
void fgv_lower_lop3(struct lower *l, const struct ptx_insn *insn)
{
	uint8_t combine = find_combine(insn);
	uint32_t sources[4];
	struct comparison cmp;
	uint32_t d;

	if (!insn->operands || insn->operands_count != (combine ? 6u : 5u) ||
	    !combine != !insn->operands->pipe) {
		fgv_lower_fail(l, "wrong number of operands for '%s'", insn->opcode);
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		sources[i] = fgv_lower_source(l, fgv_lower_operand(insn, i + 1), 4);
	d = fgv_lower_dest(l, insn->operands, 4);
	fgv_lower_emit_op(l, "lop3_u32", d, sources, 4);
	if (!combine)
		return;
	cmp = (struct comparison){.op = fgv_softgpu_op_find("setp_ne_u32"),
				  .combine = combine,
				  .a = d,
				  .b = fgv_lower_const(l, 0, 4)};
	cmp.c = fgv_lower_predicate(l, fgv_lower_operand(insn, 5));
	emit_compare(l, &cmp, fgv_lower_dest(l, insn->operands->pipe, 0), OPERAND_NONE);
}
