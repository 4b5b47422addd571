/*
 * softgpu/: what a hostile program can say of names, operands and its threads' memory, and what it
 * gets for it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/softgpu/softgpu_kernel.h"

static CUresult load_all(const char *const *texts, size_t count, char *log, size_t log_len)
{
	log[0] = '\0';
	return softgpu_module_load(gpu, texts, count, log, log_len, &module);
}

static void must_refuse(const char *const *texts, size_t count, const char *words)
{
	char log[256];

	ck_assert_int_eq(load_all(texts, count, log, sizeof(log)), CUDA_ERROR_INVALID_PTX);
	ck_assert_msg(strstr(log, words), "%s", log);
	module = NULL;
}

#define REGISTERS                                                                                  \
	".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;"

/* Each lacks an operand, has one too many, or names what is no instruction of PTX. */
static const char *const bad_operands[] = {
	"mad.lo.cc.u64 %d1, %d3;",
	"add.cc.u32 %r1, %r2;",
	"addc.u32 %r1, %r2, %r3, %r4;",
	"madc.hi.u32 %r1, %r2, %r3;",
	"sub.cc.u32 %r1;",
	"and.pred %p1, %p2;",
	"not.pred %p1, %p2, %p3;",
	"and.b32 %r1, %r2;",
	"add.u32 %r1;",
	"add.u32 %r1, %r2, %r3, %r4;",
	"fma.rn.f32 %f1, %f2, %f3;",
	"min.s32 %r1, %r2;",
	"setp.eq.u32 %p1, %r1;",
	"selp.b32 %r1, %r2, %r3;",
	"atom_add.f32 %f1, %f2, %f3;",
	"atom_add.u32 %r1, %r2, %r3;",
	"atom_cas.u64 %d1, %d2, %d3;",
	"match_any.u32 %r1, %r2, %r3;",
	"redux_min.u32 %r1, %r2;",
	"vote.sync.all.pred;",
	"vote.sync.ballot.b32 %r1;",
	"shfl.sync.idx.b32 %r1, %r2, %r3;",
	"match.any.sync.b32 %r1, %r2;",
	"redux.sync.add.u32 %r1;",
	"elect.sync %r1|%p1;",
	"activemask.b32;",
	"ret %r1;",
	"bra;",
	"brx.idx %r1;",
	"mapa.u32 %r1, %r2;",
	"ld.global.u32 %r1;",
	"st.global.u32 [%d1];",
	"atom.global.add.u32 %r1, [%d1];",
	"cvt.u32.u16 %r1;",
	"cvta.global.u64 %d1;",
	"isspacep.global %p1;",
	"prmt.b32 %r1, %r2, %r3;",
	"bar.sync;",
	"bar.red.popc.u32 %r1, 0;",
	"mbarrier.init.shared.b64 [%d1];",
	"cp.async.ca.shared.global [%r1], [%d1];",
	"vadd.u32.u32.u32 %r1, %r2;",
	"lop3.b32 %r1, %r2, %r3, %r4;",
	"dp4a.u32.u32 %r1, %r2, %r3;",
	"mov.u32 %r1;",
};

START_TEST(operand_missing)
{
	char text[512];
	const char *texts[] = {text};

	snprintf(text, sizeof(text), "%s%s\nret;\n}\n", HEAD ".entry k()\n{\n" REGISTERS,
		 bad_operands[_i]);
	must_refuse(texts, 1, "line ");
}
END_TEST

/* A function and a variable of one name: neither hides the other from a caller. */
START_TEST(one_name_twice)
{
	static const char *const twice[] = {
		HEAD ".visible .func f()\n{ ret; }\n.global .u32 f;\n",
		HEAD ".extern .func f();\n.visible .entry k()\n{ call f; ret; }\n"};
	static const char *const other_way[] = {
		HEAD ".global .u32 f;\n.visible .func f()\n{ ret; }\n",
		HEAD ".extern .func f();\n.visible .entry k()\n{ call f; ret; }\n"};
	static const char *const by_alias[] = {
		HEAD ".visible .func f()\n{ ret; }\n.visible .func g()\n{ ret; }\n.alias f, g;\n",
		HEAD ".extern .func f();\n.visible .entry k()\n{ call f; ret; }\n"};

	must_refuse(twice, 2, "'f' is defined twice");
	must_refuse(other_way, 2, "'f' is defined twice");
	must_refuse(by_alias, 2, "'f' is defined twice");
}
END_TEST

/* One of its modules' own, and another's that others may name. */
START_TEST(one_name_in_two_modules)
{
	static const char *const texts[] = {
		HEAD ".global .u32 f = 7;\n.visible .entry k(.param .u64 out)\n"
		     "{ .reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [out];\n"
		     "ld.global.u32 %r1, [f]; st.global.u32 [%rd1], %r1; ret; }\n",
		HEAD ".visible .func f()\n{ ret; }\n",
		HEAD ".extern .func f();\n.visible .entry other()\n{ call f; ret; }\n"};
	struct softgpu_function *f = NULL;
	uint64_t address = kernel_alloc(4);
	void *args[] = {&address};
	char log[256];
	uint32_t out = 0;

	ck_assert_msg(load_all(texts, 3, log, sizeof(log)) == CUDA_SUCCESS, "%s", log);
	ck_assert_int_eq(softgpu_module_function(module, "k", &f), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(f, 1, 1, 0, args), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_module_function(module, "other", &f), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(f, 1, 1, 0, NULL), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, 4, NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out, 7);
}
END_TEST

/* A text of functions, each with @bytes of local memory, that call each other in a row. */
static char *chain(unsigned length, unsigned bytes)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(file);
	fputs(HEAD, file);
	for (unsigned i = 0; i < length; i++) {
		fprintf(file, ".func f%u()\n{ .local .align 8 .b8 x[%u];\n", i, bytes);
		if (i)
			fprintf(file, "call f%u;\n", i - 1);
		fputs("ret; }\n", file);
	}
	fprintf(file, ".visible .entry k()\n{ call f%u; ret; }\n", length - 1);
	fclose(file);
	return text;
}

static CUresult launch_chain(unsigned length, unsigned bytes, uint32_t threads)
{
	char *text = chain(length, bytes);
	struct softgpu_function *f = kernel_load(text);

	free(text);
	return kernel_launch(f, 1, threads, 0, NULL);
}

/* 8,300 times 512 KiB are more than 32 bits hold: what is left must not be all that there is. */
START_TEST(local_memory_wraps)
{
	ck_assert_int_eq(launch_chain(8300, 512 << 10, 32), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

/* A launch needs its block's memory; what fits runs, if by one worker. */
START_TEST(room_for_blocks)
{
	ck_assert_int_eq(launch_chain(2, 400 << 10, 1024), CUDA_SUCCESS);
	softgpu_module_unload(gpu, module);
	ck_assert_int_eq(launch_chain(4, 400 << 10, 1024), CUDA_ERROR_OUT_OF_MEMORY);
	softgpu_module_unload(gpu, module);
	ck_assert_int_eq(launch_chain(4, 400 << 10, 512), CUDA_SUCCESS);
}
END_TEST

/* All blocks at once: there is room for some of them. */
START_TEST(room_for_all_blocks)
{
	char *text = chain(1, 400 << 10);
	struct softgpu_function *f = kernel_load(text);
	uint32_t grid[3] = {2, 1, 1}, block[3] = {512, 1, 1};

	free(text);
	ck_assert_int_eq(softgpu_launch_cooperative(gpu, f, grid, block, 0, NULL, NULL),
			 CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	grid[0] = 6;
	ck_assert_int_eq(softgpu_launch_cooperative(gpu, f, grid, block, 0, NULL, NULL),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}
END_TEST

/* Lanes that go to one place by different indices, or to where they meet, over and over. */
START_TEST(same_target)
{
	static const char text[] =
		KERNEL("mov.u32 %r5, 0; mov.u32 %r6, 0;\n"
		       "$loop: and.b32 %r4, %r1, 1; t: .branchtargets $a, $a, $b; brx.idx %r4, t;\n"
		       "$b: add.u32 %r5, %r5, 1000;\n"
		       "$a: add.u32 %r5, %r5, 1;\n"
		       "setp.eq.u32 %p1, %r4, 0; @%p1 bra $c;\n"
		       "$c: u: .branchtargets $d, $e, $d; brx.idx %r4, u;\n"
		       "$e: add.u32 %r5, %r5, 2; $d: add.u32 %r6, %r6, 1;\n"
		       "setp.lt.u32 %p2, %r6, 500; @%p2 bra $loop;\n"
		       "st.global.u32 [%rd1], %r5;");
	uint64_t out[32];

	ck_assert_int_eq(kernel_run(text, 1, 32, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		ck_assert_uint_eq((uint32_t)out[i], i & 1 ? 1500 : 500);
}
END_TEST

/* A warp that goes round by a table lets the one run that it waits for; all its lanes, or some. */
START_TEST(loop_by_table)
{
	static const char text[] =
		KERNEL("ld.param.u64 %rd5, [in]; mov.u32 %r4, 0;\n"
		       "setp.lt.u32 %p1, %r1, 32; @%p1 bra $wait;\n"
		       "mov.u64 %rd6, 1; st.volatile.global.u64 [%rd5], %rd6; bra $done;\n"
		       "$wait: and.b32 %r5, %r1, %r6;\n"
		       "$loop: ld.volatile.global.u64 %rd6, [%rd5]; cvt.u32.u64 %r7, %rd6;\n"
		       "or.b32 %r7, %r7, %r5; add.u32 %r4, %r4, 1;\n"
		       "t: .branchtargets $loop, $done; brx.idx %r7, t;\n"
		       "$done: cvt.u64.u32 %rd7, %r4; st.global.u64 [%rd1], %rd7;");
	uint64_t in[64] = {0}, out[64];
	char *some = strdup(text), *mask = strstr(some, "%r1, %r6");

	memcpy(mask, _i ? "%r1,   1" : "%r1,   0", 8);
	ck_assert_int_eq(kernel_run(some, 1, 64, in, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++) {
		if (i < 32 && (!_i || i % 2 == 0))
			ck_assert_uint_gt(out[i], 1);
		else
			ck_assert_uint_eq(out[i], i < 32);
	}
	free(some);
}
END_TEST

/* As many branches back to labels of the way there as there are labels. */
START_TEST(many_loops)
{
	const unsigned loops = 30000;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fputs(HEAD ".visible .entry k()\n{ .reg .pred %p<2>; setp.eq.u32 %p1, 1, 2;\n", file);
	for (unsigned i = 0; i < loops; i++)
		fprintf(file, "$in%u: @%%p1 bra $out%u;\n", i, i);
	for (unsigned i = loops; i-- > 0;)
		fprintf(file, "@%%p1 bra $in%u; $out%u:\n", i, i);
	fputs("ret; }\n", file);
	fclose(file);
	ck_assert_int_eq(kernel_launch(kernel_load(text), 1, 32, 0, NULL), CUDA_SUCCESS);
	free(text);
}
END_TEST

/* --- Kernels that take long --------------------------------------------------------- */

static const char spin_kernel[] = KERNEL("again: ld.volatile.global.u64 %rd5, [%rd2];\n"
					 "setp.eq.u64 %p1, %rd5, 0; @%p1 bra again;\n");
static int log_fd;

/* A device that finds a kernel long at once, or after ten seconds; and what it logs. */
static void make_device(uint64_t long_kernel_ns)
{
	struct softgpu_config config = {
		.va_base = BASE,
		.memory_bytes = 64 << 20,
		.workers = 2,
		.long_kernel_ns = long_kernel_ns,
	};

	log_fd = memfd_create("stderr", MFD_CLOEXEC);
	ck_assert_int_ge(dup2(log_fd, STDERR_FILENO), 0);
	ck_assert_int_eq(softgpu_create(&config, &gpu), CUDA_SUCCESS);
}

static unsigned lines_logged(void)
{
	char text[1024];
	unsigned lines = 0;

	text[pread(log_fd, text, sizeof(text) - 1, 0)] = '\0';
	for (const char *at = text; (at = strstr(at, "kernel k has run for")); at++)
		lines++;
	return lines;
}

/* Starts a kernel of @blocks that spins until *@flag is set. */
static void spin(struct softgpu_function *function, uint64_t *flag, uint32_t blocks)
{
	const uint32_t grid[3] = {blocks, 1, 1}, block[3] = {1, 1, 1};
	uint64_t out = kernel_alloc(4096), in = (uintptr_t)flag;
	void *args[] = {&out, &in};

	ck_assert_int_eq(softgpu_launch(gpu, function, grid, block, 0, NULL, args), CUDA_SUCCESS);
}

/* Whichever worker has its blocks, the executor or another: once for each kernel. */
START_TEST(long_kernel_is_logged_once)
{
	struct softgpu_function *function;
	uint64_t *flag;

	make_device(1);
	function = kernel_load(spin_kernel);
	flag = aligned_alloc(4096, 4096);
	ck_assert_int_eq(softgpu_host_register(gpu, flag, 4096), CUDA_SUCCESS);
	for (unsigned kernels = 1; kernels <= 3; kernels++) {
		memset(flag, 0, 4096);
		spin(function, flag, (uint32_t)kernels);
		while (lines_logged() < kernels)
			usleep(1000);
		usleep(1000);
		for (unsigned i = 0; i < kernels; i++)
			__atomic_store_n(&flag[i], 1, __ATOMIC_SEQ_CST);
		ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
		ck_assert_uint_eq(lines_logged(), kernels);
	}
	ck_assert_int_eq(softgpu_host_unregister(gpu, flag), CUDA_SUCCESS);
	free(flag);
	kernel_teardown();
}
END_TEST

START_TEST(short_kernel_is_not_logged)
{
	uint64_t in = 1, out;

	make_device(0);
	ck_assert_int_eq(kernel_run(spin_kernel, 1, 1, &in, &out), CUDA_SUCCESS);
	ck_assert_uint_eq(lines_logged(), 0);
	kernel_teardown();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("softgpu_limits");
	TCase *t = tcase_create("limits");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
	tcase_add_loop_test(t, operand_missing, 0,
			    (int)(sizeof(bad_operands) / sizeof(*bad_operands)));
	tcase_add_test(t, one_name_twice);
	tcase_add_test(t, one_name_in_two_modules);
	tcase_add_test(t, local_memory_wraps);
	tcase_add_test(t, room_for_blocks);
	tcase_add_test(t, room_for_all_blocks);
	tcase_add_test(t, same_target);
	tcase_add_loop_test(t, loop_by_table, 0, 2);
	tcase_add_test(t, many_loops);
	suite_add_tcase(s, t);
	t = tcase_create("long");
	tcase_set_timeout(t, 120);
	tcase_add_test(t, long_kernel_is_logged_once);
	tcase_add_test(t, short_kernel_is_not_logged);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return kernel_run_suite(suite());
}
