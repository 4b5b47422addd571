/*
 * A vGPU process and virtual memory as no honest guest asks for it: addresses that are not
 * reserved, mappings over each other, sizes that wrap, handles of nothing, and kernels that use
 * what is being unmapped. What is charged is given back, once nobody has it.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/vmem.h"
#include "softgpu/softgpu.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define UNIT  SOFTGPU_CHUNK_GRANULE
#define WORDS 64

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static uint64_t used_bytes(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}

static uint32_t reserve(uint64_t size, uint64_t alignment, uint64_t hint, uint64_t *address)
{
	struct fgv_address_reserve_request request = {size, alignment, hint};
	struct fgv_address_reserve_reply reply = {0};
	uint32_t status =
		vgpu_call(&vgpu, 0, FGV_OP_ADDRESS_RESERVE, &request, sizeof(request), &reply);

	*address = reply.address;
	return status;
}

static uint64_t must_reserve(uint64_t size)
{
	uint64_t address;

	ck_assert_uint_eq(reserve(size, 0, 0, &address), CUDA_SUCCESS);
	return address;
}

static uint32_t free_addresses(uint64_t address)
{
	struct fgv_address_free_request request = {address};

	return vgpu_call(&vgpu, 0, FGV_OP_ADDRESS_FREE, &request, sizeof(request), NULL);
}

static uint32_t create(uint64_t size, uint32_t *memory)
{
	struct fgv_memory_create_request request = {size};
	struct fgv_memory_create_reply reply = {0};
	uint32_t status =
		vgpu_call(&vgpu, 0, FGV_OP_MEMORY_CREATE, &request, sizeof(request), &reply);

	*memory = reply.memory;
	return status;
}

static uint32_t must_create(uint64_t size)
{
	uint32_t memory;

	ck_assert_uint_eq(create(size, &memory), CUDA_SUCCESS);
	return memory;
}

static void release(uint32_t memory)
{
	struct fgv_memory_release_request request = {.memory = memory};

	vgpu_must_post(&vgpu, 0, FGV_OP_MEMORY_RELEASE, &request, sizeof(request));
}

static uint32_t map(uint64_t address, uint64_t size, uint64_t offset, uint32_t memory)
{
	struct fgv_memory_map_request request = {
		.address = address, .size = size, .offset = offset, .memory = memory};

	return vgpu_call(&vgpu, 0, FGV_OP_MEMORY_MAP, &request, sizeof(request), NULL);
}

static uint32_t allow(uint64_t address, uint64_t size, uint32_t flags)
{
	struct fgv_memory_access_request request = {
		.address = address, .size = size, .flags = flags};

	return vgpu_call(&vgpu, 0, FGV_OP_MEMORY_ACCESS, &request, sizeof(request), NULL);
}

static uint32_t unmap(uint64_t address, uint64_t size)
{
	struct fgv_memory_unmap_request request = {address, size};

	return vgpu_call(&vgpu, 0, FGV_OP_MEMORY_UNMAP, &request, sizeof(request), NULL);
}

static uint64_t must_map(uint32_t memory)
{
	uint64_t address = must_reserve(UNIT);

	ck_assert_uint_eq(map(address, UNIT, 0, memory), CUDA_SUCCESS);
	ck_assert_uint_eq(allow(address, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
	return address;
}

#define WRONG(call) ck_assert_uint_eq((call), CUDA_ERROR_INVALID_VALUE)
/* As the driver says it where the memory itself is too small. */
#define TOO_LARGE(call) ck_assert_uint_eq((call), CUDA_ERROR_NOT_SUPPORTED)

START_TEST(maps_only_where_it_is_reserved)
{
	uint64_t address = must_reserve(4 * UNIT), plain = vgpu_must_alloc(&vgpu, 2 * UNIT);
	uint32_t memory = must_create(2 * UNIT);

	WRONG(map(address + 3 * UNIT, 2 * UNIT, 0, memory));
	WRONG(map(address - UNIT, UNIT, 0, memory));
	WRONG(map(address - UNIT, 2 * UNIT, 0, memory));
	WRONG(map(0, UNIT, 0, memory));
	WRONG(map(VGPU_SHARED_ADDRESS, UNIT, 0, memory));
	WRONG(map(plain - plain % UNIT, UNIT, 0, memory));
	WRONG(map(UINT64_MAX - UNIT + 1, UNIT, 0, memory));
	WRONG(map(address, UINT64_MAX - UNIT + 1, 0, memory));
	WRONG(map(address, 0, 0, memory));
	WRONG(map(address, UNIT + 4096, 0, memory));
	WRONG(map(address + 4096, UNIT, 0, memory));
	WRONG(map(address, UNIT, 4096, memory));
	TOO_LARGE(map(address, UNIT, 2 * UNIT, memory));
	TOO_LARGE(map(address, 2 * UNIT, UNIT, memory));
	TOO_LARGE(map(address, UNIT, UINT64_MAX - UNIT + 1, memory));
	TOO_LARGE(map(address, 3 * UNIT, 0, memory));
	ck_assert_uint_eq(map(address, UNIT, 0, 0), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(map(address, UNIT, 0, memory + 1), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(map(address + UNIT, 2 * UNIT, 0, memory), CUDA_SUCCESS);
	WRONG(map(address + UNIT, 2 * UNIT, 0, memory));
	WRONG(map(address, 2 * UNIT, 0, memory));
	WRONG(map(address + 2 * UNIT, UNIT, 0, memory));
	WRONG(map(address + 2 * UNIT, 2 * UNIT, 0, memory));
	ck_assert_uint_eq(map(address, UNIT, UNIT, memory), CUDA_SUCCESS);
	release(memory);
	ck_assert_uint_eq(map(address + 3 * UNIT, UNIT, 0, memory), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(takes_no_part_of_a_mapping)
{
	uint64_t address = must_reserve(4 * UNIT);
	uint32_t memory = must_create(2 * UNIT);

	ck_assert_uint_eq(map(address, 2 * UNIT, 0, memory), CUDA_SUCCESS);
	ck_assert_uint_eq(map(address + 2 * UNIT, UNIT, 0, memory), CUDA_SUCCESS);
	for (uint32_t flags = 0; flags < 3; flags++) {
		WRONG(allow(address + flags * UNIT, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE + 1));
		WRONG(allow(address, 4 * UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	}
	WRONG(allow(address, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	WRONG(allow(address + UNIT, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	WRONG(allow(address, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	WRONG(allow(address, UINT64_MAX - UNIT + 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	WRONG(unmap(address, UNIT));
	WRONG(unmap(address + UNIT, 2 * UNIT));
	WRONG(unmap(address, 4 * UNIT));
	WRONG(unmap(address, 0));
	WRONG(unmap(address, UINT64_MAX - UNIT + 1));
	WRONG(unmap(address + 3 * UNIT, UNIT));
	WRONG(free_addresses(address));
	WRONG(free_addresses(address + UNIT));
	ck_assert_uint_eq(unmap(address, 3 * UNIT), CUDA_SUCCESS);
	WRONG(unmap(address, 3 * UNIT));
	ck_assert_uint_eq(free_addresses(address), CUDA_SUCCESS);
	WRONG(free_addresses(address));
	release(memory);
}
END_TEST

START_TEST(reserves_within_bounds)
{
	uint64_t address, other, count = 0;

	WRONG(reserve(0, 0, 0, &address));
	WRONG(reserve(4095, 0, 0, &address));
	WRONG(reserve(UNIT, 3 * UNIT, 0, &address));
	WRONG(reserve(UNIT, 0, 17, &address));
	ck_assert_uint_eq(reserve(UINT64_MAX - 4095, 0, 0, &address), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(reserve(UNIT, 1ull << 63, 0, &address), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(reserve(FGV_RESERVED_BYTES_MAX, 0, 0, &address),
			  CUDA_ERROR_OUT_OF_MEMORY);
	/* A hint at what is taken is no reason to fail, nor is one at nothing that can be had. */
	address = must_reserve(UNIT);
	ck_assert_uint_eq(reserve(UNIT, 0, address, &other), CUDA_SUCCESS);
	ck_assert_uint_ne(other, address);
	ck_assert_uint_eq(reserve(UNIT, 0, UINT64_MAX - 4095, &other), CUDA_SUCCESS);
	while (reserve(4096, 0, 0, &address) == CUDA_SUCCESS)
		ck_assert_uint_lt(++count, 2 * FGV_RESERVATIONS_MAX);
	ck_assert_uint_gt(count, FGV_RESERVATIONS_MAX / 2);
}
END_TEST

/* What is made is charged, whether it is mapped or not, until neither handle nor mapping is left.
 */
START_TEST(charges_memory_while_anybody_has_it)
{
	uint64_t before = used_bytes(), address, count = 0;
	uint32_t memory, other;

	WRONG(create(0, &memory));
	WRONG(create(UNIT / 2, &memory));
	WRONG(create(UINT64_MAX, &memory));
	ck_assert_uint_eq(create(UINT64_MAX - UNIT + 1, &memory), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(create(VGPU_QUOTA + UNIT, &memory), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(used_bytes(), before);
	memory = must_create(UNIT);
	ck_assert_uint_eq(used_bytes(), before + UNIT);
	address = must_map(memory);
	release(memory);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + UNIT);
	ck_assert_uint_eq(unmap(address, UNIT), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
	while (create(UNIT, &other) == CUDA_SUCCESS)
		ck_assert_uint_lt(++count, VGPU_QUOTA / UNIT + 1);
	ck_assert_uint_eq(count, (VGPU_QUOTA - before) / UNIT);
}
END_TEST

/* The device has no more than it has, in whichever way it is taken. */
START_TEST(shares_the_device_with_allocations)
{
	uint64_t room = 0, address;
	uint32_t memory;

	__atomic_store_n(&vgpu.allowance->memory_bytes, UINT64_MAX / 2, __ATOMIC_SEQ_CST);
	vgpu_must_alloc(&vgpu, VGPU_MEMORY / 2);
	while (create(UNIT, &memory) == CUDA_SUCCESS)
		room += UNIT;
	ck_assert_uint_eq(room, VGPU_MEMORY / 2);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	release(memory);
}
END_TEST

/* Work that was queued before sees what is unmapped, and it is there again elsewhere. */
START_TEST(unmaps_behind_the_work)
{
	uint32_t memory = must_create(UNIT), add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t address = must_map(memory), args[3] = {address, WORDS, 1};
	const uint32_t *got = vgpu_arena(&vgpu, 0);

	vgpu_fill(&vgpu, address, WORDS, 100, 4);
	for (int i = 0; i < 10; i++)
		vgpu_launch(&vgpu, add, 1, args, 3);
	ck_assert_uint_eq(unmap(address, UNIT), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, address, 4, 0), CUDA_ERROR_INVALID_VALUE);
	address = must_map(memory);
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, address, WORDS * 4, 0), CUDA_SUCCESS);
	for (int i = 0; i < WORDS; i++)
		ck_assert_uint_eq(got[i], 100 + 10 * 6);
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, address + UNIT - 4, 8, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* What kernels may not use yet, or no more, or never could: a fault, which is this session's. */
START_TEST(faults_outside_what_is_mapped)
{
	uint32_t memory, add;
	uint64_t args[3] = {0, WORDS, 1};
	unsigned lines;

	vgpu_start(&vgpu);
	memory = must_create(UNIT);
	add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	args[0] = must_reserve(2 * UNIT);
	if (_i > 0)
		ck_assert_uint_eq(map(args[0], UNIT, 0, memory), CUDA_SUCCESS);
	if (_i > 1)
		ck_assert_uint_eq(allow(args[0], UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
				  CUDA_SUCCESS);
	if (_i == 2)
		ck_assert_uint_eq(unmap(args[0], UNIT), CUDA_SUCCESS);
	if (_i == 3)
		args[0] += UNIT - WORDS * 2;
	vgpu_launch(&vgpu, add, 1, args, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_ILLEGAL_ADDRESS);
	if (_i == 3)
		ck_assert_uint_eq(unmap(args[0] - (UNIT - WORDS * 2), UNIT),
				  CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), FGV_EXIT_FAULT);
}
END_TEST

/* The end comes while an unmapping waits for a kernel without one, and another kernel behind it. */
START_TEST(ends_while_unmapping)
{
	uint32_t memory = must_create(UNIT), add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint32_t forever = vgpu_must_get(&vgpu, vgpu_forever_ptx, "forever");
	uint64_t address = must_map(memory), args[3] = {address, WORDS, 1};
	struct fgv_memory_unmap_request request = {address, UNIT};

	vgpu_launch(&vgpu, forever, 1, NULL, 0);
	vgpu_must_post(&vgpu, 1, FGV_OP_MEMORY_UNMAP, &request, sizeof(request));
	vgpu_launch(&vgpu, add, 1, args, 3);
	/* Meanwhile it is neither there nor gone. */
	while (map(address, UNIT, 0, memory) != CUDA_ERROR_INVALID_VALUE ||
	       allow(address, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS)
		continue;
	WRONG(free_addresses(address));
	release(memory);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_vmem");
	TCase *tests = tcase_create("vgpu_vmem"), *faults = tcase_create("faults");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, maps_only_where_it_is_reserved);
	tcase_add_test(tests, takes_no_part_of_a_mapping);
	tcase_add_test(tests, reserves_within_bounds);
	tcase_add_test(tests, charges_memory_while_anybody_has_it);
	tcase_add_test(tests, shares_the_device_with_allocations);
	tcase_add_test(tests, unmaps_behind_the_work);
	tcase_add_test(tests, ends_while_unmapping);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(faults, 120);
	tcase_add_loop_test(faults, faults_outside_what_is_mapped, 0, 4);
	suite_add_tcase(suite, faults);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
