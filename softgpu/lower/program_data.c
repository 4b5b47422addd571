/*
 * Variables of a program in device memory: one allocation holds all, constants behind the rest, so
 * that they fill pages of their own. Device memory is this process's own memory, so initial values
 * are written in place.
 */
#include "softgpu/lower/program_data.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

CUresult fgv_program_place_data(struct program *program)
{
	uint64_t const_start = fgv_align_up(program->data_bytes, PAGE_BYTES);
	uint64_t bytes = const_start + program->const_bytes;
	CUresult result;

	if (!bytes)
		return CUDA_SUCCESS;
	result = fgv_softgpu_memory_alloc(program->memory, bytes, PAGE_BYTES, &program->data);
	if (result != CUDA_SUCCESS)
		return result;
	program->bytes = fgv_align_up(bytes, UNIT_BYTES);
	program->const_address = program->data + const_start;
	for (struct symbol *s = program->data_symbols; s; s = s->next)
		s->value += s->space == PTX_CONST ? program->const_address : program->data;
	return CUDA_SUCCESS;
}

/* Whose initialisers these are. */
struct initialiser {
	struct lower *l;
	struct scope *scope;
};

/* Of a symbol whose place is found only now, too. */
static int symbol_value(const struct ptx_init *init, uint64_t *address, void *arg)
{
	struct initialiser *in = arg;
	struct symbol *s =
		fgv_softgpu_map_find(&in->scope->symbols, init->symbol, strlen(init->symbol));

	if (s && s->kind == SYMBOL_SHARED)
		fgv_lower_place_common(in->l, s);
	if (s && s->kind == SYMBOL_ADDRESS)
		*address = s->value;
	else if (s && s->kind == SYMBOL_FUNCTION && s->code)
		*address = s->code->token;
	else if (s && s->kind == SYMBOL_SHARED)
		*address = (init->generic ? SHARED_WINDOW : 0) + s->value;
	else
		fgv_lower_fail(in->l, "'%s' in an initialiser is not known", init->symbol);
	*address += init->value;
	return in->l->failed ? -ENOENT : 0;
}

static void init_variable(struct initialiser *in, const struct ptx_var *var)
{
	const struct symbol *s =
		fgv_softgpu_map_find(&in->scope->symbols, var->name, strlen(var->name));
	int err;

	if (!s || s->kind != SYMBOL_ADDRESS || s->var != var)
		return;
	in->l->line = var->line;
	err = fgv_ptx_var_fill(var, (void *)(uintptr_t)s->value, s->bytes, symbol_value, in);
	if (err == -ENOSPC)
		fgv_lower_fail(in->l, "too many values for '%s'", s->name);
	else if (err == -EINVAL)
		fgv_lower_fail(in->l, "'%s' cannot have a value", s->name);
}

void fgv_program_init_data(struct lower *l, struct scope *scope, const struct ptx_module *module)
{
	struct initialiser in = {l, scope};

	for (const struct ptx_item *item = module->items; item && !l->failed; item = item->next) {
		if (item->kind == PTX_ITEM_VAR && item->var->init)
			init_variable(&in, item->var);
	}
}
