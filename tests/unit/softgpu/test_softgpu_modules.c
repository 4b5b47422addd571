/*
 * softgpu/: what a module defines, how several become one, which are refused, and functions that
 * call each other.
 */
#include <string.h>

#include "tests/unit/softgpu/softgpu_kernel.h"

/* Recursion with lanes at different depths, and a call through a table of functions. */
START_TEST(calls)
{
	static const char text[] = HEAD
		".func (.param .b32 r) twice(.param .b32 x)\n{ .reg .b32 %r<3>;\n"
		"ld.param.u32 %r1, [x]; shl.b32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }\n"
		".func (.param .b32 r) plus(.param .b32 x)\n{ .reg .b32 %r<3>;\n"
		"ld.param.u32 %r1, [x]; add.u32 %r2, %r1, 1000; st.param.b32 [r], %r2; ret; }\n"
		".global .align 8 .u64 table[2] = {twice, plus};\n"
		".func (.param .b32 r) sum(.param .b32 n)\n{ .reg .b32 %r<9>; .reg .pred %p<2>;\n"
		"ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 0; @%p1 bra $end;\n"
		"sub.u32 %r3, %r1, 1; { .param .b32 a; st.param.b32 [a], %r3; .param .b32 b;\n"
		"call (b), sum, (a); ld.param.b32 %r2, [b]; } add.u32 %r2, %r2, %r1;\n"
		"$end: st.param.b32 [r], %r2; ret; }\n"
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 1; mul.wide.u32 %rd4, %r5, 8;\n"
		"mov.u64 %rd5, table; add.s64 %rd5, %rd5, %rd4; ld.global.u64 %rd6, [%rd5];\n"
		"{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b;\n"
		"call (b), sum, (a); ld.param.b32 %r2, [b]; }\n"
		"{ .param .b32 a; st.param.b32 [a], %r2; .param .b32 b;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (b), %rd6, (a), proto; ld.param.b32 %r2, [b]; }\n"
		"ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
		"st.global.u32 [%rd1], %r2; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(256);
	void *args[] = {&address};
	uint32_t out[64];

	ck_assert_int_eq(kernel_launch(f, 1, 64, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], i & 1 ? i * (i + 1) / 2 + 1000 : i * (i + 1));
}
END_TEST

START_TEST(variables)
{
	static const char text[] = HEAD
		".const .align 4 .b8 tab[8] = {1, 0, 0, 0, 2};\n"
		".global .align 8 .u64 gp = generic(gv)+4;\n"
		".global .align 4 .u32 gv[2] = {7, 9};\n"
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [out]; ld.global.u64 %rd2, [gp]; ld.u32 %r1, [%rd2];\n"
		"ld.const.u32 %r2, [tab+4]; add.u32 %r1, %r1, %r2; ld.global.u32 %r3, [gv];\n"
		"add.u32 %r1, %r1, %r3; st.global.u32 [%rd1], %r1; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(4);
	uint64_t gv;
	size_t bytes;
	void *args[] = {&address};
	uint32_t out;

	ck_assert_int_eq(softgpu_module_global(module, "gv", &gv, &bytes), CUDA_SUCCESS);
	ck_assert_uint_eq(bytes, 8);
	ck_assert_int_eq(softgpu_module_global(module, "none", &gv, &bytes), CUDA_ERROR_NOT_FOUND);
	out = 100;
	ck_assert_int_eq(softgpu_copy_htod(gpu, gv, &out, 4, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out, 9 + 2 + 100);
}
END_TEST

static const struct {
	const char *text;
	CUresult result;
	const char *words;
} bad_modules[] = {
	{"garbage", CUDA_ERROR_INVALID_PTX, "line 1"},
	{".version 10.0\n.target sm_75\n.address_size 64\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
	 "10.0"},
	{HEAD ".entry k()\n{\nfrobnicate.f32 %f1;\n}", CUDA_ERROR_INVALID_PTX, "frobnicate"},
	{HEAD ".entry k()\n{\n.reg .b32 %r1;\nadd.u32 %r1, %r1, %nope;\n}", CUDA_ERROR_INVALID_PTX,
	 "line 7: '%nope'"},
	{HEAD ".extern .func f();\n.entry k()\n{\ncall f;\n}", CUDA_ERROR_INVALID_PTX,
	 "line 7: call of 'f'"},
	{HEAD ".extern .func f();\n.func g()\n{\ncall f;\n}\n.entry k()\n{\ncall g;\n}",
	 CUDA_ERROR_INVALID_PTX, "line 7: call of 'f'"},
	{HEAD ".entry k()\n{\nbra $away;\n}", CUDA_ERROR_INVALID_PTX, "label"},
	{HEAD ".entry k()\n{\n.reg .b32 %r1; .reg .b64 %d1;\nadd.u32 %r1, %r1, %d1;\n}",
	 CUDA_ERROR_INVALID_PTX, "width"},
	{HEAD ".global .u32 x[2] = {1, 2, 3};", CUDA_ERROR_INVALID_PTX, "too many values"},
	{HEAD ".entry k()\n{\n.shared .b8 x[100000];\n}", CUDA_ERROR_INVALID_PTX, "no room"},
	{HEAD ".global .b8 x[100000000];", CUDA_ERROR_INVALID_PTX, "memory"},
	{HEAD ".visible .entry k() { ret; } .visible .entry k() { ret; }", CUDA_ERROR_INVALID_PTX,
	 "twice"},
};

START_TEST(bad_module)
{
	struct softgpu_module *m = NULL;
	char log[256] = "";

	ck_assert_int_eq(softgpu_module_load(gpu, &bad_modules[_i].text, 1, log, sizeof(log), &m),
			 bad_modules[_i].result);
	ck_assert_ptr_null(m);
	ck_assert_msg(strstr(log, bad_modules[_i].words), "%s", log);
}
END_TEST

/* Two texts, one program: the one calls what the other defines. */
START_TEST(linked)
{
	static const char *const texts[] = {
		HEAD ".extern .func (.param .b32 r) f(.param .b32 x);\n.extern .global .u32 g;\n"
		     ".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
		     "ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [g];\n"
		     "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call (b), f, (a);\n"
		     "ld.param.b32 %r2, [b]; } st.global.u32 [%rd1], %r2; ret; }\n",
		HEAD ".visible .global .u32 g = 20;\n"
		     ".visible .func (.param .b32 r) f(.param .b32 x)\n{ .reg .b32 %r<3>;\n"
		     "ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }\n"};
	struct softgpu_function *f;
	char log[256];
	uint64_t address = kernel_alloc(4);
	void *args[] = {&address};
	uint32_t out = 0;

	ck_assert_int_eq(softgpu_module_load(gpu, texts, 2, log, sizeof(log), &module),
			 CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_module_function(module, "k", &f), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out, 21);
}
END_TEST

/*
 * Shared variables of the module: each kernel has room for those that it or any function
 * names, not for all; and what no kernel reaches may call what nobody defines.
 */
START_TEST(shared_of_the_module)
{
	static const char text[] = HEAD
		".extern .func nobody();\n.func unreached()\n{ call nobody; ret; }\n"
		".shared .align 4 .b8 both[1024];\n.shared .align 4 .b8 one[40000];\n"
		".shared .align 4 .b8 two[40000];\n"
		".func store(.param .b32 x)\n{ .reg .b32 %r1; ld.param.b32 %r1, [x];\n"
		"st.shared.b32 [both+8], %r1; ret; }\n"
		".visible .entry other()\n{ .reg .b32 %r1; mov.u32 %r1, one; ret; }\n"
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<5>; .reg .b64 %rd1;\n"
		"mov.b32 %r1, 5; { .param .b32 a; st.param.b32 [a], %r1; call store, (a); }\n"
		"mov.b32 %r1, 7; st.shared.b32 [two+39996], %r1; ld.shared.b32 %r2, [both+8];\n"
		"ld.shared.b32 %r3, [two+39996]; add.u32 %r2, %r2, %r3; ld.param.u64 %rd1, [out];\n"
		"st.global.u32 [%rd1], %r2; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(4);
	void *args[] = {&address};
	uint32_t out = 0;

	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
			 41024);
	ck_assert_int_eq(kernel_launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out, 12);
}
END_TEST

/* What libraries have for themselves lies behind all that the program has, and is not counted. */
START_TEST(reserved_shared_memory)
{
	static const char text[] =
		".version 9.0\n.target sm_86\n.address_size 64\n.extern .shared .b8 dyn[];\n"
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd1;\n"
		"ld.param.u64 %rd1, [out]; mov.b32 %r1, 7; mov.u32 %r2, %reserved_smem_offset_1;\n"
		"st.shared.u32 [dyn+96], %r1; st.shared.u32 [%r2+1020], %r2;\n"
		"ld.shared.u32 %r3, [dyn+96]; ld.shared.u32 %r4, [%r2+1020];\n"
		"mov.u32 %r5, %total_smem_size;\n"
		"st.global.u32 [%rd1], %r3; st.global.u32 [%rd1+4], %r4;\n"
		"st.global.u32 [%rd1+8], %r5; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(12);
	void *args[] = {&address};
	uint32_t out[3];

	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION], 86);
	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
			 0);
	ck_assert_int_eq(kernel_launch(f, 1, 1, 100, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out[0], 7);
	ck_assert_uint_eq(out[1], 112);
	ck_assert_uint_eq(out[2], 100);
}
END_TEST

START_TEST(launch_limits)
{
	static const char text[] = HEAD ".visible .entry k() .maxntid 128 { ret; }\n";
	struct softgpu_function *f = kernel_load(text);

	ck_assert_int_eq(kernel_launch(f, 1, 128, 0, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(f, 0, 1, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(kernel_launch(f, 1, 0, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(kernel_launch(f, 1, 1025, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(kernel_launch(f, 1, 256, 0, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	ck_assert_int_eq(kernel_launch(f, 1, 1, (163 << 10) + 1, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_query(gpu), CUDA_SUCCESS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("softgpu_modules");
	TCase *t = tcase_create("modules");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
	tcase_add_test(t, calls);
	tcase_add_test(t, variables);
	tcase_add_loop_test(t, bad_module, 0, (int)(sizeof(bad_modules) / sizeof(*bad_modules)));
	tcase_add_test(t, linked);
	tcase_add_test(t, shared_of_the_module);
	tcase_add_test(t, reserved_shared_memory);
	tcase_add_test(t, launch_limits);
	suite_add_tcase(s, t);
	return kernel_run_suite(s);
}
