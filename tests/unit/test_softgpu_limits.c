/*
 * softgpu/: what a hostile program can say of names, operands, memory of its threads and graphs,
 * and what it gets for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/dominators.h"
#include "softgpu/lower.h"
#include "tests/unit/softgpu_kernel.h"

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

/* A function and a variable of one name: neither hides the other from who calls it. */
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

/* --- Host memory ----------------------------------------------------------- */

/* @head, @part so many times, @tail. */
static char *repeat(const char *head, const char *part, unsigned times, const char *tail)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(file);
	fputs(head, file);
	for (unsigned i = 0; i < times; i++)
		fputs(part, file);
	fputs(tail, file);
	fclose(file);
	return text;
}

/* Short texts whose trees, tables or instructions take many times as much. */
static const struct {
	const char *head, *part;
	unsigned times;
	const char *tail;
} swelling[] = {
	{HEAD ".entry k()\n{\n.reg .b32 a", ",a", 1 << 20, ";\nret;\n}\n"},
	{HEAD ".entry k()\n{\n", "{ .reg .b32 %r<1000000>; }\n", 1000, "ret;\n}\n"},
};

START_TEST(too_much_for_its_length)
{
	char *text =
		repeat(swelling[_i].head, swelling[_i].part, swelling[_i].times, swelling[_i].tail);
	const char *texts[] = {text};
	char log[256];

	ck_assert_int_eq(load_all(texts, 1, log, sizeof(log)), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_msg(strstr(log, "too much in a text of this length"), "%s", log);
	free(text);
	/* And nothing is lost by it. */
	kernel_load(HEAD ".visible .entry k() { ret; }\n");
}
END_TEST

/* A table of branch targets, and as many branches that use it as it is long. */
START_TEST(tables_in_the_square)
{
	char *table = repeat("t: .branchtargets $a", ", $a", 20000, ";\n}\n");
	char *text = repeat(HEAD ".visible .entry k()\n{ .reg .b32 %r1;\n", "brx.idx %r1, t;\n",
			    20000, "$a: ret;\n");
	const char *texts[1];
	char log[256];

	text = realloc(text, strlen(text) + strlen(table) + 1);
	ck_assert_ptr_nonnull(text);
	texts[0] = strcat(text, table);
	ck_assert_int_eq(load_all(texts, 1, log, sizeof(log)), CUDA_ERROR_OUT_OF_MEMORY);
	module = NULL;
	free(table);
	free(text);
}
END_TEST

/* What all programs of a session keep is bounded, too, and given back with each. */
START_TEST(kept_by_all_programs)
{
	const char *text = HEAD ".visible .entry k() { ret; }\n";
	struct fgv_budget kept = {.max = 1 << 20};
	struct memory memory = {.bytes = 1 << 20};
	struct program *programs[64];
	CUresult result = CUDA_SUCCESS;
	unsigned count = 0;
	char log[256];

	while (count < 64 && result == CUDA_SUCCESS) {
		result = fgv_program_create(&memory, &kept, &text, 1, log, sizeof(log),
					    &programs[count]);
		count += result == CUDA_SUCCESS;
	}
	ck_assert_int_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_gt(count, 4);
	ck_assert_uint_le(kept.used, kept.max);
	while (count-- > 0)
		fgv_program_destroy(programs[count]);
	ck_assert_uint_eq(kept.used, 0);
	ck_assert_int_eq(fgv_program_create(&memory, &kept, &text, 1, log, sizeof(log), programs),
			 CUDA_SUCCESS);
	fgv_program_destroy(programs[0]);
}
END_TEST

/*
 * One block faults while the other writes to host memory, for long before it looks up: the
 * memory may go when it has been taken back.
 */
START_TEST(host_memory_after_a_fault)
{
	const size_t bytes = 1 << 16;
	/* Block 1 says that it has begun; block 0 waits for that, and faults. */
	char *text = repeat(
		HEAD ".visible .entry k(.param .u64 out)\n{\n"
		     ".reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
		     "ld.param.u64 %rd1, [out]; add.u64 %rd2, %rd1, 4096; mov.u32 %r1, %ctaid.x;\n"
		     "setp.eq.u32 %p1, %r1, 0; @%p1 bra $first;\n"
		     "mov.u32 %r2, 1; st.volatile.global.u32 [%rd1], %r2;\n$loop:\n",
		"st.global.u32 [%rd2], %r1;\n", 4000,
		"bra $loop;\n"
		"$first: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0;\n"
		"@%p2 bra $first; trap; ret;\n}\n");
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *args[] = {&memory};

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(softgpu_host_register(gpu, memory, bytes), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(kernel_load(text), 2, 32, 0, args),
			 CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_uint_eq(*(uint32_t *)memory, 1);
	softgpu_host_unregister(gpu, memory);
	munmap(memory, bytes);
	/* Who still writes there would do so by now. */
	usleep(10000);
	free(text);
}
END_TEST

/* --- Device memory --------------------------------------------------------- */

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* An allocation takes what it is charged: a granule, not a page. All of them are written to. */
START_TEST(small_allocations)
{
	enum { COUNT = 40000 };
	static uint64_t addresses[COUNT];
	uint64_t before = resident_bytes(), taken;

	for (int i = 0; i < COUNT; i++) {
		ck_assert_int_eq(softgpu_mem_alloc(gpu, 1, &addresses[i]), CUDA_SUCCESS);
		ck_assert_uint_eq(addresses[i] % SOFTGPU_GRANULE, 0);
		ck_assert_uint_eq(*(uint8_t *)(uintptr_t)addresses[i], 0);
		*(uint8_t *)(uintptr_t)addresses[i] = 0xee;
	}
	taken = resident_bytes() - before;
	/* What is known of each beside it, and what sanitizers take, twice as much at most. */
#ifndef __SANITIZE_ADDRESS__
	ck_assert_uint_lt(taken, 2ull * COUNT * SOFTGPU_GRANULE);
#endif
	for (int i = 0; i < COUNT; i += 2)
		ck_assert_int_eq(softgpu_mem_free(gpu, addresses[i]), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (int i = 1; i < COUNT; i += 2)
		ck_assert_uint_eq(*(uint8_t *)(uintptr_t)addresses[i], 0xee);
	/* Handed out again, beside those that stayed, they are zero. */
	for (int i = 0; i < COUNT; i += 2) {
		ck_assert_int_eq(softgpu_mem_alloc(gpu, 512, &addresses[i]), CUDA_SUCCESS);
		for (int k = 0; k < 512; k += 8)
			ck_assert_uint_eq(*(uint64_t *)(uintptr_t)(addresses[i] + (unsigned)k), 0);
	}
	for (int i = 0; i < COUNT; i++)
		ck_assert_int_eq(softgpu_mem_free(gpu, addresses[i]), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
}
END_TEST

/* Many sizes that share pages: what is inside is right, and what was freed is out of bounds. */
START_TEST(allocations_share_pages)
{
	enum { COUNT = 400 };
	uint64_t addresses[COUNT], bytes[COUNT];

	srandom(3);
	for (int i = 0; i < COUNT; i++) {
		bytes[i] = 1 + (uint64_t)random() % 20000;
		ck_assert_int_eq(softgpu_mem_alloc(gpu, bytes[i], &addresses[i]), CUDA_SUCCESS);
		memset((void *)(uintptr_t)addresses[i], i & 0xff, bytes[i]);
	}
	for (int round = 0; round < 2000; round++) {
		int i = (int)(random() % COUNT);
		uint8_t *data = (uint8_t *)(uintptr_t)addresses[i];

		for (uint64_t k = 0; k < bytes[i]; k++)
			ck_assert_uint_eq(data[k], (unsigned)i & 0xff);
		ck_assert_int_eq(softgpu_mem_free(gpu, addresses[i]), CUDA_SUCCESS);
		ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
		bytes[i] = 1 + (uint64_t)random() % 20000;
		ck_assert_int_eq(softgpu_mem_alloc(gpu, bytes[i], &addresses[i]), CUDA_SUCCESS);
		data = (uint8_t *)(uintptr_t)addresses[i];
		for (uint64_t k = 0; k < bytes[i]; k++)
			ck_assert_uint_eq(data[k], 0);
		memset(data, i & 0xff, bytes[i]);
	}
}
END_TEST

/* --- Dominators ------------------------------------------------------------ */

struct world {
	struct flow_node *nodes;
	struct flow_edge *edges;
	uint32_t count;
	uint32_t edges_count;
};

static void make_world(struct world *world, uint32_t nodes, uint32_t edges)
{
	*world = (struct world){calloc(nodes, sizeof(struct flow_node)),
				calloc(2 * (size_t)edges, sizeof(struct flow_edge)), nodes, 0};
	ck_assert(world->nodes && world->edges);
}

static void connect_nodes(struct world *world, uint32_t from, uint32_t to)
{
	struct flow_edge *e = &world->edges[2 * world->edges_count++];

	e[0] = (struct flow_edge){to, world->nodes[from].out};
	e[1] = (struct flow_edge){from, world->nodes[to].in};
	world->nodes[from].out = &e[0];
	world->nodes[to].in = &e[1];
}

static void free_world(struct world *world)
{
	free(world->nodes);
	free(world->edges);
}

/* Marks what node 0 reaches without @without. */
static void mark(const struct world *world, uint32_t at, uint32_t without, bool *seen)
{
	if (at == without || seen[at])
		return;
	seen[at] = true;
	for (struct flow_edge *e = world->nodes[at].out; e; e = e->next)
		mark(world, e->node, without, seen);
}

#define SMALL 12

/* By what the word means: a node dominates what is not reached without it. */
static void check_small(const struct world *world)
{
	bool reached[SMALL] = {false};
	bool dominates[SMALL][SMALL];

	mark(world, 0, FGV_NO_NODE, reached);
	for (uint32_t d = 0; d < SMALL; d++) {
		bool seen[SMALL] = {false};

		mark(world, 0, d, seen);
		for (uint32_t n = 0; n < SMALL; n++)
			dominates[d][n] = reached[d] && reached[n] && !seen[n];
	}
	for (uint32_t n = 1; n < SMALL; n++) {
		uint32_t idom = world->nodes[n].idom;

		ck_assert_int_eq(idom == FGV_NO_NODE, !reached[n]);
		if (!reached[n])
			continue;
		ck_assert(idom != n && dominates[idom][n]);
		for (uint32_t d = 0; d < SMALL; d++)
			ck_assert(d == n || !dominates[d][n] || dominates[d][idom]);
	}
}

START_TEST(dominators_by_definition)
{
	srandom(11);
	for (int round = 0; round < 3000; round++) {
		struct world world;
		uint32_t edges = 8 + (uint32_t)random() % 24;

		make_world(&world, SMALL, edges);
		for (uint32_t i = 0; i < edges; i++)
			connect_nodes(&world, (uint32_t)random() % SMALL,
				      (uint32_t)random() % SMALL);
		ck_assert(fgv_softgpu_dominators(world.nodes, SMALL, 0));
		check_small(&world);
		free_world(&world);
	}
}
END_TEST

/*
 * A ladder down and up again, with a rung back from each step: what follows the edges until
 * nothing changes takes steps in the square of these.
 */
START_TEST(dominators_of_a_long_ladder)
{
	const uint32_t steps = 300000;
	struct world world;

	make_world(&world, 2 * steps + 1, 5 * steps);
	for (uint32_t i = 0; i < steps; i++) {
		connect_nodes(&world, i, i + 1);
		connect_nodes(&world, i, 2 * steps - i);
		connect_nodes(&world, 2 * steps - i, i);
		if (i)
			connect_nodes(&world, 2 * steps - i + 1, 2 * steps - i);
	}
	ck_assert(fgv_softgpu_dominators(world.nodes, world.count, 0));
	for (uint32_t i = 1; i < steps; i++)
		ck_assert_uint_ne(world.nodes[i].idom, FGV_NO_NODE);
	free_world(&world);
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
	tcase_add_loop_test(t, too_much_for_its_length, 0,
			    (int)(sizeof(swelling) / sizeof(*swelling)));
	tcase_add_test(t, tables_in_the_square);
	tcase_add_test(t, kept_by_all_programs);
	tcase_add_test(t, host_memory_after_a_fault);
	tcase_add_test(t, small_allocations);
	tcase_add_test(t, allocations_share_pages);
	tcase_add_test(t, dominators_by_definition);
	tcase_add_test(t, dominators_of_a_long_ladder);
	tcase_add_test(t, many_loops);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return kernel_run_suite(suite());
}
