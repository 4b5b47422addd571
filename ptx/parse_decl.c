/*
 * Declarations: registers, variables and parameters, with types, array dimensions and
 * initialisers.
 */
#include "ptx/internal.h"

#include <string.h>

bool fgv_ptx_starts_var(const struct parser *p)
{
	char word[16];

	if (p->token.kind != T_DOT || p->token.length >= sizeof(word))
		return false;
	memcpy(word, p->token.text, p->token.length);
	word[p->token.length] = '\0';
	return fgv_ptx_space_find(word) != PTX_NOSPACE;
}

/* The current modifier as a string; "" where it is none or too long to matter. */
static const char *dot_word(const struct parser *p, char word[static 32])
{
	word[0] = '\0';
	if (p->token.kind == T_DOT && p->token.length < 32) {
		memcpy(word, p->token.text, p->token.length);
		word[p->token.length] = '\0';
	}
	return word;
}

static uint32_t take_align(struct parser *p)
{
	uint64_t align;

	fgv_ptx_lex_next(p);
	align = fgv_ptx_take_count(p, 1u << 20, "alignment");
	if (align & (align - 1) || !align) {
		fgv_ptx_fail(p, "alignment is no power of two");
		return 1;
	}
	return (uint32_t)align;
}

/* .attribute(.managed) and others, of which only this one matters. */
static void take_attribute(struct parser *p, struct ptx_var *var)
{
	unsigned open = 1;

	fgv_ptx_lex_next(p);
	fgv_ptx_expect(p, '(');
	while (open && p->token.kind != T_END) {
		if (fgv_ptx_is_dot(p, "managed"))
			var->managed = true;
		if (fgv_ptx_is_punct(p, '('))
			open++;
		if (fgv_ptx_is_punct(p, ')'))
			open--;
		fgv_ptx_lex_next(p);
	}
	if (open)
		fgv_ptx_fail(p, "attribute without an end");
}

/* .ptr .global .align 16 */
static void take_ptr(struct parser *p, struct ptx_var *var)
{
	char word[32];

	fgv_ptx_lex_next(p);
	var->ptr = true;
	var->ptr_space = fgv_ptx_space_find(dot_word(p, word));
	if (var->ptr_space != PTX_NOSPACE)
		fgv_ptx_lex_next(p);
	if (fgv_ptx_is_dot(p, "align"))
		var->ptr_align = take_align(p);
}

static void take_vector(struct parser *p, struct ptx_var *var, const char *word)
{
	var->vector = (uint32_t)(word[1] - '0');
	fgv_ptx_lex_next(p);
}

/* Everything before the name: .space .align 4 .v2 .f32 */
static void take_specifiers(struct parser *p, struct ptx_var *var)
{
	char word[32];

	var->space = fgv_ptx_space_find(dot_word(p, word));
	var->line = p->token.line;
	var->vector = 1;
	fgv_ptx_lex_next(p);
	while (p->token.kind == T_DOT) {
		dot_word(p, word);
		if (!strcmp(word, "align")) {
			var->align = take_align(p);
		} else if (!strcmp(word, "attribute")) {
			take_attribute(p, var);
		} else if (!strcmp(word, "ptr")) {
			take_ptr(p, var);
		} else if (!strcmp(word, "v2") || !strcmp(word, "v4") || !strcmp(word, "v8")) {
			take_vector(p, var, word);
		} else if (fgv_ptx_type_find(word) != PTX_NOTYPE) {
			var->type = fgv_ptx_type_find(word);
			fgv_ptx_lex_next(p);
		} else {
			fgv_ptx_fail(p, "'.%s' in a declaration", word);
		}
	}
	if (var->type == PTX_NOTYPE)
		fgv_ptx_fail(p, "declaration without a type");
}

static void take_dims(struct parser *p, struct ptx_var *var)
{
	while (fgv_ptx_take_punct(p, '[')) {
		uint64_t size = 0;

		if (var->dims_count == FGV_PTX_DIMS_MAX) {
			fgv_ptx_fail(p, "more than %d dimensions", FGV_PTX_DIMS_MAX);
			return;
		}
		if (!fgv_ptx_is_punct(p, ']'))
			size = fgv_ptx_take_count(p, FGV_PTX_SIZE_MAX, "dimension");
		var->dims[var->dims_count++] = size;
		fgv_ptx_expect(p, ']');
	}
	if (fgv_ptx_var_size(var) >= FGV_PTX_SIZE_MAX)
		fgv_ptx_fail(p, "variable '%s' is too large", var->name);
}

static struct ptx_init *parse_init(struct parser *p);

static struct ptx_init *parse_init_list(struct parser *p, struct ptx_init *init)
{
	struct ptx_init **tail = &init->list;

	init->kind = PTX_INIT_LIST;
	if (!fgv_ptx_enter(p))
		return init;
	fgv_ptx_lex_next(p);
	while (!fgv_ptx_is_punct(p, '}') && !p->status) {
		*tail = parse_init(p);
		if (*tail)
			tail = &(*tail)->next;
		if (!fgv_ptx_take_punct(p, ','))
			break;
	}
	fgv_ptx_expect(p, '}');
	fgv_ptx_leave(p);
	return init;
}

static void take_offset(struct parser *p, struct ptx_init *init)
{
	bool minus = fgv_ptx_is_punct(p, '-');

	if (!minus && !fgv_ptx_is_punct(p, '+'))
		return;
	fgv_ptx_lex_next(p);
	init->value = fgv_ptx_take_int(p);
	if (minus)
		init->value = -init->value;
}

/* symbol, generic(symbol), each with + offset; the mask has been read. */
static void parse_symbol(struct parser *p, struct ptx_init *init)
{
	init->kind = PTX_INIT_SYMBOL;
	init->symbol = fgv_ptx_take_name(p);
	if (!strcmp(init->symbol, "generic") && fgv_ptx_take_punct(p, '(')) {
		init->generic = true;
		init->symbol = fgv_ptx_take_name(p);
		take_offset(p, init);
		fgv_ptx_expect(p, ')');
	}
	if (!init->value)
		take_offset(p, init);
}

static struct ptx_init *parse_init(struct parser *p)
{
	struct ptx_init *init = fgv_ptx_get(p, sizeof(*init));

	if (!init)
		return NULL;
	if (fgv_ptx_is_punct(p, '{'))
		return parse_init_list(p, init);
	init->value = p->token.value;
	if (p->token.kind == T_F32 || p->token.kind == T_F64) {
		init->kind = p->token.kind == T_F32 ? PTX_INIT_F32 : PTX_INIT_F64;
		fgv_ptx_lex_next(p);
	} else if (p->token.kind == T_NAME) {
		init->value = 0;
		parse_symbol(p, init);
	} else {
		init->kind = PTX_INIT_INT;
		init->value = fgv_ptx_take_int(p);
		if (fgv_ptx_take_punct(p, '(')) {
			init->mask = init->value;
			init->value = 0;
			parse_symbol(p, init);
			fgv_ptx_expect(p, ')');
		}
	}
	return init;
}

static void take_declarator(struct parser *p, struct ptx_var *var)
{
	var->name = fgv_ptx_take_name(p);
	if (fgv_ptx_take_punct(p, '<')) {
		var->reg_count =
			(uint32_t)fgv_ptx_take_count(p, FGV_PTX_REGS_MAX, "register count");
		fgv_ptx_expect(p, '>');
		if (!var->reg_count)
			fgv_ptx_fail(p, "no registers in '%s'", var->name);
	}
	/* The alignment of an attribute list may follow the type only; dimensions come last. */
	take_dims(p, var);
	if (fgv_ptx_take_punct(p, '='))
		var->init = parse_init(p);
}

struct ptx_var *fgv_ptx_parse_vars(struct parser *p, unsigned linkage)
{
	struct ptx_var *first = fgv_ptx_get(p, sizeof(*first));
	struct ptx_var *var = first;

	if (!first)
		return NULL;
	first->linkage = linkage;
	take_specifiers(p, first);
	take_declarator(p, first);
	while (first->space != PTX_PARAM && fgv_ptx_take_punct(p, ',')) {
		struct ptx_var *next = fgv_ptx_get(p, sizeof(*next));

		if (!next)
			break;
		*next = *first;
		next->reg_count = next->dims_count = 0;
		memset(next->dims, 0, sizeof(next->dims));
		next->init = NULL;
		next->next = NULL;
		take_declarator(p, next);
		var->next = next;
		var = next;
	}
	return first;
}

struct ptx_var *fgv_ptx_parse_params(struct parser *p)
{
	struct ptx_var *list = NULL;
	struct ptx_var **tail = &list;

	fgv_ptx_expect(p, '(');
	while (!fgv_ptx_is_punct(p, ')') && !p->status) {
		if (!fgv_ptx_is_dot(p, "param") && !fgv_ptx_is_dot(p, "reg")) {
			fgv_ptx_fail(p, "parameter expected");
			return NULL;
		}
		*tail = fgv_ptx_get(p, sizeof(**tail));
		if (!*tail)
			return NULL;
		take_specifiers(p, *tail);
		take_declarator(p, *tail);
		tail = &(*tail)->next;
		if (!fgv_ptx_take_punct(p, ','))
			break;
	}
	fgv_ptx_expect(p, ')');
	return list;
}
