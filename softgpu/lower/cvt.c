/*
 * cvt, in up to three steps: the source read as its type, the conversion proper, the
 * result in a register that may be wider than its type.
 */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

static bool is_float(enum ptx_type t)
{
	return t == PTX_F16 || t == PTX_BF16 || t == PTX_F32 || t == PTX_F64;
}

static bool is_signed(enum ptx_type t)
{
	return t == PTX_S8 || t == PTX_S16 || t == PTX_S32 || t == PTX_S64;
}

static bool is_integer(enum ptx_type t)
{
	return is_signed(t) || t == PTX_U8 || t == PTX_U16 || t == PTX_U32 || t == PTX_U64;
}

/* A register of @from bytes as a @size-byte integer, in a register of @to bytes. */
static uint32_t extend(struct lower *l, uint32_t source, unsigned size, bool sign, unsigned from,
		       unsigned to, uint32_t d)
{
	char key[48];

	if (d == OPERAND_NONE)
		d = fgv_lower_temp(l, to);
	snprintf(key, sizeof(key), "ext_%c%u_%u_%u", sign ? 's' : 'u', size * 8, from * 8, to * 8);
	fgv_lower_emit_op(l, key, d, &source, 1);
	return d;
}

/* Source operand and the width of its register; a constant has its type's. */
static uint32_t source_of(struct lower *l, const struct ptx_operand *op, enum ptx_type type,
			  unsigned *size)
{
	int reg = fgv_lower_reg_size(l, op);

	*size = fgv_ptx_type_size(type);
	if (*size == 1)
		*size = 2;
	if (reg > 0)
		*size = (unsigned)reg;
	return fgv_lower_source(l, op, *size);
}

/* Clamps a 64-bit value to the range of an integer type. */
static uint32_t clamp(struct lower *l, uint32_t value, bool from_signed, enum ptx_type to)
{
	unsigned bits = fgv_ptx_type_size(to) * 8;
	uint64_t max = is_signed(to) ? (1ull << (bits - 1)) - 1
		       : bits == 64  ? ~0ull
				     : (1ull << bits) - 1;
	uint64_t min = is_signed(to) ? ~max : 0;
	uint32_t sources[3] = {value, 0, 0};
	uint32_t d = fgv_lower_temp(l, 8);

	if (!from_signed)
		min = 0;
	else if (max > INT64_MAX)
		max = INT64_MAX;
	sources[1] = fgv_lower_const(l, min, 8);
	sources[2] = fgv_lower_const(l, max, 8);
	fgv_lower_emit_op(l, from_signed ? "clamp_s64" : "clamp_u64", d, sources, 3);
	return d;
}

static void int_to_int(struct lower *l, const struct mods *m, const struct ptx_insn *insn)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types[1];
	unsigned to_size = fgv_ptx_type_size(to);
	unsigned from_size = fgv_ptx_type_size(from);
	unsigned source_reg;
	uint32_t source = source_of(l, fgv_lower_operand(insn, 1), from, &source_reg);
	int dest = fgv_lower_reg_size(l, insn->operands);
	unsigned dest_reg = dest > 0 ? (unsigned)dest : (to_size == 1 ? 2 : to_size);
	uint32_t d = fgv_lower_dest(l, insn->operands, dest_reg);

	if (dest_reg < to_size || source_reg < from_size) {
		fgv_lower_fail(l, "register narrower than the type");
		return;
	}
	if (m->sat) {
		source = extend(l, source, from_size, is_signed(from), source_reg, 8, OPERAND_NONE);
		source = clamp(l, source, is_signed(from), to);
		extend(l, source, to_size, is_signed(to), 8, dest_reg, d);
	} else if (to_size <= from_size) {
		extend(l, source, to_size, is_signed(to), source_reg, dest_reg, d);
	} else if (to_size == dest_reg) {
		extend(l, source, from_size, is_signed(from), source_reg, dest_reg, d);
	} else {
		source = extend(l, source, from_size, is_signed(from), source_reg, dest_reg,
				OPERAND_NONE);
		extend(l, source, to_size, is_signed(to), dest_reg, dest_reg, d);
	}
}

/* Half precision goes by way of f32 where there is no direct operation. */
static uint32_t to_wider_float(struct lower *l, uint32_t source, enum ptx_type *type)
{
	uint32_t d = fgv_lower_temp(l, 4);

	fgv_lower_emit_op(l, *type == PTX_F16 ? "cvt_f32_f16" : "cvt_f32_bf16", d, &source, 1);
	*type = PTX_F32;
	return d;
}

/* A NaN of 64 bits gives the top bit of the integer; this is before the value is clamped. */
static void short_nan(struct lower *l, uint32_t source, uint32_t value, enum ptx_type to)
{
	uint64_t top = 1ull << (fgv_ptx_type_size(to) * 8 - 1);
	uint32_t sources[3] = {source, source, 0};
	uint32_t p = fgv_lower_temp(l, 0);

	fgv_lower_emit_op(l, "setp_nan_f64", p, sources, 2);
	sources[0] = fgv_lower_const(l, is_signed(to) ? 0 - top : top, 4);
	sources[1] = value;
	sources[2] = p;
	fgv_lower_emit_op(l, "selp_u32", value, sources, 3);
}

static void float_to_int(struct lower *l, const struct mods *m, const struct ptx_insn *insn)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types[1];
	unsigned to_size = fgv_ptx_type_size(to);
	unsigned wide = to_size == 8 ? 8 : 4;
	int dest = fgv_lower_reg_size(l, insn->operands);
	unsigned dest_reg = dest > 0 ? (unsigned)dest : (to_size == 1 ? 2 : to_size);
	uint32_t source = fgv_lower_source(l, fgv_lower_operand(insn, 1), fgv_ptx_type_size(from));
	uint32_t d = fgv_lower_dest(l, insn->operands, dest_reg);
	uint32_t value;
	char key[48];

	if (from == PTX_F16 || from == PTX_BF16)
		source = to_wider_float(l, source, &from);
	if (m->ftz && from == PTX_F32) {
		value = fgv_lower_temp(l, 4);
		fgv_lower_emit_op(l, "ftz_f32", value, &source, 1);
		source = value;
	}
	value = to_size >= 4 && dest_reg == wide ? d : fgv_lower_temp(l, wide);
	snprintf(key, sizeof(key), "cvt_r%ci_%c%u_%s", m->round,
		 is_signed(to) || to_size < 4 ? 's' : 'u', wide * 8, fgv_ptx_type_name(from));
	fgv_lower_emit_op(l, key, value, &source, 1);
	if (to_size < 4 && from == PTX_F64)
		short_nan(l, source, value, to);
	if (to_size < 4) {
		/* Clamped at 32 bits, then at its own width. */
		value = extend(l, value, 4, true, 4, 8, OPERAND_NONE);
		value = clamp(l, value, true, to);
		extend(l, value, to_size, is_signed(to), 8, dest_reg, d);
	} else if (value != d) {
		extend(l, value, to_size, is_signed(to), wide, dest_reg, d);
	}
}

static void saturate(struct lower *l, const struct mods *m, enum ptx_type type, uint32_t d)
{
	char key[16];

	if (!m->sat)
		return;
	snprintf(key, sizeof(key), "sat_%s", fgv_ptx_type_name(type));
	fgv_lower_emit_op(l, key, d, &d, 1);
}

static void int_to_float(struct lower *l, const struct mods *m, const struct ptx_insn *insn)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types[1];
	unsigned from_size = fgv_ptx_type_size(from);
	unsigned wide = from_size == 8 ? 8 : 4;
	unsigned source_reg;
	uint32_t source = source_of(l, fgv_lower_operand(insn, 1), from, &source_reg);
	uint32_t d = fgv_lower_dest(l, insn->operands, fgv_ptx_type_size(to));
	bool half = to == PTX_F16 || to == PTX_BF16;
	char key[48];

	if (source_reg < from_size) {
		fgv_lower_fail(l, "register narrower than the type");
		return;
	}
	if (half)
		wide = 8;
	if (from_size < 4 || source_reg != wide)
		source = extend(l, source, from_size, is_signed(from), source_reg, wide,
				OPERAND_NONE);
	if (half) {
		uint32_t value = fgv_lower_temp(l, 8);

		fgv_lower_emit_op(l, is_signed(from) ? "odd_f64_s64" : "odd_f64_u64", value,
				  &source, 1);
		fgv_lower_narrow(l, m, to, PTX_F64, value, d);
	} else {
		snprintf(key, sizeof(key), "cvt_%s_%c%u", fgv_ptx_type_name(to),
			 is_signed(from) ? 's' : 'u', wide * 8);
		fgv_lower_round(l, m->round);
		fgv_lower_emit_op(l, key, d, &source, 1);
	}
	saturate(l, m, to, d);
}

static void same_float(struct lower *l, const struct mods *m, enum ptx_type type, uint32_t d,
		       uint32_t source)
{
	char key[48];

	if (type == PTX_F16 || type == PTX_BF16) {
		enum ptx_type wider = type;
		uint32_t value = to_wider_float(l, source, &wider);

		if (m->integral) {
			snprintf(key, sizeof(key), "round_r%ci_f32", m->round);
			fgv_lower_emit_op(l, key, value, &value, 1);
		}
		fgv_lower_emit_op(l, type == PTX_F16 ? "cvt_f16_f32" : "cvt_bf16_f32", d, &value,
				  1);
		return;
	}
	if (m->integral)
		snprintf(key, sizeof(key), "round_r%ci%s_%s", m->round,
			 m->ftz && type == PTX_F32 ? "_ftz" : "", fgv_ptx_type_name(type));
	else if (m->ftz && type == PTX_F32)
		snprintf(key, sizeof(key), "ftz_f32");
	else
		snprintf(key, sizeof(key), "mov_u%u", fgv_ptx_type_size(type) * 8);
	fgv_lower_emit_op(l, key, d, &source, 1);
}

static void float_to_float(struct lower *l, const struct mods *m, const struct ptx_insn *insn)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types[1];
	uint32_t source = fgv_lower_source(l, fgv_lower_operand(insn, 1), fgv_ptx_type_size(from));
	uint32_t d = fgv_lower_dest(l, insn->operands, fgv_ptx_type_size(to));
	char key[48];

	if (m->ftz && from == PTX_F32 && to != PTX_F32) {
		uint32_t flushed = fgv_lower_temp(l, 4);

		fgv_lower_emit_op(l, "ftz_f32", flushed, &source, 1);
		source = flushed;
	}
	if (to == from) {
		same_float(l, m, to, d, source);
	} else if (to == PTX_F16 || to == PTX_BF16) {
		fgv_lower_narrow(l, m, to, from, source, d);
	} else {
		if (from == PTX_BF16 && to == PTX_F64)
			source = to_wider_float(l, source, &from);
		snprintf(key, sizeof(key), "cvt_%s_%s", fgv_ptx_type_name(to),
			 fgv_ptx_type_name(from));
		if (from == PTX_F64)
			fgv_lower_round(l, m->round);
		fgv_lower_emit_op(l, key, d, &source, 1);
		if (m->ftz && to == PTX_F32)
			fgv_lower_emit_op(l, "ftz_f32", d, &d, 1);
	}
	saturate(l, m, to, d);
}

/* cvt.pack.sat.to.from d, a, b, c: a above b, and what is left above them is c's. */
static void pack(struct lower *l, const struct mods *m, const struct ptx_insn *insn)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types_count > 1 ? m->types[1] : PTX_NOTYPE;
	unsigned bits = fgv_ptx_type_size(to) * 8;
	bool rest = m->types_count == 3 && m->types[2] == PTX_B32;
	uint32_t parts[3] = {0};
	uint32_t d;

	if (!m->sat || !is_integer(to) || (from != PTX_S32 && from != PTX_U32) ||
	    bits != (rest ? 8u : 16u) || (m->types_count != 2 && !rest) ||
	    insn->operands_count != (rest ? 4u : 3u)) {
		fgv_lower_fail(l, "instruction 'cvt.pack' with these types is not supported");
		return;
	}
	d = fgv_lower_dest(l, insn->operands, 4);
	if (rest)
		parts[2] = fgv_lower_source(l, fgv_lower_operand(insn, 3), 4);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t value = fgv_lower_source(l, fgv_lower_operand(insn, 2 - i), 4);

		value = extend(l, value, 4, is_signed(from), 4, 8, OPERAND_NONE);
		value = clamp(l, value, is_signed(from), to);
		parts[i] = extend(l, value, bits / 8, false, 8, 4, OPERAND_NONE);
	}
	for (unsigned i = 1; i < (rest ? 3u : 2u); i++) {
		uint32_t both[2] = {parts[i], fgv_lower_const(l, bits * i, 4)};
		uint32_t moved = fgv_lower_temp(l, 4);

		fgv_lower_emit_op(l, "shl_u32", moved, both, 2);
		both[0] = parts[0];
		both[1] = moved;
		fgv_lower_emit_op(l, "or_u32", parts[0], both, 2);
	}
	fgv_lower_emit_op(l, "mov_u32", d, parts, 1);
}

/* Is each modifier one that means something between these types? */
static bool makes_sense(const struct mods *m)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types[1];
	bool from_float = is_float(from);
	bool to_float = is_float(to);

	if (m->types_count != 2 || m->rest[0] || m->relu || m->satfinite)
		return false;
	if (!(to_float || is_integer(to)) || !(from_float || is_integer(from)))
		return false;
	if (m->ftz && to != PTX_F32 && from != PTX_F32)
		return false;
	if (to_float && m->sat && to == PTX_BF16)
		return false;
	if (!to_float && !from_float)
		return !m->round;
	/* To an integer or the same type by the rules for integers, else by those for fractions. */
	if (!to_float || (to == from && m->round))
		return m->integral && from_float;
	return !m->integral;
}

void fgv_lower_cvt(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (fgv_lower_has_mod(insn, "pack")) {
		pack(l, &m, insn);
		return;
	}
	if (fgv_lower_cvt_short(l, insn, &m))
		return;
	if (!makes_sense(&m) || insn->operands_count != 2) {
		fgv_lower_fail(l, "instruction 'cvt%s' with these types is not supported", m.rest);
		return;
	}
	if (is_float(m.types[0]) && is_float(m.types[1]))
		float_to_float(l, &m, insn);
	else if (is_float(m.types[0]))
		int_to_float(l, &m, insn);
	else if (is_float(m.types[1]))
		float_to_int(l, &m, insn);
	else
		int_to_int(l, &m, insn);
}
