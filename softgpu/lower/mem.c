/* mov, loads, stores, atomics, and conversions between address spaces. */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

static const char *const movs[9] = {
	[0] = "mov_pred", [2] = "mov_u16", [4] = "mov_u32", [8] = "mov_u64"};

/* {a, b, ...} of @size bytes each into one register: low element first. */
static void pack(struct lower *l, const struct ptx_insn *insn, unsigned total)
{
	uint32_t parts[4];
	unsigned count = 0;
	unsigned size;
	uint32_t d = fgv_lower_dest(l, insn->operands, total);

	for (const struct ptx_operand *op = fgv_lower_operand(insn, 1)->list; op; op = op->next)
		count++;
	size = count ? total / count : 0;
	if ((count != 2 && count != 4) || size < 2) {
		fgv_lower_fail(l, "vector of %u elements in %u bytes is not supported", count,
			       total);
		return;
	}
	count = 0;
	for (const struct ptx_operand *op = fgv_lower_operand(insn, 1)->list; op; op = op->next)
		parts[count++] = fgv_lower_source(l, op, size);
	if (count == 4) {
		for (unsigned i = 0; i < 2; i++) {
			uint32_t half = fgv_lower_temp(l, 4);

			fgv_lower_emit_op(l, "pack_u32_u16", half, parts + 2 * i, 2);
			parts[i] = half;
		}
		size = 4;
	}
	fgv_lower_emit_op(l, size == 4 ? "pack_u64_u32" : "pack_u32_u16", d, parts, 2);
}

static void unpack_half(struct lower *l, uint32_t source, unsigned size, bool high,
			const struct ptx_operand *op)
{
	static const char *const keys[2][2] = {{"low_u16_u32", "high_u16_u32"},
					       {"low_u32_u64", "high_u32_u64"}};
	uint32_t d;

	if (op->kind == PTX_OP_SINK)
		return;
	d = fgv_lower_dest(l, op, size);
	fgv_lower_emit_op(l, keys[size == 4][high], d, &source, 1);
}

/* One register into {a, b, ...}. The source is copied first: it may be among them. */
static void unpack(struct lower *l, const struct ptx_insn *insn, unsigned total)
{
	const struct ptx_operand *op = insn->operands->list;
	uint32_t given = fgv_lower_source(l, fgv_lower_operand(insn, 1), total);
	uint32_t source = fgv_lower_temp(l, total);
	unsigned count = 0;

	fgv_lower_emit_op(l, movs[total], source, &given, 1);
	for (const struct ptx_operand *e = op; e; e = e->next)
		count++;
	if (count == 2) {
		unpack_half(l, source, total / 2, false, op);
		unpack_half(l, source, total / 2, true, op->next);
	} else if (count == 4 && total == 8) {
		for (unsigned i = 0; i < 2; i++) {
			uint32_t half = fgv_lower_temp(l, 4);

			fgv_lower_emit_op(l, i ? "high_u32_u64" : "low_u32_u64", half, &source, 1);
			unpack_half(l, half, 2, false, op);
			unpack_half(l, half, 2, true, op->next);
			op = op->next->next;
		}
	} else {
		fgv_lower_fail(l, "vector of %u elements in %u bytes is not supported", count,
			       total);
	}
}

void fgv_lower_mov(struct lower *l, const struct ptx_insn *insn)
{
	const struct ptx_operand *source = fgv_lower_operand(insn, 1);
	struct mods m;
	unsigned size;
	uint32_t from;

	fgv_lower_mods(l, insn, &m);
	if (m.types_count != 1 || !source || insn->operands_count != 2) {
		fgv_lower_fail(l, "malformed mov");
		return;
	}
	size = fgv_ptx_type_size(m.types[0]);
	if ((size > 8) || size == 1) {
		fgv_lower_fail(l, "instruction 'mov.%s' is not supported",
			       fgv_ptx_type_name(m.types[0]));
	} else if (source->kind == PTX_OP_VECTOR && size >= 4) {
		pack(l, insn, size);
	} else if (insn->operands->kind == PTX_OP_VECTOR && size >= 4) {
		unpack(l, insn, size);
	} else {
		from = fgv_lower_source(l, source, size);
		fgv_lower_emit_op(l, movs[size], fgv_lower_dest(l, insn->operands, size), &from, 1);
	}
}

/* ".global" of a load may be left out: then its address is generic. */
static const char *space_word(struct lower *l, enum ptx_space space,
			      const struct memory_place *place)
{
	if (place->is_local)
		return "local";
	if (space == PTX_SHARED)
		return "shared";
	if (space == PTX_PARAM)
		return "param";
	if (space == PTX_NOSPACE || space == PTX_GLOBAL || space == PTX_CONST)
		return "global";
	fgv_lower_fail(l, "state space '%s' is not supported here", fgv_ptx_space_name(space));
	return "global";
}

/* The letter of a memory type: its sign matters where the register is wider. */
static char type_letter(enum ptx_type type)
{
	return type == PTX_S8 || type == PTX_S16 || type == PTX_S32 ? 's' : 'u';
}

/* The elements of a load or store: {a, b} or one. Returns their common register size. */
static unsigned data_operands(struct lower *l, const struct ptx_operand *op, unsigned vec,
			      unsigned type_size, bool is_store, uint32_t *places)
{
	const struct ptx_operand *element = op && op->kind == PTX_OP_VECTOR ? op->list : op;
	unsigned size = type_size == 1 ? 2 : type_size;
	unsigned count = 0;

	for (const struct ptx_operand *e = element; e; e = vec > 1 ? e->next : NULL) {
		int reg = fgv_lower_reg_size(l, e);

		if (reg > 0)
			size = (unsigned)reg;
		if (++count > vec)
			break;
	}
	if (count != vec || (vec > 1 && op->kind != PTX_OP_VECTOR)) {
		fgv_lower_fail(l, "%u elements expected", vec);
		return 0;
	}
	for (unsigned i = 0; i < vec; i++, element = element->next)
		places[i] = is_store ? fgv_lower_source(l, element, size)
				     : fgv_lower_dest(l, element, size);
	if (size < type_size)
		fgv_lower_fail(l, "register narrower than the type");
	return size;
}

static void lower_access(struct lower *l, const struct ptx_insn *insn, bool is_store)
{
	const struct ptx_operand *first = fgv_lower_operand(insn, 0);
	const struct ptx_operand *second = fgv_lower_operand(insn, 1);
	struct memory_place place;
	uint32_t data[4] = {OPERAND_NONE, OPERAND_NONE, OPERAND_NONE, OPERAND_NONE};
	struct draft *d;
	struct mods m;
	unsigned type_size;
	unsigned reg_size;
	char key[64];

	fgv_lower_mods(l, insn, &m);
	type_size = m.types_count ? fgv_ptx_type_size(m.types[0]) : 0;
	/* How an access is ordered and cached changes nothing here; a cache policy is an operand.
	 */
	if (m.types_count != 1 || !type_size || type_size > 8 ||
	    insn->operands_count != (fgv_lower_has_mod(insn, "L2::cache_hint") ? 3u : 2u)) {
		fgv_lower_fail(l, "instruction '%s%s' with this type is not supported",
			       insn->opcode, m.rest);
		return;
	}
	reg_size = data_operands(l, is_store ? second : first, m.vec, type_size, is_store, data);
	if (!reg_size || !fgv_lower_place(l, is_store ? first : second, m.space, &place))
		return;
	snprintf(key, sizeof(key), "%s_%s_%c%u_%u", is_store ? "st" : "ld",
		 space_word(l, m.space, &place),
		 is_store || reg_size == type_size ? 'u' : type_letter(m.types[0]), type_size * 8,
		 reg_size * 8);
	fgv_lower_emit_op(l, key, data[0], data + 1, 3);
	if (l->failed)
		return;
	d = &l->drafts[l->count - 1];
	d->insn.o[4] = place.reg;
	d->insn.imm = place.imm;
	d->insn.aux = (uint8_t)place.kind;
	d->insn.vec = (uint8_t)m.vec;
}

void fgv_lower_ld(struct lower *l, const struct ptx_insn *insn)
{
	lower_access(l, insn, false);
}

void fgv_lower_st(struct lower *l, const struct ptx_insn *insn)
{
	lower_access(l, insn, true);
}

/* The operation among an atomic's modifiers; the others say order and scope. */
static const char *atomic_operation(const struct ptx_insn *insn)
{
	static const char *const words[] = {"add", "and", "or",	 "xor", "exch",
					    "cas", "inc", "dec", "min", "max"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (fgv_lower_has_mod(insn, words[i]))
			return words[i];
	}
	return NULL;
}

static enum op find_atomic(const char *operation, enum ptx_type type)
{
	char key[48];
	enum op op;

	snprintf(key, sizeof(key), "atom_%s_%s", operation, fgv_ptx_type_name(type));
	op = fgv_softgpu_op_find(key);
	if (op == OP_NONE && fgv_lower_unsigned_type(type) != type) {
		snprintf(key, sizeof(key), "atom_%s_%s", operation,
			 fgv_ptx_type_name(fgv_lower_unsigned_type(type)));
		op = fgv_softgpu_op_find(key);
	}
	return op;
}

/* Element @index of {a, b, ...}, or the operand itself where there is but one. */
static const struct ptx_operand *element(const struct ptx_insn *insn, unsigned operand,
					 unsigned vec, unsigned index)
{
	const struct ptx_operand *op = fgv_lower_operand(insn, operand);

	if (vec == 1 || !op || op->kind == PTX_OP_SINK)
		return op;
	op = op->kind == PTX_OP_VECTOR ? op->list : NULL;
	while (op && index--)
		op = op->next;
	return op;
}

static void emit_atomic(struct lower *l, const struct ptx_insn *insn, const struct mods *m,
			enum op op, unsigned index, uint32_t old)
{
	unsigned k = !strcmp(insn->opcode, "atom");
	unsigned size = fgv_ptx_type_size(m->types[0]);
	uint32_t o[3] = {old, OPERAND_NONE, OPERAND_NONE};
	struct memory_place place;
	struct draft *draft;

	if (!fgv_lower_place(l, fgv_lower_operand(insn, k), m->space, &place))
		return;
	o[1] = fgv_lower_source(l, element(insn, k + 1, m->vec, index), size);
	if (fgv_lower_has_mod(insn, "cas"))
		o[2] = fgv_lower_source(l, fgv_lower_operand(insn, k + 2), size);
	draft = fgv_lower_emit(l, op);
	memcpy(draft->insn.o, o, sizeof(o));
	draft->insn.o[4] = place.reg;
	draft->insn.imm = place.imm + (int64_t)(index * size);
	draft->insn.aux = (uint8_t)place.kind;
	draft->insn.vec = m->space == PTX_SHARED;
}

/* Of a vector each element is atomic by itself; what was there arrives when all are done. */
static void emit_vector_atomic(struct lower *l, const struct ptx_insn *insn, const struct mods *m,
			       enum op op)
{
	unsigned size = fgv_ptx_type_size(m->types[0]);
	bool wanted = !strcmp(insn->opcode, "atom") && insn->operands->kind != PTX_OP_SINK;
	uint32_t old[4];

	for (unsigned i = 0; i < m->vec && !l->failed; i++) {
		old[i] = wanted ? fgv_lower_temp(l, size) : OPERAND_NONE;
		emit_atomic(l, insn, m, op, i, old[i]);
	}
	for (unsigned i = 0; i < m->vec && wanted && !l->failed; i++)
		fgv_lower_emit_op(l, movs[size],
				  fgv_lower_dest(l, element(insn, 0, m->vec, i), size), &old[i], 1);
}

void fgv_lower_atom(struct lower *l, const struct ptx_insn *insn)
{
	const char *operation = atomic_operation(insn);
	unsigned expected = 2 + !strcmp(insn->opcode, "atom") +
			    fgv_lower_has_mod(insn, "L2::cache_hint") +
			    fgv_lower_has_mod(insn, "cas");
	struct mods m;
	enum op op;

	fgv_lower_mods(l, insn, &m);
	op = operation && m.types_count == 1 ? find_atomic(operation, m.types[0]) : OP_NONE;
	if (op == OP_NONE || insn->operands_count != expected ||
	    (m.space != PTX_NOSPACE && m.space != PTX_GLOBAL && m.space != PTX_SHARED)) {
		fgv_lower_fail(l, "instruction '%s%s' with this type is not supported",
			       insn->opcode, m.rest);
		return;
	}
	if (m.vec > 1)
		emit_vector_atomic(l, insn, &m, op);
	else
		emit_atomic(
			l, insn, &m, op, 0,
			!strcmp(insn->opcode, "atom") && insn->operands->kind != PTX_OP_SINK
				? fgv_lower_dest(l, insn->operands, fgv_ptx_type_size(m.types[0]))
				: OPERAND_NONE);
}

static uint64_t window_of(const struct lower *l, enum ptx_space space)
{
	switch (space) {
	case PTX_SHARED:
		return SHARED_WINDOW;
	case PTX_LOCAL:
		return LOCAL_WINDOW;
	case PTX_PARAM:
		return l->function->entry ? PARAM_WINDOW : LOCAL_WINDOW;
	default:
		return 0; /* global and const addresses are generic already */
	}
}

void fgv_lower_cvta(struct lower *l, const struct ptx_insn *insn)
{
	uint32_t sources[2];
	uint64_t window;
	struct mods m;
	uint32_t d;

	fgv_lower_mods(l, insn, &m);
	window = window_of(l, m.space);
	if (!m.types_count || fgv_ptx_type_size(m.types[0]) != 8) {
		fgv_lower_fail(l, "addresses have 64 bits");
		return;
	}
	sources[0] = fgv_lower_source(l, fgv_lower_operand(insn, 1), 8);
	d = fgv_lower_dest(l, insn->operands, 8);
	if (!window) {
		fgv_lower_emit_op(l, "mov_u64", d, sources, 1);
		return;
	}
	sources[1] = fgv_lower_const(l, window, 8);
	fgv_lower_emit_op(l, fgv_lower_has_mod(insn, "to") ? "sub_u64" : "add_u64", d, sources, 2);
}

void fgv_lower_isspacep(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	struct draft *draft;
	uint32_t source;
	uint32_t d;

	fgv_lower_mods(l, insn, &m);
	source = fgv_lower_source(l, fgv_lower_operand(insn, 1), 8);
	d = fgv_lower_dest(l, insn->operands, 0);
	draft = fgv_lower_emit(l, OP_isspacep);
	draft->insn.o[0] = d;
	draft->insn.o[1] = source;
	switch (m.space) {
	case PTX_GLOBAL:
		draft->insn.aux = 0;
		break;
	case PTX_SHARED:
		draft->insn.aux = 1;
		break;
	case PTX_LOCAL:
		draft->insn.aux = 2;
		break;
	case PTX_PARAM:
		draft->insn.aux = 3;
		break;
	default:
		draft->insn.aux = 4;
		draft->insn.imm = (int64_t)l->program->const_address;
		draft->insn.o[2] = (uint32_t)l->program->const_bytes;
		break;
	}
}

/* A cluster is one block: what another block's address would be is this one's. */
void fgv_lower_mapa(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	unsigned size;
	uint32_t source;

	fgv_lower_mods(l, insn, &m);
	size = m.types_count == 1 ? fgv_ptx_type_size(m.types[0]) : 0;
	if ((size != 4 && size != 8) || insn->operands_count != 3) {
		fgv_lower_fail(l, "instruction '%s' with this type is not supported", insn->opcode);
		return;
	}
	source = fgv_lower_source(l, fgv_lower_operand(insn, 1), size);
	fgv_lower_emit_op(l, movs[size], fgv_lower_dest(l, insn->operands, size), &source, 1);
}

/* Answers that are always zero: a block's rank in its cluster, the only cache policy. */
void fgv_lower_zero(struct lower *l, const struct ptx_insn *insn)
{
	int size = fgv_lower_reg_size(l, insn->operands);
	uint32_t zero;

	if (size != 4 && size != 8) {
		fgv_lower_fail(l, "destination of '%s' is no register of 32 or 64 bits",
			       insn->opcode);
		return;
	}
	zero = fgv_lower_const(l, 0, (unsigned)size);
	fgv_lower_emit_op(l, movs[size], fgv_lower_dest(l, insn->operands, (unsigned)size), &zero,
			  1);
}
