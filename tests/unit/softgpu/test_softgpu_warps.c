/*
 * softgpu/: lanes that part meet again, and what a warp does together it does with all of its
 * lanes.
 */
#include <stdio.h>

#include "tests/unit/softgpu/softgpu_kernel.h"

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

/*
 * Operations of a warp whose lanes come by different ways. %r1: the thread, %r4: its lane; the
 * body leaves a value in %r9.
 */
static uint32_t others(uint32_t i)
{
	return (i ^ 1) + (i & 1 ? 100 : 200);
}

static uint32_t neighbour_and_all(uint32_t i)
{
	return (i ^ 1) * 7 + 32;
}

static uint32_t of_half(uint32_t i)
{
	return i % 32 < 16 ? 0x5555u ^ 1u << (i & 15) : 0x55550000u ^ 1u << (i % 32);
}

static uint32_t sum_of_half(uint32_t i)
{
	uint32_t first = i & ~15u;

	return 16 * first + 120;
}

static uint32_t equal_in_half(uint32_t i)
{
	return 0x1111u << (i & 3) << (i & 16);
}

static uint32_t those_left(uint32_t i)
{
	return i % 32 < 20 ? 0xfffff : 0;
}

static uint32_t other_arm(uint32_t i)
{
	return i % 32 < 16 ? i + 16 : i - 16;
}

static uint32_t fifth(uint32_t i)
{
	return i % 32 % 5 == 2 ? 2 + 64 * (i & ~31u) : 0;
}

#define LANE "and.b32 %r4, %r1, 31; mov.u32 %r9, 0;\n"
#define HALF \
	"and.b32 %r5, %r1, 16; shl.b32 %r6, 0xffff, %r5; and.b32 %r7, %r1, 1;\n" \
	"setp.eq.u32 %p1, %r7, 0;\n"
static const struct {
	const char *body;
	uint32_t (*want)(uint32_t i);
} gathers[] = {
	/* Two instructions of one kind. */
	{"and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra $even;\n"
	 "add.u32 %r6, %r1, 200; shfl.sync.bfly.b32 %r9, %r6, 1, 31, -1; bra $z;\n"
	 "$even: add.u32 %r7, %r1, 100; shfl.sync.bfly.b32 %r9, %r7, 1, 31, -1; $z:\n",
	 others},
	/* Loops as long as lanes are high, so long that those who wait are let go. */
	{"mul.lo.u32 %r5, %r4, 500; mov.u32 %r6, 0; mov.u32 %r7, 0;\n"
	 "$loop: setp.ge.u32 %p1, %r6, %r5; @%p1 bra $done; add.u32 %r6, %r6, 1; bra $loop;\n"
	 "$done: mul.lo.u32 %r7, %r1, 7; shfl.sync.bfly.b32 %r9, %r7, 1, 31, -1;\n"
	 "activemask.b32 %r8; popc.b32 %r8, %r8; add.u32 %r9, %r9, %r8;\n",
	 neighbour_and_all},
	/* One instruction, and each half of the warp by itself. */
	{HALF "vote.sync.ballot.b32 %r9, %p1, %r6; shl.b32 %r8, 1, %r4; xor.b32 %r9, %r9, %r8;\n",
	 of_half},
	{HALF "redux.sync.add.u32 %r9, %r1, %r6;\n", sum_of_half},
	{HALF "and.b32 %r8, %r1, 3; match.any.sync.b32 %r9, %r8, %r6;\n", equal_in_half},
	/* The same where the halves come one after the other, and of each the odd lanes first. */
	{HALF "@%p1 bra $slow; vote.sync.ballot.b32 %r9, %p1, %r6; bra $z;\n"
	      "$slow: mov.u32 %r10, 0; $l: add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, %r4;\n"
	      "@%p2 bra $l; vote.sync.ballot.b32 %r9, %p1, %r6;\n"
	      "$z: shl.b32 %r8, 1, %r4; xor.b32 %r9, %r9, %r8;\n",
	 of_half},
	/* A thread that has exited is not waited for, whichever comes first. */
	{"setp.ge.u32 %p1, %r4, 20; @%p1 bra $gone; setp.eq.u32 %p2, %r4, %r4;\n"
	 "vote.sync.ballot.b32 %r9, %p2, -1; bra $z; $gone: exit; $z:\n",
	 those_left},
	{"setp.lt.u32 %p1, %r4, 20; @%p1 bra $stay; exit; $stay: setp.eq.u32 %p2, %r4, %r4;\n"
	 "vote.sync.ballot.b32 %r9, %p2, -1;\n",
	 those_left},
	/* What one arm writes the other reads. */
	{".shared .align 4 .b8 words[256]; shl.b32 %r5, %r1, 2; mov.u32 %r6, words;\n"
	 "add.u32 %r5, %r5, %r6; setp.lt.u32 %p1, %r4, 16; @%p1 bra $low;\n"
	 "st.shared.u32 [%r5], %r1; bar.warp.sync -1; ld.shared.u32 %r9, [%r5+-64]; bra $z;\n"
	 "$low: st.shared.u32 [%r5], %r1; bar.warp.sync -1; ld.shared.u32 %r9, [%r5+64]; $z:\n",
	 other_arm},
	/* A guard is a branch: the least is of lanes 2, 7, 12, 17, 22 and 27. */
	{"rem.u32 %r5, %r4, 5; setp.eq.u32 %p1, %r5, 2; mov.u32 %r6, 0x08421084;\n"
	 "sub.u32 %r7, %r1, %r4; mul.lo.u32 %r7, %r7, 64; add.u32 %r7, %r7, %r4;\n"
	 "@%p1 redux.sync.min.u32 %r9, %r7, %r6;\n",
	 fifth},
};

START_TEST(gather)
{
	uint64_t out[64];
	char text[4096];

	snprintf(text, sizeof(text), "%s%s%s%s", KERNEL_START LANE, gathers[_i].body,
		 "st.global.u32 [%rd1], %r9;", KERNEL_END);
	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_msg(out[i] == gathers[_i].want(i), "%s: thread %u has %#x, not %#x",
			      gathers[_i].body, i, (uint32_t)out[i], gathers[_i].want(i));
}
END_TEST

/*
 * The low lanes wait for the high ones, which wait behind the branch and must be let go, though
 * another warp is never at rest: it waits for them all.
 */
START_TEST(gather_beside_a_busy_warp)
{
	static const char text[] = KERNEL(LANE
		".shared .align 4 .b32 flag; mov.u32 %r5, 0; st.volatile.shared.u32 [flag], %r5;\n"
		"bar.sync 0; setp.ge.u32 %p1, %r1, 32; @%p1 bra $spin;\n"
		"setp.ge.u32 %p2, %r4, 16; @%p2 bra $behind; bar.warp.sync -1; mov.u32 %r9, 1;\n"
		"$behind: bar.warp.sync -1; add.u32 %r9, %r9, 1;\n"
		"atom.shared.add.u32 %r6, [flag], 1; bra $z;\n"
		"$spin: ld.volatile.shared.u32 %r5, [flag]; setp.lt.u32 %p3, %r5, 32;\n"
		"@%p3 bra $spin; $z: st.global.u32 [%rd1], %r9;");
	uint64_t out[64];

	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], i < 16 ? 2 : i < 32 ? 1 : 0);
}
END_TEST

/* Half of the warp shuffles, the other half votes: neither ever comes to the other. */
START_TEST(gather_in_vain)
{
	static const char text[] = KERNEL(LANE
		"setp.ge.u32 %p1, %r4, 16; @%p1 bra $vote; shfl.sync.down.b32 %r9, %r1, 1, 31, -1;\n"
		"bra $z; $vote: vote.sync.all.pred %p2, %p1, -1; $z: st.global.u32 [%rd1], %r9;");
	uint64_t out[64];

	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

/*
 * Lanes part where each side may end by itself, so that the branch has no join; a barrier brings
 * them together, again and again.
 */
START_TEST(parts_and_is_reunited)
{
	static const char text[] = KERNEL(
		"mov.u32 %r4, 0; mov.u32 %r5, 0; and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 1;\n"
		"$loop: setp.gt.u32 %p2, %r4, 5000; @%p1 bra $odd; add.u32 %r5, %r5, 2;\n"
		"@%p2 bra $end; bra $meet; $odd: add.u32 %r5, %r5, 3; @%p2 bra $oddend;\n"
		"$meet: bar.sync 0; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 1000;\n"
		"@%p3 bra $loop; st.global.u32 [%rd1], %r5; exit;\n"
		"$end: st.global.u32 [%rd1], 1; exit; $oddend: exit;");
	uint64_t out[64];

	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], i % 2 ? 3000 : 2000);
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
	tcase_add_loop_test(t, gather, 0, (int)(sizeof(gathers) / sizeof(*gathers)));
	tcase_add_test(t, gather_beside_a_busy_warp);
	tcase_add_test(t, gather_in_vain);
	tcase_add_test(t, parts_and_is_reunited);
	suite_add_tcase(s, t);
	return kernel_run_suite(s);
}
