/*
 * What of the core no test of the runtime's face reaches: it is called here as a face calls it,
 * and no face is loaded.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "frontend/client/thread.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/reset.h"
#include "frontend/cuda/memory/fill.h"
#include "frontend/cuda/memory/memcpy.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/module/function.h"
#include "frontend/cuda/module/launch.h"
#include "frontend/cuda/module/library.h"
#include "frontend/cuda/module/occupancy.h"
#include "frontend/cuda/module/registry.h"
#include "tests/unit/frontend/cuda/test_core.h"

static const struct {
	uint32_t magic, version;
	const void *data, *more;
} wrapper = {0x466243b1, 1, &container, NULL};

static struct fgv_kernel *load(const char *name, CUlibrary *library)
{
	CUkernel kernel;

	EXPECT(fgv_library_load_data(library, &container), CUDA_SUCCESS);
	EXPECT(fgv_library_get_kernel(&kernel, *library, name), CUDA_SUCCESS);
	return fgv_registry_kernel(kernel);
}

/* Three parameters of 8, 4 and 1 bytes, which the host has 128 bytes apart. */
#define PACKED_BYTES (2 * 128 + 1)

static CUresult launch_packed(struct fgv_kernel *kernel, void **args, void **extra)
{
	const struct fgv_launch launch = {
		.grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args, .extra = extra};

	return fgv_launch_run(kernel, &launch);
}

START_TEST(packed_arguments)
{
	uint8_t buffer[PACKED_BYTES] = {0};
	const uint64_t first = 0x1122334455667788;
	const uint64_t expected[][3] = {
		{first, 0xfffffffe, 0xee}, {first, 0xfffffffe, 0}, {first, 0xfffe, 0}};
	const int32_t second = -2;
	size_t len = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &len,
			 CU_LAUNCH_PARAM_END};
	void *args[] = {buffer, buffer, buffer};
	CUlibrary library;
	struct fgv_kernel *kernel = load("add", &library);

	memcpy(buffer, &first, sizeof(first));
	memcpy(buffer + 128, &second, sizeof(second));
	buffer[256] = 0xee;
	EXPECT(launch_packed(kernel, NULL, extra), CUDA_SUCCESS);
	EXPECT(launch_packed(kernel, args, extra), CUDA_ERROR_INVALID_VALUE);
	EXPECT(launch_packed(kernel, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	/* What is not in the buffer is zero. */
	len--;
	EXPECT(launch_packed(kernel, NULL, extra), CUDA_SUCCESS);
	len = 128 + 2;
	EXPECT(launch_packed(kernel, NULL, extra), CUDA_SUCCESS);
	len = 0;
	EXPECT(launch_packed(kernel, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	extra[2] = (void *)7;
	EXPECT(launch_packed(kernel, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	extra[2] = CU_LAUNCH_PARAM_END;
	EXPECT(launch_packed(kernel, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	host_seen();
	ck_assert_uint_eq(HOST_GET(launch_count), 3);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(host.launches[i].args_len, sizeof(expected[i]));
		ck_assert_mem_eq(host.launches[i].args, expected[i], sizeof(expected[i]));
	}
}
END_TEST

/* Two rows of three elements, 16 bytes apart, in memory that holds ones. */
static void check_rows(CUdeviceptr address, uint32_t element)
{
	const struct fgv_fill ones = {address, 32, 0x01, 1, 32, 1};
	const struct fgv_fill rows = {address, 16, 0xa1b2c3d4, element, 3, 2};
	uint8_t got[32], expected[32];

	memset(expected, 1, sizeof(expected));
	for (int row = 0; row < 2; row++) {
		for (int i = 0; i < 3; i++)
			memcpy(expected + 16 * row + element * i, &rows.value, element);
	}
	EXPECT(fgv_fill_run(&ones, NULL, true), CUDA_SUCCESS);
	EXPECT(fgv_fill_run(&rows, NULL, true), CUDA_SUCCESS);
	EXPECT(fgv_memcpy_run(got, (void *)address, sizeof(got), FGV_MEMCPY_FROM_DEVICE, NULL,
			      true),
	       CUDA_SUCCESS);
	ck_assert_mem_eq(got, expected, sizeof(got));
}

START_TEST(fills_of_elements)
{
	CUdeviceptr address;
	struct fgv_fill bad;

	EXPECT(fgv_memory_alloc(&address, 32), CUDA_SUCCESS);
	check_rows(address, 2);
	check_rows(address, 4);
	bad = (struct fgv_fill){address + 2, 16, 0, 4, 1, 1};
	EXPECT(fgv_fill_run(&bad, NULL, true), CUDA_ERROR_INVALID_VALUE);
	bad = (struct fgv_fill){address, 14, 0, 4, 3, 2};
	EXPECT(fgv_fill_run(&bad, NULL, true), CUDA_ERROR_INVALID_VALUE);
	bad = (struct fgv_fill){address, 8, 0, 4, 3, 2};
	EXPECT(fgv_fill_run(&bad, NULL, true), CUDA_ERROR_INVALID_VALUE);
	bad = (struct fgv_fill){address, 16, 0, 4, 3, 3};
	EXPECT(fgv_fill_run(&bad, NULL, true), CUDA_ERROR_INVALID_VALUE);
	bad = (struct fgv_fill){address, SIZE_MAX, 0, 4, SIZE_MAX / 2, 1};
	EXPECT(fgv_fill_run(&bad, NULL, true), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_memory_free(address), CUDA_SUCCESS);
	EXPECT(fgv_memory_free(address), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static size_t shared_of(int block_size)
{
	return (size_t)block_size * 64;
}

/* No size of whole warps has more threads on a multiprocessor. */
static void check_best(struct fgv_kernel *kernel, CUoccupancyB2DSize per_block, int limit)
{
	int grid, block, blocks, other;

	EXPECT(fgv_occupancy_best_block(kernel, per_block, 0, limit, 0, &grid, &block),
	       CUDA_SUCCESS);
	EXPECT(fgv_occupancy_max_blocks(kernel, block, per_block ? per_block(block) : 0, 0,
					&blocks),
	       CUDA_SUCCESS);
	ck_assert_int_gt(block, 0);
	ck_assert(!limit || block <= limit);
	ck_assert_int_eq(grid,
			 blocks * fgv_device_attribute(fgv_device_info(),
						       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
	for (int size = 32; size <= (limit ? limit : 1024); size += 32) {
		EXPECT(fgv_occupancy_max_blocks(kernel, size, per_block ? per_block(size) : 0, 0,
						&other),
		       CUDA_SUCCESS);
		ck_assert_int_le(size * other, block * blocks);
	}
}

START_TEST(best_block)
{
	CUlibrary library;
	struct fgv_kernel *kernel = load("add", &library);
	int grid, block;

	check_best(kernel, NULL, 0);
	check_best(kernel, shared_of, 0);
	check_best(kernel, NULL, 100);
	EXPECT(fgv_occupancy_best_block(kernel, NULL, 0, -1, 0, &grid, &block),
	       CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_occupancy_best_block(kernel, NULL, 0, 0, 0x80, &grid, &block),
	       CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(kernels_and_their_libraries)
{
	CUlibrary library, found = NULL;
	struct fgv_kernel *kernel = load("add", &library);

	EXPECT(fgv_library_of(kernel, &found), CUDA_SUCCESS);
	ck_assert_ptr_eq(found, library);
	EXPECT(fgv_library_unload(library), CUDA_SUCCESS);
	EXPECT(fgv_library_check(library), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_ptr_eq(fgv_registry_kernel(kernel), NULL);
	EXPECT(fgv_library_unload(library), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* What start-up code has registered goes with the program alone. */
START_TEST(the_programs_own)
{
	struct fgv_module *module = fgv_registry_add(&wrapper);
	struct fgv_kernel *kernel = fgv_registry_add_kernel(module, "add");
	CUlibrary library;

	EXPECT(fgv_library_of(kernel, &library), CUDA_SUCCESS);
	EXPECT(fgv_library_check(library), CUDA_SUCCESS);
	EXPECT(fgv_library_unload(library), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(fgv_library_check(library), CUDA_SUCCESS);
	fgv_registry_remove(module);
	EXPECT(fgv_library_check(library), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_ptr_eq(fgv_registry_add_kernel(module, "add"), NULL);
}
END_TEST

/* --- Parts of threads ----------------------------------------------------------- */

static char ended[8];

static void end_first(void)
{
	strcat(ended, "1");
}

static void end_second(void)
{
	strcat(ended, "2");
}

static __thread struct fgv_thread_part first = {.end = end_first}, second = {.end = end_second};

static void end_third(void)
{
	strcat(ended, "3");
	/* As a destructor of another library does, which uses CUDA once more. */
	fgv_thread_add(&first);
	fgv_thread_add(&second);
}

static __thread struct fgv_thread_part third = {.end = end_third};

static void *have_parts(void *arg)
{
	(void)arg;
	ck_assert_int_eq(fgv_thread_add(&first), 0);
	ck_assert_int_eq(fgv_thread_add(&third), 0);
	ck_assert_int_eq(fgv_thread_add(&first), 0);
	return NULL;
}

START_TEST(parts_end_in_reverse)
{
	pthread_t thread;

	pthread_create(&thread, NULL, have_parts, NULL);
	pthread_join(thread, NULL);
	ck_assert_str_eq(ended, "321");
}
END_TEST

static unsigned asked(void)
{
	return (unsigned)(HOST_GET(requests[FGV_OP_FUNCTION_GET]) +
			  HOST_GET(requests[FGV_OP_MODULE_KERNELS]) +
			  HOST_GET(requests[FGV_OP_MODULE_MANAGED]));
}

/* What the host says with the load answers all that is asked about the module's kernels. */
START_TEST(knows_the_kernels_of_a_module)
{
	struct fgv_kernel *kernel;
	CUkernel kernels[4], none;
	CUlibrary library;
	size_t offset, size;
	unsigned count;

	host.describes = true;
	kernel = load("add", &library);
	EXPECT(fgv_library_count_kernels(&count, library), CUDA_SUCCESS);
	ck_assert_uint_eq(count, 3);
	EXPECT(fgv_library_list_kernels(kernels, 4, library), CUDA_SUCCESS);
	ck_assert_str_eq(fgv_registry_kernel(kernels[0])->name, "empty");
	ck_assert_ptr_eq(fgv_registry_kernel(kernels[1]), kernel);
	EXPECT(fgv_function_get_param(kernel, 1, &offset, &size), CUDA_SUCCESS);
	ck_assert_uint_eq(offset, 128);
	ck_assert_uint_eq(size, 4);
	EXPECT(fgv_library_get_kernel(&none, library, "ad"), CUDA_ERROR_NOT_FOUND);
	EXPECT(fgv_library_get_kernel(&none, library, "addd"), CUDA_ERROR_NOT_FOUND);
	ck_assert_uint_eq(asked(), 0);
	/* After a reset its handles are others. */
	EXPECT(fgv_reset_device(), CUDA_SUCCESS);
	EXPECT(fgv_launch_run(fgv_registry_kernel(kernels[0]),
			      &(struct fgv_launch){.grid = {1, 1, 1}, .block = {1, 1, 1}}),
	       CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 2);
	ck_assert_uint_eq(asked(), 0);
}
END_TEST

/* Of a description that makes no sense nothing is believed. */
START_TEST(asks_where_it_was_told_nonsense)
{
	CUlibrary library;

	host.describes = true;
	host.misdescribes = 4;
	ck_assert_ptr_nonnull(load("add", &library));
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_FUNCTION_GET]), 1);
}
END_TEST

/* Two lists, of which only the first one fits into the answer. */
START_TEST(finds_managed_variables)
{
	const unsigned counts[] = {2, 700};
	CUlibrary library;
	CUdeviceptr address;
	size_t bytes;
	char name[16];

	for (unsigned i = 0; i < counts[_i]; i++) {
		uint8_t *at = host.managed + host.managed_bytes;
		uint64_t size = 4 + 4 * i;

		memcpy(at, &size, sizeof(size));
		host.managed_bytes += sizeof(size) + 1 +
				      (uint64_t)snprintf((char *)at + sizeof(size), 16, "v%u", i);
	}
	EXPECT(fgv_library_load_data(&library, &container), CUDA_SUCCESS);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_MANAGED]), _i);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD_PLACED]), 1);
	snprintf(name, sizeof(name), "v%u", counts[_i] - 1);
	EXPECT(fgv_library_get_managed(&address, &bytes, library, name), CUDA_SUCCESS);
	ck_assert_uint_eq(bytes, 4 * counts[_i]);
	EXPECT(fgv_library_unload(library), CUDA_SUCCESS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core");
	TCase *tests = tcase_create("core"), *threads = tcase_create("threads");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, packed_arguments);
	tcase_add_test(tests, fills_of_elements);
	tcase_add_test(tests, best_block);
	tcase_add_test(tests, kernels_and_their_libraries);
	tcase_add_test(tests, the_programs_own);
	tcase_add_test(tests, knows_the_kernels_of_a_module);
	tcase_add_test(tests, asks_where_it_was_told_nonsense);
	tcase_add_loop_test(tests, finds_managed_variables, 0, 2);
	tcase_add_test(threads, parts_end_in_reverse);
	suite_add_tcase(suite, tests);
	suite_add_tcase(suite, threads);
	return run_suite(suite);
}
