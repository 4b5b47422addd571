/* Branches, calls, barriers and exits. */
#include "softgpu/lower/system.h"

#include <string.h>

void fgv_lower_bra(struct lower *l, const struct ptx_insn *insn)
{
	struct ptx_operand p = {
		.kind = PTX_OP_NAME, .name = insn->guard, .negated = insn->guard_negated};
	uint32_t condition = insn->guard ? fgv_lower_predicate(l, &p) : OPERAND_NONE;
	struct draft *d;

	if (!insn->operands || insn->operands->kind != PTX_OP_NAME) {
		fgv_lower_fail(l, "label expected");
		return;
	}
	d = fgv_lower_emit(l, insn->guard ? OP_bra_if : OP_bra);
	d->insn.o[0] = condition;
	d->target = fgv_lower_find_label(l, insn->operands->name);
	/* Where the sides meet may be right here, if the other never comes back. */
	if (insn->guard)
		fgv_lower_place_label(l, fgv_lower_new_label(l));
}

void fgv_lower_brx(struct lower *l, const struct ptx_insn *insn)
{
	const struct ptx_operand *name = fgv_lower_operand(insn, 1);
	uint32_t index = fgv_lower_source(l, fgv_lower_operand(insn, 0), 4);
	const struct symbol *s = name && name->name ? fgv_lower_find(l, name->name) : NULL;
	struct branch_table *table;
	struct draft *d;
	uint32_t *labels;
	uint32_t count = 0;

	if (!s || s->kind != SYMBOL_TABLE || s->targets->calls) {
		fgv_lower_fail(l, "table of branch targets expected");
		return;
	}
	for (const struct ptx_operand *op = s->targets->list; op; op = op->next)
		count++;
	table = fgv_softgpu_pool_get(&l->program->pool, sizeof(*table));
	labels = fgv_softgpu_pool_get(&l->pool, (count + 1) * sizeof(*labels));
	if (table)
		table->targets = fgv_softgpu_pool_get(&l->program->pool,
						      (count + 1) * sizeof(*table->targets));
	if (!count) {
		fgv_lower_fail(l, "empty table of branch targets");
		return;
	}
	if (!table || !labels || !table->targets) {
		fgv_lower_no_memory(l);
		return;
	}
	count = 0;
	for (const struct ptx_operand *op = s->targets->list; op; op = op->next)
		labels[count++] = op->name ? fgv_lower_find_label(l, op->name) : l->end_label;
	table->count = count;
	d = fgv_lower_emit(l, OP_brx);
	d->insn.o[0] = index;
	d->insn.imm = (int64_t)(uintptr_t)table;
	d->table = table;
	d->table_labels = labels;
}

void fgv_lower_ret(struct lower *l, const struct ptx_insn *insn)
{
	(void)insn;
	fgv_lower_emit(l, OP_bra)->target = l->end_label;
}

/* In a kernel the same as ret. */
void fgv_lower_exit(struct lower *l, const struct ptx_insn *insn)
{
	if (l->function->entry)
		fgv_lower_ret(l, insn);
	else
		fgv_lower_emit(l, OP_exit);
}

void fgv_lower_trap(struct lower *l, const struct ptx_insn *insn)
{
	(void)insn;
	fgv_lower_emit(l, OP_trap);
}

void fgv_lower_nothing(struct lower *l, const struct ptx_insn *insn)
{
	(void)insn;
	fgv_lower_emit(l, OP_nop);
}

void fgv_lower_fence(struct lower *l, const struct ptx_insn *insn)
{
	(void)insn;
	fgv_lower_emit(l, OP_fence);
}

/* bar.red: arrives with a predicate, waits, and reads what came of it. */
static void lower_bar_red(struct lower *l, const struct ptx_insn *insn)
{
	bool popc = fgv_lower_has_mod(insn, "popc");
	bool all = fgv_lower_has_mod(insn, "and");
	bool counted = insn->operands_count == 4;
	uint32_t d = fgv_lower_dest(l, insn->operands, popc ? 4 : 0);
	uint32_t id = fgv_lower_source(l, fgv_lower_operand(insn, 1), 4);
	uint32_t count =
		counted ? fgv_lower_source(l, fgv_lower_operand(insn, 2), 4) : OPERAND_NONE;
	uint32_t p = fgv_lower_predicate(l, fgv_lower_operand(insn, counted ? 3 : 2));
	struct draft *draft = fgv_lower_emit(l, OP_bar_red);

	draft->insn.o[0] = id;
	draft->insn.o[1] = count;
	draft->insn.o[2] = p;
	draft = fgv_lower_emit(l, OP_bar_red_result);
	draft->insn.o[0] = id;
	draft->insn.o[2] = d;
	draft->insn.aux = popc ? 0 : all ? 1 : 2;
}

void fgv_lower_bar(struct lower *l, const struct ptx_insn *insn)
{
	bool arrive = fgv_lower_has_mod(insn, "arrive");
	uint32_t members;
	uint32_t id;
	uint32_t count;
	struct draft *d;

	if (fgv_lower_has_mod(insn, "warp")) {
		members = fgv_lower_source(l, fgv_lower_operand(insn, 0), 4);
		fgv_lower_emit(l, OP_warp_sync)->insn.o[5] = members;
		return;
	}
	if (fgv_lower_has_mod(insn, "cluster")) {
		/* A cluster is one block: a wait is one for the block. */
		if (arrive) {
			fgv_lower_emit(l, OP_nop);
			return;
		}
		id = fgv_lower_const(l, 0, 4);
		d = fgv_lower_emit(l, OP_bar_sync);
		d->insn.o[0] = id;
		d->insn.o[1] = OPERAND_NONE;
		return;
	}
	if (fgv_lower_has_mod(insn, "red")) {
		lower_bar_red(l, insn);
		return;
	}
	if (!arrive && !fgv_lower_has_mod(insn, "sync")) {
		fgv_lower_fail(l, "this kind of barrier is not supported");
		return;
	}
	id = fgv_lower_source(l, fgv_lower_operand(insn, 0), 4);
	count = insn->operands_count > 1 ? fgv_lower_source(l, fgv_lower_operand(insn, 1), 4)
					 : OPERAND_NONE;
	d = fgv_lower_emit(l, arrive ? OP_bar_arrive : OP_bar_sync);
	d->insn.o[0] = id;
	d->insn.o[1] = count;
}

/* A .param variable of the caller: an argument or where the result goes. */
static bool param_place(struct lower *l, const struct ptx_operand *op, struct param_place *place)
{
	const struct symbol *s = op->kind == PTX_OP_NAME ? fgv_lower_find(l, op->name) : NULL;

	if (!s || s->kind != SYMBOL_LOCAL) {
		fgv_lower_fail(l, "argument of a call is no .param variable");
		return false;
	}
	place->offset = (uint32_t)s->value;
	place->bytes = (uint32_t)s->bytes;
	return true;
}

static bool take_args(struct lower *l, const struct ptx_operand *list, struct call_site *site)
{
	for (const struct ptx_operand *op = list; op; op = op->next)
		site->args_count++;
	site->args = fgv_softgpu_pool_get(&l->program->pool,
					  (site->args_count + 1) * sizeof(*site->args));
	if (!site->args) {
		fgv_lower_no_memory(l);
		return false;
	}
	site->args_count = 0;
	for (const struct ptx_operand *op = list; op; op = op->next) {
		if (!param_place(l, op, &site->args[site->args_count++]))
			return false;
	}
	return true;
}

static bool signature_matches(const struct call_site *site, const struct code *callee)
{
	if (site->args_count != callee->params_count ||
	    site->returned.bytes > callee->returned.bytes)
		return false;
	for (uint32_t i = 0; i < site->args_count; i++) {
		if (site->args[i].bytes != callee->params[i].bytes)
			return false;
	}
	return true;
}

static void note_call(struct lower *l, struct code *callee)
{
	struct call_edge *edge;

	if (callee->noted_by == l->code)
		return;
	edge = fgv_softgpu_pool_get(&l->program->pool, sizeof(*edge));
	if (!edge) {
		fgv_lower_no_memory(l);
		return;
	}
	callee->noted_by = l->code;
	edge->callee = callee;
	edge->next = l->code->calls;
	l->code->calls = edge;
}

static void emit_call(struct lower *l, struct call_site *site, const struct ptx_operand *target)
{
	const struct symbol *s = fgv_lower_find(l, target->name);
	struct draft *d;
	uint32_t address;

	if (s && s->kind == SYMBOL_EXTERN && fgv_lower_system_call(l, site, s->name))
		return;
	if (s && s->kind == SYMBOL_EXTERN) {
		l->code->missing = s->name;
		l->code->missing_line = l->line;
		fgv_lower_emit(l, OP_trap);
		return;
	}
	if (s && s->kind == SYMBOL_FUNCTION && !s->code->entry) {
		site->callee = s->code;
		if (!signature_matches(site, s->code)) {
			fgv_lower_fail(l, "call of '%s' does not fit its parameters", s->name);
			return;
		}
		note_call(l, s->code);
		fgv_lower_emit(l, OP_call)->insn.imm = (int64_t)(uintptr_t)site;
		return;
	}
	if (fgv_lower_reg_size(l, target) != 8) {
		fgv_lower_fail(l, "call of '%s', which is no function", target->name);
		return;
	}
	l->program->indirect = true;
	address = fgv_lower_reg(l, target);
	d = fgv_lower_emit(l, OP_call_indirect);
	d->insn.o[0] = address;
	d->insn.imm = (int64_t)(uintptr_t)site;
	fgv_lower_place_label(l, fgv_lower_new_label(l));
}

/* call (result), function, (arguments), prototype; all but the function may be missing. */
void fgv_lower_call(struct lower *l, const struct ptx_insn *insn)
{
	const struct ptx_operand *op = insn->operands;
	const struct ptx_operand *target;
	struct call_site *site = fgv_softgpu_pool_get(&l->program->pool, sizeof(*site));

	if (!site) {
		fgv_lower_no_memory(l);
		return;
	}
	site->functions = l->program->functions;
	site->functions_count = l->program->functions_count;
	if (op && op->kind == PTX_OP_PAREN) {
		if (op->list && !param_place(l, op->list, &site->returned))
			return;
		if (op->list && op->list->next) {
			fgv_lower_fail(l, "more than one result is not supported");
			return;
		}
		op = op->next;
	}
	target = op;
	if (!target || target->kind != PTX_OP_NAME) {
		fgv_lower_fail(l, "function expected");
		return;
	}
	op = op->next;
	if (!take_args(l, op && op->kind == PTX_OP_PAREN ? op->list : NULL, site))
		return;
	emit_call(l, site, target);
}
