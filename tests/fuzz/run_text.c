/*
 * The instructions are those of tests/softgpu/forms.txt. Of a form, the numbers of registers and
 * those numbers that stand alone are drawn anew; half of the registers of 64 bits are addresses.
 */
#include "tests/fuzz/run_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "common/util.h"

static const char *const forms[] = {
#include "tests/fuzz/forms.h"
};

static const char head[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".global .align 16 .b8 garr[256];\n"
	".const .align 16 .b8 carr[64] = {1, 2, 3};\n"
	".func (.param .b32 q) dev(.param .b32 p)\n"
	"{ .reg .b32 %r<3>; ld.param.u32 %r1, [p]; st.param.b32 [q], %r1; ret; }\n"
	".visible .entry k(.param .u64 pout, .param .u64 pin)\n{\n"
	".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<32>; .reg .f32 %f<12>;\n"
	".reg .f64 %fd<9>; .reg .b64 %rd<20>;\n"
	".local .align 16 .b8 larr[64]; .shared .align 16 .b8 sarr[256];\n"
	".param .b32 p0; .param .b32 q0;\n"
	"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
	"tbl: .branchtargets L1, L2;\n"
	"ld.param.u64 %rd1, [pout]; ld.param.u64 %rd2, [pin]; mov.u64 %rd3, sarr;\n"
	"mov.u64 %rd4, larr; mov.u64 %rd5, garr; mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid;\n"
	"mov.u32 %r3, sarr; setp.lt.u32 %p1, %r1, 7; setp.gt.u32 %p2, %r2, 3;\n";

static const char tail[] = "\nL1: bar.sync 0;\nL2: ret;\n}\n";

static const uint32_t numbers[] = {0,	  1,	  2,	      3,	  4,	     7,	   8,
				   15,	  16,	  31,	      32,	  63,	     64,   128,
				   255,	  256,	  0x7fff,     0xffff,	  5,	     1000, 100,
				   0x101, 0x1f1f, 0x7fffffff, 0x80000000, 0xffffffff};

#define FORMS	 ((unsigned)FGV_ARRAY_LEN(forms))
#define BRANCHES 64 /* numbers that are branches, beside those of the forms */

struct draws {
	const uint8_t *bytes;
	unsigned at;
};

static unsigned draw(struct draws *draws)
{
	return draws->bytes[2 + draws->at++ % (RUN_TEXT_RECORD - 2)];
}

/* How many registers of the kind at @name the head has; 0: that is no register. */
static unsigned registers(const char *name, size_t len)
{
	static const struct {
		const char *name;
		unsigned count;
	} kinds[] = {{"p", 9}, {"rs", 9}, {"r", 32}, {"f", 12}, {"fd", 9}, {"rd", 20}};

	for (size_t i = 0; i < FGV_ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, name, len))
			return kinds[i].count;
	}
	return 0;
}

/* A register with the number that it has, or with another one. What was read of @form. */
static size_t put_register(FILE *out, const char *form, struct draws *draws)
{
	size_t name_len = 0, len;
	unsigned count, drawn;

	while (isalpha((unsigned char)form[1 + name_len]))
		name_len++;
	len = 1 + name_len;
	while (isdigit((unsigned char)form[len]))
		len++;
	count = registers(form + 1, name_len);
	drawn = len > 1 + name_len && count ? draw(draws) : 0;
	if (drawn & 0x80)
		fprintf(out, "%.*s%u", (int)(1 + name_len), form, drawn % count);
	else
		fprintf(out, "%.*s", (int)len, form);
	return len;
}

static size_t put_number(FILE *out, const char *form, struct draws *draws)
{
	unsigned drawn = draw(draws);
	size_t len = strspn(form, "0123456789abcdefxABCDEF");

	if (drawn & 0x80)
		fprintf(out, "%u", numbers[drawn % FGV_ARRAY_LEN(numbers)]);
	else
		fprintf(out, "%.*s", (int)len, form);
	return len;
}

/* Names, with the points of an opcode, stay what they are. */
static size_t put_name(FILE *out, const char *form)
{
	size_t len = 0;

	while (isalnum((unsigned char)form[len]) || strchr("._$:", form[len] ? form[len] : ' '))
		len++;
	fprintf(out, "%.*s", (int)len, form);
	return len;
}

static void put_form(FILE *out, const char *form, struct draws *draws)
{
	while (*form) {
		if (*form == '%')
			form += put_register(out, form, draws);
		else if (isdigit((unsigned char)*form) && form[1] != 'f' && form[1] != 'd')
			form += put_number(out, form, draws);
		else if (isalnum((unsigned char)*form) || *form == '.' || *form == '_')
			form += put_name(out, form);
		else
			fputc(*form++, out);
	}
	fputc('\n', out);
}

/* Mostly forwards: what never ends costs the watchdog's patience. */
static unsigned branch_target(unsigned drawn, unsigned at, unsigned count)
{
	return drawn & 7 ? at + 1 + (drawn >> 3) % (count - at) : (drawn >> 3) % count;
}

/* Instruction @at of @count. Every fourth or so is under a condition, every tenth is a branch. */
static void put_record(FILE *out, const uint8_t *bytes, unsigned at, unsigned count)
{
	struct draws draws = {.bytes = bytes};
	unsigned number = (bytes[0] | (bytes[1] & 3u) << 8) % (FORMS + BRANCHES);
	unsigned how = bytes[1] >> 2;
	bool is_branch = number >= FORMS;

	fprintf(out, "N%u: ", at);
	if ((how & 3) == 3 && (is_branch || !strchr("@{", forms[number][0])))
		fprintf(out, "@%s%%p%u ", how & 4 ? "!" : "", how >> 3 & 7);
	if (is_branch)
		fprintf(out, "bra N%u;\n", branch_target(draw(&draws), at, count));
	else
		put_form(out, forms[number], &draws);
}

char *run_text_make(const uint8_t *data, size_t len)
{
	unsigned count = (unsigned)fgv_min_u64(len / RUN_TEXT_RECORD, RUN_TEXT_MAX);
	char *text = NULL;
	size_t text_len;
	FILE *out = open_memstream(&text, &text_len);

	if (!out)
		return NULL;
	fputs(head, out);
	for (unsigned i = 0; i < count; i++)
		put_record(out, data + i * RUN_TEXT_RECORD, i, count);
	fprintf(out, "N%u: %s", count, tail);
	return fclose(out) ? NULL : text;
}
