/*
 * softgpu/: kernels give what the processor gives, faults are found and stick, memory is
 * bounded, commands run in order, and a process that dies does not keep the engine.
 */
#include <check.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/softgpu.h"

#define HEAD ".version 9.0\n.target sm_75\n.address_size 64\n"
#ifdef __SANITIZE_THREAD__
#define BASE 0x7e9000000000ull /* one of the few places that ThreadSanitizer allows */
#else
#define BASE 0x200000000000ull
#endif

static struct softgpu *gpu;
static struct softgpu_module *module;

static void setup(void)
{
	struct softgpu_config config = {.va_base = BASE, .memory_bytes = 64 << 20, .workers = 2};

	ck_assert_int_eq(softgpu_create(&config, &gpu), CUDA_SUCCESS);
	module = NULL;
}

static void teardown(void)
{
	if (module)
		softgpu_module_unload(gpu, module);
	softgpu_destroy(gpu);
}

static CUresult drain(void)
{
	static const struct timespec pause = {.tv_nsec = 50000};
	CUresult result;

	while ((result = softgpu_query(gpu)) == CUDA_ERROR_NOT_READY)
		nanosleep(&pause, NULL);
	return result;
}

static struct softgpu_function *load(const char *text)
{
	struct softgpu_function *function = NULL;
	char log[256] = "";

	ck_assert_msg(softgpu_module_load(gpu, &text, 1, log, sizeof(log), &module) ==
			      CUDA_SUCCESS,
		      "%s", log);
	ck_assert_int_eq(softgpu_module_function(module, "k", &function), CUDA_SUCCESS);
	return function;
}

static uint64_t alloc(size_t bytes)
{
	uint64_t address = 0;

	ck_assert_int_eq(softgpu_mem_alloc(gpu, bytes, &address), CUDA_SUCCESS);
	return address;
}

static CUresult launch(struct softgpu_function *f, uint32_t blocks, uint32_t threads,
		       uint32_t shared, void **args)
{
	uint32_t grid[3] = {blocks, 1, 1};
	uint32_t block[3] = {threads, 1, 1};
	CUresult result = softgpu_launch(gpu, f, grid, block, shared, NULL, args);

	return result == CUDA_SUCCESS ? drain() : result;
}

/*
 * A kernel of @threads threads with %rd1: address of this thread's eight bytes of output,
 * %rd2: of its eight bytes of input, %r1: its index. The body computes.
 */
#define KERNEL(body) KERNEL_START body KERNEL_END
#define KERNEL_END   "\nret;\n}\n"
#define KERNEL_START                                                                     \
	HEAD ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                   \
	     ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .f32 %f<10>;\n"  \
	     ".reg .f64 %fd<9>; .reg .b64 %rd<20>;\n"                                    \
	     "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"                      \
	     "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"       \
	     "mad.lo.s32 %r1, %r2, %r3, %r1; mul.wide.u32 %rd3, %r1, 8;\n"               \
	     "add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n"

/* Runs such a kernel; the output of thread i in out[i]. */
static CUresult run(const char *text, uint32_t blocks, uint32_t threads, const uint64_t *in,
		    uint64_t *out)
{
	struct softgpu_function *f = load(text);
	size_t bytes = (size_t)blocks * threads * 8;
	uint64_t d_out = alloc(bytes);
	uint64_t d_in = alloc(bytes);
	void *args[] = {&d_out, &d_in};
	CUresult result;

	if (in)
		softgpu_copy_htod(gpu, d_in, in, bytes, NULL);
	softgpu_fill(gpu, d_out, 0, 0, 4, bytes / 4, 1, NULL);
	result = launch(f, blocks, threads, 0, args);
	if (result == CUDA_SUCCESS) {
		softgpu_copy_dtoh(gpu, out, d_out, bytes, NULL);
		result = drain();
	}
	return result;
}

/* One operation on the two halves of the input, for many values, against the processor. */
static const uint32_t values[] = {0,	      1,	  2,	      3,	  31,	      32,
				  33,	      255,	  0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
				  0xfffffffe, 0x12345678, 0x3f800000, 0xbf800000, 0x00000001, 0x7f800000,
				  0xff800000, 0x7fc00000, 0x4f000000, 0x4f800000, 0xcf000000, 0x3effffff,
				  0x3fc00000, 0x40200000, 0xc0200000, 0x00800000, 0x80000000, 0x7f7fffff};
#define VALUES (sizeof(values) / sizeof(*values))
#define PAIRS  (VALUES * VALUES)

static uint64_t pairs[PAIRS + 64];
static uint64_t results[PAIRS + 64];

static void fill_pairs(void)
{
	for (size_t i = 0; i < PAIRS; i++)
		pairs[i] = (uint64_t)values[i / VALUES] << 32 | values[i % VALUES];
}

static float as_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t as_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return f != f ? 0x7fffffff : bits;
}

#define UNARY(name, expression)                                                          \
	static uint64_t name(uint32_t a, uint32_t b)                                     \
	{                                                                                \
		(void)b;                                                                 \
		return (expression);                                                     \
	}
#define FA as_float(a)
#define FB as_float(b)
UNARY(h_add, (uint32_t)(a + b))
UNARY(h_sub, (uint32_t)(a - b))
UNARY(h_mullo, (uint32_t)(a * b))
UNARY(h_mulhi_s, (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32))
UNARY(h_mulhi_u, (uint32_t)((uint64_t)a * b >> 32))
UNARY(h_wide_s, (uint64_t)((int64_t)(int32_t)a * (int32_t)b))
UNARY(h_wide_u, (uint64_t)a * b)
UNARY(h_div_u, b ? a / b : ~0u)
UNARY(h_rem_u, b ? a % b : a)
UNARY(h_div_s, (uint32_t)(!b	     ? -1
			  : b == ~0u ? (int32_t)(0 - a)
				     : (int32_t)a / (int32_t)b))
UNARY(h_min_s, (uint32_t)((int32_t)a < (int32_t)b ? a : b))
UNARY(h_max_u, a > b ? a : b)
UNARY(h_shl, b > 31 ? 0 : (uint32_t)(a << b))
UNARY(h_shr_u, b > 31 ? 0 : a >> b)
UNARY(h_shr_s, (uint32_t)((int32_t)a >> (b > 31 ? 31 : b)))
UNARY(h_xor, a ^ b)
UNARY(h_andnot, a & ~b)
UNARY(h_popc, (uint32_t)__builtin_popcount(a))
UNARY(h_clz, a ? (uint32_t)__builtin_clz(a) : 32)
UNARY(h_bfe, (a >> 4) & 0xff)
UNARY(h_bfi, (b & ~0xff0u) | (a << 4 & 0xff0))
UNARY(h_fadd, as_bits(FA + FB))
UNARY(h_fmul, as_bits(FA * FB))
UNARY(h_fdiv, as_bits(FA / FB))
UNARY(h_fma, as_bits(fmaf(FA, FB, FA)))
UNARY(h_fsqrt, as_bits(sqrtf(FA)))
UNARY(h_fmin, as_bits(FA != FA ? FB : FB != FB ? FA : FA == FB ? as_float(a | b) : FA < FB ? FA : FB))
UNARY(h_fmax, as_bits(FA != FA ? FB : FB != FB ? FA : FA == FB ? as_float(a & b) : FA > FB ? FA : FB))
UNARY(h_f2s, (uint32_t)(FA != FA	       ? 0
			: FA >= 2147483648.0f  ? INT32_MAX
			: FA < -2147483648.0f ? INT32_MIN
					       : (int32_t)FA))
UNARY(h_f2u, (uint32_t)(!(FA > 0) ? 0 : FA >= 4294967296.0f ? UINT32_MAX : (uint32_t)FA))
UNARY(h_f2rni, (uint32_t)(FA != FA		 ? 0
			  : FA >= 2147483648.0f	 ? INT32_MAX
			  : FA < -2147483648.0f ? INT32_MIN
						 : (int32_t)rintf(FA)))
UNARY(h_s2f, as_bits((float)(int32_t)a))
UNARY(h_u2f, as_bits((float)a))
UNARY(h_sat_u8, (int32_t)a < 0 ? 0 : a > 255 ? 255 : a)
UNARY(h_s8, (uint32_t)(int32_t)(int8_t)a)
UNARY(h_lt_s, (int32_t)a < (int32_t)b)
UNARY(h_flt, FA < FB)
UNARY(h_fltu, !(FA >= FB))
UNARY(h_fne, (FA < FB) || (FA > FB))
UNARY(h_rz, as_bits(FA) == 0x7fffffff ? 0x7fffffff : (uint32_t)as_bits(truncf(FA)))
UNARY(h_lop3, (a & b) ^ 0x55555555)
UNARY(h_prmt, (b & 0xff) << 24 | (a >> 24) << 16 | (a & 0xff00) | (a & 0xff))
UNARY(h_shf, (uint32_t)(((uint64_t)b << 32 | a) << 8 >> 32))
UNARY(h_add64, (uint64_t)a + b + 0xffffffff00000000ull)
UNARY(h_brev, ({
	      uint32_t r = 0;
	      for (int i = 0; i < 32; i++)
		      r |= (a >> i & 1) << (31 - i);
	      r;
      }))

#define U "st.global.u32 [%rd1], %r9;"
#define F "mov.b32 %r9, %f9; " U
#define P "selp.u32 %r9, 1, 0, %p1; " U
static const struct {
	const char *body;
	uint64_t (*host)(uint32_t a, uint32_t b);
	bool is_float;
} operations[] = {
	{"add.s32 %r9, %r4, %r5; " U, h_add, false},
	{"sub.s32 %r9, %r4, %r5; " U, h_sub, false},
	{"mul.lo.s32 %r9, %r4, %r5; " U, h_mullo, false},
	{"mul.hi.s32 %r9, %r4, %r5; " U, h_mulhi_s, false},
	{"mul.hi.u32 %r9, %r4, %r5; " U, h_mulhi_u, false},
	{"mul.wide.s32 %rd9, %r4, %r5; st.global.u64 [%rd1], %rd9;", h_wide_s, false},
	{"mul.wide.u32 %rd9, %r4, %r5; st.global.u64 [%rd1], %rd9;", h_wide_u, false},
	{"div.u32 %r9, %r4, %r5; " U, h_div_u, false},
	{"rem.u32 %r9, %r4, %r5; " U, h_rem_u, false},
	{"div.s32 %r9, %r4, %r5; " U, h_div_s, false},
	{"min.s32 %r9, %r4, %r5; " U, h_min_s, false},
	{"max.u32 %r9, %r4, %r5; " U, h_max_u, false},
	{"shl.b32 %r9, %r4, %r5; " U, h_shl, false},
	{"shr.u32 %r9, %r4, %r5; " U, h_shr_u, false},
	{"shr.s32 %r9, %r4, %r5; " U, h_shr_s, false},
	{"xor.b32 %r9, %r4, %r5; " U, h_xor, false},
	{"not.b32 %r8, %r5; and.b32 %r9, %r4, %r8; " U, h_andnot, false},
	{"popc.b32 %r9, %r4; " U, h_popc, false},
	{"clz.b32 %r9, %r4; " U, h_clz, false},
	{"brev.b32 %r9, %r4; " U, h_brev, false},
	{"bfe.u32 %r9, %r4, 4, 8; " U, h_bfe, false},
	{"bfi.b32 %r9, %r4, %r5, 4, 8; " U, h_bfi, false},
	{"lop3.b32 %r9, %r4, %r5, 0x55555555, 0x6a; " U, h_lop3, false},
	{"prmt.b32 %r9, %r4, %r5, 0x4310; " U, h_prmt, false},
	{"shf.l.wrap.b32 %r9, %r4, %r5, 8; " U, h_shf, false},
	{"mov.u32 %r6, 0; mov.u32 %r7, -1; add.cc.u32 %r8, %r4, %r5; addc.u32 %r9, %r6, %r7;"
	 "mov.b64 %rd9, {%r8, %r9}; st.global.u64 [%rd1], %rd9;",
	 h_add64, false},
	{"add.f32 %f9, %f4, %f5; " F, h_fadd, true},
	{"mul.rn.f32 %f9, %f4, %f5; " F, h_fmul, true},
	{"div.rn.f32 %f9, %f4, %f5; " F, h_fdiv, true},
	{"fma.rn.f32 %f9, %f4, %f5, %f4; " F, h_fma, true},
	{"sqrt.rn.f32 %f9, %f4; " F, h_fsqrt, true},
	{"min.f32 %f9, %f4, %f5; " F, h_fmin, true},
	{"max.f32 %f9, %f4, %f5; " F, h_fmax, true},
	{"cvt.rzi.s32.f32 %r9, %f4; " U, h_f2s, false},
	{"cvt.rzi.u32.f32 %r9, %f4; " U, h_f2u, false},
	{"cvt.rni.s32.f32 %r9, %f4; " U, h_f2rni, false},
	{"cvt.rn.f32.s32 %f9, %r4; " F, h_s2f, true},
	{"cvt.rn.f32.u32 %f9, %r4; " F, h_u2f, true},
	{"cvt.rzi.f32.f32 %f9, %f4; " F, h_rz, true},
	{"cvt.sat.u8.s32 %r9, %r4; " U, h_sat_u8, false},
	{"cvt.s32.s8 %r9, %r4; " U, h_s8, false},
	{"setp.lt.s32 %p1, %r4, %r5; " P, h_lt_s, false},
	{"setp.lt.f32 %p1, %f4, %f5; " P, h_flt, false},
	{"setp.ltu.f32 %p1, %f4, %f5; " P, h_fltu, false},
	{"setp.ne.f32 %p1, %f4, %f5; " P, h_fne, false},
};

/* Once with whole warps, once with every third lane, which takes other paths. */
static void check_operation(size_t op, bool partial)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s%s%s%s\n$out:%s", KERNEL_START,
		 "rem.u32 %r10, %r1, 3; setp.ne.u32 %p7, %r10, 0;\n",
		 partial ? "@%p7 bra $out;" : "",
		 "ld.global.v2.u32 {%r5, %r4}, [%rd2]; mov.b32 %f4, %r4; mov.b32 %f5, %r5;\n",
		 operations[op].body, KERNEL_END);
	ck_assert_int_eq(run(text, (PAIRS + 63) / 64, 64, pairs, results), CUDA_SUCCESS);
	for (size_t i = 0; i < PAIRS; i++) {
		uint32_t a = (uint32_t)(pairs[i] >> 32);
		uint32_t b = (uint32_t)pairs[i];
		uint64_t want = operations[op].host(a, b);
		uint64_t got = results[i];

		if (partial && i % 3)
			want = 0;
		else if (operations[op].is_float)
			got = as_bits(as_float((uint32_t)got));
		ck_assert_msg(got == want, "%s: a=%x b=%x gives %llx, not %llx", operations[op].body, a,
			      b, (unsigned long long)got, (unsigned long long)want);
	}
}

START_TEST(operation)
{
	fill_pairs();
	check_operation((size_t)_i, false);
	softgpu_module_unload(gpu, module);
	check_operation((size_t)_i, true);
}
END_TEST

/* Lanes part in nested loops and conditions and must all come back. */
START_TEST(divergence)
{
	static const char text[] = KERNEL(
		"mov.u32 %r4, 0; mov.u32 %r5, 0;\n"
		"$loop: setp.ge.u32 %p1, %r5, %r1; @%p1 bra $done;\n"
		"and.b32 %r6, %r5, 3; setp.eq.u32 %p2, %r6, 1; @%p2 bra $one;\n"
		"setp.eq.u32 %p3, %r6, 2; @%p3 bra $next; add.u32 %r4, %r4, 5; bra $next;\n"
		"$one: xor.b32 %r7, %r1, %r5; and.b32 %r7, %r7, 1; setp.ne.u32 %p4, %r7, 0;\n"
		"@%p4 bra $next; add.u32 %r4, %r4, 100;\n"
		"$next: add.u32 %r5, %r5, 1; bra $loop;\n"
		"$done: bar.sync 0; activemask.b32 %r8; st.global.v2.u32 [%rd1], {%r4, %r8};");
	uint64_t out[64];

	ck_assert_int_eq(run(text, 1, 64, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t want = 0;

		for (uint32_t k = 0; k < i; k++) {
			if ((k & 3) == 1)
				want += (i ^ k) & 1 ? 0 : 100;
			else if ((k & 3) != 2)
				want += 5;
		}
		ck_assert_uint_eq((uint32_t)out[i], want);
		ck_assert_uint_eq(out[i] >> 32, 0xffffffff);
	}
}
END_TEST

START_TEST(early_exit_and_barrier)
{
	static const char text[] =
		KERNEL("setp.gt.u32 %p1, %r1, 69; @%p1 exit;\n"
		       "setp.gt.u32 %p1, %r1, 66; @%p1 ret; bar.sync 0; st.global.u32 [%rd1], 7;");
	uint64_t out[96];

	ck_assert_int_eq(run(text, 1, 96, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 96; i++)
		ck_assert_uint_eq(out[i], i > 66 ? 0 : 7);
}
END_TEST

/* The index leads to one of three places, or beyond the table. */
START_TEST(branch_table)
{
	static const char text[] = KERNEL(
		"and.b32 %r4, %r1, 3; min.u32 %r4, %r4, 2; mov.u32 %r5, 1000;\n"
		"t: .branchtargets $a, $b, $c; brx.idx %r4, t;\n"
		"$a: mov.u32 %r5, 10; bra $z; $b: mov.u32 %r5, 20; bra $z; $c: mov.u32 %r5, 30;\n"
		"$z: add.u32 %r5, %r5, %r1; st.global.u32 [%rd1], %r5;");
	static const uint32_t want[] = {10, 20, 30, 30};
	uint64_t out[32];

	ck_assert_int_eq(run(text, 1, 32, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		ck_assert_uint_eq(out[i], want[i & 3] + i);
}
END_TEST

/* Each thread reverses its block's values through shared memory, static and dynamic. */
START_TEST(shared_memory)
{
	static const char text[] = HEAD
		".extern .shared .align 16 .b8 dyn[];\n"
		".visible .entry k(.param .u64 out)\n{\n"
		".reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b8 fixed[512];\n"
		"mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, fixed; add.s32 %r3, %r3, %r2;\n"
		"mov.u32 %r4, dyn; add.s32 %r4, %r4, %r2; st.shared.u32 [%r3], %r1;\n"
		"mul.lo.s32 %r5, %r1, 3; st.shared.u32 [%r4], %r5; bar.sync 0;\n"
		"sub.s32 %r6, 127, %r1; shl.b32 %r7, %r6, 2; mov.u32 %r8, fixed; add.s32 %r8, %r8, %r7;\n"
		"cvt.u64.u32 %rd1, %r7; mov.u64 %rd2, dyn; cvta.shared.u64 %rd2, %rd2;\n"
		"add.s64 %rd2, %rd2, %rd1; ld.shared.u32 %r9, [%r8]; ld.u32 %r10, [%rd2];\n"
		"add.s32 %r9, %r9, %r10; ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 4;\n"
		"add.s64 %rd3, %rd3, %rd4; st.global.u32 [%rd3], %r9; ret;\n}\n";
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(512);
	void *args[] = {&address};
	uint32_t out[128];

	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
			 512);
	ck_assert_int_eq(launch(f, 1, 128, 512, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 128; i++)
		ck_assert_uint_eq(out[i], (127 - i) * 4);
	/* Beyond what the launch asked for. */
	ck_assert_int_eq(launch(f, 1, 128, 508, args), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

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
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(256);
	void *args[] = {&address};
	uint32_t out[64];

	ck_assert_int_eq(launch(f, 1, 64, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], i & 1 ? i * (i + 1) / 2 + 1000 : i * (i + 1));
}
END_TEST

START_TEST(local_memory)
{
	static const char text[] = KERNEL(
		".local .align 8 .b8 depot[64]; mov.u64 %rd4, depot; cvta.local.u64 %rd5, %rd4;\n"
		"and.b32 %r4, %r1, 7; mul.wide.u32 %rd6, %r4, 8; add.s64 %rd7, %rd5, %rd6;\n"
		"cvt.u64.u32 %rd8, %r1; add.s64 %rd8, %rd8, 0x100000000; st.u64 [%rd7], %rd8;\n"
		"add.s64 %rd9, %rd4, %rd6; ld.local.v2.u32 {%r5, %r6}, [%rd9]; ld.u64 %rd10, [%rd7];\n"
		"st.local.u8 [depot+3], %r1; ld.local.s8 %r7, [depot+3]; add.s32 %r5, %r5, %r7;\n"
		"cvt.u32.u64 %r8, %rd10; add.s32 %r5, %r5, %r8; st.global.v2.u32 [%rd1], {%r5, %r6};");
	uint64_t out[64];

	ck_assert_int_eq(run(text, 1, 64, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], (1ull << 32) + 3 * i);
}
END_TEST

START_TEST(warp_wide)
{
	static const char text[] = KERNEL(
		"shfl.sync.down.b32 %r4|%p1, %r1, 4, 31, -1; selp.u32 %r5, 1, 0, %p1;\n"
		"shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1; and.b32 %r7, %r1, 3;\n"
		"setp.eq.u32 %p2, %r7, 0; vote.sync.ballot.b32 %r8, %p2, -1;\n"
		"match.any.sync.b32 %r9, %r7, -1; redux.sync.add.u32 %r10, %r1, -1;\n"
		"mov.u32 %r11, %lanemask_lt; xor.b32 %r12, %r8, %r9; xor.b32 %r12, %r12, %r11;\n"
		"mad.lo.u32 %r13, %r4, 2, %r5; mad.lo.u32 %r13, %r6, 1000, %r13;\n"
		"mad.lo.u32 %r13, %r10, 100000, %r13; st.global.v2.u32 [%rd1], {%r13, %r12};");
	uint64_t out[32];

	ck_assert_int_eq(run(text, 1, 32, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t down = i < 28 ? i + 4 : i;
		uint32_t want = down * 2 + (i < 28) + (i ^ 1) * 1000 + 496 * 100000;

		ck_assert_uint_eq((uint32_t)out[i], want);
		ck_assert_uint_eq(out[i] >> 32,
				  0x11111111u ^ (0x11111111u << (i & 3)) ^ ((1u << i) - 1));
	}
}
END_TEST

/* All blocks on all workers: what is lost shows. */
/* A warp that a long wait of one lane has divided is one again behind the next barrier. */
START_TEST(whole_behind_a_barrier)
{
	static const char text[] = HEAD
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		".reg .pred %p<5>; .shared .align 4 .b32 flag; ld.param.u64 %rd1, [out];\n"
		"mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
		"mov.u32 %r2, 0; st.shared.u32 [flag], %r2; bar.sync 0;\n"
		"setp.ne.u32 %p1, %r1, 0; @%p1 bra $not_first;\n"
		"$wait: ld.volatile.shared.u32 %r3, [flag]; setp.eq.u32 %p2, %r3, 0;\n"
		"@%p2 bra $wait;\n"
		"$not_first: setp.ne.u32 %p3, %r1, 32; @%p3 bra $all;\n"
		"$count: add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 100000; @%p4 bra $count;\n"
		"st.shared.u32 [flag], %r2;\n"
		"$all: bar.sync 0; add.u32 %r5, %r1, 100; shfl.sync.bfly.b32 %r4, %r5, 1, 31, -1;\n"
		"st.global.u32 [%rd1], %r4; ret; }\n";
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(256);
	void *args[] = {&address};
	uint32_t out[64];

	ck_assert_int_eq(launch(f, 1, 64, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], 100 + (i ^ 1));
}
END_TEST

START_TEST(atomics)
{
	static const char text[] = HEAD
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		".reg .f32 %f<3>; .reg .pred %p<2>; .reg .f64 %fd<3>;\n"
		"ld.param.u64 %rd1, [out]; red.global.add.u32 [%rd1], 1;\n"
		"mov.u32 %r1, %tid.x; atom.global.max.s32 %r2, [%rd1+4], %r1;\n"
		"mov.f32 %f1, 0f3F800000; atom.global.add.f32 %f2, [%rd1+8], %f1;\n"
		"atom.global.inc.u32 %r3, [%rd1+12], 9; mov.f64 %fd1, 0d3FF0000000000000;\n"
		"atom.global.add.f64 %fd2, [%rd1+16], %fd1;\n"
		"$again: ld.global.u32 %r4, [%rd1+24]; add.u32 %r5, %r4, 2;\n"
		"atom.global.cas.b32 %r6, [%rd1+24], %r4, %r5; setp.ne.u32 %p1, %r6, %r4;\n"
		"@%p1 bra $again; ret; }\n";
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(32);
	void *args[] = {&address};
	uint32_t out[8];
	double sum;

	softgpu_fill(gpu, address, 0, 0, 4, 8, 1, NULL);
	ck_assert_int_eq(launch(f, 100, 100, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	memcpy(&sum, out + 4, sizeof(sum));
	ck_assert_uint_eq(out[0], 10000);
	ck_assert_uint_eq(out[1], 99);
	ck_assert(as_float(out[2]) == 10000.0f);
	ck_assert_uint_eq(out[3], 0);
	ck_assert(sum == 10000.0);
	ck_assert_uint_eq(out[6], 20000);
}
END_TEST

/* Lanes of one warp take a lock in turn: nobody may keep the others from running. */
START_TEST(lock_within_a_warp)
{
	static const char text[] = HEAD
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		".reg .pred %p<2>; ld.param.u64 %rd1, [out];\n"
		"$try: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0;\n"
		"@%p1 bra $try; ld.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1;\n"
		"st.global.u32 [%rd1+4], %r2; membar.gl; atom.global.exch.b32 %r3, [%rd1], 0;\n"
		"ret; }\n";
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(8);
	void *args[] = {&address};
	uint32_t out[2];

	softgpu_fill(gpu, address, 0, 0, 4, 2, 1, NULL);
	ck_assert_int_eq(launch(f, 2, 64, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out[1], 128);
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
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(4);
	uint64_t gv;
	size_t bytes;
	void *args[] = {&address};
	uint32_t out;

	ck_assert_int_eq(softgpu_module_global(module, "gv", &gv, &bytes), CUDA_SUCCESS);
	ck_assert_uint_eq(bytes, 8);
	ck_assert_int_eq(softgpu_module_global(module, "none", &gv, &bytes), CUDA_ERROR_NOT_FOUND);
	out = 100;
	ck_assert_int_eq(softgpu_copy_htod(gpu, gv, &out, 4, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out, 9 + 2 + 100);
}
END_TEST

static const struct {
	const char *body;
	CUresult fault;
} faults[] = {
	{"mov.u64 %rd4, 64; ld.global.u32 %r4, [%rd4];", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"st.global.u32 [%rd1+1048576], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"ld.global.u32 %r4, [%rd1+2];", CUDA_ERROR_MISALIGNED_ADDRESS},
	{"ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1+8];", CUDA_ERROR_MISALIGNED_ADDRESS},
	{"mov.u64 %rd4, -8; atom.global.add.u32 %r4, [%rd4], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"mov.u32 %r4, 65532; st.shared.u32 [%r4], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"mov.u64 %rd4, 4096; st.local.u32 [%rd4], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"mov.u64 %rd4, 0x2000000001000; ld.u8 %r4, [%rd4];", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"setp.eq.u32 %p1, %r1, 5; @%p1 trap;", CUDA_ERROR_LAUNCH_FAILED},
	{"setp.eq.u32 %p1, %r1, 5; @%p1 st.global.u32 [%rd1+2], 1;",
	 CUDA_ERROR_MISALIGNED_ADDRESS},
	{"setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 128;", CUDA_ERROR_LAUNCH_FAILED},
};

START_TEST(fault)
{
	char text[2048];
	uint64_t out[64];
	uint64_t address;

	snprintf(text, sizeof(text), "%s%s%s", KERNEL_START, faults[_i].body, KERNEL_END);
	ck_assert_int_eq(run(text, 1, 64, NULL, out), faults[_i].fault);
	/* It sticks. */
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 16, &address), faults[_i].fault);
	ck_assert_int_eq(softgpu_query(gpu), faults[_i].fault);
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
	uint64_t address = alloc(4);
	void *args[] = {&address};
	uint32_t out = 0;

	ck_assert_int_eq(softgpu_module_load(gpu, texts, 2, log, sizeof(log), &module),
			 CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_module_function(module, "k", &f), CUDA_SUCCESS);
	ck_assert_int_eq(launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
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
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(4);
	void *args[] = {&address};
	uint32_t out = 0;

	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
			 41024);
	ck_assert_int_eq(launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
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
	struct softgpu_function *f = load(text);
	uint64_t address = alloc(12);
	void *args[] = {&address};
	uint32_t out[3];

	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION], 86);
	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
			 0);
	ck_assert_int_eq(launch(f, 1, 1, 100, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out[0], 7);
	ck_assert_uint_eq(out[1], 112);
	ck_assert_uint_eq(out[2], 100);
}
END_TEST

START_TEST(launch_limits)
{
	static const char text[] = HEAD ".visible .entry k() .maxntid 128 { ret; }\n";
	struct softgpu_function *f = load(text);

	ck_assert_int_eq(launch(f, 1, 128, 0, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(launch(f, 0, 1, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(launch(f, 1, 0, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(launch(f, 1, 1025, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(launch(f, 1, 256, 0, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	ck_assert_int_eq(launch(f, 1, 1, 65537, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_query(gpu), CUDA_SUCCESS);
}
END_TEST

START_TEST(memory)
{
	uint64_t a = alloc(1 << 20);
	uint64_t b = alloc(100);
	uint64_t c;
	char bytes[100] = {0};

	ck_assert_uint_eq(a % 256, 0);
	ck_assert(b >= a + (1 << 20) || b + 100 <= a);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 0, &c), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 1ull << 40, &c), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, ~0ull, &c), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 64 << 20, &c), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(softgpu_mem_free(gpu, a + 4096), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_copy_htod(gpu, b, bytes, 101, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_copy_htod(gpu, b + 50, bytes, 50, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_copy_dtoh(gpu, bytes, ~0ull - 3, 8, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_fill(gpu, b, ~0ull, 0, 1, 1, 3, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_mem_free(gpu, a), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_mem_free(gpu, a), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_copy_htod(gpu, a, bytes, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_mem_free(gpu, b), CUDA_SUCCESS);
	/* All of it, once what was freed is back. */
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 64 << 20, &c), CUDA_SUCCESS);
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
}
END_TEST

/* Many sizes in any order: no two overlap, what is handed out reads as zero. */
START_TEST(memory_churn)
{
	struct {
		uint64_t address;
		size_t bytes;
	} live[64] = {0};
	uint32_t state = 7;
	uint32_t word;

	for (int round = 0; round < 3000; round++) {
		unsigned i = (state = state * 1664525 + 1013904223) >> 26;

		if (live[i].address) {
			ck_assert_int_eq(softgpu_mem_free(gpu, live[i].address), CUDA_SUCCESS);
			live[i].address = 0;
			continue;
		}
		live[i].bytes = 4 + (state >> 8) % 300000;
		live[i].address = alloc(live[i].bytes);
		for (unsigned k = 0; k < 64; k++)
			ck_assert(k == i || !live[k].address ||
				  live[k].address + live[k].bytes <= live[i].address ||
				  live[i].address + live[i].bytes <= live[k].address);
		word = 1;
		softgpu_copy_dtoh(gpu, &word, live[i].address + live[i].bytes - 4, 4, NULL);
		ck_assert_int_eq(drain(), CUDA_SUCCESS);
		ck_assert_uint_eq(word, 0);
		softgpu_fill(gpu, live[i].address, 0, ~0u, 1, live[i].bytes, 1, NULL);
	}
	ck_assert_int_eq(drain(), CUDA_SUCCESS);
}
END_TEST

START_TEST(host_memory)
{
	static const char text[] = KERNEL("ld.global.u64 %rd4, [%rd2]; add.s64 %rd4, %rd4, 1;\n"
					  "st.global.u64 [%rd1], %rd4;");
	struct softgpu_function *f = load(text);
	uint64_t *host = aligned_alloc(4096, 8192);
	uint64_t in = (uint64_t)(uintptr_t)host;
	uint64_t out = in + 4096;
	void *args[] = {&out, &in};

	for (unsigned i = 0; i < 64; i++)
		host[i] = i;
	ck_assert_int_eq(softgpu_host_register(gpu, host, 8192), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_host_register(gpu, host + 8, 8),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	ck_assert_int_eq(launch(f, 1, 64, 0, args), CUDA_SUCCESS);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(host[512 + i], i + 1);
	ck_assert_int_eq(softgpu_host_unregister(gpu, host), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_host_unregister(gpu, host),
			 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	ck_assert_int_eq(launch(f, 1, 64, 0, args), CUDA_ERROR_ILLEGAL_ADDRESS);
	free(host);
}
END_TEST

#define SPIN_KERNEL                                                                      \
	HEAD ".visible .entry k(.param .u64 flag)\n{ .reg .b32 %r1; .reg .b64 %rd1;\n"    \
	     ".reg .pred %p1; ld.param.u64 %rd1, [flag];\n"                              \
	     "$l: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;\n"        \
	     "@%p1 bra $l; ret; }\n"

START_TEST(events_and_order)
{
	struct softgpu_function *f = load(SPIN_KERNEL);
	struct softgpu_stream *stream;
	struct softgpu_event *before;
	struct softgpu_event *after;
	struct pollfd pollfd = {.fd = softgpu_completion_fd(gpu), .events = POLLIN};
	uint32_t one[3] = {1, 1, 1};
	uint32_t *flag = aligned_alloc(4096, 4096);
	uint64_t address = (uint64_t)(uintptr_t)flag;
	void *args[] = {&address};
	float ms = -1;

	*flag = 0;
	softgpu_host_register(gpu, flag, 4096);
	ck_assert_int_eq(softgpu_stream_create(gpu, &stream), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_create(gpu, &before), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_create(gpu, &after), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_query(gpu, before), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_elapsed(gpu, before, after, &ms), CUDA_ERROR_INVALID_HANDLE);
	softgpu_event_record(gpu, before, stream);
	ck_assert_int_eq(softgpu_launch(gpu, f, one, one, 0, stream, args), CUDA_SUCCESS);
	softgpu_event_record(gpu, after, stream);
	ck_assert_int_eq(softgpu_stream_wait_event(gpu, NULL, after), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_stream_query(gpu, stream), CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(softgpu_event_query(gpu, after), CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(softgpu_stream_query(gpu, NULL), CUDA_SUCCESS);
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	while (softgpu_stream_query(gpu, stream) == CUDA_ERROR_NOT_READY) {
		uint64_t count;

		softgpu_arm(gpu);
		if (softgpu_stream_query(gpu, stream) != CUDA_ERROR_NOT_READY)
			break;
		ck_assert_int_eq(poll(&pollfd, 1, 10000), 1);
		ck_assert_int_eq(read(pollfd.fd, &count, sizeof(count)), sizeof(count));
	}
	ck_assert_int_eq(softgpu_event_elapsed(gpu, before, after, &ms), CUDA_SUCCESS);
	ck_assert(ms >= 0);
	softgpu_event_destroy(gpu, before);
	softgpu_event_destroy(gpu, after);
	ck_assert_int_eq(softgpu_stream_destroy(gpu, stream), CUDA_SUCCESS);
	softgpu_host_unregister(gpu, flag);
	free(flag);
}
END_TEST

/* A kernel without an end does not keep the device from going away. */
START_TEST(destroy_while_running)
{
	struct softgpu_function *f = load(SPIN_KERNEL);
	uint32_t dims[3] = {4, 1, 1};
	uint64_t address = alloc(4);
	void *args[] = {&address};

	ck_assert_int_eq(softgpu_launch(gpu, f, dims, dims, 0, NULL, args), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_mem_free(gpu, address), CUDA_SUCCESS);
}
END_TEST

START_TEST(attributes)
{
	int value = 0;

	ck_assert_str_eq(softgpu_name(gpu), "FairGV Soft GPU");
	ck_assert_int_eq(softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_WARP_SIZE, &value), CUDA_SUCCESS);
	ck_assert_int_eq(value, 32);
	ck_assert_int_eq(softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &value),
			 CUDA_SUCCESS);
	ck_assert_int_eq(value, 2);
	ck_assert_int_eq(softgpu_attribute(gpu, (CUdevice_attribute)100000, &value),
			 CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("softgpu");
	TCase *t = tcase_create("kernels");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, operation, 0, (int)(sizeof(operations) / sizeof(*operations)));
	tcase_add_test(t, divergence);
	tcase_add_test(t, early_exit_and_barrier);
	tcase_add_test(t, branch_table);
	tcase_add_test(t, shared_memory);
	tcase_add_test(t, calls);
	tcase_add_test(t, local_memory);
	tcase_add_test(t, warp_wide);
	tcase_add_test(t, atomics);
	tcase_add_test(t, lock_within_a_warp);
	tcase_add_test(t, whole_behind_a_barrier);
	tcase_add_test(t, variables);
	tcase_add_test(t, linked);
	tcase_add_test(t, shared_of_the_module);
	tcase_add_test(t, reserved_shared_memory);
	tcase_add_loop_test(t, fault, 0, (int)(sizeof(faults) / sizeof(*faults)));
	tcase_add_loop_test(t, bad_module, 0, (int)(sizeof(bad_modules) / sizeof(*bad_modules)));
	suite_add_tcase(s, t);
	t = tcase_create("device");
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, launch_limits);
	tcase_add_test(t, memory);
	tcase_add_test(t, memory_churn);
	tcase_add_test(t, host_memory);
	tcase_add_test(t, events_and_order);
	tcase_add_test(t, destroy_while_running);
	tcase_add_test(t, attributes);
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
