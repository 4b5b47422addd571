/*
 * A vGPU process and a guest that keeps the rules: the GPU's memory, host memory that both see,
 * what is lent for copies, the quota.
 */
#include <check.h>
#include <cuda.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define COUNT 1000

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

START_TEST(copies_and_fills)
{
	uint64_t address = vgpu_must_alloc(&vgpu, FGV_DATA_MAX);
	uint8_t *out = vgpu_arena(&vgpu, 4096);
	uint8_t data[FGV_DATA_MAX];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	vgpu_copy_in(&vgpu, address, data, sizeof(data));
	vgpu_fill(&vgpu, address + 100, 10, 0xab, 1);
	vgpu_fill(&vgpu, address + 200, 10, 0x1234, 2);
	vgpu_fill(&vgpu, address + 300, 10, 0x12345678, 4);
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, address, sizeof(data), 4096), CUDA_SUCCESS);
	memset(data + 100, 0xab, 10);
	for (unsigned i = 0; i < 10; i++) {
		memcpy(data + 200 + 2 * i, "\x34\x12", 2);
		memcpy(data + 300 + 4 * i, "\x78\x56\x34\x12", 4);
	}
	ck_assert_mem_eq(out, data, sizeof(data));
}
END_TEST

static void await_loan(uint32_t loan, uint32_t number)
{
	uint32_t *done = &fgv_window_head(&vgpu.window)->staging_done[loan];

	while (__atomic_load_n(done, __ATOMIC_ACQUIRE) != number)
		sched_yield();
}

/* What was lent comes back, whether the copy was good or not, and whatever the guest says else. */
START_TEST(gives_back_what_is_lent)
{
	struct fgv_copy_in_bulk_request in = {.address = vgpu_must_alloc(&vgpu, 4096),
					      .data_off = vgpu.window.arena_off,
					      .data_len = 4096};
	struct fgv_box_in_bulk_request box = {.to = {in.address, 64, 64},
					      .box = {64, 64, 1},
					      .data_off = vgpu.window.arena_off,
					      .data_len = 4096};

	for (uint32_t round = 1; round < 40; round++) {
		in.loan = box.loan = round % FGV_STAGING_LOANS;
		in.number = round;
		vgpu_must_post(&vgpu, 0, FGV_OP_COPY_IN_BULK, &in, sizeof(in));
		await_loan(in.loan, in.number);
		box.number = 100 + round;
		vgpu_must_post(&vgpu, 0, FGV_OP_BOX_IN_BULK, &box, sizeof(box));
		await_loan(box.loan, box.number);
	}
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	in.stream = 12345;
	in.number = 1000;
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_IN_BULK, &in, sizeof(in));
	await_loan(in.loan, in.number);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	box.data_len = 4095;
	box.number = 1001;
	vgpu_must_post(&vgpu, 0, FGV_OP_BOX_IN_BULK, &box, sizeof(box));
	await_loan(box.loan, box.number);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	in.stream = 0;
	in.loan = FGV_STAGING_LOANS;
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_IN_BULK, &in, sizeof(in));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(copies_in_bulk_and_on_the_device)
{
	uint64_t from = vgpu_must_alloc(&vgpu, 1 << 20), to = vgpu_must_alloc(&vgpu, 1 << 20);
	struct fgv_copy_in_bulk_request in = {.address = from,
					      .data_off = vgpu.window.arena_off,
					      .data_len = 1 << 20,
					      .number = 7};
	struct fgv_copy_device_request across = {.to = to, .from = from, .size = 1 << 20};
	uint8_t *source = vgpu_arena(&vgpu, 0);

	for (unsigned i = 0; i < 1 << 20; i++)
		source[i] = (uint8_t)(i * 13 + i / 1024);
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_IN_BULK, &in, sizeof(in));
	await_loan(0, 7);
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_DEVICE, &across, sizeof(across));
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, to, 1 << 20, 2 << 20), CUDA_SUCCESS);
	ck_assert_mem_eq(vgpu_arena(&vgpu, 2 << 20), source, 1 << 20);
}
END_TEST

/* What is mapped is copied from and to by its address, and kernels reach it. */
START_TEST(shares_host_memory)
{
	const uint64_t len = 8192, off = 1 << 20;
	uint64_t device = vgpu_must_alloc(&vgpu, len), args[3] = {VGPU_SHARED_ADDRESS, COUNT, 3};
	struct fgv_copy_device_request in = {
		.to = device, .from = VGPU_SHARED_ADDRESS, .size = len};
	struct fgv_copy_device_request out = {
		.to = VGPU_SHARED_ADDRESS, .from = device, .size = len};
	uint32_t *data = vgpu_arena(&vgpu, off),
		 function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");

	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, off, len), CUDA_SUCCESS);
	for (unsigned i = 0; i < len / 4; i++)
		data[i] = i;
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_DEVICE, &in, sizeof(in));
	vgpu_launch(&vgpu, function, (COUNT + 127) / 128, args, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_eq(data[i], i + 3 + 5);
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_DEVICE, &out, sizeof(out));
	ck_assert_uint_eq(vgpu_host_unmap(&vgpu, VGPU_SHARED_ADDRESS), CUDA_SUCCESS);
	for (unsigned i = 0; i < len / 4; i++)
		ck_assert_uint_eq(data[i], i);
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_DEVICE, &in, sizeof(in));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* wait(u64 flag) waits until the word there is not 0. */
static const char wait_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			       ".visible .entry wait(.param .u64 flag)\n"
			       "{ .reg .b32 %r1; .reg .b64 %d1; .reg .pred %p1;\n"
			       "ld.param.u64 %d1, [flag];\n"
			       "again: ld.volatile.global.u32 %r1, [%d1];\n"
			       "setp.eq.u32 %p1, %r1, 0; @%p1 bra again; ret; }\n";

/*
 * Memory leaves once what was queued before is done, here a kernel. A fill that comes meanwhile, in
 * another stream, does not find it: it might run when nothing is there any more.
 */
START_TEST(nothing_new_finds_what_leaves)
{
	const uint64_t other = VGPU_SHARED_ADDRESS + (1 << 20), off = 1 << 20;
	const struct fgv_host_unmap_request unmap = {.address = VGPU_SHARED_ADDRESS};
	struct fgv_host_map_request again = {.address = other,
					     .pages_off = vgpu.window.arena_off + 2 * off,
					     .pages_len = 4096};
	struct fgv_fill_request fill = {
		.address = VGPU_SHARED_ADDRESS, .count = 1024, .value = 1, .width = 4};
	uint32_t function = vgpu_must_get(&vgpu, wait_ptx, "wait"), status;
	uint32_t *filled = vgpu_arena(&vgpu, off), *flag = vgpu_arena(&vgpu, 2 * off);

	fill.stream = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, off, 4096), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, other, 2 * off, 4096), CUDA_SUCCESS);
	*filled = *flag = 0;
	vgpu_launch(&vgpu, function, 1, &other, 1);
	vgpu_must_post(&vgpu, 0, FGV_OP_HOST_UNMAP, &unmap, sizeof(unmap));
	vgpu_must_post(&vgpu, 1, FGV_OP_FILL, &fill, sizeof(fill));
	/* Says what the fill came to, as soon as that is known. */
	do {
		status = vgpu_call(&vgpu, 1, FGV_OP_HOST_MAP, &again, sizeof(again), NULL);
	} while (status == CUDA_ERROR_ALREADY_MAPPED && !__atomic_load_n(filled, __ATOMIC_ACQUIRE));
	ck_assert_uint_eq(status, CUDA_ERROR_INVALID_VALUE);
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(*filled, 0);
}
END_TEST

START_TEST(shares_nothing_wrong)
{
	uint64_t elsewhere = vgpu_must_alloc(&vgpu, 4096);
	struct fgv_copy_device_request beyond = {
		.to = elsewhere, .from = VGPU_SHARED_ADDRESS + 4096, .size = 4097};

	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS + 1, 0, 4096),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 1, 4096),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 0, 4095),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 0, 0),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, 0, 0, 4096), CUDA_ERROR_INVALID_VALUE);
	/* No such address; and one where the process has something itself: the soft GPU's memory.
	 */
	ck_assert_uint_ne(vgpu_host_map(&vgpu, UINT64_MAX - 4095, 0, 4096), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, elsewhere, 0, 4096), CUDA_ERROR_ALREADY_MAPPED);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 0, 8192), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS + 4096, 0, 4096),
			  CUDA_ERROR_ALREADY_MAPPED);
	ck_assert_uint_eq(vgpu_host_unmap(&vgpu, VGPU_SHARED_ADDRESS + 4096),
			  CUDA_ERROR_INVALID_VALUE);
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_DEVICE, &beyond, sizeof(beyond));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_unmap(&vgpu, VGPU_SHARED_ADDRESS), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_host_unmap(&vgpu, VGPU_SHARED_ADDRESS), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 4096, 4096), CUDA_SUCCESS);
}
END_TEST

START_TEST(keeps_to_the_quota)
{
	struct fgv_mem_info_reply info;
	struct fgv_account *other = &vgpu.accounts->sessions[5];
	uint64_t address, second;

	ck_assert_uint_eq(vgpu_alloc(&vgpu, 0, &address), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, VGPU_QUOTA + 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, UINT64_MAX, &address), CUDA_ERROR_OUT_OF_MEMORY);
	address = vgpu_must_alloc(&vgpu, VGPU_QUOTA);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, 1, &second), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &info), CUDA_SUCCESS);
	ck_assert_uint_eq(info.free, 0);
	ck_assert_uint_eq(info.total, VGPU_QUOTA);
	vgpu_mem_free(&vgpu, address);
	vgpu_mem_free(&vgpu, address);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	__atomic_store_n(&other->memory_bytes, VGPU_QUOTA / 2, __ATOMIC_SEQ_CST);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, VGPU_QUOTA / 2 + 1, &address),
			  CUDA_ERROR_OUT_OF_MEMORY);
	vgpu_must_alloc(&vgpu, VGPU_QUOTA / 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_memory");
	TCase *tests = tcase_create("vgpu_memory");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, copies_and_fills);
	tcase_add_test(tests, copies_in_bulk_and_on_the_device);
	tcase_add_test(tests, gives_back_what_is_lent);
	tcase_add_test(tests, shares_host_memory);
	tcase_add_test(tests, nothing_new_finds_what_leaves);
	tcase_add_test(tests, shares_nothing_wrong);
	tcase_add_test(tests, keeps_to_the_quota);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
