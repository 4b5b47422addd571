/*
 * A function's body: scopes and declarations, labels, and the instructions in order.
 */
#include "softgpu/lower/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define DRAFTS_MAX (16u << 20)

void fgv_lower_fail(struct lower *l, const char *format, ...)
{
	va_list args;
	int n;

	if (l->failed)
		return;
	l->failed = true;
	if (!l->log_len)
		return;
	n = snprintf(l->log, l->log_len, "line %u: ", l->line);
	if (n < 0 || (size_t)n >= l->log_len)
		return;
	va_start(args, format);
	vsnprintf(l->log + n, l->log_len - (size_t)n, format, args);
	va_end(args);
}

void fgv_lower_no_memory(struct lower *l)
{
	if (l->failed)
		return;
	l->no_memory = true;
	fgv_lower_fail(l, "out of memory, or too much in a text of this length");
}

void *fgv_lower_grow(struct lower *l, void *array, size_t bytes, size_t grown_bytes)
{
	void *grown = NULL;

	if (fgv_budget_take(&l->budget, grown_bytes - bytes)) {
		grown = realloc(array, grown_bytes);
		if (!grown)
			fgv_budget_give(&l->budget, grown_bytes - bytes);
	}
	if (!grown)
		fgv_lower_no_memory(l);
	return grown;
}

static bool grow_drafts(struct lower *l)
{
	uint32_t capacity = l->capacity ? l->capacity * 2 : 256;
	struct draft *grown;

	if (capacity > DRAFTS_MAX) {
		fgv_lower_fail(l, "function too large");
		return false;
	}
	grown = fgv_lower_grow(l, l->drafts, l->capacity * sizeof(*grown),
			       capacity * sizeof(*grown));
	if (!grown)
		return false;
	l->drafts = grown;
	l->capacity = capacity;
	return true;
}

struct draft *fgv_lower_emit(struct lower *l, enum op op)
{
	struct draft *d = &l->scratch;

	if (!l->failed && (l->count < l->capacity || grow_drafts(l)))
		d = &l->drafts[l->count++];
	memset(d, 0, sizeof(*d));
	d->insn.op = (uint16_t)op;
	d->insn.line = l->line;
	d->target = NO_INDEX;
	d->join = NO_INDEX;
	for (int i = 0; i < 6; i++)
		d->insn.o[i] = OPERAND_NONE;
	return d;
}

uint32_t fgv_lower_new_label(struct lower *l)
{
	if (l->labels_count == l->labels_capacity) {
		uint32_t capacity = l->labels_capacity ? l->labels_capacity * 2 : 64;
		uint32_t *grown = fgv_lower_grow(l, l->places, l->labels_capacity * sizeof(*grown),
						 capacity * sizeof(*grown));

		if (!grown)
			return 0;
		l->places = grown;
		l->labels_capacity = capacity;
	}
	l->places[l->labels_count] = NO_INDEX;
	return l->labels_count++;
}

uint32_t fgv_lower_find_label(struct lower *l, const char *name)
{
	uintptr_t known = (uintptr_t)fgv_softgpu_map_find(&l->labels, name, strlen(name));
	uint32_t label;

	if (known)
		return (uint32_t)(known - 1);
	label = fgv_lower_new_label(l);
	if (!fgv_softgpu_map_put(&l->pool, &l->labels, name, (void *)(uintptr_t)(label + 1)))
		fgv_lower_no_memory(l);
	return label;
}

/* Every place that can be jumped to begins with an OP_join; cfg.c takes out the idle ones. */
void fgv_lower_place_label(struct lower *l, uint32_t label)
{
	if (l->failed)
		return;
	if (l->places[label] != NO_INDEX) {
		fgv_lower_fail(l, "label defined twice");
		return;
	}
	l->places[label] = l->count;
	fgv_lower_emit(l, OP_join);
}

struct symbol *fgv_lower_find(const struct lower *l, const char *name)
{
	for (const struct scope *scope = l->scope; scope; scope = scope->outer) {
		struct symbol *s = fgv_softgpu_map_find(&scope->symbols, name, strlen(name));

		if (s)
			return s;
	}
	return NULL;
}

bool fgv_lower_declare(struct lower *l, struct scope *scope, const char *name, struct symbol *s)
{
	struct pool *pool = scope->outer ? &l->pool : &l->program->pool;

	l->scopes++;
	if (scope->outer && fgv_softgpu_map_find(&scope->symbols, name, strlen(name))) {
		fgv_lower_fail(l, "'%s' declared twice", name);
		return false;
	}
	if (!fgv_softgpu_map_put(pool, &scope->symbols, name, s)) {
		fgv_lower_no_memory(l);
		return false;
	}
	return true;
}

static struct symbol *new_symbol(struct lower *l, const struct ptx_var *var, enum symbol_kind kind)
{
	struct symbol *s = fgv_softgpu_pool_get(&l->pool, sizeof(*s));

	if (!s) {
		fgv_lower_no_memory(l);
		return NULL;
	}
	s->kind = kind;
	s->name = var->name;
	s->type = var->type;
	s->bytes = fgv_ptx_var_size(var);
	s->var = var;
	return s;
}

static void declare_reg(struct lower *l, const struct ptx_var *var)
{
	struct symbol *s = new_symbol(l, var, SYMBOL_REG);
	unsigned size = fgv_ptx_type_size(var->type);

	if (!s)
		return;
	if (var->vector > 1 || var->dims_count || (var->type != PTX_PRED && (!size || size > 8))) {
		fgv_lower_fail(l, "registers like '%s' are not supported", var->name);
		return;
	}
	s->reg_count = var->reg_count;
	s->regs = fgv_softgpu_pool_get(&l->pool, (var->reg_count + 1) * sizeof(*s->regs));
	if (!s->regs)
		fgv_lower_no_memory(l);
	else
		fgv_lower_declare(l, l->scope, var->name, s);
}

/* Takes room for a variable behind *@used. */
static uint64_t place_var(struct lower *l, const struct ptx_var *var, uint32_t *used, uint32_t max)
{
	uint64_t bytes = fgv_ptx_var_size(var);
	uint64_t offset = fgv_align_up(*used, fgv_ptx_var_align(var));

	if (bytes > max || offset > max - bytes) {
		fgv_lower_fail(l, "no room for '%s': %llu bytes", var->name,
			       (unsigned long long)bytes);
		return 0;
	}
	*used = (uint32_t)(offset + bytes);
	return offset;
}

static void declare_local(struct lower *l, const struct ptx_var *var)
{
	struct symbol *s = new_symbol(l, var, SYMBOL_LOCAL);

	if (!s)
		return;
	s->value = place_var(l, var, &l->local, LOCAL_MAX);
	fgv_lower_declare(l, l->scope, var->name, s);
}

static void declare_shared(struct lower *l, const struct ptx_var *var)
{
	bool dynamic = var->linkage & PTX_EXTERN;
	struct symbol *s = new_symbol(l, var, dynamic ? SYMBOL_DYNAMIC : SYMBOL_SHARED);
	uint32_t *used = l->function->entry ? &l->shared : &l->program->shared_bytes;

	if (!s)
		return;
	if (!dynamic)
		s->value = place_var(l, var, used, STATIC_SHARED_MAX);
	fgv_lower_declare(l, l->scope, var->name, s);
}

void fgv_lower_place_common(struct lower *l, struct symbol *s)
{
	if (!s->common)
		s->value = place_var(l, s->var, &l->program->shared_bytes, STATIC_SHARED_MAX);
	s->common = true;
}

/*
 * A shared variable of the module takes room only where it is named: in the kernel that
 * does, or in all of them if a function does. Functions are lowered first.
 */
static void place_named(struct lower *l, const char *name)
{
	struct symbol *s = fgv_softgpu_map_find(&l->globals->symbols, name, strlen(name));

	if (!s || s->kind != SYMBOL_SHARED)
		return;
	if (!l->function->entry) {
		fgv_lower_place_common(l, s);
	} else if (!s->common && s->placed_for != l->code) {
		s->value = place_var(l, s->var, &l->shared, STATIC_SHARED_MAX);
		s->placed_for = l->code;
	}
}

static void place_operands(struct lower *l, const struct ptx_operand *op)
{
	for (; op && !l->failed; op = op->next) {
		if (op->name)
			place_named(l, op->name);
		place_operands(l, op->list);
	}
}

static void place_all_shared(struct lower *l, const struct ptx_stmt *stmt)
{
	for (; stmt && !l->failed; stmt = stmt->next) {
		l->line = stmt->line;
		if (stmt->kind == PTX_STMT_BLOCK)
			place_all_shared(l, stmt->block);
		else if (stmt->kind == PTX_STMT_INSN)
			place_operands(l, stmt->insn.operands);
	}
}

static void declare_var(struct lower *l, const struct ptx_var *var)
{
	switch (var->space) {
	case PTX_REG:
		declare_reg(l, var);
		break;
	case PTX_LOCAL:
	case PTX_PARAM:
		declare_local(l, var);
		break;
	case PTX_SHARED:
		break; /* before the body: its size must be known */
	default:
		fgv_lower_fail(l, "variable '%s' of this space inside a function", var->name);
		break;
	}
}

/* Shared variables of all blocks first: dynamic shared memory begins behind them. */
static void declare_all_shared(struct lower *l, const struct ptx_stmt *stmt)
{
	for (; stmt && !l->failed; stmt = stmt->next) {
		l->line = stmt->line;
		if (stmt->kind == PTX_STMT_BLOCK)
			declare_all_shared(l, stmt->block);
		else if (stmt->kind == PTX_STMT_VAR && stmt->var->space == PTX_SHARED)
			declare_shared(l, stmt->var);
	}
}

/* Tables may be named before they are declared, like labels. */
static void declare_tables(struct lower *l, const struct ptx_stmt *stmt)
{
	for (; stmt && !l->failed; stmt = stmt->next) {
		struct symbol *s;

		if (stmt->kind != PTX_STMT_TARGETS && stmt->kind != PTX_STMT_PROTOTYPE)
			continue;
		s = fgv_softgpu_pool_get(&l->pool, sizeof(*s));
		if (!s) {
			fgv_lower_no_memory(l);
			return;
		}
		s->kind = stmt->kind == PTX_STMT_TARGETS ? SYMBOL_TABLE : SYMBOL_PROTOTYPE;
		s->targets = &stmt->targets;
		s->prototype = &stmt->prototype;
		s->name = s->kind == SYMBOL_TABLE ? stmt->targets.name : stmt->prototype.name;
		fgv_lower_declare(l, l->scope, s->name, s);
	}
}

static void lower_body(struct lower *l, const struct ptx_stmt *stmt);

static void lower_block(struct lower *l, const struct ptx_stmt *body)
{
	struct scope scope = {.outer = l->scope};

	l->scope = &scope;
	l->scopes++;
	lower_body(l, body);
	l->scope = scope.outer;
	l->scopes++;
}

static void lower_body(struct lower *l, const struct ptx_stmt *stmt)
{
	declare_tables(l, stmt);
	for (; stmt && !l->failed; stmt = stmt->next) {
		l->line = stmt->line;
		switch (stmt->kind) {
		case PTX_STMT_INSN:
			fgv_lower_insn(l, &stmt->insn);
			break;
		case PTX_STMT_LABEL:
			fgv_lower_place_label(l, fgv_lower_find_label(l, stmt->label));
			break;
		case PTX_STMT_VAR:
			declare_var(l, stmt->var);
			break;
		case PTX_STMT_BLOCK:
			lower_block(l, stmt->block);
			break;
		case PTX_STMT_TARGETS:
		case PTX_STMT_PROTOTYPE:
			break;
		}
	}
}

bool fgv_lower_signature(struct lower *l, struct code *code, const struct ptx_function *f)
{
	uint32_t used = 0;
	uint32_t count = 0;

	l->line = f->line;
	for (const struct ptx_var *p = f->params; p; p = p->next)
		count++;
	code->params = fgv_softgpu_pool_get(&l->program->pool, (count + 1) * sizeof(*code->params));
	if (!code->params)
		fgv_lower_no_memory(l);
	for (const struct ptx_var *p = f->params; p && !l->failed; p = p->next) {
		struct param_place *place = &code->params[code->params_count++];

		if (p->space != PTX_PARAM)
			fgv_lower_fail(l, "parameters in registers are not supported");
		place->offset = (uint32_t)place_var(l, p, &used, PARAMS_MAX);
		place->bytes = (uint32_t)fgv_ptx_var_size(p);
	}
	code->param_bytes = used;
	if (f->returns && !l->failed) {
		if (f->returns->next || f->returns->space != PTX_PARAM)
			fgv_lower_fail(l, "results like those of '%s' are not supported", f->name);
		code->returned.offset = (uint32_t)place_var(l, f->returns, &used, PARAMS_MAX);
		code->returned.bytes = (uint32_t)fgv_ptx_var_size(f->returns);
	}
	code->local_bytes = used; /* until the body is lowered */
	return !l->failed;
}

static void declare_params(struct lower *l, const struct ptx_var *p,
			   const struct param_place *place, enum symbol_kind kind)
{
	for (; p && !l->failed; p = p->next, place++) {
		struct symbol *s = new_symbol(l, p, kind);

		if (!s)
			return;
		s->value = place->offset;
		fgv_lower_declare(l, l->scope, p->name, s);
	}
}

static void take_directives(struct lower *l)
{
	const struct ptx_directive *d = l->function->directives;
	struct code *code = l->code;

	for (; d; d = d->next) {
		uint64_t threads = 1;
		bool required = !strcmp(d->name, "reqntid");

		if (!required && strcmp(d->name, "maxntid"))
			continue;
		for (unsigned i = 0; i < d->values_count; i++) {
			if (!d->values[i] || d->values[i] > 1024)
				return;
			threads *= d->values[i];
		}
		code->max_threads = (uint32_t)fgv_min_u64(threads, 1024);
		for (unsigned i = 0; required && i < 3; i++)
			code->required_block[i] = i < d->values_count ? (uint32_t)d->values[i] : 1;
	}
}

static void lower_function(struct lower *l)
{
	const struct ptx_function *f = l->function;
	struct code *code = l->code;

	l->line = f->line;
	declare_params(l, f->params, code->params, f->entry ? SYMBOL_PARAM : SYMBOL_LOCAL);
	if (f->entry) {
		l->shared = l->program->shared_bytes;
		take_directives(l);
	} else {
		l->local = code->local_bytes;
		declare_params(l, f->returns, &code->returned, SYMBOL_LOCAL);
	}
	declare_all_shared(l, f->body);
	if (l->program->shared_vars)
		place_all_shared(l, f->body);
	if (f->entry) {
		code->shared_bytes = l->shared;
		code->dynamic_base = (uint32_t)fgv_align_up(l->shared, l->program->dynamic_align);
	}
	l->end_label = fgv_lower_new_label(l);
	lower_body(l, f->body);
	fgv_lower_place_label(l, l->end_label);
	fgv_lower_emit(l, f->entry ? OP_exit : OP_ret);
	if (!l->failed)
		fgv_lower_finish(l);
}

bool fgv_lower_function(struct lower *l)
{
	struct scope scope = {.outer = l->globals};

	l->scope = &scope;
	l->scopes++;
	l->count = l->labels_count = 0;
	l->frame = l->local = l->shared = 0;
	l->consts_bytes = l->const_table_count = 0;
	l->labels = (struct map){0};
	if (l->const_table)
		memset(l->const_table, 0, l->const_table_capacity * sizeof(*l->const_table));
	lower_function(l);
	l->scope = l->globals;
	fgv_softgpu_pool_fini(&l->pool);
	return !l->failed;
}
