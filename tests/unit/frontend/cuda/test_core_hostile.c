/*
 * A host that says what no host should: the program gets an error, and goes on. tests/fuzz/
 * fuzz_guest.c looks for more of these.
 */
#include <string.h>

#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/memory/vmem.h"
#include "frontend/cuda/module/library.h"
#include "frontend/cuda/module/occupancy.h"
#include "frontend/cuda/module/registry.h"
#include "tests/unit/frontend/cuda/test_core.h"

#define UNIT (2u << 20)

static const CUmemAllocationProp device_memory = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};

/* Managed variables: 8 bytes of a size, and a name with a NUL. */
static const struct {
	const char *bytes;
	uint64_t len;
} lists[] = {
	{"\4\0\0\0", 4},
	{"\4\0\0\0\0\0\0\0", 8},
	{"\4\0\0\0\0\0\0\0name", 12},
	{"\4\0\0\0\0\0\0\0name\0\4\0\0\0\0\0\0\0mane", 25},
};

START_TEST(lists_that_do_not_end)
{
	CUlibrary library;

	memcpy(host.managed, lists[_i].bytes, lists[_i].len);
	host.managed_bytes = lists[_i].len;
	EXPECT(fgv_library_load_data(&library, &container), CUDA_ERROR_UNKNOWN);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD_PLACED]), 0);
}
END_TEST

/* As above, but too long for the answer, so that it is asked for once more. */
START_TEST(a_long_list_that_does_not_end)
{
	CUlibrary library;

	memset(host.managed, 'a', sizeof(host.managed));
	host.managed_bytes = sizeof(host.managed);
	EXPECT(fgv_library_load_data(&library, &container), CUDA_ERROR_UNKNOWN);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_MANAGED]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD_PLACED]), 0);
}
END_TEST

/* Codes beside CUDA's are this library's own: (CUresult)-1 is that of managed variables, say. */
START_TEST(codes_that_are_none)
{
	size_t free_bytes, total;

	HOST_SET(status[FGV_OP_MEM_INFO], (CUresult)1000);
	EXPECT(fgv_memory_info(&free_bytes, &total), CUDA_ERROR_UNKNOWN);
	HOST_SET(status[FGV_OP_MEM_INFO], CUDA_ERROR_NOT_PERMITTED);
	EXPECT(fgv_memory_info(&free_bytes, &total), CUDA_ERROR_NOT_PERMITTED);
}
END_TEST

START_TEST(memory_in_units_of_nothing)
{
	CUmemGenericAllocationHandle handle;
	size_t bytes;

	host_seen();
	host.granule = 0;
	host_seen();
	EXPECT(fgv_vmem_create(&handle, UNIT, &device_memory, 0), CUDA_ERROR_UNKNOWN);
	EXPECT(fgv_vmem_granularity(&bytes, &device_memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
	       CUDA_ERROR_UNKNOWN);
}
END_TEST

START_TEST(the_same_address_twice)
{
	CUdeviceptr address, other;

	EXPECT(fgv_vmem_reserve(&address, 2 * UNIT, 0, 0, 0), CUDA_SUCCESS);
	host_seen();
	host.vmem_reserved = UNIT;
	host_seen();
	EXPECT(fgv_vmem_reserve(&other, 2 * UNIT, 0, 0, 0), CUDA_ERROR_UNKNOWN);
	EXPECT(fgv_vmem_reserve(&other, UNIT, 0, 0, 0), CUDA_SUCCESS);
	EXPECT(fgv_vmem_free(address, 2 * UNIT), CUDA_SUCCESS);
	EXPECT(fgv_vmem_free(other, UNIT), CUDA_SUCCESS);
}
END_TEST

START_TEST(the_same_memory_twice)
{
	CUmemGenericAllocationHandle handle, other;
	CUdeviceptr address;

	EXPECT(fgv_vmem_create(&handle, UNIT, &device_memory, 0), CUDA_SUCCESS);
	host_seen();
	host.object_count--;
	host_seen();
	EXPECT(fgv_vmem_create(&other, UNIT, &device_memory, 0), CUDA_ERROR_UNKNOWN);
	EXPECT(fgv_vmem_reserve(&address, UNIT, 0, 0, 0), CUDA_SUCCESS);
	EXPECT(fgv_vmem_map(address, UNIT, 0, handle, 0), CUDA_SUCCESS);
	/* And what is mapped where something is. */
	EXPECT(fgv_vmem_map(address, UNIT, 0, handle, 0), CUDA_ERROR_UNKNOWN);
	EXPECT(fgv_vmem_unmap(address, UNIT), CUDA_SUCCESS);
	EXPECT(fgv_vmem_release(handle), CUDA_SUCCESS);
}
END_TEST

START_TEST(warps_of_no_threads)
{
	CUlibrary library;
	CUkernel kernel;
	int grid, block;

	host.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = -_i;
	EXPECT(fgv_library_load_data(&library, &container), CUDA_SUCCESS);
	EXPECT(fgv_library_get_kernel(&kernel, library, "empty"), CUDA_SUCCESS);
	EXPECT(fgv_occupancy_best_block(fgv_registry_kernel(kernel), NULL, 0, 0, 0, &grid, &block),
	       CUDA_ERROR_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core, hostile");
	TCase *tests = tcase_create("hostile");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, lists_that_do_not_end, 0, 4);
	tcase_add_test(tests, a_long_list_that_does_not_end);
	tcase_add_test(tests, codes_that_are_none);
	tcase_add_test(tests, memory_in_units_of_nothing);
	tcase_add_test(tests, the_same_address_twice);
	tcase_add_test(tests, the_same_memory_twice);
	tcase_add_loop_test(tests, warps_of_no_threads, 0, 2);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
