/*
 * What the parts of ptx/ share among themselves: the lexer, and the parser's state. One
 * parser lives on the stack of one call of fgv_ptx_parse(). The first error is kept
 * and ends the parse: from then on the current token is T_END.
 */
#ifndef FGV_PTX_INTERNAL_H
#define FGV_PTX_INTERNAL_H

#include "ptx/ptx.h"

enum token_kind {
	T_END,
	T_NAME,	  /* add, %r1, $L_1, _ */
	T_DOT,	  /* .global, .L1::no_allocate: text without the dot */
	T_INT,	  /* value */
	T_F32,	  /* value: bits */
	T_F64,	  /* value: bits */
	T_STRING, /* text without the quotes */
	T_PUNCT	  /* value: the character */
};

struct token {
	enum token_kind kind;
	const char *text;
	size_t length;
	uint64_t value;
	unsigned line;
};

struct parser {
	const char *at;
	const char *end;
	unsigned line;
	struct token token; /* the current one */
	unsigned depth;	    /* nesting of blocks and lists */
	int status;	    /* 0, or the error that ended the parse */
	struct ptx_error *error;
	struct ptx_module *module;
};

/* Moves to the next token. */
void fgv_ptx_lex_next(struct parser *p);

/* Keeps the first error, with the line of the current token. */
void fgv_ptx_fail(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* There is none, or more than the text may take: the parse ends with -ENOMEM. */
void fgv_ptx_fail_memory(struct parser *p);
/* Memory from the module's arena; on failure the parse ends with -ENOMEM. */
void *fgv_ptx_get(struct parser *p, size_t size);

bool fgv_ptx_is_punct(const struct parser *p, char c);
/* True, and past it, if the current token is @c. */
bool fgv_ptx_take_punct(struct parser *p, char c);
/* Fails unless it is @c. */
void fgv_ptx_expect(struct parser *p, char c);
bool fgv_ptx_is_dot(const struct parser *p, const char *word);
/* The current name, interned, and past it; fails and gives "" where it is none. */
const char *fgv_ptx_take_name(struct parser *p);
/* A non-negative integer of at most @max. */
uint64_t fgv_ptx_take_count(struct parser *p, uint64_t max, const char *what);
/* An integer with sign. */
uint64_t fgv_ptx_take_int(struct parser *p);
bool fgv_ptx_enter(struct parser *p);
void fgv_ptx_leave(struct parser *p);

/* parse_decl.c */
bool fgv_ptx_starts_var(const struct parser *p);
/* One declaration, "a, b<4>" being several; a list, without the semicolon. */
struct ptx_var *fgv_ptx_parse_vars(struct parser *p, unsigned linkage);
/* "(.param .b32 a, ...)" */
struct ptx_var *fgv_ptx_parse_params(struct parser *p);

/* parse_body.c: what is between { and }, past the }. */
struct ptx_stmt *fgv_ptx_parse_body(struct parser *p);
/* .loc, .file, .section, .pragma: skipped; true if it was one. */
bool fgv_ptx_skip_debug(struct parser *p);

#endif
