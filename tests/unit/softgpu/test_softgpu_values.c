/*
 * softgpu/: operations give what the processor gives, in whole warps and in divided ones.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/softgpu/softgpu_kernel.h"

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
	ck_assert_int_eq(kernel_run(text, (PAIRS + 63) / 64, 64, pairs, results), CUDA_SUCCESS);
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

int main(void)
{
	Suite *s = suite_create("softgpu_values");
	TCase *t = tcase_create("values");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
	tcase_add_loop_test(t, operation, 0, (int)(sizeof(operations) / sizeof(*operations)));
	suite_add_tcase(s, t);
	return kernel_run_suite(s);
}
