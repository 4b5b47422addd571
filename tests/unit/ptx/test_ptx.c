/*
 * ptx/: what nvcc writes is read, and printing it gives the same tree again; what is
 * not PTX is refused with its line; nothing that is cut off or garbled does any harm.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx.h"

#define HEAD ".version 9.0\n.target sm_75\n.address_size 64\n"

static const char sample[] =
	HEAD "// comment\n"
	     ".extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);\n"
	     ".const .align 4 .b8 tab[16] = {1, 0, -2, 0xff};\n"
	     ".global .align 8 .u64 gp = generic(gv)+8;\n"
	     ".global .align 4 .u32 gv;\n"
	     ".global .b8 packed[8] = {0xFF(gv), 0xFF00(gv)};\n"
	     ".global .f32 pi[2] = {0f40490FDB, 1.5};\n"
	     ".visible .global .attribute(.managed) .align 4 .u32 shared_with_host;\n"
	     ".extern .shared .align 16 .b8 dyn[];\n"
	     ".func (.param .b32 r) callee(.param .align 4 .b8 s[12])\n"
	     ".noreturn\n"
	     "{ ret; }\n"
	     ".visible .entry k(.param .u64 .ptr .global .align 16 p, .param .u32 n)\n"
	     ".maxntid 256, 1, 1\n"
	     ".minnctapersm 2\n"
	     "{\n"
	     ".reg .pred %p<3>;\n"
	     ".reg .b32 %r<9>, %single;\n"
	     ".reg .b64 %rd<4>;\n"
	     ".loc 1 12 3, function_name $L__info_string0, inlined_at 1 20 5\n"
	     "mov.u32 %r1, %tid.x;\n"
	     "@!%p1 bra $L_end;\n"
	     "setp.lt.and.s32 %p1|%p2, %r1, -5, !%p2;\n"
	     "ld.global.L1::no_allocate.v4.f32 {%r1, %r2, %r3, _}, [%rd1+-16];\n"
	     "shfl.sync.down.b32 %r4|%p1, %r1, 1, 31, -1;\n"
	     "tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [tab, {%r5, %r6}];\n"
	     "{ // callseq\n"
	     ".param .b32 param0;\n"
	     "st.param.b32 [param0+0], %r1;\n"
	     "call.uni (r0), callee, (param0), proto;\n"
	     "}\n"
	     "proto: .callprototype (.param .b32 _) _ (.param .align 4 .b8 _[12]);\n"
	     "table: .branchtargets $L_end, $L_b;\n"
	     "$L_b:\n"
	     "brx.idx %r1, table;\n"
	     "mov.b64 {%r1, %r2}, %rd1;\n"
	     "add.f32 %r1, %r2, 0f3F800000;\n"
	     "$L_end: ret;\n"
	     "}\n";

static struct ptx_module *must_parse(const char *text)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;
	int status = fgv_ptx_parse(text, strlen(text), &module, &error);

	ck_assert_msg(!status, "line %u: %s", error.line, error.reason);
	return module;
}

static char *print(const struct ptx_module *module)
{
	char *text = NULL;
	size_t length;

	ck_assert_int_eq(fgv_ptx_print(module, &text, &length), 0);
	ck_assert_uint_eq(strlen(text), length);
	return text;
}

START_TEST(round_trip)
{
	struct ptx_module *first = must_parse(sample);
	char *once = print(first);
	struct ptx_module *second = must_parse(once);
	char *twice = print(second);

	ck_assert_str_eq(once, twice);
	ck_assert_ptr_nonnull(strstr(once, "ld.global.L1::no_allocate.v4.f32 {%r1, %r2, %r3, _}, "
					   "[%rd1+-16];"));
	ck_assert_ptr_nonnull(strstr(once, "@!%p1 bra $L_end;"));
	free(once);
	free(twice);
	fgv_ptx_destroy(first);
	fgv_ptx_destroy(second);
}
END_TEST

static const struct ptx_item *nth(const struct ptx_module *module, unsigned n)
{
	const struct ptx_item *item = module->items;

	while (n--)
		item = item->next;
	return item;
}

START_TEST(tree)
{
	struct ptx_module *module = must_parse(sample);
	const struct ptx_var *tab = nth(module, 1)->var;
	const struct ptx_var *gp = nth(module, 2)->var;
	const struct ptx_function *k = nth(module, 9)->function;
	const struct ptx_stmt *stmt = k->body;

	ck_assert_uint_eq(module->version_major, 9);
	ck_assert_str_eq(module->target, "sm_75");
	ck_assert_uint_eq(fgv_ptx_var_size(tab), 16);
	ck_assert_uint_eq(tab->init->list->next->next->value, (uint64_t)-2);
	ck_assert(gp->init->generic && gp->init->value == 8);
	ck_assert(k->entry && k->linkage == PTX_VISIBLE);
	ck_assert(k->params->ptr && k->params->ptr_align == 16);
	ck_assert_uint_eq(k->directives->values[0], 256);
	ck_assert_uint_eq(stmt->var->reg_count, 3);
	while (stmt->kind != PTX_STMT_INSN)
		stmt = stmt->next;
	ck_assert_str_eq(stmt->insn.opcode, "mov");
	ck_assert_str_eq(stmt->insn.operands->next->member, "x");
	ck_assert_uint_eq(stmt->line, 24);
	fgv_ptx_destroy(module);
}
END_TEST

static const struct {
	const char *text;
	unsigned line;
	const char *reason;
} bad[] = {
	{"", 1, ".version"},
	{".version x\n", 1, "version"},
	{HEAD "nonsense", 4, "module level"},
	{HEAD ".global .u32 x = ;", 4, "integer expected"},
	{HEAD ".global x;", 4, "without a type"},
	{HEAD ".global .u32 x[99999999999999];", 4, "dimension"},
	{HEAD ".global .u32 x[1000000][1000000];", 4, "too large"},
	{HEAD ".visible .entry k()\n{\n  add.s32 %r1 %r2;\n}\n", 6, "';' expected"},
	{HEAD ".visible .entry k()\n{\n  ret;\n", 7, "ends inside"},
	{HEAD ".visible .entry k()\n{\n .reg .b32 %r<99999999>;\n}", 6, "register count"},
	{HEAD "/* no end", 4, "comment"},
	{HEAD ".global .f32 x = 0f12;", 4, "hexadecimal"},
	{HEAD ".global .u64 x = 99999999999999999999;", 4, "64 bits"},
	{HEAD ".file 1 \"no end\n", 4, "string"},
	{HEAD ".global .align 3 .u32 x;", 4, "power of two"},
};

START_TEST(refused)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;

	ck_assert_int_eq(fgv_ptx_parse(bad[_i].text, strlen(bad[_i].text), &module, &error),
			 -EINVAL);
	ck_assert_ptr_null(module);
	ck_assert_uint_eq(error.line, bad[_i].line);
	ck_assert_msg(strstr(error.reason, bad[_i].reason), "%s", error.reason);
}
END_TEST

/* Must end, whatever comes of it. */
static void try_parse(const char *text, size_t length)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;

	if (!fgv_ptx_parse(text, length, &module, &error))
		fgv_ptx_destroy(module);
	else
		ck_assert(error.line >= 1 && error.reason[0]);
}

START_TEST(truncated)
{
	/* A copy of exactly that length, so that a sanitizer sees a read beyond it. */
	for (size_t length = 0; length < sizeof(sample); length++) {
		char *copy = malloc(length ? length : 1);

		memcpy(copy, sample, length);
		try_parse(copy, length);
		free(copy);
	}
}
END_TEST

START_TEST(garbled)
{
	static const char bytes[] = "{}[](),;:.@!|<>+-_%$\"/*#09aZ \n\x80";
	char *copy = malloc(sizeof(sample));
	uint32_t state = 1;

	for (int round = 0; round < 20000; round++) {
		memcpy(copy, sample, sizeof(sample));
		for (int k = 0; k < 3; k++) {
			state = state * 1664525 + 1013904223;
			copy[(state >> 8) % (sizeof(sample) - 1)] =
				bytes[(state >> 3) % (sizeof(bytes) - 1)];
		}
		try_parse(copy, sizeof(sample) - 1);
	}
	free(copy);
}
END_TEST

START_TEST(nesting)
{
	static const char open[] = "({[";
	size_t count = 100000;

	for (int kind = 0; kind < 3; kind++) {
		char *text = malloc(count + 256);
		size_t length = (size_t)sprintf(text, HEAD ".entry k()\n{ add ");

		memset(text + length, open[kind], count);
		text[length + count] = '\0';
		try_parse(text, length + count);
		length = (size_t)sprintf(text, HEAD ".entry k()\n");
		memset(text + length, open[kind], count);
		text[length + count] = '\0';
		try_parse(text, length + count);
		free(text);
	}
}
END_TEST

static const char managed[] =
	HEAD ".visible .global .attribute(.managed) .align 4 .f32 a[4] = {1.5, 0f40000000};\n"
	     ".global .attribute(.managed) .align 8 .u64 b = generic(a)+8;\n"
	     ".extern .global .attribute(.managed) .u32 other;\n"
	     ".global .attribute(.managed) .u32 elsewhere;\n"
	     ".global .u64 pointer = a;\n"
	     ".entry k(.param .u64 p)\n"
	     "{\n"
	     ".reg .b64 %rd<4>;\n"
	     "mov.u64 %rd1, a+4;\n"
	     "ld.global.u64 %rd2, [b];\n"
	     "{ atom.global.add.u32 %rd3, [other+12], 1; }\n"
	     "st.global.u32 [elsewhere], %rd3;\n"
	     "ld.global.f32 %rd1, [a+8];\n"
	     "}\n"
	     ".entry without()\n"
	     "{ ret; }\n";

static struct {
	float a[4];
	uint64_t b;
	uint32_t other;
} placed;

static const struct ptx_placement placements[] = {
	{"a", placed.a, sizeof(placed.a)},
	{"b", &placed.b, sizeof(placed.b)},
	{"other", &placed.other, sizeof(placed.other)},
	{"unknown", &placed.other, sizeof(placed.other)},
};

/* The text of @text with its managed variables placed; NULL: it can't be, as @error says. */
static char *place(const char *text, struct ptx_error *error)
{
	struct ptx_module *module = must_parse(text);
	char *printed = NULL;

	memset(&placed, 0xff, sizeof(placed));
	if (!fgv_ptx_place(module, placements, sizeof(placements) / sizeof(*placements), error))
		printed = print(module);
	fgv_ptx_destroy(module);
	return printed;
}

/* Whether @text has @format, made with an address, once. */
static bool has(const char *text, const char *format, const void *address)
{
	char wanted[128];
	const char *at;

	snprintf(wanted, sizeof(wanted), format, (unsigned long)(uintptr_t)address);
	at = strstr(text, wanted);
	return at && !strstr(at + 1, wanted);
}

START_TEST(places_managed_variables)
{
	struct ptx_error error;
	char *text = place(managed, &error);

	ck_assert_ptr_nonnull(text);
	ck_assert_ptr_null(strstr(text, " a["));
	ck_assert_ptr_null(strstr(text, " b "));
	ck_assert_ptr_null(strstr(text, "other"));
	ck_assert_ptr_nonnull(strstr(text, ".attribute(.managed) .u32 elsewhere;"));
	ck_assert_ptr_nonnull(strstr(text, "[elsewhere]"));
	ck_assert(has(text, "pointer = %lu;", placed.a));
	ck_assert_ptr_nonnull(strstr(text, ".reg .b64 %fgv_managed<4>;"));
	ck_assert(has(text, "mov.b64 %%fgv_managed0, %lu;", placed.a + 1));
	ck_assert(has(text, "mov.b64 %%fgv_managed1, %lu;", &placed.b));
	ck_assert(has(text, "mov.b64 %%fgv_managed2, %lu;", &placed.other));
	ck_assert(has(text, "mov.b64 %%fgv_managed3, %lu;", placed.a));
	ck_assert_ptr_nonnull(strstr(text, "mov.u64 %rd1, %fgv_managed0;"));
	ck_assert_ptr_nonnull(strstr(text, "[%fgv_managed1]"));
	ck_assert_ptr_nonnull(strstr(text, "[%fgv_managed2+12]"));
	ck_assert_ptr_nonnull(strstr(text, "[%fgv_managed3+8]"));
	ck_assert_ptr_nonnull(strstr(text, ".entry without()\n{\nret;"));
	free(text);
}
END_TEST

START_TEST(writes_managed_variables)
{
	struct ptx_error error;
	char *text = place(managed, &error);

	ck_assert_ptr_nonnull(text);
	ck_assert(placed.a[0] == 1.5f && placed.a[1] == 2 && placed.a[2] == 0 && placed.a[3] == 0);
	ck_assert_uint_eq(placed.b, (uintptr_t)(placed.a + 2));
	/* Another text has that one's value. */
	ck_assert_uint_eq(placed.other, UINT32_MAX);
	free(text);
}
END_TEST

static const struct {
	const char *text;
	unsigned line;
	const char *reason;
} not_placed[] = {
	{HEAD "\n.global .attribute(.managed) .u32 a[5];", 5, "larger"},
	{HEAD ".global .attribute(.managed) .u64 b = k;\n.entry k()\n{ ret; }", 4, "not known"},
	{HEAD ".global .attribute(.managed) .u32 a[1] = {1, 2, 3, 4, 5};", 4, "not known"},
	{HEAD ".global .attribute(.managed) .u32 a;\n.entry k()\n{\n.shared .u32 a;\n}", 7,
	 "hidden"},
	{HEAD ".global .attribute(.managed) .u32 a;\n.entry k()\n{\na: ret;\n}", 7, "hidden"},
	{HEAD ".global .attribute(.managed) .u32 a;\n.entry k(.param .u64 a)\n{\nret;\n}", 5,
	 "hidden"},
};

START_TEST(refuses_to_place)
{
	struct ptx_error error = {0};

	ck_assert_ptr_null(place(not_placed[_i].text, &error));
	ck_assert_uint_eq(error.line, not_placed[_i].line);
	ck_assert_msg(strstr(error.reason, not_placed[_i].reason), "%s", error.reason);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx");
	TCase *t = tcase_create("ptx");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, tree);
	tcase_add_loop_test(t, refused, 0, (int)(sizeof(bad) / sizeof(*bad)));
	tcase_add_test(t, places_managed_variables);
	tcase_add_test(t, writes_managed_variables);
	tcase_add_loop_test(t, refuses_to_place, 0,
			    (int)(sizeof(not_placed) / sizeof(*not_placed)));
	tcase_add_test(t, truncated);
	tcase_add_test(t, garbled);
	tcase_add_test(t, nesting);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
