/*
 * Kernels in parts: how a grid is taken apart; and a vGPU process that does so, with the test as
 * the daemon: a turn ends in the middle of a kernel, the results are those of one launch, what
 * parts take is charged, and what can't be taken apart is left whole.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/slices_cut.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define THREADS 32u
#define BLOCKS	96u /* 8 by 4 by 3 */

static struct vgpu vgpu;

/* --- Taking grids apart ---------------------------------------------------------- */

static void cut_all(const uint32_t grid[3], uint64_t blocks)
{
	uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2], done = 0;
	uint8_t *seen = calloc(all, 1);

	while (done < all) {
		uint32_t first[3], size[3];
		uint64_t count = fgv_slices_cut(grid, done, blocks, first, size);

		ck_assert_uint_ge(count, 1);
		ck_assert_uint_le(count, blocks);
		for (uint32_t z = first[2]; z < first[2] + size[2]; z++)
			for (uint32_t y = first[1]; y < first[1] + size[1]; y++)
				for (uint32_t x = first[0]; x < first[0] + size[0]; x++) {
					ck_assert(x < grid[0] && y < grid[1] && z < grid[2]);
					ck_assert_uint_eq(seen[(z * grid[1] + y) * grid[0] + x]++,
							  0);
				}
		done += count;
	}
	ck_assert_uint_eq(done, all);
	free(seen);
}

START_TEST(each_block_is_in_one_part)
{
	static const uint32_t grids[][3] = {{1, 1, 1}, {7, 1, 1},  {1, 7, 1},  {1, 1, 7},
					    {7, 3, 1}, {3, 1, 10}, {10, 9, 8}, {1, 50, 3}};

	for (unsigned i = 0; i < sizeof(grids) / sizeof(grids[0]); i++)
		for (uint64_t blocks = 1; blocks < 800; blocks += 1 + blocks / 8)
			cut_all(grids[i], blocks);
}
END_TEST

/* The largest that there is: 2 to the power of 63, nearly. */
START_TEST(the_largest_grid)
{
	static const uint32_t grid[3] = {INT32_MAX, 65535, 65535};
	const uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2];
	uint32_t first[3], size[3];
	uint64_t done = 0, count = 0;

	ck_assert_uint_eq(fgv_slices_cut(grid, 0, UINT64_MAX, first, size), all);
	ck_assert_uint_eq(fgv_slices_cut(grid, all - 1, 1, first, size), 1);
	ck_assert(first[0] == grid[0] - 1 && first[1] == 65534 && first[2] == 65534);
	for (; done < all; done += count)
		count = fgv_slices_cut(grid, done, all / 1000, first, size);
	ck_assert_uint_eq(done, all);
}
END_TEST

/* --- A vGPU process ----------------------------------------------------------------- */

/*
 * work(out, rounds): thread x of each block does so many rounds, and adds 1 to the block's place in
 * out, and to the variable total.
 */
static const char work_ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 total = 0;\n"
	".visible .entry work(.param .u64 out, .param .u64 rounds)\n{\n"
	".reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %rd<6>;\n"
	"ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [rounds]; mov.u64 %rd3, 0;\n"
	"again: add.u64 %rd3, %rd3, 1; setp.lt.u64 %p1, %rd3, %rd2; @%p1 bra again;\n"
	"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n"
	"mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;\n"
	"mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\n"
	"mul.wide.u32 %rd4, %r6, 4; add.u64 %rd4, %rd1, %rd4;\n"
	"red.global.add.u32 [%rd4], 1; red.global.add.u32 [total], 1; ret;\n}\n";

static void start_with(uint32_t slicing, uint64_t blocks)
{
	vgpu_spawn(&vgpu);
	vgpu.slicing = slicing;
	vgpu.slice_blocks = blocks;
	vgpu_begin(&vgpu);
}

/* The log has one line: why a kernel was left whole, or its fault. */
static void leave_with_line(int expected)
{
	unsigned lines;

	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), expected);
	ck_assert_uint_eq(lines, 1);
}

static struct fgv_account account(void)
{
	return vgpu.accounts->sessions[2];
}

static void launch_in(uint32_t stream, uint32_t function, const uint32_t grid[3],
		      const uint64_t args[2])
{
	struct {
		struct fgv_launch_request head;
		uint64_t args[2];
	} message = {
		.head = {.function = function,
			 .stream = stream,
			 .grid = {grid[0], grid[1], grid[2]},
			 .block = {THREADS, 1, 1},
			 .param_count = 2},
		.args = {args[0], args[1]},
	};

	vgpu_must_post(&vgpu, 0, FGV_OP_LAUNCH, &message, sizeof(message));
}

static void launch(uint32_t function, const uint32_t grid[3], uint64_t out, uint64_t rounds)
{
	launch_in(0, function, grid, (uint64_t[]){out, rounds});
}

static const uint32_t grid[3] = {8, 4, 3};

/* Each of the @blocks has counted to @value for each of its threads. */
static void expect_counts(uint64_t out, uint32_t blocks, uint32_t value)
{
	const uint32_t *words = vgpu_arena(&vgpu, 0);

	ck_assert_uint_eq(vgpu_copy_out(&vgpu, out, blocks * 4, 0), CUDA_SUCCESS);
	for (uint32_t i = 0; i < blocks; i++)
		ck_assert_msg(words[i] == value * THREADS, "block %u: %u", i, words[i]);
}

static uint64_t zeroed(uint64_t bytes)
{
	uint64_t out = vgpu_must_alloc(&vgpu, bytes);

	vgpu_fill(&vgpu, out, bytes / 4, 0, 4);
	return out;
}

START_TEST(parts_are_one_launch)
{
	uint32_t function;
	uint64_t out;

	start_with(FGV_SLICING_ON, 5);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	out = zeroed(BLOCKS * 4);
	launch(function, grid, out, 1);
	launch(function, grid, out, 1);
	expect_counts(out, BLOCKS, 2);
	ck_assert_uint_eq(account().launches, 2);
	ck_assert_uint_eq(account().sliced, 2);
	/* Rows of eight blocks go as two of four. */
	ck_assert_uint_eq(account().parts, 2 * BLOCKS / 4);
	ck_assert_uint_eq(account().left_whole, 0);
	vgpu_leave(&vgpu);
}
END_TEST

/* What of it is launched when is told by parameters of each launch, and by nothing that they share.
 */
START_TEST(streams_do_not_mix)
{
	static const uint32_t other[3] = {3, 32, 1};
	uint32_t function, streams[2];
	uint64_t outs[2];

	start_with(FGV_SLICING_ON, 2);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	for (unsigned i = 0; i < 2; i++) {
		streams[i] = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
		outs[i] = zeroed(BLOCKS * 4);
	}
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	for (unsigned i = 0; i < 20; i++)
		launch_in(streams[i % 2], function, i % 4 < 2 ? grid : other,
			  (uint64_t[]){outs[i % 2], 50});
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	expect_counts(outs[0], BLOCKS, 10);
	expect_counts(outs[1], BLOCKS, 10);
	vgpu_leave(&vgpu);
}
END_TEST

static uint32_t query(uint32_t event)
{
	struct fgv_event_query_request request = {.event = event};

	return vgpu_call(&vgpu, 0, FGV_OP_EVENT_QUERY, &request, sizeof(request), NULL);
}

/* One kernel takes many turns, and nothing behind it is done before all of it is. */
START_TEST(turns_end_in_the_middle)
{
	uint32_t function, event;
	unsigned turns = 0;
	uint64_t out;

	start_with(FGV_SLICING_ON, 4);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	event = vgpu_must_create_event(&vgpu);
	out = zeroed(BLOCKS * 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_take_grant(&vgpu);
	launch(function, grid, out, 20000);
	vgpu_record(&vgpu, event, 0);
	for (;;) {
		vgpu_await_wants(&vgpu);
		vgpu_grant(&vgpu, 1);
		vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
		turns++;
		if (account().parts == BLOCKS / 4)
			break;
		ck_assert_uint_eq(query(event), CUDA_ERROR_NOT_READY);
	}
	ck_assert_uint_gt(turns, 4);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(query(event), CUDA_SUCCESS);
	expect_counts(out, BLOCKS, 1);
	ck_assert_uint_eq(account().launches, 1);
	ck_assert_uint_eq(account().sliced, 1);
	vgpu_leave(&vgpu);
}
END_TEST

/* How many blocks the GPU has room for at once, as the tests' has processors. */
static uint32_t large_grid(void)
{
	return 64 * 1024;
}

/*
 * Nobody knows what it takes: it is begun with as much as runs at once, which tells. However little
 * that took, the next part has four times the blocks, not all that are left.
 */
START_TEST(unknown_kernels_are_begun_with_a_part)
{
	uint32_t many[3] = {large_grid(), 1, 1}, few[3] = {2, 1, 1}, function;
	uint64_t out;

	start_with(FGV_SLICING_ON, 0);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	out = zeroed((large_grid() + 2) * 4);
	launch(function, few, out, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(account().sliced, 0);
	launch(function, many, out + 8, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(account().sliced, 1);
	ck_assert_uint_ge(account().parts, 3);
	vgpu_leave(&vgpu);
}
END_TEST

/* Blocks of this file's kernels that the GPU has room for at once. */
static uint32_t room(void)
{
	struct fgv_device_info_request request = {
		.info_off = vgpu.window.arena_off,
		.info_len = sizeof(struct fgv_device_info),
	};
	struct fgv_device_info info;
	int threads, blocks;

	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
			  CUDA_SUCCESS);
	memcpy(&info, vgpu_arena(&vgpu, 0), sizeof(info));
	threads = info.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
	blocks = info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR];
	if (blocks > threads / (int)THREADS)
		blocks = threads / (int)THREADS;
	return (uint32_t)(blocks * info.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]);
}

/*
 * A kernel that fits into a turn: its first launch goes in a few parts, each four times the one
 * before, whichever boxes they are, and all others are whole. No row of one of these grids fills
 * the GPU, and no number of whole rows just does. How long anything takes here does not matter: a
 * turn is longer than all of it.
 */
START_TEST(what_fits_into_a_turn_goes_whole)
{
	uint32_t half, function;
	uint64_t out;

	vgpu_spawn(&vgpu);
	vgpu.slicing = FGV_SLICING_ON;
	vgpu.slice_ns = 3600ull * 1000 * 1000 * 1000;
	vgpu_begin(&vgpu);
	half = room() / 2;
	out = zeroed((uint64_t)(half + 1) * 40 * 3 * 4);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t grids[3][3] = {
			{half + 1, 120, 1}, {half - 1, 40, 3}, {room() + 1, 60, 1}};
		uint64_t parts = account().parts;

		function = vgpu_must_get(&vgpu, work_ptx, "work");
		for (unsigned n = 0; n < 10; n++) {
			launch(function, grids[i], out, 1);
			ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
		}
		ck_assert_uint_eq(account().sliced, i + 1);
		ck_assert_uint_ge(account().parts - parts, 3);
		ck_assert_uint_le(account().parts - parts, 8);
	}
	vgpu_leave(&vgpu);
}
END_TEST

/* Where a session can be held, that is better. */
START_TEST(auto_is_for_those_that_are_not_held)
{
	uint32_t function, holdable;
	uint64_t out;

	start_with(FGV_SLICING_AUTO, 4);
	out = zeroed(BLOCKS * 4);
	for (holdable = 0; holdable < 2; holdable++) {
		__atomic_store_n(&vgpu.grant->is_holdable, holdable, __ATOMIC_SEQ_CST);
		function = vgpu_must_get(&vgpu, work_ptx, "work");
		launch(function, grid, out, 1);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
		ck_assert_uint_eq(account().sliced, 1);
	}
	expect_counts(out, BLOCKS, 2);
	vgpu_leave(&vgpu);
}
END_TEST

START_TEST(off_is_off)
{
	uint32_t function;
	uint64_t out;

	start_with(FGV_SLICING_OFF, 4);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	out = zeroed(BLOCKS * 4);
	launch(function, grid, out, 1);
	expect_counts(out, BLOCKS, 1);
	ck_assert_uint_eq(account().parts, 0);
	vgpu_leave(&vgpu);
}
END_TEST

static void unload(uint32_t module)
{
	struct fgv_module_unload_request request = {.module = module};

	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_UNLOAD, &request, sizeof(request));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}

/* The module that does parts is paid for while it is there; and it is not there before it must. */
START_TEST(parts_are_charged)
{
	uint64_t out, before, loaded;
	uint32_t module, function;

	start_with(FGV_SLICING_ON, 4);
	out = zeroed(BLOCKS * 4);
	before = account().memory_bytes;
	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, work_ptx, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, "work", &function), CUDA_SUCCESS);
	loaded = account().memory_bytes;
	launch(function, (uint32_t[]){4, 1, 1}, out, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(account().memory_bytes, loaded);
	launch(function, grid, out, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_gt(account().memory_bytes, loaded);
	unload(module);
	ck_assert_uint_eq(account().memory_bytes, before);
	vgpu_leave(&vgpu);
}
END_TEST

/* Where there is no room for it the kernel runs all the same. */
START_TEST(without_memory_it_is_left_whole)
{
	uint32_t function;
	uint64_t out;

	start_with(FGV_SLICING_ON, 4);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	out = zeroed(BLOCKS * 4);
	__atomic_store_n(&vgpu.allowance->memory_bytes, account().memory_bytes + 16,
			 __ATOMIC_SEQ_CST);
	launch(function, grid, out, 1);
	launch(function, grid, out, 1);
	expect_counts(out, BLOCKS, 2);
	ck_assert_uint_eq(account().sliced, 0);
	ck_assert_uint_eq(account().left_whole, 2);
	leave_with_line(EXIT_SUCCESS);
}
END_TEST

/* A parameter of the largest size leaves no room for one more. */
START_TEST(full_parameters_are_left_whole)
{
	static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry work(.param .align 8 .b8 all[4096])\n{ ret; }\n";
	static uint8_t message[sizeof(struct fgv_launch_request) + 4096];
	struct fgv_launch_request head = {
		.grid = {8, 4, 3}, .block = {THREADS, 1, 1}, .param_count = 1};

	start_with(FGV_SLICING_ON, 4);
	head.function = vgpu_must_get(&vgpu, ptx, "work");
	memcpy(message, &head, sizeof(head));
	vgpu_must_post(&vgpu, 0, FGV_OP_LAUNCH, message, sizeof(message));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(account().left_whole, 1);
	leave_with_line(EXIT_SUCCESS);
}
END_TEST

/* A fault in one part is the launch's; the parts behind it change nothing any more. */
START_TEST(a_fault_ends_it)
{
	static const char ptx[] =
		".version 8.0\n.target sm_70\n.address_size 64\n"
		".visible .entry work(.param .u64 out, .param .u64 rounds)\n{\n"
		".reg .pred %p<2>; .reg .b32 %r<3>;\n"
		"mov.u32 %r1, %ctaid.y; setp.ne.u32 %p1, %r1, 2; @%p1 ret; trap;\n}\n";
	uint32_t function;

	start_with(FGV_SLICING_ON, 1);
	function = vgpu_must_get(&vgpu, ptx, "work");
	launch(function, grid, 0, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_uint_eq(account().sliced, 1);
	leave_with_line(FGV_EXIT_FAULT);
}
END_TEST

/* What is wrong with a launch is told as for one that is whole. */
START_TEST(wrong_launches_are_refused)
{
	static const uint32_t wrong[][3] = {{8, 65536, 1}, {0, 4, 3}, {8, 4, 65536}};
	uint32_t function;

	start_with(FGV_SLICING_ON, 4);
	function = vgpu_must_get(&vgpu, work_ptx, "work");
	for (unsigned i = 0; i < 3; i++) {
		launch(function, wrong[i], 0, 0);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	}
	ck_assert_uint_eq(account().sliced, 0);
	vgpu_leave(&vgpu);
}
END_TEST

/* Parts without end: all that is not work goes on beside them, and the session ends at once. */
START_TEST(the_largest_launch)
{
	static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry work(.param .u64 a, .param .u64 b)\n{ ret; }\n";
	static const uint32_t largest[3] = {INT32_MAX, 65535, 65535};
	struct fgv_mem_info_reply reply;
	uint32_t function;

	start_with(FGV_SLICING_ON, 1);
	function = vgpu_must_get(&vgpu, ptx, "work");
	launch(function, largest, 0, 0);
	while (account().parts < 100)
		poll(NULL, 0, 1);
	ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_MEM_INFO, NULL, 0, &reply), CUDA_SUCCESS);
	vgpu_leave(&vgpu);
}
END_TEST

static Suite *slices_suite(void)
{
	Suite *suite = suite_create("slices");
	TCase *cut = tcase_create("cut"), *process = tcase_create("process");

	tcase_add_test(cut, each_block_is_in_one_part);
	tcase_add_test(cut, the_largest_grid);
	suite_add_tcase(suite, cut);
	tcase_add_test(process, parts_are_one_launch);
	tcase_add_test(process, streams_do_not_mix);
	tcase_add_test(process, turns_end_in_the_middle);
	tcase_add_test(process, unknown_kernels_are_begun_with_a_part);
	tcase_add_test(process, what_fits_into_a_turn_goes_whole);
	tcase_add_test(process, auto_is_for_those_that_are_not_held);
	tcase_add_test(process, off_is_off);
	tcase_add_test(process, parts_are_charged);
	tcase_add_test(process, without_memory_it_is_left_whole);
	tcase_add_test(process, full_parameters_are_left_whole);
	tcase_add_test(process, a_fault_ends_it);
	tcase_add_test(process, wrong_launches_are_refused);
	tcase_add_test(process, the_largest_launch);
	tcase_set_timeout(process, 120);
	suite_add_tcase(suite, process);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(slices_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
