/*
 * Memory that is freed while the GPU is at work is still there, and is charged until it is not:
 * the handlers and the CUDA implementation, with a driver of the test's.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_internal.h"
#include "backend/vgpu/session.h"

#define BLOCK (2ull << 20)
#define QUOTA (32 * BLOCK)
#define FEW   16

/* The driver's: what it has given, a block for each, and whether the GPU is at work. */
static struct {
	CUdeviceptr next;
	unsigned allocated, freed;
	CUresult stream;
} said;

static struct fgv_cuda_driver driver;
static struct cuda cuda;
static struct fgv_session session;
static struct fgv_allowance allowance;
static struct fgv_accounts accounts;
static struct fgv_grant grant;
static uint64_t addresses[FEW];

static CUresult mem_alloc(CUdeviceptr *address, size_t bytes)
{
	*address = said.next;
	said.next += (bytes + BLOCK - 1) / BLOCK * BLOCK;
	said.allocated++;
	return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr address)
{
	(void)address;
	said.freed++;
	return CUDA_SUCCESS;
}

static CUresult mem_info(size_t *free_bytes, size_t *total_bytes)
{
	*free_bytes = *total_bytes = 1000 * BLOCK;
	return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream stream)
{
	(void)stream;
	return said.stream;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)attribute;
	(void)device;
	*value = 1;
	return CUDA_SUCCESS;
}

static uint64_t charged(void)
{
	return accounts.sessions[0].memory_bytes;
}

static CUresult alloc(uint64_t bytes, uint64_t *address)
{
	struct fgv_request request = {.op = FGV_OP_MEM_ALLOC};
	struct fgv_mem_alloc_in in = {.size = bytes};
	struct fgv_mem_alloc_out out = {0};
	CUresult status = fgv_do_mem_alloc(&session, &request, &in, &out);

	fgv_errands_settle(&session);
	*address = out.address;
	return status;
}

static void drop(uint64_t address)
{
	struct fgv_request request = {.op = FGV_OP_MEM_FREE};
	struct fgv_mem_free_in in = {.address = address};

	ck_assert_uint_eq(fgv_do_mem_free(&session, &request, &in), CUDA_SUCCESS);
	fgv_errands_settle(&session);
}

static uint64_t told_free(void)
{
	struct fgv_request request = {.op = FGV_OP_MEM_INFO};
	struct fgv_mem_info_out out = {0};

	ck_assert_uint_eq(fgv_do_mem_info(&session, &request, &out), CUDA_SUCCESS);
	return out.free;
}

/* Some small allocations, each in a block of its own, are freed while the GPU is at work. */
static void setup(void)
{
	said = (typeof(said)){.next = BLOCK, .stream = CUDA_ERROR_NOT_READY};
	driver = (struct fgv_cuda_driver){
		.mem_alloc = mem_alloc,
		.mem_free = mem_free,
		.mem_info = mem_info,
		.stream_query = stream_query,
		.device_attribute = device_attribute,
	};
	cuda = (struct cuda){.base.ops = &fgv_gpu_cuda, .driver = &driver};
	cuda.legacy.next = cuda.legacy.previous = &cuda.legacy;
	cuda.legacy.is_busy = true;
	memset(&accounts, 0, sizeof(accounts));
	memset(&session, 0, sizeof(session));
	allowance = (struct fgv_allowance){.memory_bytes = QUOTA, .taken = UINT64_MAX};
	session.gpu = &cuda.base;
	session.allowance = &allowance;
	session.accounts = &accounts;
	session.account = &accounts.sessions[0];
	session.gate.grant = &grant;
	ck_assert_int_eq(fgv_session_init_quota(&session), 0);
	for (int i = 0; i < FEW; i++)
		ck_assert_uint_eq(alloc(1, &addresses[i]), CUDA_SUCCESS);
	ck_assert_uint_eq(charged(), FEW * BLOCK);
	for (int i = 0; i < FEW; i++)
		drop(addresses[i]);
}

static void teardown(void)
{
	said.stream = CUDA_SUCCESS;
	fgv_cuda_collect_now(&cuda);
	fgv_quota_fini(&session.quota);
}

START_TEST(what_is_freed_late_is_charged)
{
	ck_assert_uint_eq(said.freed, 0);
	ck_assert_uint_eq(charged(), FEW * BLOCK);
	said.stream = CUDA_SUCCESS;
	fgv_cuda_collect(&cuda);
	fgv_errands_settle(&session);
	ck_assert_uint_eq(said.freed, FEW);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

/* The program has freed it, so it can have it. */
START_TEST(what_is_freed_late_can_be_had)
{
	uint64_t address;

	ck_assert_uint_eq(told_free(), QUOTA);
	ck_assert_uint_eq(alloc((32 - FEW) * BLOCK, &address), CUDA_SUCCESS);
	ck_assert_uint_eq(said.freed, 0);
	ck_assert_uint_eq(alloc(FEW * BLOCK, &address), CUDA_SUCCESS);
	ck_assert_uint_eq(said.freed, FEW);
	ck_assert_uint_eq(charged(), QUOTA);
	ck_assert_uint_eq(told_free(), 0);
	ck_assert_uint_eq(alloc(1, &address), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

/* What can't be had anyway waits for no work. */
START_TEST(nothing_is_reclaimed_in_vain)
{
	uint64_t address;

	ck_assert_uint_eq(alloc(2 * QUOTA, &address), CUDA_ERROR_OUT_OF_MEMORY);
	accounts.sessions[1].memory_bytes = 8 * BLOCK;
	ck_assert_uint_eq(alloc(27 * BLOCK, &address), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(said.freed, 0);
	ck_assert_uint_eq(alloc(24 * BLOCK, &address), CUDA_SUCCESS);
	ck_assert_uint_eq(said.freed, FEW);
}
END_TEST

/* Another session of the VM was faster: then it goes at once. */
START_TEST(the_late_make_room_for_others)
{
	accounts.sessions[1].memory_bytes = QUOTA - BLOCK;
	accounts.sessions[0].memory_bytes = 0;
	session.quota.late.bytes = session.quota.used = 0;
	fgv_errands_settle(&session);
	ck_assert_uint_eq(said.freed, FEW);
	ck_assert_uint_eq(charged(), 0);
	ck_assert_uint_eq(session.quota.late.bytes, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("late");
	TCase *tests = tcase_create("late");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, what_is_freed_late_is_charged);
	tcase_add_test(tests, what_is_freed_late_can_be_had);
	tcase_add_test(tests, nothing_is_reclaimed_in_vain);
	tcase_add_test(tests, the_late_make_room_for_others);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
