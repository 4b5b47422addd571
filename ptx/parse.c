/*
 * The parser's top: the module's header, its items, and the helpers that the other
 * parse files share. Recursive descent with bounded depth; each loop takes at least one
 * token per round or ends with an error.
 */
#include "ptx/arena.h"
#include "ptx/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fgv_ptx_fail_memory(struct parser *p)
{
	fgv_ptx_fail(p, "out of memory, or too much in a text of this length");
	p->status = -ENOMEM;
}

void *fgv_ptx_get(struct parser *p, size_t size)
{
	void *memory = fgv_ptx_arena_get(p->module->arena, size);

	if (!memory)
		fgv_ptx_fail_memory(p);
	return memory;
}

bool fgv_ptx_is_punct(const struct parser *p, char c)
{
	return p->token.kind == T_PUNCT && p->token.value == (unsigned char)c;
}

bool fgv_ptx_take_punct(struct parser *p, char c)
{
	if (!fgv_ptx_is_punct(p, c))
		return false;
	fgv_ptx_lex_next(p);
	return true;
}

void fgv_ptx_expect(struct parser *p, char c)
{
	int length = p->token.length > 40 ? 40 : (int)p->token.length;

	if (fgv_ptx_take_punct(p, c))
		return;
	if (p->token.kind == T_END)
		fgv_ptx_fail(p, "'%c' expected, text ends", c);
	else
		fgv_ptx_fail(p, "'%c' expected, not '%.*s'", c, length, p->token.text);
}

bool fgv_ptx_is_dot(const struct parser *p, const char *word)
{
	return p->token.kind == T_DOT && p->token.length == strlen(word) &&
	       !memcmp(p->token.text, word, p->token.length);
}

const char *fgv_ptx_take_name(struct parser *p)
{
	const char *name;

	if (p->token.kind != T_NAME) {
		int length = p->token.length > 40 ? 40 : (int)p->token.length;

		fgv_ptx_fail(p, "name expected, not '%.*s'", length, p->token.text);
		return "";
	}
	name = fgv_ptx_intern(p->module, p->token.text, p->token.length);
	if (!name) {
		fgv_ptx_fail_memory(p);
		return "";
	}
	fgv_ptx_lex_next(p);
	return name;
}

uint64_t fgv_ptx_take_count(struct parser *p, uint64_t max, const char *what)
{
	uint64_t value = p->token.value;

	if (p->token.kind != T_INT || value > max) {
		fgv_ptx_fail(p, "%s is no integer from 0 to %llu", what, (unsigned long long)max);
		return 0;
	}
	fgv_ptx_lex_next(p);
	return value;
}

uint64_t fgv_ptx_take_int(struct parser *p)
{
	bool minus = false;
	bool invert = false;
	uint64_t value;

	if (fgv_ptx_take_punct(p, '-'))
		minus = true;
	else if (fgv_ptx_take_punct(p, '~'))
		invert = true;
	value = p->token.value;
	if (p->token.kind != T_INT) {
		int length = p->token.length > 40 ? 40 : (int)p->token.length;

		fgv_ptx_fail(p, "integer expected, not '%.*s'", length, p->token.text);
		return 0;
	}
	fgv_ptx_lex_next(p);
	return minus ? -value : invert ? ~value : value;
}

bool fgv_ptx_enter(struct parser *p)
{
	if (++p->depth > FGV_PTX_NESTING_MAX) {
		fgv_ptx_fail(p, "nested deeper than %d", FGV_PTX_NESTING_MAX);
		return false;
	}
	return true;
}

void fgv_ptx_leave(struct parser *p)
{
	p->depth--;
}

static void skip_numbers(struct parser *p)
{
	while (p->token.kind == T_INT || p->token.kind == T_STRING)
		fgv_ptx_lex_next(p);
}

/* .loc 1 2 3[, function_name $L+8, inlined_at 1 2 3]: nothing marks its end. */
static void skip_loc(struct parser *p)
{
	fgv_ptx_lex_next(p);
	skip_numbers(p);
	while (fgv_ptx_take_punct(p, ',')) {
		fgv_ptx_take_name(p);
		if (p->token.kind == T_NAME)
			fgv_ptx_take_name(p);
		if (fgv_ptx_take_punct(p, '+'))
			fgv_ptx_take_int(p);
		skip_numbers(p);
	}
}

/* .file 1 "name"[, time, size] */
static void skip_file(struct parser *p)
{
	fgv_ptx_lex_next(p);
	skip_numbers(p);
	while (fgv_ptx_take_punct(p, ','))
		skip_numbers(p);
}

static void skip_section(struct parser *p)
{
	while (!fgv_ptx_is_punct(p, '{') && p->token.kind != T_END)
		fgv_ptx_lex_next(p);
	while (!fgv_ptx_is_punct(p, '}') && p->token.kind != T_END)
		fgv_ptx_lex_next(p);
	fgv_ptx_expect(p, '}');
}

bool fgv_ptx_skip_debug(struct parser *p)
{
	if (fgv_ptx_is_dot(p, "loc")) {
		skip_loc(p);
	} else if (fgv_ptx_is_dot(p, "file")) {
		skip_file(p);
	} else if (fgv_ptx_is_dot(p, "section")) {
		skip_section(p);
	} else if (fgv_ptx_is_dot(p, "pragma")) {
		while (!fgv_ptx_is_punct(p, ';') && p->token.kind != T_END)
			fgv_ptx_lex_next(p);
		fgv_ptx_expect(p, ';');
	} else {
		return false;
	}
	return true;
}

static struct ptx_directive *parse_directive(struct parser *p)
{
	struct ptx_directive *d = fgv_ptx_get(p, sizeof(*d));

	if (!d)
		return NULL;
	d->name = fgv_ptx_intern(p->module, p->token.text, p->token.length);
	if (!d->name)
		fgv_ptx_fail_memory(p);
	fgv_ptx_lex_next(p);
	while (p->token.kind == T_INT) {
		if (d->values_count == 3) {
			fgv_ptx_fail(p, "more than three values for '.%s'", d->name);
			break;
		}
		d->values[d->values_count++] = p->token.value;
		fgv_ptx_lex_next(p);
		if (!fgv_ptx_take_punct(p, ','))
			break;
	}
	return d;
}

static void take_directives(struct parser *p, struct ptx_function *f)
{
	struct ptx_directive **tail = &f->directives;

	while (p->token.kind == T_DOT) {
		if (fgv_ptx_is_dot(p, "pragma")) {
			fgv_ptx_skip_debug(p);
			continue;
		}
		if (fgv_ptx_is_dot(p, "attribute")) {
			while (!fgv_ptx_is_punct(p, ')') && p->token.kind != T_END)
				fgv_ptx_lex_next(p);
			fgv_ptx_expect(p, ')');
			continue;
		}
		*tail = parse_directive(p);
		if (!*tail)
			return;
		tail = &(*tail)->next;
	}
}

static struct ptx_function *parse_function(struct parser *p, unsigned linkage)
{
	struct ptx_function *f = fgv_ptx_get(p, sizeof(*f));

	if (!f)
		return NULL;
	f->line = p->token.line;
	f->linkage = linkage;
	f->entry = fgv_ptx_is_dot(p, "entry");
	fgv_ptx_lex_next(p);
	if (fgv_ptx_is_dot(p, "attribute"))
		take_directives(p, f);
	if (fgv_ptx_is_punct(p, '('))
		f->returns = fgv_ptx_parse_params(p);
	f->name = fgv_ptx_take_name(p);
	if (fgv_ptx_is_punct(p, '('))
		f->params = fgv_ptx_parse_params(p);
	take_directives(p, f);
	if (fgv_ptx_take_punct(p, ';'))
		return f;
	fgv_ptx_expect(p, '{');
	f->defined = true;
	f->body = fgv_ptx_parse_body(p);
	return f;
}

static unsigned take_linkage(struct parser *p)
{
	unsigned linkage = 0;

	for (;;) {
		unsigned bit = fgv_ptx_is_dot(p, "extern")    ? PTX_EXTERN
			       : fgv_ptx_is_dot(p, "visible") ? PTX_VISIBLE
			       : fgv_ptx_is_dot(p, "weak")    ? PTX_WEAK
			       : fgv_ptx_is_dot(p, "common")  ? PTX_COMMON
							      : 0;

		if (!bit)
			return linkage;
		linkage |= bit;
		fgv_ptx_lex_next(p);
	}
}

static struct ptx_item **add_item(struct parser *p, struct ptx_item **tail, enum ptx_item_kind kind)
{
	*tail = fgv_ptx_get(p, sizeof(**tail));
	if (*tail)
		(*tail)->kind = kind;
	return tail;
}

static struct ptx_item **add_global_vars(struct parser *p, struct ptx_item **tail, unsigned linkage)
{
	struct ptx_var *var = fgv_ptx_parse_vars(p, linkage);

	fgv_ptx_expect(p, ';');
	while (var && *add_item(p, tail, PTX_ITEM_VAR)) {
		struct ptx_var *next = var->next;

		(*tail)->var = var;
		var->next = NULL;
		tail = &(*tail)->next;
		var = next;
	}
	return tail;
}

static void parse_alias(struct parser *p, struct ptx_item *item)
{
	fgv_ptx_lex_next(p);
	item->alias.name = fgv_ptx_take_name(p);
	fgv_ptx_expect(p, ',');
	item->alias.target = fgv_ptx_take_name(p);
	fgv_ptx_expect(p, ';');
}

static struct ptx_item **parse_item(struct parser *p, struct ptx_item **tail)
{
	unsigned linkage;

	if (fgv_ptx_skip_debug(p) || fgv_ptx_take_punct(p, ';'))
		return tail;
	linkage = take_linkage(p);
	if (fgv_ptx_is_dot(p, "func") || fgv_ptx_is_dot(p, "entry")) {
		if (!*add_item(p, tail, PTX_ITEM_FUNCTION))
			return tail;
		(*tail)->function = parse_function(p, linkage);
		return &(*tail)->next;
	}
	if (fgv_ptx_is_dot(p, "alias")) {
		if (!*add_item(p, tail, PTX_ITEM_ALIAS))
			return tail;
		parse_alias(p, *tail);
		return &(*tail)->next;
	}
	if (fgv_ptx_starts_var(p))
		return add_global_vars(p, tail, linkage);
	fgv_ptx_fail(p, "'%.*s' at module level", p->token.length > 40 ? 40 : (int)p->token.length,
		     p->token.text);
	return tail;
}

static void parse_version(struct parser *p)
{
	unsigned major = 0;
	unsigned minor = 0;
	size_t i = 0;

	if (!fgv_ptx_is_dot(p, "version")) {
		fgv_ptx_fail(p, "a module starts with .version");
		return;
	}
	fgv_ptx_lex_next(p);
	if (p->token.kind != T_F64 || p->token.length > 6) {
		fgv_ptx_fail(p, "malformed version");
		return;
	}
	for (; i < p->token.length && p->token.text[i] != '.'; i++)
		major = major * 10 + (unsigned)(p->token.text[i] - '0');
	for (i++; i < p->token.length; i++)
		minor = minor * 10 + (unsigned)(p->token.text[i] - '0');
	p->module->version_major = major;
	p->module->version_minor = minor;
	fgv_ptx_lex_next(p);
}

static void parse_target(struct parser *p)
{
	const char *start;
	const char *end;

	if (!fgv_ptx_is_dot(p, "target")) {
		fgv_ptx_fail(p, ".target expected");
		return;
	}
	fgv_ptx_lex_next(p);
	start = p->token.text;
	do {
		end = p->token.text + p->token.length;
		fgv_ptx_take_name(p);
	} while (fgv_ptx_take_punct(p, ',') && !p->status);
	if (p->status)
		return;
	p->module->target = fgv_ptx_intern(p->module, start, (size_t)(end - start));
	if (!p->module->target)
		fgv_ptx_fail_memory(p);
	p->module->address_size = 32;
	if (fgv_ptx_is_dot(p, "address_size")) {
		fgv_ptx_lex_next(p);
		p->module->address_size = (unsigned)fgv_ptx_take_count(p, 64, "address size");
	}
}

static void parse_module(struct parser *p)
{
	struct ptx_item **tail = &p->module->items;

	fgv_ptx_lex_next(p);
	parse_version(p);
	parse_target(p);
	while (p->token.kind != T_END && !p->status)
		tail = parse_item(p, tail);
}

static size_t tree_max(size_t length)
{
	return length > FGV_PTX_TREE_MAX / FGV_PTX_TREE_FACTOR
		       ? FGV_PTX_TREE_MAX
		       : FGV_PTX_TREE_BASE + length * FGV_PTX_TREE_FACTOR;
}

int fgv_ptx_parse(const char *text, size_t length, struct ptx_module **module,
		  struct ptx_error *error)
{
	struct parser p = {.at = text, .line = 1, .error = error};

	error->line = 1;
	strcpy(error->reason, "out of memory");
	if (length > FGV_PTX_TEXT_MAX)
		return -EFBIG;
	p.end = text + strnlen(text, length);
	p.token.text = text;
	p.token.line = 1;
	p.module = calloc(1, sizeof(*p.module));
	if (!p.module)
		return -ENOMEM;
	p.module->arena = fgv_ptx_arena_create(tree_max((size_t)(p.end - text)));
	if (!p.module->arena) {
		free(p.module);
		return -ENOMEM;
	}
	error->reason[0] = '\0';
	parse_module(&p);
	if (p.status) {
		fgv_ptx_destroy(p.module);
		return p.status;
	}
	*module = p.module;
	return 0;
}

void fgv_ptx_destroy(struct ptx_module *module)
{
	if (!module)
		return;
	fgv_ptx_arena_destroy(module->arena);
	free(module);
}

void *fgv_ptx_alloc(struct ptx_module *module, size_t size)
{
	return fgv_ptx_arena_get(module->arena, size);
}

const char *fgv_ptx_intern(struct ptx_module *module, const char *text, size_t length)
{
	return fgv_ptx_arena_intern(module->arena, text, length);
}
