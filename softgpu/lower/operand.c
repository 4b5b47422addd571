/*
 * Operands: registers get places in the frame when first used, constants places
 * in the function's table of constants.
 */
#include "softgpu/lower/lower.h"
#include "softgpu/sreg.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that one register takes in the frame: 32 lanes, or a mask. */
static uint32_t row_bytes(unsigned size)
{
	return size ? size * LANES : 4;
}

uint32_t fgv_lower_temp(struct lower *l, unsigned size)
{
	uint32_t bytes = row_bytes(size);
	uint32_t place = bytes < 64 ? l->frame : (l->frame + 63) & ~63u;

	if (place > FRAME_MAX - bytes) {
		fgv_lower_fail(l, "function needs more registers than the soft GPU has");
		return 0;
	}
	l->frame = place + bytes;
	return place;
}

static bool grow_const_table(struct lower *l)
{
	uint32_t capacity = l->const_table_capacity ? l->const_table_capacity * 2 : 64;
	size_t bytes = capacity * sizeof(struct const_entry);
	struct const_entry *table = NULL;

	if (fgv_budget_take(&l->budget, bytes))
		table = calloc(1, bytes);
	if (!table)
		return false;
	fgv_budget_give(&l->budget, l->const_table_capacity * sizeof(*table));
	for (uint32_t i = 0; i < l->const_table_capacity; i++) {
		struct const_entry *e = &l->const_table[i];
		uint32_t h = (uint32_t)(e->value * 0x9e3779b97f4a7c15ull >> 40) + e->size;

		if (!e->size)
			continue;
		while (table[h & (capacity - 1)].size)
			h++;
		table[h & (capacity - 1)] = *e;
	}
	free(l->const_table);
	l->const_table = table;
	l->const_table_capacity = capacity;
	return true;
}

/* Size 1 stands for a predicate. */
static uint32_t append_const(struct lower *l, uint64_t value, unsigned size)
{
	uint32_t bytes = size == 1 ? 64 : size * LANES;
	uint32_t place = l->consts_bytes;

	if (l->consts_capacity - l->consts_bytes < bytes) {
		uint32_t capacity = l->consts_capacity ? l->consts_capacity * 2 : 4096;
		uint8_t *grown;

		if (capacity > FRAME_MAX * 4) {
			fgv_lower_fail(l, "function has too many constants");
			return 0;
		}
		grown = fgv_lower_grow(l, l->consts, l->consts_capacity, capacity);
		if (!grown)
			return 0;
		l->consts = grown;
		l->consts_capacity = capacity;
	}
	if (size == 1)
		memset(l->consts + place, value ? 0xff : 0, bytes);
	for (unsigned i = 0; size > 1 && i < LANES; i++)
		memcpy(l->consts + place + i * size, &value, size);
	l->consts_bytes += bytes;
	return place;
}

uint32_t fgv_lower_const(struct lower *l, uint64_t value, unsigned size)
{
	unsigned key = size ? size : 1;
	struct const_entry *e;
	uint32_t h;

	if (key < 8 && key > 1)
		value &= (1ull << (8 * key)) - 1;
	if (l->const_table_count * 2 >= l->const_table_capacity && !grow_const_table(l)) {
		fgv_lower_no_memory(l);
		return 0;
	}
	h = (uint32_t)(value * 0x9e3779b97f4a7c15ull >> 40) + key;
	for (;; h++) {
		e = &l->const_table[h & (l->const_table_capacity - 1)];
		if (!e->size)
			break;
		if (e->size == key && e->value == value)
			return e->offset | OPERAND_CONST;
	}
	*e = (struct const_entry){value, key, append_const(l, value, key)};
	l->const_table_count++;
	return e->offset | OPERAND_CONST;
}

static unsigned type_reg_size(enum ptx_type type)
{
	unsigned size = fgv_ptx_type_size(type);

	return size == 1 ? 2 : size;
}

static struct symbol *search_reg(struct lower *l, const char *name, uint32_t *index)
{
	size_t length = strlen(name);
	uint64_t number = 0;
	uint64_t scale = 1;
	struct symbol *s = fgv_lower_find(l, name);

	*index = 0;
	if (s)
		return s->kind == SYMBOL_REG && !s->reg_count ? s : NULL;
	for (size_t n = length; n > 1 && isdigit((unsigned char)name[n - 1]) && length - n < 7;) {
		n--;
		number += scale * (unsigned)(name[n] - '0');
		scale *= 10;
		for (const struct scope *scope = l->scope; scope; scope = scope->outer) {
			s = fgv_softgpu_map_find(&scope->symbols, name, n);
			if (s && s->kind == SYMBOL_REG && number < s->reg_count) {
				*index = (uint32_t)number;
				return s;
			}
		}
	}
	return NULL;
}

/*
 * Finds %r12 as itself, or as number 12 of %r<N>. Most names come again and again, at the same
 * address in the parsed text: what was found is kept until a scope begins, ends or changes.
 */
static struct symbol *find_reg(struct lower *l, const char *name, uint32_t *index)
{
	struct known_reg *known = &l->known_regs[(uintptr_t)name / 16 % KNOWN_REGS];

	if (known->name != name || known->scopes != l->scopes) {
		*known = (struct known_reg){.name = name, .scopes = l->scopes};
		known->symbol = search_reg(l, name, &known->index);
	}
	*index = known->index;
	return known->symbol;
}

int fgv_lower_reg_size(struct lower *l, const struct ptx_operand *op)
{
	uint32_t index;
	struct symbol *s;

	if (!op || op->kind != PTX_OP_NAME || op->member)
		return -1;
	s = find_reg(l, op->name, &index);
	return s ? (int)type_reg_size(s->type) : -1;
}

uint32_t fgv_lower_reg(struct lower *l, const struct ptx_operand *op)
{
	uint32_t index;
	struct symbol *s = find_reg(l, op->name, &index);

	if (!s || op->member) {
		fgv_lower_fail(l, "'%s' is no register", op->name);
		return 0;
	}
	if (!s->regs[index])
		s->regs[index] = fgv_lower_temp(l, type_reg_size(s->type)) + 1;
	return s->regs[index] - 1;
}

static const struct {
	const char *name;
	enum sreg sreg;
	bool wide;
} sregs[] = {
	{"%laneid", SREG_LANEID, false},
	{"%warpid", SREG_WARPID, false},
	{"%nwarpid", SREG_NWARPID, false},
	{"%smid", SREG_SMID, false},
	{"%nsmid", SREG_NSMID, false},
	{"%lanemask_eq", SREG_LANEMASK_EQ, false},
	{"%lanemask_le", SREG_LANEMASK_LE, false},
	{"%lanemask_lt", SREG_LANEMASK_LT, false},
	{"%lanemask_ge", SREG_LANEMASK_GE, false},
	{"%lanemask_gt", SREG_LANEMASK_GT, false},
	{"%clock", SREG_CLOCK, false},
	{"%clock_hi", SREG_CLOCK_HI, false},
	{"%clock64", SREG_CLOCK64, true},
	{"%globaltimer", SREG_GLOBALTIMER, true},
	{"%globaltimer_lo", SREG_GLOBALTIMER_LO, false},
	{"%globaltimer_hi", SREG_GLOBALTIMER_HI, false},
	{"%gridid", SREG_GRIDID, true},
	{"%envreg1", SREG_WORKSPACE_HI, false},
	{"%envreg2", SREG_WORKSPACE_LO, false},
	{"%dynamic_smem_size", SREG_DYNAMIC_SMEM, false},
	{"%reserved_smem_offset_1", SREG_RESERVED_SMEM_1, false},
	{"%total_smem_size", SREG_TOTAL_SMEM, false},
	{"%aggr_smem_size", SREG_TOTAL_SMEM, false},
	{"%cluster_ctarank", SREG_ZERO, false},
	{"%cluster_nctarank", SREG_ONE, false},
	{"%reserved_smem_offset_begin", SREG_ZERO, false},
	{"%reserved_smem_offset_end", SREG_ZERO, false},
	{"%reserved_smem_offset_cap", SREG_ZERO, false},
	{"%current_graph_exec", SREG_ZERO, true},
};

/* Those with .x, .y, .z: three in a row. A cluster is one block here. */
static const struct {
	const char *name;
	enum sreg first;
	enum sreg step;
} vector_sregs[] = {
	{"%tid", SREG_TID_X, 1},	  {"%ntid", SREG_NTID_X, 1},
	{"%ctaid", SREG_CTAID_X, 1},	  {"%nctaid", SREG_NCTAID_X, 1},
	{"%clusterid", SREG_CTAID_X, 1},  {"%nclusterid", SREG_NCTAID_X, 1},
	{"%cluster_ctaid", SREG_ZERO, 0}, {"%cluster_nctaid", SREG_ONE, 0},
};

static int find_sreg(const struct ptx_operand *op)
{
	const char *name = op->name;

	for (size_t i = 0; op->member && i < sizeof(vector_sregs) / sizeof(*vector_sregs); i++) {
		if (!strcmp(vector_sregs[i].name, name) && strlen(op->member) == 1 &&
		    strchr("xyz", op->member[0]))
			return (int)(vector_sregs[i].first +
				     vector_sregs[i].step * (unsigned)(op->member[0] - 'x'));
	}
	for (size_t i = 0; !op->member && i < sizeof(sregs) / sizeof(*sregs); i++) {
		if (!strcmp(sregs[i].name, name))
			return (int)sregs[i].sreg;
	}
	/* The other %envreg and the performance counters read as zero. */
	if (!strncmp(name, "%envreg", 7) || !strncmp(name, "%pm", 3))
		return SREG_ZERO;
	return -1;
}

static uint32_t load_sreg(struct lower *l, int sreg, unsigned size)
{
	unsigned wide = size == 8 ? 8 : 4;
	uint32_t place = fgv_lower_temp(l, wide);
	struct draft *d = fgv_lower_emit(l, wide == 8 ? OP_sreg64 : OP_sreg);

	l->program->uses_reserved |= sreg == SREG_RESERVED_SMEM_1;
	d->insn.aux = (uint8_t)sreg;
	d->insn.o[0] = place;
	if (size == 2) {
		uint32_t narrow = fgv_lower_temp(l, 2);

		fgv_lower_emit_op(l, "low_u16_u32", narrow, &place, 1);
		return narrow;
	}
	return place;
}

uint64_t fgv_lower_number(const struct ptx_operand *op, unsigned size)
{
	if (op->kind == PTX_OP_F64 || op->kind == PTX_OP_F32)
		return fgv_ptx_resize_float(op->value, op->kind == PTX_OP_F64 ? 8 : 4, size);
	return op->value;
}

uint32_t fgv_lower_address_of(struct lower *l, const struct symbol *s, uint64_t offset,
			      unsigned size)
{
	uint32_t place;
	struct draft *d;

	switch (s->kind) {
	case SYMBOL_ADDRESS:
	case SYMBOL_SHARED:
	case SYMBOL_PARAM:
		return fgv_lower_const(l, s->value + offset, size);
	case SYMBOL_FUNCTION:
		return fgv_lower_const(l, s->code->token, size);
	case SYMBOL_LOCAL:
		place = fgv_lower_temp(l, size);
		d = fgv_lower_emit(l, size == 8 ? OP_local_address : OP_local_address32);
		d->insn.imm = (int64_t)(s->value + offset);
		d->insn.o[0] = place;
		return place;
	case SYMBOL_DYNAMIC:
		if (l->function->entry)
			return fgv_lower_const(l, l->code->dynamic_base + offset, size);
		place = load_sreg(l, SREG_DYNAMIC_BASE, size);
		if (offset) {
			uint32_t sum = fgv_lower_temp(l, size);
			uint32_t sources[2] = {place, fgv_lower_const(l, offset, size)};

			fgv_lower_emit_op(l, size == 8 ? "add_u64" : "add_u32", sum, sources, 2);
			return sum;
		}
		return place;
	default:
		fgv_lower_fail(l, "'%s' has no address here", s->name);
		return 0;
	}
}

static uint32_t name_source(struct lower *l, const struct ptx_operand *op, unsigned size)
{
	int reg_size = fgv_lower_reg_size(l, op);
	const struct symbol *s;
	int sreg;

	if (reg_size >= 0) {
		if ((unsigned)reg_size != size) {
			fgv_lower_fail(l,
				       "register '%s' has not the width that the instruction wants",
				       op->name);
			return 0;
		}
		return fgv_lower_reg(l, op);
	}
	if (!strcmp(op->name, "WARP_SZ"))
		return fgv_lower_const(l, LANES, size);
	if (!size && !strcmp(op->name, "%is_explicit_cluster"))
		return fgv_lower_const(l, 0, 0);
	sreg = find_sreg(op);
	if (sreg >= 0 && size)
		return load_sreg(l, sreg, size);
	s = fgv_lower_find(l, op->name);
	if (s && (size == 4 || size == 8) && !op->member)
		return fgv_lower_address_of(l, s, op->value, size);
	fgv_lower_fail(l, "'%s' is not known", op->name);
	return 0;
}

uint32_t fgv_lower_source(struct lower *l, const struct ptx_operand *op, unsigned size)
{
	if (!op) {
		fgv_lower_fail(l, "operand missing");
		return 0;
	}
	switch (op->kind) {
	case PTX_OP_NAME:
		return name_source(l, op, size) | (op->negated && !size ? OPERAND_NOT : 0);
	case PTX_OP_INT:
	case PTX_OP_F32:
	case PTX_OP_F64:
		return fgv_lower_const(l, fgv_lower_number(op, size), size);
	default:
		fgv_lower_fail(l, "operand of a kind that does not go here");
		return 0;
	}
}

uint32_t fgv_lower_dest(struct lower *l, const struct ptx_operand *op, unsigned size)
{
	int reg_size;

	if (op && op->kind == PTX_OP_SINK)
		return fgv_lower_temp(l, size);
	reg_size = fgv_lower_reg_size(l, op);
	if (reg_size < 0 || (unsigned)reg_size != size) {
		fgv_lower_fail(l, "destination is no register of %u bits", size * 8);
		return 0;
	}
	return fgv_lower_reg(l, op);
}

uint32_t fgv_lower_predicate(struct lower *l, const struct ptx_operand *op)
{
	return fgv_lower_source(l, op, 0);
}

const struct ptx_operand *fgv_lower_operand(const struct ptx_insn *insn, unsigned index)
{
	const struct ptx_operand *op = insn->operands;

	while (op && index--)
		op = op->next;
	return op;
}

static bool symbol_place(struct lower *l, const struct symbol *s, uint64_t offset,
			 struct memory_place *place)
{
	switch (s->kind) {
	case SYMBOL_ADDRESS:
	case SYMBOL_SHARED:
	case SYMBOL_PARAM:
		place->kind = ADDRESS_IMM;
		place->imm = (int64_t)(s->value + offset);
		return true;
	case SYMBOL_LOCAL:
		place->kind = ADDRESS_FRAME;
		place->imm = (int64_t)(s->value + offset);
		place->is_local = true;
		return true;
	case SYMBOL_DYNAMIC:
		if (l->function->entry) {
			place->kind = ADDRESS_IMM;
			place->imm = (int64_t)(l->code->dynamic_base + offset);
			return true;
		}
		place->kind = ADDRESS_REG32;
		place->reg = fgv_lower_address_of(l, s, 0, 4);
		place->imm = (int64_t)offset;
		return true;
	default:
		fgv_lower_fail(l, "'%s' cannot be addressed", s->name);
		return false;
	}
}

bool fgv_lower_place(struct lower *l, const struct ptx_operand *op, enum ptx_space space,
		     struct memory_place *place)
{
	const struct symbol *s;
	int size;

	memset(place, 0, sizeof(*place));
	place->reg = OPERAND_NONE;
	if (!op || op->kind != PTX_OP_ADDRESS || op->list) {
		fgv_lower_fail(l, "address expected");
		return false;
	}
	place->imm = (int64_t)op->value;
	/* A function's parameters lie in its frame; a register that points there says so. */
	place->is_local = space == PTX_LOCAL || (space == PTX_PARAM && !l->function->entry);
	if (!op->name) {
		place->kind = ADDRESS_IMM;
		return true;
	}
	{
		struct ptx_operand base = {
			.kind = PTX_OP_NAME, .name = op->name, .member = op->member};

		size = fgv_lower_reg_size(l, &base);
		if (size == 4 || size == 8) {
			place->kind = size == 8 ? ADDRESS_REG64 : ADDRESS_REG32;
			place->reg = fgv_lower_reg(l, &base);
			return true;
		}
	}
	s = fgv_lower_find(l, op->name);
	if (!s) {
		fgv_lower_fail(l, "'%s' is not known", op->name);
		return false;
	}
	return symbol_place(l, s, op->value, place);
}
