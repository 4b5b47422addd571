/*
 * Slicing: a kernel that was rewritten, launched in parts over its grid, leaves what the kernel
 * as it came leaves in one launch. Both run on the soft GPU. What can't be done in parts is
 * refused, with the reason.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx.h"
#include "tests/unit/softgpu/softgpu_kernel.h"

#define SLICE_HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

#define GRID_X	4u
#define GRID_Y	3u
#define GRID_Z	2u
#define BLOCKS	(GRID_X * GRID_Y * GRID_Z)
#define THREADS 8u
#define WORDS	4u /* that each thread writes */
#define BYTES	(BLOCKS * THREADS * WORDS * 4)

static const uint32_t grid[3] = {GRID_X, GRID_Y, GRID_Z}, block[3] = {THREADS, 1, 1};

/*
 * A kernel that writes %r1 to %r4, at a place that depends on all coordinates; these are computed
 * apart from what the body does, so that a wrong body is seen.
 */
#define START(params)                                                                              \
	".visible .entry k(.param .u64 out" params ")\n{\n"                                        \
	".reg .pred %p<4>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"                \
	"mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ctaid.y; mov.u32 %r22, %ctaid.z;\n"                \
	"mov.u32 %r23, %nctaid.x; mov.u32 %r24, %nctaid.y; mov.u32 %r25, %tid.x;\n"                \
	"mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
#define END                                                                                        \
	"mad.lo.u32 %r26, %r22, %r24, %r21; mad.lo.u32 %r26, %r26, %r23, %r20;\n"                  \
	"shl.b32 %r26, %r26, 3; add.u32 %r26, %r26, %r25;\n"                                       \
	"mul.wide.u32 %rd1, %r26, 16; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd1;\n"       \
	"st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4}; ret;\n}\n"
#define BODY(text) SLICE_HEAD START("") text END

static const struct {
	const char *name, *whole;
	const char *forms; /* the same by other instructions, to be sliced; NULL: whole itself */
} kernels[] = {
	{"scalars", BODY("mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.z; mov.u32 %r3, %ctaid.z;\n"
			 "mov.b32 %r4, %nctaid.x;"),
	 NULL},
	{"clusters of one block",
	 BODY("mov.u32 %r1, %clusterid.x; mov.u32 %r2, %nclusterid.y; mov.u32 %r3, %cluster_ctaid.x;\n"
	      "mov.u32 %r4, %cluster_nctaid.x;"),
	 NULL},
	{"operands of other instructions",
	 BODY("mad.lo.u32 %r1, %ctaid.x, 7, %ctaid.y; setp.gt.u32 %p1, %ctaid.z, 0;\n"
	      "selp.b32 %r2, %nctaid.x, %ctaid.y, %p1; cvt.u64.u32 %rd3, %ctaid.z;\n"
	      "cvt.u32.u64 %r3, %rd3; mov.b64 %rd4, {%ctaid.x, %nctaid.y};\n"
	      "shr.u64 %rd5, %rd4, 31; cvt.u32.u64 %r4, %rd5;"),
	 NULL},
	{"halves", BODY("mov.u16 %rs1, %ctaid.x; cvt.u32.u16 %r1, %rs1; cvt.u32.u16 %r2, %nctaid.y;\n"
			"cvt.u32.u16 %r3, %ctaid.z;"),
	 NULL},
	{"guards", BODY("setp.eq.u32 %p1, %r25, 1; @%p1 mov.u32 %r1, %ctaid.x;\n"
			"@!%p1 mov.u32 %r1, %nctaid.x;"),
	 NULL},
	{"whole vectors",
	 BODY("mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n"
	      "mov.u32 %r4, 1;"),
	 BODY(".reg .b32 %sum<5>; mov.v4.u32 {%r1, %r2, %r3, %sum1}, %ctaid;\n"
	      "mov.v4.u32 {_, _, _, %r4}, %nctaid; mov.v4.u32 {_, _, _, _}, %nctaid;\n"
	      "add.u32 %r4, %r4, %sum1;")},
	{"guarded vectors of halves",
	 BODY("setp.eq.u32 %p1, %r25, 1; @%p1 mov.u32 %r1, %nctaid.x; @%p1 mov.u32 %r2, %nctaid.y;"),
	 BODY("setp.eq.u32 %p1, %r25, 1; mov.u16 %rs1, 0; mov.u16 %rs2, 0;\n"
	      "@%p1 mov.v4.u16 {%rs1, %rs2, _, _}, %nctaid;\n"
	      "cvt.u32.u16 %r1, %rs1; cvt.u32.u16 %r2, %rs2;")},
	{"colours", BODY("mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.z;"),
	 BODY("mov.u32 %r1, %ctaid.r; mov.u32 %r2, %ctaid.g; mov.u32 %r3, %nctaid.b;")},
	{"names like those that are added",
	 BODY(".reg .b32 %fgv_part0_r<9>; .reg .b32 %fgv_part1_r0; .reg .b32 fgv_part2_part;\n"
	      "mov.u32 %fgv_part0_r0, 17; mov.u32 %fgv_part1_r0, 18; mov.u32 fgv_part2_part, 19;\n"
	      "mov.u32 %r4, %ctaid.x; add.u32 %r1, %fgv_part0_r0, %fgv_part1_r0;\n"
	      "add.u32 %r2, %r1, fgv_part2_part;"),
	 NULL},
	{"functions that call each other",
	 SLICE_HEAD
	 ".func (.param .b32 r) leaf(.param .b32 x);\n"
	 ".func silent()\n{ .reg .b32 %r<3>; mov.u32 %r1, %ctaid.x; ret; }\n"
	 ".func (.param .b32 r) middle(.param .b32 x)\n{ .reg .b32 %r<4>; .reg .pred %p<2>;\n"
	 "ld.param.u32 %r1, [x]; call silent; setp.gt.u32 %p1, %r1, 2; mov.u32 %r2, 5;\n"
	 "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b;\n"
	 "@%p1 call.uni (b), leaf, (a); @%p1 ld.param.b32 %r2, [b]; }\n"
	 "st.param.b32 [r], %r2; ret; }\n"
	 ".func (.param .b32 r) leaf(.param .b32 x)\n{ .reg .b32 %r<9>; .reg .pred %p<2>;\n"
	 "ld.param.u32 %r1, [x]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x;\n"
	 "setp.eq.u32 %p1, %r1, 0; @%p1 bra $end; sub.u32 %r4, %r1, 1;\n"
	 "{ .param .b32 a; st.param.b32 [a], %r4; .param .b32 b;\n"
	 "call.uni (b), leaf, (a); ld.param.b32 %r5, [b]; }\n"
	 "mad.lo.u32 %r2, %r5, %r3, %r2;\n"
	 "$end: st.param.b32 [r], %r2; ret; }\n"
	 ".visible .entry other(.param .u64 out)\n{ .reg .b32 %r<3>; mov.u32 %r1, %gridid; ret; }\n"
	 START("") "{ .param .b32 a; st.param.b32 [a], %r25; .param .b32 b;\n"
		   "call.uni (b), middle, (a); ld.param.b32 %r1, [b]; }\n" END,
	 NULL},
	{"variables of the module that was loaded first",
	 SLICE_HEAD
	 ".global .align 4 .u32 count; .const .align 4 .u32 table[4] = {11, 22, 33, 44};\n"
	 ".global .align 8 .u64 pointer = generic(table)+4; .global .u32 unused = 5;\n"
	 ".visible .global .align 4 .u32 sums[24];\n"
	 START("") "atom.global.add.u32 %r10, [count], 1; mov.u64 %rd3, table;\n"
		   "mul.wide.u32 %rd4, %r20, 4; add.u64 %rd3, %rd3, %rd4; ld.const.u32 %r1, [%rd3];\n"
		   "ld.const.u32 %r2, [table+12]; ld.global.u64 %rd5, [pointer]; ld.u32 %r3, [%rd5];\n"
		   "mov.u64 %rd6, table; cvta.const.u64 %rd6, %rd6; ld.u32 %r4, [%rd6+8];\n" END,
	 NULL},
	{"shared memory and barriers",
	 SLICE_HEAD ".shared .align 4 .b8 all[64];\n" START(
		 "") "mov.u32 %r10, all; shl.b32 %r11, %r25, 2; add.u32 %r11, %r10, %r11;\n"
		     "add.u32 %r12, %r20, %r25; st.shared.u32 [%r11], %r12; bar.sync 0;\n"
		     "xor.b32 %r13, %r25, 1; shl.b32 %r13, %r13, 2; add.u32 %r13, %r10, %r13;\n"
		     "ld.shared.u32 %r1, [%r13];\n" END,
	 NULL},
};

/* --- Both ways ------------------------------------------------------------------------ */

static void load(const char *text, struct softgpu_module **loaded, struct softgpu_function **f)
{
	char log[256] = "";

	ck_assert_msg(softgpu_module_load(gpu, &text, 1, log, sizeof(log), loaded) == CUDA_SUCCESS,
		      "%s in:\n%s", log, text);
	ck_assert_int_eq(softgpu_module_function(*loaded, "k", f), CUDA_SUCCESS);
}

/* Puts all variables that are left where @first has them. */
static void place(struct ptx_module *tree, struct softgpu_module *first)
{
	struct ptx_placement places[16];
	struct ptx_error error;
	size_t count = 0, bytes;

	for (const struct ptx_item *item = tree->items; item; item = item->next) {
		uint64_t address;

		if (item->kind != PTX_ITEM_VAR || item->var->space == PTX_SHARED)
			continue;
		ck_assert_int_eq(softgpu_module_global(first, item->var->name, &address, &bytes),
				 CUDA_SUCCESS);
		places[count++] = (struct ptx_placement){item->var->name, (void *)address, bytes,
							 .is_loaded = true};
	}
	ck_assert_int_eq(fgv_ptx_place(tree, places, count, &error), 0);
}

/* @text, sliced; of variables it has those of @first. */
static char *slice(const char *text, struct softgpu_module *first)
{
	struct ptx_module *tree;
	struct ptx_error error;
	char *printed;
	size_t len;

	ck_assert_int_eq(fgv_ptx_parse(text, strlen(text), &tree, &error), 0);
	ck_assert_msg(fgv_ptx_slice(tree, "k", &error) == 0, "line %u: %s", error.line,
		      error.reason);
	place(tree, first);
	ck_assert_int_eq(fgv_ptx_print(tree, &printed, &len), 0);
	fgv_ptx_destroy(tree);
	return printed;
}

static void read_back(uint64_t from, uint32_t *to)
{
	softgpu_copy_dtoh(gpu, to, from, BYTES, NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	softgpu_fill(gpu, from, BYTES, 0xee, 1, BYTES, 1, NULL);
}

static void run_parts(struct softgpu_function *f, uint64_t out, const uint32_t size[3])
{
	struct ptx_part part = {.grid = {GRID_X, GRID_Y, GRID_Z}};
	void *args[] = {&out, &part};

	for (part.first[2] = 0; part.first[2] < GRID_Z; part.first[2] += size[2])
		for (part.first[1] = 0; part.first[1] < GRID_Y; part.first[1] += size[1])
			for (part.first[0] = 0; part.first[0] < GRID_X; part.first[0] += size[0])
				ck_assert_int_eq(softgpu_launch(gpu, f, size, block, 0, NULL, args),
						 CUDA_SUCCESS);
}

START_TEST(parts_are_the_whole)
{
	static const uint32_t sizes[][3] = {{1, 1, 1}, {2, 1, 1}, {4, 3, 1}, {4, 1, 2}, {4, 3, 2}};
	const char *forms = kernels[_i].forms ? kernels[_i].forms : kernels[_i].whole;
	uint32_t expected[BYTES / 4], got[BYTES / 4];
	uint64_t out = kernel_alloc(BYTES);
	struct softgpu_module *parts;
	struct softgpu_function *f;
	void *args[] = {&out};
	char *sliced;

	load(kernels[_i].whole, &module, &f);
	ck_assert_int_eq(softgpu_launch(gpu, f, grid, block, 0, NULL, args), CUDA_SUCCESS);
	read_back(out, expected);
	sliced = slice(forms, module);
	load(sliced, &parts, &f);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		run_parts(f, out, sizes[i]);
		read_back(out, got);
		for (unsigned word = 0; word < BYTES / 4; word++)
			ck_assert_msg(got[word] == expected[word],
				      "%s, parts %u: word %u is %u, not %u, by:\n%s",
				      kernels[_i].name, i, word, got[word], expected[word], sliced);
	}
	softgpu_module_unload(gpu, parts);
	free(sliced);
}
END_TEST

/* Not only what both read, but what they write is in one place. */
START_TEST(variables_are_shared)
{
	static const char text[] = SLICE_HEAD
		".global .align 4 .u32 count;\n"
		".visible .entry k()\n{ .reg .b32 %r<3>;\n"
		"atom.global.add.u32 %r1, [count], 1; ret; }\n";
	struct ptx_part part = {.first = {1, 0, 0}, .grid = {3, 1, 1}};
	uint32_t one[3] = {1, 1, 1}, three[3] = {3, 1, 1}, count;
	struct softgpu_function *whole, *f;
	struct softgpu_module *parts;
	void *args[] = {&part};
	uint64_t address;
	size_t bytes;
	char *sliced;

	load(text, &module, &whole);
	sliced = slice(text, module);
	load(sliced, &parts, &f);
	ck_assert_int_eq(softgpu_launch(gpu, whole, three, one, 0, NULL, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_launch(gpu, f, one, one, 0, NULL, args), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_module_global(module, "count", &address, &bytes), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &count, address, 4, NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(count, 4);
	softgpu_module_unload(gpu, parts);
	free(sliced);
}
END_TEST

/* Only the kernel and what it reaches: the others cost no time to compile, and no memory. */
START_TEST(nothing_else_is_left)
{
	static const char text[] = SLICE_HEAD
		".global .u32 unused; .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
		".func used()\n{ ret; }\n.func not_used()\n{ ret; }\n"
		".visible .entry other()\n{ ret; }\n"
		".visible .entry k()\n{ call used; ret; }\n";
	char *sliced;

	load(text, &module, &(struct softgpu_function *){NULL});
	sliced = slice(text, module);
	ck_assert_ptr_null(strstr(sliced, "unused"));
	ck_assert_ptr_null(strstr(sliced, "not_used"));
	ck_assert_ptr_null(strstr(sliced, "other"));
	ck_assert_ptr_null(strstr(sliced, "vprintf"));
	ck_assert_ptr_nonnull(strstr(sliced, "call used;"));
	free(sliced);
}
END_TEST

/* --- What is left whole ----------------------------------------------------------------- */

#define KERNEL_WITH(text)                                                                          \
	SLICE_HEAD ".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"     \
	text "\nret;\n}\n"

static const struct {
	const char *text, *reason;
} whole[] = {
	{KERNEL_WITH("mov.u32 %r1, %envreg2;"), "%envreg2"},
	{KERNEL_WITH("mov.u64 %rd1, %gridid;"), "%gridid"},
	{KERNEL_WITH("mov.u64 %rd1, %current_graph_exec;"), "%current_graph_exec"},
	{KERNEL_WITH("griddepcontrol.wait;"), "griddepcontrol"},
	{KERNEL_WITH("mov.u64 %rd1, %ctaid.x;"), "%ctaid"},
	{KERNEL_WITH("mov.v2.u32 {%r1, %r2}, %ctaid;"), "%ctaid"},
	{KERNEL_WITH("mov.u32 %r1, %nctaid;"), "%nctaid"},
	{KERNEL_WITH("mov.u32 %r1, %ctaid.q;"), "%ctaid"},
	{KERNEL_WITH("ld.global.u32 %r1, [%ctaid];"), "%ctaid"},
	{KERNEL_WITH(".reg .b32 %ctaid; mov.u32 %r1, 1;"), "declares %ctaid"},
	{KERNEL_WITH("call %rd1, proto;\nproto: .callprototype _ ();"), "by their addresses"},
	{KERNEL_WITH("call unknown;"), "by their addresses"},
	{KERNEL_WITH(".global .u32 inner; ld.global.u32 %r1, [inner];"), "within a function"},
	{SLICE_HEAD ".extern .func cudaLaunchDeviceV2();\n"
		    ".visible .entry k()\n{ call cudaLaunchDeviceV2; ret; }\n",
	 "cudaLaunchDeviceV2"},
	{SLICE_HEAD ".extern .func __assertfail();\n.func inner()\n{ call __assertfail; ret; }\n"
		    ".visible .entry k()\n{ call inner; ret; }\n",
	 "__assertfail"},
	{SLICE_HEAD ".func f()\n{ ret; }\n.visible .entry k()\n{ .reg .b64 %rd<2>; mov.u64 %rd1, f; }\n",
	 "address of function 'f'"},
	{SLICE_HEAD ".func f()\n{ ret; }\n.alias g, f;\n.visible .entry k()\n{ call g; ret; }\n",
	 "by their addresses"},
	{SLICE_HEAD ".global .texref t;\n.visible .entry k()\n{ .reg .f32 %f<9>; .reg .b32 %r<2>;\n"
		    "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1}]; ret; }\n",
	 "a texture"},
	{SLICE_HEAD ".visible .entry k() .reqnctapercluster 2, 1, 1\n{ ret; }\n", "in clusters"},
	{SLICE_HEAD ".visible .entry k(.param .u64 .ptr .const .align 4 p)\n{ ret; }\n",
	 "parameter in .const"},
	{SLICE_HEAD ".visible .entry k(.param .align 4 .b8 p[4073])\n{ ret; }\n", "no room"},
	{SLICE_HEAD ".visible .entry k(.param .align 4 .b8 p[32741])\n{ ret; }\n", "no room"},
	{SLICE_HEAD ".visible .entry k2()\n{ ret; }\n", "no such kernel"},
	{SLICE_HEAD ".func k()\n{ ret; }\n", "no such kernel"},
};

START_TEST(left_whole)
{
	struct ptx_error error = {0};
	struct ptx_module *tree;

	ck_assert_msg(fgv_ptx_parse(whole[_i].text, strlen(whole[_i].text), &tree, &error) == 0,
		      "%s", error.reason);
	ck_assert_int_lt(fgv_ptx_slice(tree, "k", &error), 0);
	ck_assert_msg(strstr(error.reason, whole[_i].reason), "'%s' instead of '%s'", error.reason,
		      whole[_i].reason);
	fgv_ptx_destroy(tree);
}
END_TEST

/* As many parameters as leave room for one more. */
START_TEST(room_is_used_up)
{
	static const char *const fit[] = {
		SLICE_HEAD ".visible .entry k(.param .align 4 .b8 p[4072])\n{ ret; }\n",
		SLICE_HEAD ".visible .entry k(.param .align 4 .b8 p[32740])\n{ ret; }\n",
	};
	struct ptx_error error;
	struct ptx_module *tree;

	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(fgv_ptx_parse(fit[i], strlen(fit[i]), &tree, &error), 0);
		ck_assert_int_eq(fgv_ptx_slice(tree, "k", &error), 0);
		fgv_ptx_destroy(tree);
	}
}
END_TEST

static Suite *slice_suite(void)
{
	Suite *suite = suite_create("slice");
	TCase *tests = tcase_create("slice");

	tcase_add_checked_fixture(tests, kernel_setup, kernel_teardown);
	tcase_add_loop_test(tests, parts_are_the_whole, 0, sizeof(kernels) / sizeof(kernels[0]));
	tcase_add_test(tests, variables_are_shared);
	tcase_add_test(tests, nothing_else_is_left);
	tcase_add_loop_test(tests, left_whole, 0, sizeof(whole) / sizeof(whole[0]));
	tcase_add_test(tests, room_is_used_up);
	suite_add_tcase(suite, tests);
	return suite;
}

int main(void)
{
	return kernel_run_suite(slice_suite());
}
