/*
 * cvt, in up to three steps: the source read as its type, the conversion proper, the
 * result in a register that may be wider than its type.
 */
#include "softgpu/lower.h"

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

static void set_round(struct lower *l, char round)
{
	static const char modes[] = "nmpz"; /* in the order of MXCSR */
	const char *mode = round ? strchr(modes, round) : NULL;

	if (mode && mode != modes)
		fgv_lower_emit(l, OP_round)->insn.aux = (uint8_t)(mode - modes);
}

/* Half precision goes by way of f32 where there is no direct operation. */
static uint32_t to_wider_float(struct lower *l, uint32_t source, enum ptx_type *type)
{
	uint32_t d = fgv_lower_temp(l, 4);

	fgv_lower_emit_op(l, *type == PTX_F16 ? "cvt_f32_f16" : "cvt_f32_bf16", d, &source, 1);
	*type = PTX_F32;
	return d;
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
	snprintf(key, sizeof(key), "cvt_r%ci_%c%u_%s", m->round ? m->round : 'z',
		 is_signed(to) || to_size < 4 ? 's' : 'u', wide * 8, fgv_ptx_type_name(from));
	fgv_lower_emit_op(l, key, value, &source, 1);
	if (to_size < 4) {
		/* Clamped at 32 bits, then at its own width. */
		value = extend(l, value, 4, true, 4, 8, OPERAND_NONE);
		value = clamp(l, value, true, to);
		extend(l, value, to_size, is_signed(to), 8, dest_reg, d);
	} else if (value != d) {
		extend(l, value, to_size, is_signed(to), wide, dest_reg, d);
	}
}

static void finish_float(struct lower *l, const struct mods *m, enum ptx_type type, uint32_t d)
{
	if (m->sat && type == PTX_F32)
		fgv_lower_emit_op(l, "sat_f32", d, &d, 1);
	else if (m->sat && type == PTX_F16)
		fgv_lower_emit_op(l, "sat_f16", d, &d, 1);
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
	uint32_t value = half ? fgv_lower_temp(l, 8) : d;
	char key[48];

	if (source_reg < from_size) {
		fgv_lower_fail(l, "register narrower than the type");
		return;
	}
	if (from_size < 4 || source_reg != wide)
		source = extend(l, source, from_size, is_signed(from), source_reg, wide,
				OPERAND_NONE);
	/* A double holds what matters of any integer that a half can express. */
	snprintf(key, sizeof(key), "cvt_%s_%c%u", half ? "f64" : fgv_ptx_type_name(to),
		 is_signed(from) ? 's' : 'u', wide * 8);
	set_round(l, m->round);
	fgv_lower_emit_op(l, key, value, &source, 1);
	if (to == PTX_F16) {
		fgv_lower_emit_op(l, "cvt_f16_f64", d, &value, 1);
	} else if (to == PTX_BF16) {
		fgv_lower_emit_op(l, "cvt_bf16_f64", d, &value, 1);
	}
	finish_float(l, m, to, d);
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
	uint32_t value = source;
	char key[48];

	if (m->ftz && from == PTX_F32 && to != PTX_F32) {
		value = fgv_lower_temp(l, 4);
		fgv_lower_emit_op(l, "ftz_f32", value, &source, 1);
	}
	if (to == from) {
		same_float(l, m, to, d, value);
	} else {
		if (from == PTX_BF16 || (from == PTX_F16 && to == PTX_BF16))
			value = to_wider_float(l, value, &from);
		if (to == from) {
			fgv_lower_emit_op(l, "mov_u32", d, &value, 1);
			return;
		}
		if (m->round == 'z' && from == PTX_F32)
			snprintf(key, sizeof(key), "cvt_rz_%s_f32", fgv_ptx_type_name(to));
		else
			snprintf(key, sizeof(key), "cvt_%s_%s", fgv_ptx_type_name(to),
				 fgv_ptx_type_name(from));
		if (fgv_softgpu_op_find(key) == OP_NONE)
			snprintf(key, sizeof(key), "cvt_%s_%s", fgv_ptx_type_name(to),
				 fgv_ptx_type_name(from));
		if (to != PTX_F16 && to != PTX_BF16)
			set_round(l, m->round);
		fgv_lower_emit_op(l, key, d, &value, 1);
		if (m->ftz && to == PTX_F32)
			fgv_lower_emit_op(l, "ftz_f32", d, &d, 1);
	}
	finish_float(l, m, to, d);
}

/* cvt.rn.f16x2.f32 d, high, low */
static void to_halves(struct lower *l, const struct mods *m, const struct ptx_insn *insn)
{
	const char *type = m->types[0] == PTX_F16X2 ? "f16" : "bf16";
	uint32_t halves[2];
	char key[48];

	for (unsigned i = 0; i < 2; i++) {
		uint32_t source = fgv_lower_source(l, fgv_lower_operand(insn, 2 - i), 4);

		halves[i] = fgv_lower_temp(l, 2);
		snprintf(key, sizeof(key), "cvt_%s%s_f32", m->round == 'z' ? "rz_" : "", type);
		fgv_lower_emit_op(l, key, halves[i], &source, 1);
	}
	fgv_lower_emit_op(l, "pack_u32_u16", fgv_lower_dest(l, insn->operands, 4), halves, 2);
}

void fgv_lower_cvt(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (m.types_count != 2 || (m.rest[0] && strcmp(m.rest, "_rna"))) {
		fgv_lower_fail(l, "instruction 'cvt%s' with these types is not supported", m.rest);
		return;
	}
	if (m.types[0] == PTX_TF32) {
		uint32_t source = fgv_lower_source(l, fgv_lower_operand(insn, 1), 4);

		fgv_lower_emit_op(l, "cvt_tf32_f32", fgv_lower_dest(l, insn->operands, 4), &source,
				  1);
	} else if (m.types[0] == PTX_F16X2 || m.types[0] == PTX_BF16X2) {
		if (m.types[1] == PTX_F32)
			to_halves(l, &m, insn);
		else
			fgv_lower_fail(l, "this conversion is not supported");
	} else if (is_float(m.types[0]) && is_float(m.types[1])) {
		float_to_float(l, &m, insn);
	} else if (is_float(m.types[0])) {
		int_to_float(l, &m, insn);
	} else if (is_float(m.types[1])) {
		float_to_int(l, &m, insn);
	} else {
		int_to_int(l, &m, insn);
	}
}
