/*
 * Memory that a session of the same VM which is ending still has: an allocation waits for it, with
 * the calls behind it in its lane, and with nothing else. The test is the daemon, and all
 * other sessions.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/room.h"
#include "common/util.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define MIB   (1ull << 20)
#define OTHER 5 /* the other session's account */

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

/* What the other session has; and whether the daemon says that it is ending. */
static void set_other(uint64_t bytes, bool is_ending)
{
	struct fgv_accounts *accounts = vgpu.accounts;

	__atomic_store_n(&accounts->sessions[OTHER].memory_bytes, bytes, __ATOMIC_SEQ_CST);
	__atomic_store_n(&vgpu.allowance->ending, is_ending ? 1u << OTHER : 0, __ATOMIC_RELEASE);
}

static void post_alloc(uint32_t lane, uint64_t bytes)
{
	struct fgv_mem_alloc_request request = {.size = bytes};

	vgpu_must_post(&vgpu, lane, FGV_OP_MEM_ALLOC, &request, sizeof(request));
}

static void post_info(uint32_t lane)
{
	vgpu_must_post(&vgpu, lane, FGV_OP_MEM_INFO, NULL, 0);
}

static uint64_t free_bytes(uint32_t lane)
{
	struct fgv_mem_info_reply reply;

	ck_assert_uint_eq(vgpu_call(&vgpu, lane, FGV_OP_MEM_INFO, NULL, 0, &reply), CUDA_SUCCESS);
	return reply.free;
}

/* The next lane is served, behind all that was posted before, and this one is not. */
static bool is_waiting(uint32_t lane)
{
	free_bytes(lane + 1);
	return !fgv_ring_peek(&vgpu.lanes[lane].replies);
}

static void expect_waiting(uint32_t lane)
{
	/* Few, since a wait has an end, too. */
	for (int i = 0; i < 3; i++)
		ck_assert(is_waiting(lane));
}

START_TEST(waits_for_an_ending_session)
{
	struct fgv_mem_alloc_request small = {.size = 4096};
	struct fgv_mem_alloc_reply reply;

	set_other(VGPU_QUOTA - MIB, true);
	post_alloc(0, 2 * MIB);
	expect_waiting(0);
	/* Other lanes may take what there is, and give it back. */
	ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_MEM_ALLOC, &small, sizeof(small), &reply),
			  CUDA_SUCCESS);
	vgpu_mem_free(&vgpu, reply.address);
	set_other(0, false);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
	vgpu_mem_free(&vgpu, reply.address);
}
END_TEST

/* It has given back a part, and that is enough. */
START_TEST(goes_on_as_soon_as_there_is_room)
{
	struct fgv_mem_alloc_reply reply;

	set_other(VGPU_QUOTA, true);
	post_alloc(0, 2 * MIB);
	expect_waiting(0);
	set_other(VGPU_QUOTA - 2 * MIB, true);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
}
END_TEST

/* Whether it waits, once before the other session is marked and once after that. */
static bool waits_for_the_mark(void)
{
	struct fgv_mem_alloc_reply reply;

	set_other(VGPU_QUOTA, false);
	post_alloc(0, 2 * MIB);
	if (is_waiting(0)) {
		set_other(VGPU_QUOTA, true);
		if (is_waiting(0))
			return true;
	}
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_ERROR_OUT_OF_MEMORY);
	return false;
}

/* It does not wait long for a mark, and this test may run later than that: then again. */
START_TEST(marked_a_little_late)
{
	struct fgv_mem_alloc_reply reply;
	int tries = 0;

	while (!waits_for_the_mark())
		ck_assert_int_lt(tries++, 1000);
	set_other(0, false);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
}
END_TEST

/* Each lane's replies stay in the order of its calls. */
START_TEST(calls_behind_it_wait)
{
	struct fgv_mem_alloc_reply first, third;
	struct fgv_mem_info_reply second;

	set_other(VGPU_QUOTA - 8 * MIB, true);
	post_alloc(0, 16 * MIB);
	post_info(0);
	post_alloc(0, MIB);
	expect_waiting(0);
	set_other(0, false);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &first), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &second), CUDA_SUCCESS);
	ck_assert_uint_le(second.free, VGPU_QUOTA - 16 * MIB);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &third), CUDA_SUCCESS);
	ck_assert_uint_ne(first.address, third.address);
}
END_TEST

START_TEST(what_never_fits_does_not_wait)
{
	uint64_t address;

	set_other(VGPU_QUOTA, true);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, VGPU_QUOTA + 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	address = 0;
	set_other(0, false);
	address = vgpu_must_alloc(&vgpu, VGPU_QUOTA / 2);
	set_other(VGPU_QUOTA / 2, true);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, VGPU_QUOTA / 2 + MIB, &address),
			  CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

/* A session that is ending, and does not end, holds others up for a time; any other hardly. */
START_TEST(waits_are_bounded)
{
	uint64_t address, begun_ns = fgv_now_ns();

	set_other(VGPU_QUOTA, _i > 0);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, MIB, &address), CUDA_ERROR_OUT_OF_MEMORY);
	if (_i > 0)
		ck_assert_uint_ge(fgv_now_ns() - begun_ns, FGV_ENDING_WAIT_MS * FGV_NS_PER_MS);
}
END_TEST

/* What waits has an end, too: all of it is answered then. */
START_TEST(full_of_those_that_wait)
{
	struct fgv_mem_info_reply info;

	set_other(VGPU_QUOTA, true);
	post_alloc(0, MIB);
	for (int i = 1; i < FGV_ROOM_WAITING_MAX - 1; i++)
		post_info(0);
	expect_waiting(0);
	post_alloc(1, MIB);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	for (int i = 1; i < FGV_ROOM_WAITING_MAX - 1; i++)
		ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &info), CUDA_SUCCESS);
	/* The next one may wait again. */
	post_alloc(0, MIB);
	expect_waiting(0);
	set_other(0, false);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &info), CUDA_SUCCESS);
}
END_TEST

/* A program that asks what is free may rely on it. */
START_TEST(counts_as_free)
{
	set_other(VGPU_QUOTA / 2, false);
	ck_assert_uint_eq(free_bytes(0), VGPU_QUOTA / 2);
	set_other(VGPU_QUOTA / 2, true);
	ck_assert_uint_eq(free_bytes(0), VGPU_QUOTA);
}
END_TEST

START_TEST(ends_while_something_waits)
{
	set_other(VGPU_QUOTA, true);
	post_alloc(0, MIB);
	expect_waiting(0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("room");
	TCase *tests = tcase_create("room");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, waits_for_an_ending_session);
	tcase_add_test(tests, goes_on_as_soon_as_there_is_room);
	tcase_add_test(tests, marked_a_little_late);
	tcase_add_test(tests, calls_behind_it_wait);
	tcase_add_test(tests, what_never_fits_does_not_wait);
	tcase_add_loop_test(tests, waits_are_bounded, 0, 2);
	tcase_add_test(tests, full_of_those_that_wait);
	tcase_add_test(tests, counts_as_free);
	tcase_add_test(tests, ends_while_something_waits);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
