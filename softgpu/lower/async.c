/* mbarrier and cp.async: addresses become generic ones; what waits for a copy finds it done. */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

/* a + b in a place of its own. */
static uint32_t sum(struct lower *l, uint32_t a, uint64_t b)
{
	uint32_t sources[2] = {a, fgv_lower_const(l, b, 8)};
	uint32_t d = fgv_lower_temp(l, 8);

	fgv_lower_emit_op(l, "add_u64", d, sources, 2);
	return d;
}

/* [address] of a space as a generic address of 64 bits. */
static uint32_t generic_address(struct lower *l, const struct ptx_operand *op, enum ptx_space space)
{
	uint64_t window = space == PTX_SHARED ? SHARED_WINDOW : 0;
	struct memory_place place;
	uint32_t wide;

	if (!fgv_lower_place(l, op, space, &place))
		return 0;
	switch (place.kind) {
	case ADDRESS_REG64:
		return sum(l, place.reg, window + (uint64_t)place.imm);
	case ADDRESS_REG32:
		wide = fgv_lower_temp(l, 8);
		fgv_lower_emit_op(l, "ext_u32_32_64", wide, &place.reg, 1);
		return sum(l, wide, window + (uint64_t)place.imm);
	case ADDRESS_IMM:
		return fgv_lower_const(l, window + (uint64_t)place.imm, 8);
	default:
		fgv_lower_fail(l, "address in local memory does not go here");
		return 0;
	}
}

static struct draft *emit(struct lower *l, enum op op, uint32_t d, uint32_t a, uint32_t b)
{
	struct draft *draft = fgv_lower_emit(l, op);

	draft->insn.o[0] = d;
	draft->insn.o[1] = a;
	draft->insn.o[2] = b;
	return draft;
}

/* mbarrier.arrive[.expect_tx] [state,] [address] [, count]; with the bytes instead of a count. */
static void arrive(struct lower *l, const struct ptx_insn *insn, enum ptx_space space)
{
	bool expects = fgv_lower_has_mod(insn, "expect_tx");
	bool drop = fgv_lower_has_mod(insn, "arrive_drop");
	const struct ptx_operand *last = fgv_lower_operand(insn, 2);
	uint32_t address = generic_address(l, fgv_lower_operand(insn, 1), space);
	uint32_t count = fgv_lower_const(l, 1, 4);
	uint32_t d = OPERAND_NONE;

	if (expects)
		emit(l, OP_mbarrier_tx, OPERAND_NONE, address, fgv_lower_source(l, last, 4));
	else if (last)
		count = fgv_lower_source(l, last, 4);
	if (insn->operands && insn->operands->kind != PTX_OP_SINK)
		d = fgv_lower_dest(l, insn->operands, 8);
	emit(l, OP_mbarrier_arrive, d, address, count)->insn.aux = drop;
}

static void test(struct lower *l, const struct ptx_insn *insn, enum ptx_space space)
{
	bool parity = fgv_lower_has_mod(insn, "parity");
	uint32_t address = generic_address(l, fgv_lower_operand(insn, 1), space);
	uint32_t phase = fgv_lower_source(l, fgv_lower_operand(insn, 2), parity ? 4 : 8);
	uint32_t d = fgv_lower_dest(l, insn->operands, 0);

	emit(l, OP_mbarrier_test, d, address, phase)->insn.aux = parity;
}

void fgv_lower_mbarrier(struct lower *l, const struct ptx_insn *insn)
{
	const char *what = insn->mods_count ? insn->mods[0] : "";
	const struct ptx_operand *first = insn->operands;
	const struct ptx_operand *second = fgv_lower_operand(insn, 1);
	uint32_t address;
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (m.types_count != 1 || m.types[0] != PTX_B64 ||
	    (m.space != PTX_NOSPACE && m.space != PTX_SHARED)) {
		fgv_lower_fail(l, "this kind of mbarrier is not supported");
	} else if (!strcmp(what, "arrive") || !strcmp(what, "arrive_drop")) {
		arrive(l, insn, m.space);
	} else if (!strcmp(what, "test_wait") || !strcmp(what, "try_wait")) {
		test(l, insn, m.space);
	} else if (!strcmp(what, "pending_count")) {
		uint32_t state = fgv_lower_source(l, second, 8);

		emit(l, OP_mbarrier_pending, fgv_lower_dest(l, first, 4), state, OPERAND_NONE);
	} else if (!strcmp(what, "inval")) {
		address = generic_address(l, first, m.space);
		emit(l, OP_mbarrier_inval, OPERAND_NONE, address, OPERAND_NONE);
	} else if (!strcmp(what, "init")) {
		address = generic_address(l, first, m.space);
		emit(l, OP_mbarrier_init, OPERAND_NONE, address, fgv_lower_source(l, second, 4));
	} else if (!strcmp(what, "expect_tx") || !strcmp(what, "complete_tx")) {
		address = generic_address(l, first, m.space);
		emit(l, OP_mbarrier_tx, OPERAND_NONE, address, fgv_lower_source(l, second, 4))
			->insn.aux = what[0] == 'c';
	} else {
		fgv_lower_fail(l, "'mbarrier.%s' is not supported", what);
	}
}

/* The bytes that the source has: all, as many as are said, or none where a predicate holds. */
static uint32_t source_bytes(struct lower *l, const struct ptx_operand *op, unsigned bytes)
{
	uint32_t sources[3] = {fgv_lower_const(l, 0, 4), fgv_lower_const(l, bytes, 4), 0};
	uint32_t d;

	if (!op)
		return sources[1];
	if (fgv_lower_reg_size(l, op) != 0)
		return fgv_lower_source(l, op, 4);
	sources[2] = fgv_lower_predicate(l, op);
	d = fgv_lower_temp(l, 4);
	fgv_lower_emit_op(l, "selp_u32", d, sources, 3);
	return d;
}

/* cp.async [to], [from], bytes [, bytes of the source or predicate] [, policy] */
static void copy(struct lower *l, const struct ptx_insn *insn)
{
	const struct ptx_operand *size = fgv_lower_operand(insn, 2);
	unsigned count = insn->operands_count - fgv_lower_has_mod(insn, "L2::cache_hint");
	uint32_t to = generic_address(l, insn->operands, PTX_SHARED);
	uint32_t from = generic_address(l, fgv_lower_operand(insn, 1), PTX_GLOBAL);
	uint64_t bytes = size && size->kind == PTX_OP_INT ? size->value : 0;
	struct draft *d;
	uint32_t have;

	if ((bytes != 4 && bytes != 8 && bytes != 16) || count < 3 || count > 4) {
		fgv_lower_fail(l, "this kind of cp.async is not supported");
		return;
	}
	have = source_bytes(l, count == 4 ? fgv_lower_operand(insn, 3) : NULL, (unsigned)bytes);
	d = emit(l, OP_cp_async, OPERAND_NONE, to, from);
	d->insn.o[3] = have;
	d->insn.aux = (uint8_t)bytes;
}

/* cp.async.bulk [to], [from], bytes [, [mbarrier]] */
static void bulk(struct lower *l, const struct ptx_insn *insn)
{
	bool counted = fgv_lower_has_mod(insn, "mbarrier::complete_tx::bytes");
	enum ptx_space spaces[2] = {PTX_NOSPACE, PTX_NOSPACE};
	unsigned found = 0;
	uint32_t o[4];
	struct draft *d;

	for (unsigned i = 0; i < insn->mods_count && found < 2; i++) {
		enum ptx_space space = fgv_ptx_space_find(insn->mods[i]);

		if (space == PTX_GLOBAL || space == PTX_SHARED)
			spaces[found++] = space;
	}
	if (found < 2 || counted == fgv_lower_has_mod(insn, "bulk_group") ||
	    insn->operands_count - fgv_lower_has_mod(insn, "L2::cache_hint") !=
		    (counted ? 4u : 3u)) {
		fgv_lower_fail(l, "this kind of cp.async.bulk is not supported");
		return;
	}
	o[0] = generic_address(l, insn->operands, spaces[0]);
	o[1] = generic_address(l, fgv_lower_operand(insn, 1), spaces[1]);
	o[2] = fgv_lower_source(l, fgv_lower_operand(insn, 2), 4);
	o[3] = counted ? generic_address(l, fgv_lower_operand(insn, 3), PTX_SHARED) : OPERAND_NONE;
	d = fgv_lower_emit(l, OP_cp_bulk);
	memcpy(d->insn.o + 1, o, sizeof(o));
}

/* The copies are done: without .noinc one arrival more is expected and comes at once. */
static void copies_arrive(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	uint32_t address;

	fgv_lower_mods(l, insn, &m);
	address = generic_address(l, insn->operands, m.space);
	if (fgv_lower_has_mod(insn, "noinc"))
		emit(l, OP_mbarrier_arrive, OPERAND_NONE, address, fgv_lower_const(l, 1, 4));
	else
		fgv_lower_emit(l, OP_nop);
}

void fgv_lower_cp(struct lower *l, const struct ptx_insn *insn)
{
	if (!insn->mods_count || strcmp(insn->mods[0], "async"))
		fgv_lower_fail(l, "this kind of cp is not supported");
	else if (fgv_lower_has_mod(insn, "commit_group") || fgv_lower_has_mod(insn, "wait_group") ||
		 fgv_lower_has_mod(insn, "wait_all") || fgv_lower_has_mod(insn, "prefetch"))
		fgv_lower_emit(l, OP_nop);
	else if (fgv_lower_has_mod(insn, "mbarrier"))
		copies_arrive(l, insn);
	else if (fgv_lower_has_mod(insn, "bulk"))
		bulk(l, insn);
	else
		copy(l, insn);
}
