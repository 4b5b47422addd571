/*
 * Initial values of variables, as the bytes that they are in memory.
 */
#include "ptx/ptx.h"

#include <errno.h>
#include <string.h>

struct fill {
	const struct ptx_var *var;
	uint8_t *bytes;
	uint64_t count; /* elements that there is room for */
	unsigned size;	/* of one */
	fgv_ptx_symbol_value *symbol_value;
	void *arg;
	int status;
};

uint64_t fgv_ptx_resize_float(uint64_t bits, unsigned from_bytes, unsigned to_bytes)
{
	uint32_t narrow = (uint32_t)bits;
	double d;
	float f;

	if (from_bytes == 8 && to_bytes == 4) {
		memcpy(&d, &bits, sizeof(d));
		f = (float)d;
		memcpy(&narrow, &f, sizeof(narrow));
		return narrow;
	}
	if (from_bytes == 4 && to_bytes == 8) {
		memcpy(&f, &narrow, sizeof(f));
		d = f;
		memcpy(&bits, &d, sizeof(bits));
	}
	return bits;
}

uint64_t fgv_ptx_init_masked(const struct ptx_init *init, uint64_t address)
{
	return init->mask ? (address & init->mask) >> __builtin_ctzll(init->mask) : address;
}

static uint64_t value_of(struct fill *f, const struct ptx_init *init)
{
	uint64_t address = 0;

	switch (init->kind) {
	case PTX_INIT_F32:
		return fgv_ptx_resize_float(init->value, 4, f->size);
	case PTX_INIT_F64:
		return fgv_ptx_resize_float(init->value, 8, f->size);
	case PTX_INIT_SYMBOL:
		f->status = f->symbol_value(init, &address, f->arg);
		return fgv_ptx_init_masked(init, address);
	default:
		return init->value;
	}
}

static void fill_value(struct fill *f, const struct ptx_init *init, uint64_t index)
{
	uint64_t value;

	if (index >= f->count) {
		f->status = -ENOSPC;
		return;
	}
	value = value_of(f, init);
	if (!f->status)
		memcpy(f->bytes + index * f->size, &value, f->size);
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

	for (; list && !f->status; list = list->next, i++) {
		if (list->kind == PTX_INIT_LIST)
			fill_list(f, list->list, dim + 1, index + i * stride_of(f->var, dim + 1));
		else
			fill_value(f, list, index + i);
	}
}

int fgv_ptx_var_fill(const struct ptx_var *var, void *bytes, uint64_t len,
		     fgv_ptx_symbol_value *symbol_value, void *arg)
{
	struct fill f = {
		.var = var,
		.bytes = bytes,
		.size = fgv_ptx_type_size(var->type),
		.symbol_value = symbol_value,
		.arg = arg,
	};

	/* What is wider than a value here has none in PTX either. */
	if (!f.size || f.size > sizeof(uint64_t))
		return -EINVAL;
	f.count = len / f.size;
	if (var->init->kind == PTX_INIT_LIST)
		fill_list(&f, var->init->list, 0, 0);
	else
		fill_value(&f, var->init, 0);
	return f.status;
}
