/*
 * Variables of a program in device memory: one allocation holds all, constants behind the rest, so
 * that they fill pages of their own. Device memory is this process's own memory, so initial values
 * are written in place.
 */
#include "softgpu/program_data.h"

#include <string.h>

#include "common/util.h"

CUresult fgv_program_place_data(struct program *program)
{
	uint64_t const_start = fgv_align_up(program->data_bytes, PAGE_BYTES);
	uint64_t bytes = const_start + program->const_bytes;
	CUresult result;

	if (!bytes)
		return CUDA_SUCCESS;
	result = fgv_softgpu_memory_alloc(program->memory, bytes, &program->data);
	if (result != CUDA_SUCCESS)
		return result;
	program->const_address = program->data + const_start;
	for (struct symbol *s = program->data_symbols; s; s = s->next)
		s->value += s->space == PTX_CONST ? program->const_address : program->data;
	return CUDA_SUCCESS;
}

struct fill {
	struct lower *l;
	struct scope *scope;
	const struct symbol *symbol;
	unsigned size; /* of an element */
};

/* The address that a symbol stands for in an initialiser. */
static uint64_t symbol_value(struct fill *f, const struct ptx_init *init)
{
	struct symbol *s =
		fgv_softgpu_map_find(&f->scope->symbols, init->symbol, strlen(init->symbol));

	if (s && s->kind == SYMBOL_ADDRESS)
		return s->value + init->value;
	if (s && s->kind == SYMBOL_FUNCTION)
		return s->code->token + init->value;
	if (s && s->kind == SYMBOL_SHARED)
		fgv_lower_place_common(f->l, s);
	if (s && s->kind == SYMBOL_SHARED)
		return (init->generic ? SHARED_WINDOW : 0) + s->value + init->value;
	fgv_lower_fail(f->l, "'%s' in an initialiser is not known", init->symbol);
	return 0;
}

/* mask(symbol): the masked bits, moved down to bit 0. */
static uint64_t masked(uint64_t value, uint64_t mask)
{
	return mask ? (value & mask) >> __builtin_ctzll(mask) : value;
}

static void fill_value(struct fill *f, const struct ptx_init *init, uint64_t index)
{
	struct ptx_operand number = {.value = init->value};
	uint64_t value = init->value;

	if (index >= f->symbol->bytes / f->size) {
		fgv_lower_fail(f->l, "too many values for '%s'", f->symbol->name);
		return;
	}
	if (init->kind == PTX_INIT_SYMBOL) {
		value = masked(symbol_value(f, init), init->mask);
	} else if (init->kind != PTX_INIT_INT) {
		number.kind = init->kind == PTX_INIT_F32 ? PTX_OP_F32 : PTX_OP_F64;
		value = fgv_lower_number(&number, f->size);
	}
	if (!f->l->failed)
		memcpy((char *)(uintptr_t)f->symbol->value + index * f->size, &value, f->size);
}

/* Elements that one value of dimension @dim covers; a vector is one more dimension. */
static uint64_t stride_of(const struct ptx_var *var, uint32_t dim)
{
	uint64_t stride = var->vector ? var->vector : 1;

	if (dim > var->dims_count)
		return 1;
	for (uint32_t i = dim; i < var->dims_count; i++)
		stride *= var->dims[i];
	return stride;
}

static void fill_list(struct fill *f, const struct ptx_init *list, uint32_t dim, uint64_t index)
{
	uint64_t i = 0;

	for (; list && !f->l->failed; list = list->next, i++) {
		if (list->kind == PTX_INIT_LIST)
			fill_list(f, list->list, dim + 1,
				  index + i * stride_of(f->symbol->var, dim + 1));
		else
			fill_value(f, list, index + i);
	}
}

void fgv_program_init_data(struct lower *l, struct scope *scope, const struct ptx_module *module)
{
	for (const struct ptx_item *item = module->items; item && !l->failed; item = item->next) {
		struct fill f = {.l = l, .scope = scope};

		if (item->kind != PTX_ITEM_VAR || !item->var->init)
			continue;
		f.symbol = fgv_softgpu_map_find(&scope->symbols, item->var->name,
						strlen(item->var->name));
		f.size = fgv_ptx_type_size(item->var->type);
		if (!f.symbol || f.symbol->kind != SYMBOL_ADDRESS || f.symbol->var != item->var)
			continue;
		l->line = item->var->line;
		if (!f.size)
			fgv_lower_fail(l, "'%s' cannot have a value", f.symbol->name);
		else if (item->var->init->kind == PTX_INIT_LIST)
			fill_list(&f, item->var->init->list, 0, 0);
		else
			fill_value(&f, item->var->init, 0);
	}
}
