/*
 * The lexer: bytes to tokens. It never looks beyond the end it was given. Comments, blanks
 * and preprocessor lines are no tokens. A modifier such as ".L1::evict_last" is one
 * token; whether "." starts a modifier or separates a register's
 * member is the parser's to say.
 */
#include "ptx/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fgv_ptx_fail(struct parser *p, const char *format, ...)
{
	va_list args;

	if (p->status)
		return;
	p->status = -EINVAL;
	p->error->line = p->token.line;
	va_start(args, format);
	vsnprintf(p->error->reason, sizeof(p->error->reason), format, args);
	va_end(args);
	p->at = p->end;
	p->token.kind = T_END;
	p->token.length = 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static char peek(const struct parser *p, size_t ahead)
{
	return (size_t)(p->end - p->at) > ahead ? p->at[ahead] : '\0';
}

static void skip_line(struct parser *p)
{
	while (p->at < p->end && *p->at != '\n')
		p->at++;
}

static void skip_comment(struct parser *p)
{
	p->at += 2;
	while (p->at < p->end && !(p->at[0] == '*' && peek(p, 1) == '/')) {
		if (*p->at == '\n')
			p->line++;
		p->at++;
	}
	p->token.line = p->line;
	if (p->at >= p->end)
		fgv_ptx_fail(p, "comment without an end");
	else
		p->at += 2;
}

static void skip_blank(struct parser *p)
{
	while (p->at < p->end) {
		char c = *p->at;

		if (c == '\n') {
			p->line++;
			p->at++;
		} else if (isspace((unsigned char)c)) {
			p->at++;
		} else if (c == '#' || (c == '/' && peek(p, 1) == '/')) {
			skip_line(p);
		} else if (c == '/' && peek(p, 1) == '*') {
			skip_comment(p);
		} else {
			return;
		}
	}
}

/* Past a word: letters, digits, _ and $; in a modifier also "::". */
static void scan_word(struct parser *p, bool modifier)
{
	const char *start = p->at;

	while (p->at < p->end) {
		if (is_word(*p->at))
			p->at++;
		else if (modifier && p->at[0] == ':' && peek(p, 1) == ':')
			p->at += 2;
		else
			break;
	}
	p->token.text = start;
	p->token.length = (size_t)(p->at - start);
	if (p->token.length > FGV_PTX_NAME_MAX)
		fgv_ptx_fail(p, "name longer than %d bytes", FGV_PTX_NAME_MAX);
}

/* 0f3F800000 and 0d3FF0000000000000: the bits of a float. */
static void scan_float_bits(struct parser *p, unsigned digits, enum token_kind kind)
{
	uint64_t bits = 0;

	p->at += 2;
	for (unsigned i = 0; i < digits; i++) {
		char c = peek(p, 0);

		if (!isxdigit((unsigned char)c)) {
			fgv_ptx_fail(p, "float constant needs %u hexadecimal digits", digits);
			return;
		}
		bits = bits << 4 |
		       (uint64_t)(isdigit((unsigned char)c) ? c - '0' : tolower(c) - 'a' + 10);
		p->at++;
	}
	p->token.kind = kind;
	p->token.value = bits;
}

/* 1.5, 1e10, 9.0: read as double. */
static void scan_decimal_float(struct parser *p, size_t length)
{
	char digits[64];
	double value;

	if (length >= sizeof(digits)) {
		fgv_ptx_fail(p, "number too long");
		return;
	}
	memcpy(digits, p->at, length);
	digits[length] = '\0';
	value = strtod(digits, NULL);
	p->token.kind = T_F64;
	memcpy(&p->token.value, &value, sizeof(value));
	p->token.text = p->at;
	p->token.length = length;
	p->at += length;
}

static size_t decimal_float_length(const struct parser *p)
{
	size_t n = 0;
	bool is_float = false;

	while (isdigit((unsigned char)peek(p, n)))
		n++;
	if (peek(p, n) == '.' && isdigit((unsigned char)peek(p, n + 1))) {
		is_float = true;
		for (n++; isdigit((unsigned char)peek(p, n));)
			n++;
	}
	if (is_float && (peek(p, n) | 0x20) == 'e') {
		size_t exponent = n + 1;

		if (peek(p, exponent) == '+' || peek(p, exponent) == '-')
			exponent++;
		if (isdigit((unsigned char)peek(p, exponent))) {
			for (n = exponent; isdigit((unsigned char)peek(p, n));)
				n++;
		}
	}
	return is_float ? n : 0;
}

static unsigned digit_value(char c)
{
	if (isdigit((unsigned char)c))
		return (unsigned)(c - '0');
	if (isxdigit((unsigned char)c))
		return (unsigned)(tolower(c) - 'a') + 10;
	return 99;
}

static void scan_integer(struct parser *p)
{
	unsigned base = 10;
	uint64_t value = 0;
	unsigned count = 0;

	if (peek(p, 0) == '0' && (peek(p, 1) | 0x20) == 'x') {
		base = 16;
		p->at += 2;
	} else if (peek(p, 0) == '0' && (peek(p, 1) | 0x20) == 'b') {
		base = 2;
		p->at += 2;
	} else if (peek(p, 0) == '0') {
		base = 8;
	}
	for (; digit_value(peek(p, 0)) < base; p->at++, count++) {
		if (value > (UINT64_MAX - digit_value(*p->at)) / base) {
			fgv_ptx_fail(p, "integer constant does not fit 64 bits");
			return;
		}
		value = value * base + digit_value(*p->at);
	}
	if (peek(p, 0) == 'U')
		p->at++;
	if (!count || is_word(peek(p, 0))) {
		fgv_ptx_fail(p, "malformed number");
		return;
	}
	p->token.kind = T_INT;
	p->token.value = value;
}

static void scan_number(struct parser *p)
{
	size_t length;

	if (peek(p, 0) == '0' && (peek(p, 1) | 0x20) == 'f') {
		scan_float_bits(p, 8, T_F32);
	} else if (peek(p, 0) == '0' && (peek(p, 1) | 0x20) == 'd') {
		scan_float_bits(p, 16, T_F64);
	} else {
		length = decimal_float_length(p);
		if (length)
			scan_decimal_float(p, length);
		else
			scan_integer(p);
	}
}

static void scan_string(struct parser *p)
{
	p->token.kind = T_STRING;
	p->token.text = ++p->at;
	while (p->at < p->end && *p->at != '"' && *p->at != '\n') {
		if (*p->at == '\\' && p->end - p->at > 1)
			p->at++;
		p->at++;
	}
	if (peek(p, 0) != '"') {
		fgv_ptx_fail(p, "string without an end");
		return;
	}
	p->token.length = (size_t)(p->at - p->token.text);
	p->at++;
}

void fgv_ptx_lex_next(struct parser *p)
{
	char c;

	if (p->status)
		return;
	skip_blank(p);
	if (p->status)
		return;
	p->token.line = p->line;
	p->token.text = p->at;
	p->token.length = 0;
	c = peek(p, 0);
	if (p->at >= p->end) {
		p->token.kind = T_END;
	} else if (isdigit((unsigned char)c)) {
		scan_number(p);
	} else if (is_word(c) || (c == '%' && is_word(peek(p, 1)))) {
		const char *start = p->at;

		p->at += c == '%';
		p->token.kind = T_NAME;
		scan_word(p, false);
		p->token.length += (size_t)(p->token.text - start);
		p->token.text = start;
	} else if (c == '.' && is_word(peek(p, 1))) {
		p->at++;
		p->token.kind = T_DOT;
		scan_word(p, true);
	} else if (c == '"') {
		scan_string(p);
	} else {
		p->token.kind = T_PUNCT;
		p->token.value = (unsigned char)c;
		p->token.length = 1;
		p->at++;
	}
}
