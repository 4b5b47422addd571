/*
 * cvt to the floating-point types shorter than f32 and from those of eight bits, one
 * value or two in a register, with the rounding modes and limits that they have.
 */
#include "softgpu/lower/lower.h"

#include <string.h>

#include "softgpu/narrow.h"

/* The format of a value, or of each of a pair; -1: none that narrow.c makes. */
static int format_of(enum ptx_type type)
{
	switch (type) {
	case PTX_F16:
	case PTX_F16X2:
		return NARROW_F16;
	case PTX_BF16:
	case PTX_BF16X2:
		return NARROW_BF16;
	case PTX_TF32:
		return NARROW_TF32;
	case PTX_E4M3X2:
		return NARROW_E4M3;
	case PTX_E5M2X2:
		return NARROW_E5M2;
	default:
		return -1;
	}
}

static bool is_byte_pair(enum ptx_type type)
{
	return type == PTX_E4M3X2 || type == PTX_E5M2X2;
}

static unsigned control_of(const struct mods *m, enum ptx_type to)
{
	enum narrow_round round = m->round == 'z'	     ? NARROW_ZERO
				  : m->round == 'm'	     ? NARROW_DOWN
				  : m->round == 'p'	     ? NARROW_UP
				  : !strcmp(m->rest, "_rna") ? NARROW_AWAY
							     : NARROW_NEAREST;

	return NARROW_CONTROL(format_of(to), round) | (m->satfinite ? NARROW_SATFINITE : 0) |
	       (m->relu ? NARROW_RELU : 0);
}

static uint32_t as_f64(struct lower *l, enum ptx_type from, uint32_t source)
{
	uint32_t d = fgv_lower_temp(l, 8);
	uint32_t single = source;

	if (from == PTX_F64)
		return source;
	if (from == PTX_BF16) {
		single = fgv_lower_temp(l, 4);
		fgv_lower_emit_op(l, "cvt_f32_bf16", single, &source, 1);
	}
	fgv_lower_emit_op(l, from == PTX_F16 ? "cvt_f64_f16" : "cvt_f64_f32", d, &single, 1);
	return d;
}

void fgv_lower_narrow(struct lower *l, const struct mods *m, enum ptx_type to, enum ptx_type from,
		      uint32_t source, uint32_t d)
{
	unsigned control = control_of(m, to);

	if (from == PTX_F32 && control == NARROW_CONTROL(NARROW_F16, NARROW_NEAREST)) {
		fgv_lower_emit_op(l, "cvt_f16_f32", d, &source, 1);
	} else if (from == PTX_F32 && control == NARROW_CONTROL(NARROW_BF16, NARROW_NEAREST)) {
		fgv_lower_emit_op(l, "cvt_bf16_f32", d, &source, 1);
	} else {
		uint32_t wide = as_f64(l, from, source);
		struct draft *draft =
			fgv_lower_emit(l, to == PTX_TF32 ? OP_narrow_u32 : OP_narrow_u16);

		draft->insn.aux = (uint8_t)control;
		draft->insn.o[0] = d;
		draft->insn.o[1] = wide;
	}
}

/* Two bytes or halves in one register. */
static void join(struct lower *l, enum ptx_type to, uint32_t d, const uint32_t *parts)
{
	uint32_t sources[2] = {parts[1], 0};
	uint32_t moved;

	if (!is_byte_pair(to)) {
		fgv_lower_emit_op(l, "pack_u32_u16", d, parts, 2);
		return;
	}
	moved = fgv_lower_temp(l, 2);
	sources[1] = fgv_lower_const(l, 8, 4);
	fgv_lower_emit_op(l, "shl_u16", moved, sources, 2);
	sources[0] = parts[0];
	sources[1] = moved;
	fgv_lower_emit_op(l, "or_u16", d, sources, 2);
}

/* cvt.mode.f16x2.f32 d, high, low, and the like for bytes, from two f32 or one f16x2. */
static void to_pair(struct lower *l, const struct ptx_insn *insn, const struct mods *m)
{
	enum ptx_type to = m->types[0];
	bool halves = m->types[1] == PTX_F16X2;
	uint32_t d = fgv_lower_dest(l, insn->operands, fgv_ptx_type_size(to));
	uint32_t parts[2];

	for (unsigned i = 0; i < 2; i++) {
		uint32_t source =
			fgv_lower_source(l, fgv_lower_operand(insn, halves ? 1 : 2 - i), 4);

		if (halves)
			source = fgv_lower_half(l, source, i);
		parts[i] = fgv_lower_temp(l, 2);
		fgv_lower_narrow(l, m, to, halves ? PTX_F16 : PTX_F32, source, parts[i]);
	}
	join(l, to, d, parts);
}

static void from_bytes(struct lower *l, const struct ptx_insn *insn, const struct mods *m)
{
	const char *key = m->types[1] == PTX_E4M3X2 ? "cvt_f16_e4m3" : "cvt_f16_e5m2";
	uint32_t d = fgv_lower_dest(l, insn->operands, 4);
	uint32_t sources[2] = {fgv_lower_source(l, fgv_lower_operand(insn, 1), 2),
			       fgv_lower_const(l, 8, 4)};
	uint32_t parts[2];

	for (unsigned i = 0; i < 2; i++) {
		uint32_t source = sources[0];

		if (i) {
			source = fgv_lower_temp(l, 2);
			fgv_lower_emit_op(l, "shr_u16", source, sources, 2);
		}
		parts[i] = fgv_lower_temp(l, 2);
		fgv_lower_emit_op(l, key, parts[i], &source, 1);
		if (m->relu)
			fgv_lower_emit_op(l, "relu_f16", parts[i], &parts[i], 1);
	}
	join(l, PTX_F16X2, d, parts);
}

/* One value: only with a mode or limit that the usual conversions lack. */
static void to_one(struct lower *l, const struct ptx_insn *insn, const struct mods *m)
{
	uint32_t source = fgv_lower_source(l, fgv_lower_operand(insn, 1), 4);

	fgv_lower_narrow(l, m, m->types[0], PTX_F32, source,
			 fgv_lower_dest(l, insn->operands, fgv_ptx_type_size(m->types[0])));
}

static bool is_valid(const struct mods *m)
{
	enum ptx_type to = m->types[0];
	enum ptx_type from = m->types[1];
	bool away = !strcmp(m->rest, "_rna");

	if (m->types_count != 2 || m->ftz || m->sat || m->integral || (m->rest[0] && !away))
		return false;
	if (is_byte_pair(from))
		return to == PTX_F16X2 && m->round == 'n' && !m->satfinite;
	if (is_byte_pair(to))
		return m->round == 'n' && m->satfinite && (from == PTX_F32 || from == PTX_F16X2);
	if (to == PTX_TF32)
		return from == PTX_F32 && (away ? !m->round && !m->relu : m->round != 0);
	return from == PTX_F32 && !away && (m->round == 'n' || m->round == 'z');
}

bool fgv_lower_cvt_short(struct lower *l, const struct ptx_insn *insn, const struct mods *m)
{
	enum ptx_type to = m->types[0];
	bool pair = to == PTX_F16X2 || to == PTX_BF16X2 || is_byte_pair(to);
	bool bytes = m->types_count > 1 && is_byte_pair(m->types[1]);

	if (!pair && !bytes && to != PTX_TF32 && !m->relu && !m->satfinite)
		return false;
	if (!is_valid(m) || format_of(to) < 0 ||
	    insn->operands_count != (pair && m->types[1] == PTX_F32 ? 3u : 2u))
		fgv_lower_fail(l, "instruction 'cvt%s.%s' is not supported", m->rest,
			       fgv_ptx_type_name(to));
	else if (bytes)
		from_bytes(l, insn, m);
	else if (pair)
		to_pair(l, insn, m);
	else
		to_one(l, insn, m);
	return true;
}
