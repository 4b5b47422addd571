/*
 * A program from PTX modules: names are resolved across them, variables get their addresses
 * and initial values, functions their code.
 */
#include "softgpu/lower/lower.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "softgpu/lower/program_data.h"

#define PTX_MAJOR_MAX 9
/* What a program may take while it is made, and afterwards: so much, and for each byte of text. */
#define BUDGET_BASE   (32ull << 20)
#define BUDGET_FACTOR 32
#define BUDGET_MAX    (512ull << 20)
/* Of registers and of local memory: what is as much is not run, for no room is so large. */
#define TOTAL_MAX (1u << 31)

struct build {
	struct program *program;
	struct lower lower;
	struct ptx_module **modules;
	struct scope *scopes; /* one per module */
	size_t count;	      /* parsed */
	size_t capacity;
	char *log;
	size_t log_len;
};

static struct symbol *find_local(const struct build *b, size_t module, const char *name)
{
	return fgv_softgpu_map_find(&b->scopes[module].symbols, name, strlen(name));
}

static struct symbol *add_symbol(struct build *b, size_t module, const char *name,
				 enum symbol_kind kind)
{
	struct program *program = b->program;
	const struct symbol *before = find_local(b, module, name);
	struct symbol *s = fgv_softgpu_pool_get(&program->pool, sizeof(*s));
	char *copy = fgv_softgpu_pool_name(&program->pool, name);

	if (before && before->kind != SYMBOL_EXTERN &&
	    (before->kind != SYMBOL_DYNAMIC || kind != SYMBOL_DYNAMIC)) {
		fgv_lower_fail(&b->lower, "'%s' is defined twice", name);
		return NULL;
	}
	if (!s || !copy) {
		fgv_lower_no_memory(&b->lower);
		return NULL;
	}
	s->kind = kind;
	s->name = copy;
	fgv_lower_declare(&b->lower, &b->scopes[module], copy, s);
	return s;
}

/*
 * Offers a definition to the other modules. False: one was there already, which
 * is an error unless this one is weak.
 */
static bool offer(struct build *b, struct symbol *s, unsigned linkage)
{
	struct symbol *other = fgv_softgpu_map_find(&b->program->links, s->name, strlen(s->name));

	if (!(linkage & (PTX_VISIBLE | PTX_WEAK | PTX_COMMON)))
		return true;
	if (other && !(linkage & (PTX_WEAK | PTX_COMMON)) &&
	    !(other->linkage & (PTX_WEAK | PTX_COMMON))) {
		fgv_lower_fail(&b->lower, "'%s' is defined twice", s->name);
		return false;
	}
	if (other && (linkage & (PTX_WEAK | PTX_COMMON)))
		return false;
	s->linkage = linkage;
	if (!fgv_softgpu_map_put(&b->program->pool, &b->program->links, s->name, s))
		fgv_lower_no_memory(&b->lower);
	return true;
}

static void declare_extern(struct build *b, size_t module, const char *name)
{
	if (!find_local(b, module, name))
		add_symbol(b, module, name, SYMBOL_EXTERN);
}

/* Room for a variable behind what its space has so far. */
static void place_data(struct build *b, struct symbol *s, uint64_t *used)
{
	s->value = fgv_align_up(*used, s->align);
	if (s->bytes > b->program->memory->bytes || s->value > b->program->memory->bytes) {
		fgv_lower_fail(&b->lower, "variable '%s' is larger than the device's memory",
			       s->name);
		return;
	}
	*used = s->value + s->bytes;
}

/* An array without a size has as many elements as its initialiser. */
static uint64_t var_bytes(const struct ptx_var *var)
{
	struct ptx_var sized = *var;
	uint64_t count = 0;

	if (fgv_ptx_var_size(var) || !var->dims_count || !var->init)
		return fgv_ptx_var_size(var);
	for (const struct ptx_init *i = var->init->list; i; i = i->next)
		count++;
	sized.dims[0] = count;
	return fgv_ptx_var_size(&sized);
}

static void define_var(struct build *b, size_t module, const struct ptx_var *var)
{
	struct program *program = b->program;
	bool data = var->space == PTX_GLOBAL || var->space == PTX_CONST;
	struct symbol *s;

	b->lower.line = var->line;
	if (var->space == PTX_SHARED && (var->linkage & PTX_EXTERN)) {
		s = add_symbol(b, module, var->name, SYMBOL_DYNAMIC);
		if (fgv_ptx_var_align(var) > program->dynamic_align &&
		    fgv_ptx_var_align(var) <= 1024)
			program->dynamic_align = fgv_ptx_var_align(var);
		return;
	}
	if (var->linkage & PTX_EXTERN) {
		declare_extern(b, module, var->name);
		return;
	}
	if (!data && var->space != PTX_SHARED) {
		fgv_lower_fail(&b->lower, "variable '%s' in a space that is not supported",
			       var->name);
		return;
	}
	s = add_symbol(b, module, var->name, data ? SYMBOL_ADDRESS : SYMBOL_SHARED);
	if (!s)
		return;
	s->type = var->type;
	s->var = var;
	s->space = var->space;
	s->bytes = var_bytes(var);
	s->align = (uint32_t)fgv_min_u64(fgv_ptx_var_align(var), PAGE_BYTES);
	if (!offer(b, s, var->linkage))
		return;
	if (var->space == PTX_SHARED) {
		program->shared_vars = true;
		return;
	}
	place_data(b, s, s->space == PTX_GLOBAL ? &program->data_bytes : &program->const_bytes);
	s->next = program->data_symbols;
	program->data_symbols = s;
	if (!fgv_softgpu_map_put(&program->pool, &program->exports, s->name, s))
		fgv_lower_no_memory(&b->lower);
}

static struct code *add_code(struct build *b, const char *name)
{
	struct program *p = b->program;
	struct code *code = fgv_softgpu_pool_get(&p->pool, sizeof(*code));

	/* Room for all was made before: call sites refer to the list. */
	if (!code) {
		fgv_lower_no_memory(&b->lower);
		return NULL;
	}
	code->name = name;
	code->token = FUNCTION_WINDOW + (uint64_t)p->functions_count * FUNCTION_STRIDE;
	p->functions[p->functions_count++] = code;
	return code;
}

/* What a module was compiled for; libraries choose among their kernels by it. */
static int target_of(const struct ptx_module *module)
{
	int target = 0;

	sscanf(module->target, "sm_%d", &target);
	return target;
}

static void define_function(struct build *b, size_t module, const struct ptx_function *f)
{
	struct symbol *s;

	b->lower.line = f->line;
	if (!f->defined) {
		declare_extern(b, module, f->name);
		return;
	}
	s = add_symbol(b, module, f->name, SYMBOL_FUNCTION);
	if (!s || !offer(b, s, f->linkage))
		return;
	s->function = f;
	s->code = add_code(b, s->name);
	if (!s->code)
		return;
	s->code->entry = f->entry;
	s->code->target = target_of(b->modules[module]);
	fgv_lower_signature(&b->lower, s->code, f);
	if (f->entry && !fgv_softgpu_map_put(&b->program->pool, &b->program->exports, s->name, s))
		fgv_lower_no_memory(&b->lower);
}

static void define_items(struct build *b, size_t module)
{
	for (const struct ptx_item *item = b->modules[module]->items; item && !b->lower.failed;
	     item = item->next) {
		if (item->kind == PTX_ITEM_VAR)
			define_var(b, module, item->var);
		else if (item->kind == PTX_ITEM_FUNCTION)
			define_function(b, module, item->function);
	}
}

static void define_aliases(struct build *b, size_t module)
{
	for (const struct ptx_item *item = b->modules[module]->items; item && !b->lower.failed;
	     item = item->next) {
		const struct symbol *before;
		struct symbol *s;

		if (item->kind != PTX_ITEM_ALIAS)
			continue;
		before = find_local(b, module, item->alias.name);
		if (before && before->kind != SYMBOL_EXTERN) {
			fgv_lower_fail(&b->lower, "'%s' is defined twice", item->alias.name);
			return;
		}
		s = find_local(b, module, item->alias.target);
		if (!s || s->kind != SYMBOL_FUNCTION) {
			fgv_lower_fail(&b->lower, "alias of '%s', which is no function",
				       item->alias.target);
			return;
		}
		fgv_lower_declare(&b->lower, &b->scopes[module],
				  fgv_softgpu_pool_name(&b->program->pool, item->alias.name), s);
	}
}

/* What a module has only declared, or defined weakly besides another, is the other's. */
static void link_module(struct build *b, size_t module)
{
	struct map *map = &b->scopes[module].symbols;

	for (uint32_t i = 0; i < map->capacity; i++) {
		struct symbol *s = map->entries[i].value;
		struct symbol *other;

		if (!s)
			continue;
		other = fgv_softgpu_map_find(&b->program->links, s->name, strlen(s->name));
		if (other &&
		    (s->kind == SYMBOL_EXTERN || (s->kind == SYMBOL_FUNCTION && !s->code) ||
		     (s->kind == SYMBOL_ADDRESS && s->var &&
		      s->var->linkage & (PTX_WEAK | PTX_COMMON))))
			map->entries[i].value = other;
	}
}

static bool count_functions(struct build *b)
{
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++) {
		for (const struct ptx_item *item = b->modules[i]->items; item; item = item->next)
			count += item->kind == PTX_ITEM_FUNCTION;
	}
	b->program->functions =
		fgv_softgpu_pool_get(&b->program->pool, (count + 1) * sizeof(struct code *));
	return b->program->functions != NULL;
}

/* Functions before kernels: a kernel's shared variables lie behind theirs. */
static void lower_bodies(struct build *b, bool entries)
{
	for (size_t i = 0; i < b->count; i++) {
		b->lower.globals = &b->scopes[i];
		for (const struct ptx_item *item = b->modules[i]->items; item; item = item->next) {
			struct symbol *s;

			if (item->kind != PTX_ITEM_FUNCTION || !item->function->defined ||
			    item->function->entry != entries)
				continue;
			s = find_local(b, i, item->function->name);
			if (!s || s->function != item->function)
				continue;
			b->lower.function = item->function;
			b->lower.code = s->code;
			if (!fgv_lower_function(&b->lower))
				return;
			s->code->defined = true;
		}
	}
}

/* What a function needs with all that it calls; 1 while on the way, 2 when done. */
static void total(struct program *p, struct code *code, unsigned depth)
{
	uint64_t frame = 0;
	uint64_t local = 0;
	bool deep = p->indirect || depth == CALLS_MAX;

	code->visit = 1;
	for (struct call_edge *e = depth < CALLS_MAX ? code->calls : NULL; e; e = e->next) {
		if (!e->callee->visit)
			total(p, e->callee, depth + 1);
		if (e->callee->visit == 1 || e->callee->deep) {
			deep = true;
			continue;
		}
		if (e->callee->missing && !code->missing) {
			code->missing = e->callee->missing;
			code->missing_line = e->callee->missing_line;
		}
		frame = e->callee->frame_total > frame ? e->callee->frame_total : frame;
		local = e->callee->local_total > local ? e->callee->local_total : local;
	}
	/* Recursion: as deep as this goes. */
	if (deep) {
		frame += DEEP_FRAMES;
		local += DEEP_LOCAL;
	}
	code->deep = deep;
	code->frame_total = (uint32_t)fgv_min_u64(code->frame_bytes + frame, TOTAL_MAX);
	code->local_total = (uint32_t)fgv_min_u64(code->local_bytes + local, TOTAL_MAX);
	code->visit = 2;
}

/*
 * Libraries come with functions that call what only a driver has, for launches in kernels;
 * that matters where a kernel can get there.
 */
static void require_callees(struct build *b)
{
	for (uint32_t i = 0; i < b->program->functions_count; i++) {
		const struct code *code = b->program->functions[i];

		if (!code->entry || !code->missing)
			continue;
		b->lower.line = code->missing_line;
		fgv_lower_fail(&b->lower, "call of '%s', which no module defines", code->missing);
		return;
	}
}

/* Whatever may be called has code, in whatever way its name was found. */
static void require_bodies(struct build *b)
{
	for (uint32_t i = 0; i < b->program->functions_count; i++) {
		if (!b->program->functions[i]->defined)
			fgv_lower_fail(&b->lower, "'%s' has no code",
				       b->program->functions[i]->name);
	}
}

static bool parse_all(struct build *b, const char *const *texts, CUresult *result)
{
	for (; b->count < b->capacity; b->count++) {
		struct ptx_error error;
		int status = fgv_ptx_parse(texts[b->count], strlen(texts[b->count]),
					   &b->modules[b->count], &error);

		*result = status == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
		if (status) {
			snprintf(b->log, b->log_len, "line %u: %s", error.line, error.reason);
			return false;
		}
		if (b->modules[b->count]->version_major > PTX_MAJOR_MAX) {
			snprintf(b->log, b->log_len, "line 1: PTX version %u.%u is not supported",
				 b->modules[b->count]->version_major,
				 b->modules[b->count]->version_minor);
			*result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
			b->count++;
			return false;
		}
	}
	return true;
}

static CUresult failure(const struct build *b)
{
	return b->lower.no_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

static CUresult build_all(struct build *b)
{
	CUresult result = CUDA_SUCCESS;

	if (!count_functions(b))
		fgv_lower_no_memory(&b->lower);
	for (size_t i = 0; i < b->count && !b->lower.failed; i++)
		define_items(b, i);
	for (size_t i = 0; i < b->count && !b->lower.failed; i++)
		define_aliases(b, i);
	for (size_t i = 0; i < b->count && !b->lower.failed; i++)
		link_module(b, i);
	if (!b->lower.failed)
		result = fgv_program_place_data(b->program);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < b->count && !b->lower.failed; i++)
		fgv_program_init_data(&b->lower, &b->scopes[i], b->modules[i]);
	if (!b->lower.failed)
		lower_bodies(b, false);
	if (!b->lower.failed)
		lower_bodies(b, true);
	require_bodies(b);
	if (b->lower.failed)
		return failure(b);
	for (uint32_t i = 0; i < b->program->functions_count; i++) {
		if (!b->program->functions[i]->visit)
			total(b->program, b->program->functions[i], 0);
		b->program->functions[i]->reserves = b->program->uses_reserved;
	}
	require_callees(b);
	return b->lower.failed ? failure(b) : CUDA_SUCCESS;
}

static void fini_build(struct build *b)
{
	for (size_t i = 0; i < b->count; i++)
		fgv_ptx_destroy(b->modules[i]);
	free(b->modules);
	free(b->scopes);
	free(b->lower.drafts);
	free(b->lower.places);
	free(b->lower.consts);
	free(b->lower.const_table);
	fgv_softgpu_pool_fini(&b->lower.pool);
}

static uint64_t budget_of(const char *const *texts, size_t count)
{
	uint64_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += strlen(texts[i]);
	return fgv_min_u64(BUDGET_BASE + length * BUDGET_FACTOR, BUDGET_MAX);
}

CUresult fgv_program_create(struct memory *memory, struct fgv_budget *kept,
			    const char *const *texts, size_t count, char *log, size_t log_len,
			    struct program **program)
{
	struct build b = {.log = log, .log_len = log_len, .capacity = count};
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (log_len)
		log[0] = '\0';
	b.program = calloc(1, sizeof(*b.program));
	b.modules = calloc(count + 1, sizeof(*b.modules));
	b.scopes = calloc(count + 1, sizeof(*b.scopes));
	if (b.program && b.modules && b.scopes) {
		b.program->memory = memory;
		b.program->budget.max = b.lower.budget.max = budget_of(texts, count);
		b.program->budget.whole = kept;
		b.program->pool.budget = &b.program->budget;
		b.lower.pool.budget = &b.lower.budget;
		b.program->dynamic_align = 16;
		b.lower.program = b.program;
		b.lower.log = log;
		b.lower.log_len = log_len;
		if (parse_all(&b, texts, &result))
			result = build_all(&b);
	}
	fini_build(&b);
	if (result == CUDA_SUCCESS)
		*program = b.program;
	else
		fgv_program_destroy(b.program);
	return result;
}

void fgv_program_destroy(struct program *program)
{
	if (!program)
		return;
	if (program->data)
		fgv_softgpu_memory_free(program->memory, program->data);
	fgv_softgpu_pool_fini(&program->pool);
	free(program);
}
