/*
 * A reader of declarations and of nothing else. Wherever a state space of the device's memory is
 * named, be it in a comment or a string, it looks whether a declaration could follow: so
 * nothing depends on where another reader of the text takes comments and strings to end.
 */
#include "backend/gpu/ptx_bytes.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"

/* Of a type that is not known; none is larger. */
#define TYPE_BYTES_MAX 64

/* No instruction's name is longer. */
#define WORD_MAX 64

/* How often, on the average, what declares no variable may make this look at a character again. */
#define LOOKS_MAX 16

struct word {
	const char *at;
	size_t len; /* 0: the end */
};

/* A variable as it is declared: names may follow each other. */
struct declaration {
	uint64_t type_bytes; /* 0: no type was named */
	uint64_t vector;
	uint64_t align;
};

struct scan {
	const char *at;
	const struct fgv_gpu_placed *placed;
	size_t placed_count;
	uint64_t bytes;
	uint64_t looks; /* at characters, that are left */
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static const char *skip_comment(const char *at)
{
	const char *end;

	if (at[1] == '/')
		return at + strcspn(at, "\n");
	end = strstr(at + 2, "*/");
	return end ? end + 2 : at + strlen(at);
}

static const char *skip_space(const char *at)
{
	for (;;) {
		at += strspn(at, " \t\r\n\f\v");
		if (at[0] == '/' && (at[1] == '/' || at[1] == '*'))
			at = skip_comment(at);
		else
			return at;
	}
}

/* A word with a dot before it ends at the next dot: ".align.b32" is two. */
static struct word next_word(struct scan *scan)
{
	const char *begin = skip_space(scan->at), *at = begin;
	uint64_t looks;

	if (*at == '.' || is_name(*at)) {
		at++;
		while (is_name(*at))
			at++;
	} else if (*at) {
		at++;
	}
	looks = (uint64_t)(at - scan->at);
	scan->looks -= fgv_min_u64(looks, scan->looks);
	scan->at = at;
	return (struct word){begin, scan->looks ? (size_t)(at - begin) : 0};
}

static bool is(struct word word, const char *text)
{
	return word.len == strlen(text) && !memcmp(word.at, text, word.len);
}

/* -EINVAL for what is not a number by itself. */
static int number(struct word word, uint64_t *value)
{
	char *end;

	if (!word.len || !isdigit((unsigned char)*word.at))
		return -EINVAL;
	if (word.at[0] == '0' && (word.at[1] == 'b' || word.at[1] == 'B'))
		*value = strtoull(word.at + 2, &end, 2);
	else
		*value = strtoull(word.at, &end, 0);
	if (*end == 'U')
		end++;
	return end == word.at + word.len ? 0 : -EINVAL;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ".b32" by the digits in it; ".f16x2" and what is not known by the most that it may be. */
static uint64_t type_bytes(struct word word)
{
	uint64_t bits = 0;

	for (size_t i = 2; i < word.len; i++) {
		if (!isdigit((unsigned char)word.at[i]))
			return TYPE_BYTES_MAX;
		bits = bits * 10 + (uint64_t)(word.at[i] - '0');
		if (bits > 8 * TYPE_BYTES_MAX)
			return TYPE_BYTES_MAX;
	}
	return bits ? (bits + 7) / 8 : TYPE_BYTES_MAX;
}

static int read_align(struct scan *scan, struct declaration *declaration)
{
	uint64_t align;

	if (number(next_word(scan), &align) < 0 || !align || (align & (align - 1)))
		return -EINVAL;
	declaration->align = fgv_max_u64(declaration->align, align);
	return 0;
}

/* ".attribute(...)", whose words are none of a declaration. */
static void skip_parentheses(struct scan *scan)
{
	struct word word;

	do
		word = next_word(scan);
	while (word.len && !is(word, ")") && !is(word, ";"));
}

/* What stands between the state space and the name; *@name is the first word that is neither. */
static int read_type(struct scan *scan, struct declaration *declaration, struct word *name)
{
	int err = 0;

	*declaration = (struct declaration){.vector = 1, .align = 1};
	for (*name = next_word(scan); !err && name->len && *name->at == '.';
	     *name = next_word(scan)) {
		if (is(*name, ".align"))
			err = read_align(scan, declaration);
		else if (is(*name, ".attribute"))
			skip_parentheses(scan);
		else if (is(*name, ".v2") || is(*name, ".v4") || is(*name, ".v8"))
			declaration->vector = (uint64_t)(name->at[2] - '0');
		else
			declaration->type_bytes = type_bytes(*name);
	}
	return err;
}

/* How many values an initial value may at most have: what of it lies between commas. */
static uint64_t count_values(struct scan *scan)
{
	const char *before;
	uint64_t count = 1;
	unsigned depth = 0;
	struct word word;

	do {
		before = scan->at;
		word = next_word(scan);
		if (is(word, "{") || is(word, "("))
			depth++;
		else if (depth && (is(word, "}") || is(word, ")")))
			depth--;
		else if (is(word, ";") || (is(word, ",") && !depth))
			break;
		count += is(word, ",");
	} while (word.len);
	scan->at = before;
	return count;
}

/* "[4][]": the product, and whether one of them says nothing. */
static int read_dimensions(struct scan *scan, uint64_t *elements, bool *is_open, struct word *after)
{
	uint64_t dimension;
	struct word word;

	*elements = 1;
	*is_open = false;
	for (*after = next_word(scan); is(*after, "["); *after = next_word(scan)) {
		word = next_word(scan);
		if (is(word, "]")) {
			*is_open = true;
			continue;
		}
		if (number(word, &dimension) < 0 || !is(next_word(scan), "]"))
			return -EINVAL;
		*elements = times(*elements, dimension);
	}
	return 0;
}

static bool is_placed(const struct scan *scan, struct word name, uint64_t bytes)
{
	for (size_t i = 0; i < scan->placed_count; i++) {
		if (is(name, scan->placed[i].name) && bytes <= scan->placed[i].bytes)
			return true;
	}
	return false;
}

/* One name behind a type. *@after: the word behind it. */
static int count_variable(struct scan *scan, const struct declaration *declaration,
			  struct word name, struct word *after)
{
	uint64_t element = times(declaration->type_bytes, declaration->vector), elements, bytes;
	uint64_t copies = 1;
	bool is_open;

	/* "name<10>" is ten of them. */
	if (*skip_space(scan->at) == '<') {
		next_word(scan);
		if (number(next_word(scan), &copies) < 0 || !is(next_word(scan), ">"))
			return -EINVAL;
	}
	if (read_dimensions(scan, &elements, &is_open, after) < 0)
		return -EINVAL;
	if (is(*after, "=")) {
		uint64_t values = count_values(scan);

		/* Each of an open dimension may be a row of its own. */
		if (is_open)
			elements = times(elements, values);
		*after = next_word(scan);
	}
	bytes = times(times(element, elements), copies);
	if (is_placed(scan, name, bytes))
		return 0;
	/* To align one takes as much again at most, and no more than its alignment. */
	bytes = plus(bytes, fgv_max_u64(declaration->align, element) - (bytes > 0));
	scan->bytes = plus(scan->bytes, bytes);
	return 0;
}

static int count_declaration(struct scan *scan)
{
	struct declaration declaration;
	struct word name;
	int err = read_type(scan, &declaration, &name);

	while (!err && declaration.type_bytes && name.len && is_name(*name.at)) {
		struct word after;

		err = count_variable(scan, &declaration, name, &after);
		if (err || !is(after, ","))
			break;
		name = next_word(scan);
	}
	return err;
}

/* Instructions that name a state space, which for them declares nothing. */
static bool is_instruction(const char *begin, const char *end)
{
	static const char *const names[] = {
		"ld",	    "ldu",  "st", "atom",     "red",	 "prefetch",	  "prefetchu",
		"isspacep", "cvta", "cp", "multimem", "discard", "applypriority", "createpolicy"};
	const char *dot = memchr(begin, '.', (size_t)(end - begin));
	size_t len = (size_t)(dot - begin);

	for (size_t i = 0; i < FGV_ARRAY_LEN(names); i++) {
		if (len == strlen(names[i]) && !memcmp(begin, names[i], len))
			return true;
	}
	return false;
}

static const char *begin_of_word(const char *text, const char *at)
{
	const char *first = at - text > WORD_MAX ? at - WORD_MAX : text;

	while (at > first && (is_name(at[-1]) || at[-1] == '.'))
		at--;
	return at;
}

/* Declared elsewhere: ".extern" stands directly before it, and first in its line. */
static bool is_extern(const char *text, const char *at)
{
	static const char word[] = ".extern";
	const size_t len = sizeof(word) - 1;

	while (at > text && isspace((unsigned char)at[-1]))
		at--;
	if ((size_t)(at - text) < len || memcmp(at - len, word, len))
		return false;
	for (at -= len; at > text && at[-1] != '\n'; at--) {
		if (at[-1] != ' ' && at[-1] != '\t')
			return false;
	}
	return true;
}

/* The length of the name of a state space at @at, which is in the device's memory; or 0. */
static size_t space_at(const char *at)
{
	static const char *const names[] = {".global", ".const"};

	for (size_t i = 0; i < FGV_ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);

		if (!strncmp(at, names[i], len) && !is_name(at[len]))
			return len;
	}
	return 0;
}

int fgv_ptx_bytes(const char *text, const struct fgv_gpu_placed *placed, size_t placed_count,
		  uint64_t *bytes)
{
	struct scan scan = {
		.placed = placed,
		.placed_count = placed_count,
		.looks = LOOKS_MAX * (strlen(text) + 1),
	};

	for (const char *at = strchr(text, '.'); at; at = strchr(at + 1, '.')) {
		size_t len = space_at(at);

		if (!len || is_instruction(begin_of_word(text, at), at + 1) || is_extern(text, at))
			continue;
		scan.at = at + len;
		if (count_declaration(&scan) < 0 || !scan.looks)
			return -EINVAL;
	}
	*bytes = scan.bytes;
	return 0;
}
