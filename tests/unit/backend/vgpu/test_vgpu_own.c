/*
 * Streams and events with handles of the guest's own: what they are charged, which handles they can
 * have, and that they are there when they are asked for.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define HANDLE(n) (FGV_OWN_BIT | (uint32_t)(n))
/* Another one with the same index. */
#define LATER(n) (HANDLE(n) + 2 * FGV_OWN_BIT)

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

static uint32_t reserve(uint32_t kind, uint32_t count)
{
	struct fgv_own_reserve_request request = {.kind = kind, .count = count};

	return vgpu_call(&vgpu, 0, FGV_OP_OWN_RESERVE, &request, sizeof(request), NULL);
}

static void give_back(uint32_t kind, uint32_t count)
{
	struct fgv_own_return_request request = {.kind = kind, .count = count};

	vgpu_must_post(&vgpu, 0, FGV_OP_OWN_RETURN, &request, sizeof(request));
}

static void make(uint32_t lane, uint32_t kind, uint32_t handle)
{
	struct fgv_stream_make_request stream = {.handle = handle};
	struct fgv_event_make_request event = {.handle = handle};

	if (kind == FGV_OWN_STREAM)
		vgpu_must_post(&vgpu, lane, FGV_OP_STREAM_MAKE, &stream, sizeof(stream));
	else
		vgpu_must_post(&vgpu, lane, FGV_OP_EVENT_MAKE, &event, sizeof(event));
}

static void destroy(uint32_t kind, uint32_t handle)
{
	vgpu_must_post(&vgpu, 0,
		       kind == FGV_OWN_STREAM ? FGV_OP_STREAM_DESTROY : FGV_OP_EVENT_DESTROY,
		       &handle, sizeof(handle));
}

static uint32_t query(uint32_t lane, uint32_t kind, uint32_t handle)
{
	return vgpu_call(&vgpu, lane,
			 kind == FGV_OWN_STREAM ? FGV_OP_STREAM_QUERY : FGV_OP_EVENT_QUERY, &handle,
			 sizeof(handle), NULL);
}

/* What a session that has none of a kind is charged for one. */
static uint64_t cost_of(uint32_t kind)
{
	uint64_t before = used_bytes(), cost;

	ck_assert_uint_eq(reserve(kind, 1), CUDA_SUCCESS);
	cost = used_bytes() - before;
	ck_assert_uint_gt(cost, 0);
	give_back(kind, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
	return cost;
}

/* What is reserved or what there is, whichever is more, in any order. */
START_TEST(are_charged)
{
	uint32_t kind = (uint32_t)_i;
	uint64_t cost = cost_of(kind), before = used_bytes();

	ck_assert_uint_eq(reserve(kind, 4), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + 4 * cost);
	for (uint32_t i = 0; i < 5; i++) {
		make(0, kind, HANDLE(i));
		ck_assert_uint_eq(query(0, kind, HANDLE(i)), CUDA_SUCCESS);
		ck_assert_uint_eq(used_bytes(), before + (i < 4 ? 4 : 5) * cost);
	}
	give_back(kind, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + 5 * cost);
	for (uint32_t i = 0; i < 5; i++) {
		destroy(kind, HANDLE(i));
		ck_assert_uint_eq(query(0, kind, HANDLE(i)), CUDA_ERROR_INVALID_HANDLE);
		ck_assert_uint_eq(used_bytes(), before + (i < 4 ? 4 - i : 1) * cost);
	}
	give_back(kind, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
}
END_TEST

/* With room for three of them. */
START_TEST(are_refused)
{
	uint32_t kind = (uint32_t)_i;
	uint64_t cost = cost_of(kind), before = used_bytes();

	__atomic_store_n(&vgpu.allowance->memory_bytes, before + 4 * cost - 1, __ATOMIC_SEQ_CST);
	ck_assert_uint_eq(reserve(kind, 4), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(used_bytes(), before);
	for (uint32_t i = 0; i < 3; i++)
		make(0, kind, HANDLE(i));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	make(0, kind, HANDLE(3));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(query(0, kind, HANDLE(3)), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(used_bytes(), before + 3 * cost);
	destroy(kind, HANDLE(1));
	make(0, kind, HANDLE(3));
	ck_assert_uint_eq(query(0, kind, HANDLE(3)), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + 3 * cost);
}
END_TEST

/* Handles that can't be had fail the program's next call; nothing else comes of them. */
START_TEST(have_handles_of_their_own)
{
	const uint32_t most[] = {FGV_OWN_STREAMS_MAX, FGV_OWN_EVENTS_MAX};
	const uint32_t kind = (uint32_t)_i, end = most[kind] + FGV_OWN_SPARE;
	const uint32_t bad[] = {0,	     1,		FGV_OWN_BIT - 1, UINT32_MAX,
				HANDLE(end), HANDLE(5), LATER(5),	 UINT32_MAX & ~FGV_OWN_BIT};
	uint64_t full;

	make(0, kind, HANDLE(end - 1));
	make(0, kind, HANDLE(5));
	ck_assert_uint_eq(query(0, kind, HANDLE(end - 1)), CUDA_SUCCESS);
	full = used_bytes();
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		make(0, kind, bad[i]);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	}
	ck_assert_uint_eq(used_bytes(), full);
	ck_assert_uint_eq(query(0, kind, LATER(5)), CUDA_ERROR_INVALID_HANDLE);
	/* A handle of one kind is none of the other. */
	ck_assert_uint_eq(query(0, !kind, HANDLE(5)), CUDA_ERROR_INVALID_HANDLE);
	destroy(kind, HANDLE(5));
	make(0, kind, LATER(5));
	ck_assert_uint_eq(query(0, kind, LATER(5)), CUDA_SUCCESS);
	ck_assert_uint_eq(query(0, kind, HANDLE(5)), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(are_reserved_within_bounds)
{
	uint64_t before = used_bytes();

	ck_assert_uint_eq(reserve(FGV_OWN_KINDS, 1), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(reserve(UINT32_MAX, 1), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(reserve(FGV_OWN_EVENT, UINT32_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(reserve(FGV_OWN_STREAM, 2), CUDA_SUCCESS);
	ck_assert_uint_eq(reserve(FGV_OWN_STREAM, FGV_OWN_STREAMS_MAX - 1),
			  CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(reserve(FGV_OWN_STREAM, UINT32_MAX - 1), CUDA_ERROR_OUT_OF_MEMORY);
	give_back(FGV_OWN_STREAM, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	give_back(FGV_OWN_KINDS, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	give_back(FGV_OWN_STREAM, 2);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
}
END_TEST

/*
 * Without the grant work waits, and what is destroyed behind it; what is made meanwhile is there at
 * once, from all lanes, even behind a call of its own lane that waits.
 */
START_TEST(are_there_at_once)
{
	struct fgv_fill_request fill = {.count = 1024, .width = 4};

	fill.address = vgpu_must_alloc(&vgpu, 4096);
	make(0, FGV_OWN_EVENT, HANDLE(0));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	vgpu_must_post(&vgpu, 0, FGV_OP_FILL, &fill, sizeof(fill));
	destroy(FGV_OWN_EVENT, HANDLE(0));
	vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
	make(0, FGV_OWN_EVENT, HANDLE(1));
	make(0, FGV_OWN_STREAM, HANDLE(1));
	ck_assert_uint_eq(query(1, FGV_OWN_EVENT, HANDLE(1)), CUDA_SUCCESS);
	ck_assert_uint_eq(query(1, FGV_OWN_STREAM, HANDLE(1)), CUDA_SUCCESS);
	ck_assert_uint_eq(query(1, FGV_OWN_EVENT, HANDLE(0)), CUDA_SUCCESS);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(query(1, FGV_OWN_EVENT, HANDLE(0)), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_own");
	TCase *tests = tcase_create("vgpu_own");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, are_charged, 0, FGV_OWN_KINDS);
	tcase_add_loop_test(tests, are_refused, 0, FGV_OWN_KINDS);
	tcase_add_loop_test(tests, have_handles_of_their_own, 0, FGV_OWN_KINDS);
	tcase_add_test(tests, are_reserved_within_bounds);
	tcase_add_test(tests, are_there_at_once);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
