/*
 * Variables at addresses that are known beforehand: managed ones, and those of a module that is
 * loaded already. PTX can't say where a variable
 * lies, so the variable goes, and each function that names it gets its address in a register
 * of its own, as it would get that of memory.
 */
#include "ptx/ptx.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS "%fgv_managed"

struct place {
	const char *name; /* the module's string */
	const struct ptx_placement *placement;
	bool is_found;	/* the module has such a variable */
};

/* A register of the function at hand, and the address in it. */
struct constant {
	uint64_t address;
	const char *name;
	struct constant *next;
};

struct placing {
	struct ptx_module *module;
	struct ptx_error *error;
	struct place *places; /* by name's address */
	size_t count;
	struct constant *constants;
	uint32_t constants_count;
	unsigned line;
	int status;
};

static void __attribute__((format(printf, 3, 4)))
fail(struct placing *p, int status, const char *format, ...)
{
	va_list args;

	if (p->status)
		return;
	p->status = status;
	p->error->line = p->line;
	va_start(args, format);
	vsnprintf(p->error->reason, sizeof(p->error->reason), format, args);
	va_end(args);
}

static void *get(struct placing *p, size_t size)
{
	void *memory = fgv_ptx_alloc(p->module, size);

	if (!memory)
		fail(p, -ENOMEM, "out of memory");
	return memory;
}

static const char *intern(struct placing *p, const char *name)
{
	const char *interned = fgv_ptx_intern(p->module, name, strlen(name));

	if (!interned)
		fail(p, -ENOMEM, "out of memory");
	return interned;
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct place *)a)->name;
	uintptr_t y = (uintptr_t)((const struct place *)b)->name;

	return (x > y) - (x < y);
}

static struct place *find_place(const struct placing *p, const char *name)
{
	struct place key = {.name = name};

	return name ? bsearch(&key, p->places, p->count, sizeof(key), compare) : NULL;
}

/* Where the variable @name of the module lies; NULL: it is none, or lies anywhere. */
static const struct ptx_placement *find(const struct placing *p, const char *name)
{
	const struct place *place = find_place(p, name);

	return place && place->is_found ? place->placement : NULL;
}

static void make_places(struct placing *p, const struct ptx_placement *placements, size_t count)
{
	p->places = get(p, count * sizeof(*p->places) + 1);
	for (size_t i = 0; !p->status && i < count; i++)
		p->places[i] = (struct place){intern(p, placements[i].name), &placements[i], false};
	if (p->status)
		return;
	p->count = count;
	qsort(p->places, count, sizeof(*p->places), compare);
	for (const struct ptx_item *item = p->module->items; item; item = item->next) {
		struct place *place =
			item->kind == PTX_ITEM_VAR ? find_place(p, item->var->name) : NULL;

		if (place && (item->var->managed || place->placement->is_loaded))
			place->is_found = true;
	}
}

static int placed_address(const struct ptx_init *init, uint64_t *address, void *arg)
{
	const struct ptx_placement *placement = find(arg, init->symbol);

	if (!placement)
		return -ENOENT;
	*address = (uint64_t)(uintptr_t)placement->memory + init->value;
	return 0;
}

/* Writes the initial value of @var, which @placement is for; what has none is 0. */
static void write_value(struct placing *p, const struct ptx_var *var,
			const struct ptx_placement *placement)
{
	int err = 0;

	p->line = var->line;
	if (fgv_ptx_var_size(var) > placement->bytes) {
		fail(p, -EINVAL, "'%s' is larger than the program says", var->name);
		return;
	}
	memset(placement->memory, 0, placement->bytes);
	if (var->init)
		err = fgv_ptx_var_fill(var, placement->memory, placement->bytes, placed_address, p);
	if (err)
		fail(p, err, "the initial value of managed variable '%s' is not known here",
		     var->name);
}

static void drop_variables(struct placing *p)
{
	struct ptx_item **link = &p->module->items;

	while (*link && !p->status) {
		const struct ptx_placement *placement =
			(*link)->kind == PTX_ITEM_VAR ? find(p, (*link)->var->name) : NULL;

		if (!placement) {
			link = &(*link)->next;
			continue;
		}
		if (!((*link)->var->linkage & PTX_EXTERN) && !placement->is_loaded)
			write_value(p, (*link)->var, placement);
		*link = (*link)->next;
	}
}

/* Where other variables begin as the address of one. */
static void replace_init(struct placing *p, struct ptx_init *init)
{
	uint64_t address;

	for (; init; init = init->next) {
		if (init->kind == PTX_INIT_LIST)
			replace_init(p, init->list);
		if (init->kind != PTX_INIT_SYMBOL || placed_address(init, &address, p))
			continue;
		init->kind = PTX_INIT_INT;
		init->value = fgv_ptx_init_masked(init, address);
	}
}

/* The register of this function that @address is in. */
static const char *constant_for(struct placing *p, uint64_t address)
{
	char name[sizeof(REGISTERS) + 16];
	struct constant *constant;

	for (constant = p->constants; constant; constant = constant->next) {
		if (constant->address == address)
			return constant->name;
	}
	constant = get(p, sizeof(*constant));
	if (!constant)
		return "";
	snprintf(name, sizeof(name), "%s%u", REGISTERS, p->constants_count++);
	*constant = (struct constant){address, intern(p, name), p->constants};
	p->constants = constant;
	return constant->name;
}

static void replace_operand(struct placing *p, struct ptx_operand *op)
{
	const struct ptx_placement *placement = find(p, op->name);
	uint64_t address;

	if (!placement || (op->kind != PTX_OP_NAME && op->kind != PTX_OP_ADDRESS))
		return;
	address = (uint64_t)(uintptr_t)placement->memory;
	if (op->kind == PTX_OP_NAME) {
		address += op->value;
		op->value = 0;
	}
	op->name = constant_for(p, address);
}

static void replace_operands(struct placing *p, struct ptx_operand *op)
{
	for (; op; op = op->next) {
		replace_operand(p, op);
		replace_operands(p, op->list);
		replace_operands(p, op->pipe);
	}
}

/* Nothing in a function hides one of the names. */
static void check_name(struct placing *p, const char *name)
{
	if (find(p, name))
		fail(p, -EINVAL, "variable '%s' is hidden by another", name);
}

static void replace_in_body(struct placing *p, struct ptx_stmt *stmt)
{
	for (; stmt && !p->status; stmt = stmt->next) {
		p->line = stmt->line;
		switch (stmt->kind) {
		case PTX_STMT_INSN:
			replace_operands(p, stmt->insn.operands);
			break;
		case PTX_STMT_LABEL:
			check_name(p, stmt->label);
			break;
		case PTX_STMT_VAR:
			check_name(p, stmt->var->name);
			replace_init(p, stmt->var->init);
			break;
		case PTX_STMT_BLOCK:
			replace_in_body(p, stmt->block);
			break;
		case PTX_STMT_TARGETS:
		case PTX_STMT_PROTOTYPE:
			break;
		}
	}
}

/* mov.b64 register, address; in front of @next. */
static struct ptx_stmt *make_move(struct placing *p, const struct constant *constant,
				  struct ptx_stmt *next)
{
	struct ptx_stmt *stmt = get(p, sizeof(*stmt));
	struct ptx_operand *operands = get(p, 2 * sizeof(*operands));
	const char **mods = get(p, sizeof(*mods));

	if (p->status)
		return next;
	operands[0] = (struct ptx_operand){
		.kind = PTX_OP_NAME, .name = constant->name, .next = &operands[1]};
	operands[1] = (struct ptx_operand){.kind = PTX_OP_INT, .value = constant->address};
	mods[0] = intern(p, "b64");
	stmt->kind = PTX_STMT_INSN;
	stmt->insn = (struct ptx_insn){
		.opcode = intern(p, "mov"),
		.mods_count = 1,
		.mods = mods,
		.operands_count = 2,
		.operands = operands,
	};
	stmt->next = next;
	return stmt;
}

/* The registers, in front of @next. */
static struct ptx_stmt *make_registers(struct placing *p, struct ptx_stmt *next)
{
	struct ptx_stmt *stmt = get(p, sizeof(*stmt));
	struct ptx_var *var = get(p, sizeof(*var));

	if (p->status)
		return next;
	*var = (struct ptx_var){
		.name = intern(p, REGISTERS),
		.space = PTX_REG,
		.type = PTX_B64,
		.vector = 1,
		.reg_count = p->constants_count,
	};
	stmt->kind = PTX_STMT_VAR;
	stmt->var = var;
	stmt->next = next;
	return stmt;
}

static void replace_in_function(struct placing *p, struct ptx_function *function)
{
	p->constants = NULL;
	p->constants_count = 0;
	p->line = function->line;
	for (const struct ptx_var *var = function->params; var; var = var->next)
		check_name(p, var->name);
	for (const struct ptx_var *var = function->returns; var; var = var->next)
		check_name(p, var->name);
	replace_in_body(p, function->body);
	if (!p->constants)
		return;
	for (const struct constant *each = p->constants; each; each = each->next)
		function->body = make_move(p, each, function->body);
	function->body = make_registers(p, function->body);
}

int fgv_ptx_place(struct ptx_module *module, const struct ptx_placement *placements, size_t count,
		  struct ptx_error *error)
{
	struct placing p = {.module = module, .error = error};

	make_places(&p, placements, count);
	if (!p.status)
		drop_variables(&p);
	for (struct ptx_item *item = module->items; item && !p.status; item = item->next) {
		if (item->kind == PTX_ITEM_VAR)
			replace_init(&p, item->var->init);
		else if (item->kind == PTX_ITEM_FUNCTION)
			replace_in_function(&p, item->function);
	}
	return p.status;
}
