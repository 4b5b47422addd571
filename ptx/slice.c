/*
 * A kernel whose launches do a part of its grid; see fgv_ptx_slice(). Two passes over what the
 * kernel reaches: the first looks whether it can be done at all, the second does it.
 */
#include "ptx/slice.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/arena.h"

void __attribute__((format(printf, 3, 4)))
fgv_ptx_slice_fail(struct ptx_slicing *s, int status, const char *format, ...)
{
	va_list args;

	if (s->status)
		return;
	s->status = status;
	s->error->line = s->line;
	va_start(args, format);
	vsnprintf(s->error->reason, sizeof(s->error->reason), format, args);
	va_end(args);
}

void *fgv_ptx_slice_get(struct ptx_slicing *s, size_t size)
{
	void *memory = fgv_ptx_alloc(s->module, size);

	if (!memory)
		fgv_ptx_slice_fail(s, -ENOMEM, "out of memory");
	return memory;
}

/* --- Names ---------------------------------------------------------------------- */

/* What depends on the launch and not on the block, and would be another in each part. */
static bool is_of_launch(const char *name)
{
	return !strcmp(name, "%gridid") || !strncmp(name, "%envreg", 7) ||
	       !strcmp(name, "%current_graph_exec");
}

/* A cluster is one block where the launch does not ask for more; one that does is not sliced. */
bool fgv_ptx_slice_is_block(const char *name)
{
	return !strcmp(name, "%ctaid") || !strcmp(name, "%clusterid");
}

bool fgv_ptx_slice_is_grid(const char *name)
{
	return !strcmp(name, "%nctaid") || !strcmp(name, "%nclusterid");
}

static bool is_special(const char *name)
{
	return is_of_launch(name) || fgv_ptx_slice_is_block(name) || fgv_ptx_slice_is_grid(name);
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct ptx_slice_item *)a)->name;
	uintptr_t y = (uintptr_t)((const struct ptx_slice_item *)b)->name;

	return (x > y) - (x < y);
}

static const char *name_of(const struct ptx_item *item)
{
	switch (item->kind) {
	case PTX_ITEM_VAR:
		return item->var->name;
	case PTX_ITEM_FUNCTION:
		return item->function->name;
	case PTX_ITEM_ALIAS:
		return item->alias.name;
	}
	return NULL;
}

/* One entry for each name of the module: a definition rather than what announces it. */
static void make_index(struct ptx_slicing *s)
{
	size_t count = 0, kept = 0;
	struct ptx_slice_item *all;

	for (struct ptx_item *item = s->module->items; item; item = item->next)
		count++;
	all = s->items = fgv_ptx_slice_get(s, (count + 1) * sizeof(*all));
	if (s->status)
		return;
	count = 0;
	for (struct ptx_item *item = s->module->items; item; item = item->next)
		all[count++] = (struct ptx_slice_item){.name = name_of(item), .item = item};
	qsort(all, count, sizeof(*all), compare);
	for (size_t i = 0; i < count; i++) {
		const struct ptx_item *item = all[i].item;

		if (kept == 0 || all[kept - 1].name != all[i].name)
			all[kept++] = all[i];
		else if (item->kind == PTX_ITEM_FUNCTION && item->function->defined)
			all[kept - 1].item = all[i].item;
	}
	s->count = kept;
}

struct ptx_slice_item *fgv_ptx_slice_find(const struct ptx_slicing *s, const char *name)
{
	struct ptx_slice_item key = {.name = name};

	return name ? bsearch(&key, s->items, s->count, sizeof(key), compare) : NULL;
}

/* A beginning of names that none of the module's has anywhere in it. */
static void choose_name(struct ptx_slicing *s)
{
	char base[32];

	for (unsigned i = 0;; i++) {
		snprintf(base, sizeof(base), "fgv_part%u_", i);
		if (!fgv_ptx_arena_mentions(s->module->arena, base))
			break;
	}
	s->base = fgv_ptx_intern(s->module, base, strlen(base));
	if (!s->base)
		fgv_ptx_slice_fail(s, -ENOMEM, "out of memory");
}

/* --- What is reached -------------------------------------------------------------- */

static void reach(struct ptx_slicing *s, struct ptx_slice_item *found)
{
	if (found->is_reached)
		return;
	found->is_reached = true;
	found->next = s->waiting;
	s->waiting = found;
}

/* What CUDA provides to kernels and depends on no launch. */
static bool is_provided(const char *name)
{
	return !strcmp(name, "vprintf") || !strcmp(name, "malloc") || !strcmp(name, "free");
}

/* The function of a call, behind the list of its results. */
struct ptx_operand *fgv_ptx_slice_target(const struct ptx_insn *insn)
{
	struct ptx_operand *op = insn->operands;

	return op && op->kind == PTX_OP_PAREN ? op->next : op;
}

static void look_at_call(struct ptx_slicing *s, const struct ptx_insn *insn)
{
	const struct ptx_operand *target = fgv_ptx_slice_target(insn);
	struct ptx_slice_item *found =
		target && target->kind == PTX_OP_NAME ? fgv_ptx_slice_find(s, target->name) : NULL;
	const struct ptx_function *f;

	if (!found || found->item->kind != PTX_ITEM_FUNCTION) {
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it calls functions by their addresses");
		return;
	}
	f = found->item->function;
	if (f->defined ? f->entry : !is_provided(f->name)) {
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it calls '%.60s'", f->name);
		return;
	}
	reach(s, found);
}

static bool is_data(const struct ptx_var *var)
{
	return var->space == PTX_GLOBAL || var->space == PTX_CONST;
}

static void look_at_item(struct ptx_slicing *s, struct ptx_slice_item *found)
{
	const struct ptx_var *var = found->item->var;

	if (is_special(found->name))
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it declares %.60s", found->name);
	else if (found->item->kind != PTX_ITEM_VAR)
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it takes the address of function '%.60s'",
				   found->name);
	else if (var->space != PTX_SHARED && (!is_data(var) || !fgv_ptx_type_size(var->type)))
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it uses '%.60s', a texture or a surface",
				   found->name);
	else
		reach(s, found);
}

static void look_at_operands(struct ptx_slicing *s, const struct ptx_operand *op)
{
	for (; op; op = op->next) {
		struct ptx_slice_item *found = fgv_ptx_slice_find(s, op->name);

		if (found)
			look_at_item(s, found);
		else if (op->name && is_of_launch(op->name))
			fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it reads %s", op->name);
		look_at_operands(s, op->list);
		look_at_operands(s, op->pipe);
	}
}

static bool has_mod(const struct ptx_insn *insn, const char *mod)
{
	for (unsigned i = 0; i < insn->mods_count; i++) {
		if (!strcmp(insn->mods[i], mod))
			return true;
	}
	return false;
}

static void look_at_insn(struct ptx_slicing *s, const struct ptx_insn *insn)
{
	const struct ptx_operand *op = insn->operands;

	if (!strcmp(insn->opcode, "griddepcontrol") ||
	    !strcmp(insn->opcode, "clusterlaunchcontrol") ||
	    (!strcmp(insn->opcode, "isspacep") && has_mod(insn, "const")))
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it has the instruction %s", insn->opcode);
	if (!strcmp(insn->opcode, "call")) {
		look_at_call(s, insn);
		op = fgv_ptx_slice_target(insn);
		if (insn->operands != op)
			look_at_operands(s, insn->operands->list);
		op = op ? op->next : NULL;
	}
	look_at_operands(s, op);
}

static void look_at_var(struct ptx_slicing *s, const struct ptx_var *var)
{
	if (is_special(var->name))
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it declares %.60s", var->name);
	if (is_data(var))
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it has variables within a function");
}

static void look_at_body(struct ptx_slicing *s, const struct ptx_stmt *stmt)
{
	for (; stmt && !s->status; stmt = stmt->next) {
		s->line = stmt->line;
		if (stmt->kind == PTX_STMT_INSN)
			look_at_insn(s, &stmt->insn);
		else if (stmt->kind == PTX_STMT_VAR)
			look_at_var(s, stmt->var);
		else if (stmt->kind == PTX_STMT_BLOCK)
			look_at_body(s, stmt->block);
	}
}

static void look_at_function(struct ptx_slicing *s, const struct ptx_function *f)
{
	s->line = f->line;
	for (const struct ptx_directive *d = f->directives; d; d = d->next) {
		if (strstr(d->name, "cluster"))
			fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it runs in clusters");
	}
	for (const struct ptx_var *var = f->params; var; var = var->next) {
		look_at_var(s, var);
		if (var->ptr_space == PTX_CONST)
			fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it has a parameter in .const");
	}
	look_at_body(s, f->body);
}

static void look(struct ptx_slicing *s)
{
	while (s->waiting && !s->status) {
		struct ptx_slice_item *next = s->waiting;

		s->waiting = next->next;
		if (next->item->kind == PTX_ITEM_FUNCTION && next->item->function->defined)
			look_at_function(s, next->item->function);
	}
}

/* --- Room among the parameters ------------------------------------------------------ */

static uint64_t aligned(uint64_t bytes, uint64_t align)
{
	return align ? (bytes + align - 1) / align * align : bytes;
}

/* CUDA has 4,096 bytes for a kernel's parameters; newer ones have 32,764, and say so by use. */
static void check_room(struct ptx_slicing *s, const struct ptx_function *kernel)
{
	uint64_t bytes = 0, with;

	for (const struct ptx_var *var = kernel->params; var; var = var->next)
		bytes = aligned(bytes, fgv_ptx_var_align(var)) + fgv_ptx_var_size(var);
	with = aligned(bytes, 4) + sizeof(struct ptx_part);
	if (with > (bytes > 4096 ? 32764 : 4096))
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "its parameters leave no room for one more");
}

/* --- What is left of the module ---------------------------------------------------- */

static bool is_kept(const struct ptx_slicing *s, const struct ptx_item *item)
{
	const struct ptx_slice_item *found = fgv_ptx_slice_find(s, name_of(item));

	return item->kind != PTX_ITEM_ALIAS && found && found->is_reached;
}

static void prune(struct ptx_slicing *s)
{
	struct ptx_item **link = &s->module->items;

	while (*link) {
		if (is_kept(s, *link))
			link = &(*link)->next;
		else
			*link = (*link)->next;
	}
}

int fgv_ptx_slice(struct ptx_module *module, const char *name, struct ptx_error *error)
{
	struct ptx_slicing s = {.module = module, .error = error};
	const char *interned = fgv_ptx_intern(module, name, strlen(name));
	struct ptx_slice_item *kernel;

	if (module->address_size != 64)
		fgv_ptx_slice_fail(&s, -EOPNOTSUPP, "its addresses have 32 bits");
	make_index(&s);
	choose_name(&s);
	if (s.status)
		return s.status;
	kernel = fgv_ptx_slice_find(&s, interned);
	if (!kernel || kernel->item->kind != PTX_ITEM_FUNCTION || !kernel->item->function->entry ||
	    !kernel->item->function->defined) {
		fgv_ptx_slice_fail(&s, -ENOENT, "no such kernel");
		return s.status;
	}
	reach(&s, kernel);
	look(&s);
	check_room(&s, kernel->item->function);
	if (s.status)
		return s.status;
	prune(&s);
	fgv_ptx_slice_rewrite(&s);
	return s.status;
}
