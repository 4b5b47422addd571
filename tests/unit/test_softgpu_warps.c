/*
 * softgpu/: lanes that part meet again, and what a warp does together it does with all of its
 * lanes.
 */
#include "tests/unit/softgpu_kernel.h"

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

	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), CUDA_SUCCESS);
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

	ck_assert_int_eq(kernel_run(text, 1, 96, NULL, out), CUDA_SUCCESS);
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

	ck_assert_int_eq(kernel_run(text, 1, 32, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		ck_assert_uint_eq(out[i], want[i & 3] + i);
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

	ck_assert_int_eq(kernel_run(text, 1, 32, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t down = i < 28 ? i + 4 : i;
		uint32_t want = down * 2 + (i < 28) + (i ^ 1) * 1000 + 496 * 100000;

		ck_assert_uint_eq((uint32_t)out[i], want);
		ck_assert_uint_eq(out[i] >> 32,
				  0x11111111u ^ (0x11111111u << (i & 3)) ^ ((1u << i) - 1));
	}
}
END_TEST

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
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(256);
	void *args[] = {&address};
	uint32_t out[64];

	ck_assert_int_eq(kernel_launch(f, 1, 64, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], 100 + (i ^ 1));
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
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(8);
	void *args[] = {&address};
	uint32_t out[2];

	softgpu_fill(gpu, address, 0, 0, 4, 2, 1, NULL);
	ck_assert_int_eq(kernel_launch(f, 2, 64, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out[1], 128);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("softgpu_warps");
	TCase *t = tcase_create("warps");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
	tcase_add_test(t, divergence);
	tcase_add_test(t, early_exit_and_barrier);
	tcase_add_test(t, branch_table);
	tcase_add_test(t, warp_wide);
	tcase_add_test(t, whole_behind_a_barrier);
	tcase_add_test(t, lock_within_a_warp);
	suite_add_tcase(s, t);
	return kernel_run_suite(s);
}
