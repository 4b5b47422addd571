/*
 * A vGPU process and a guest that keeps the rules: what it says of itself, streams, events,
 * the order of replies, deferred failures, sleeping and waking.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "shmring/park.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

START_TEST(welcomes)
{
	ck_assert_uint_eq(vgpu.welcome.version, FGV_WIRE_VERSION);
	ck_assert_str_eq(vgpu.welcome.vm, "vm1");
	ck_assert_uint_gt(strlen(vgpu.welcome.text), 0);
}
END_TEST

START_TEST(tells_of_its_device)
{
	struct fgv_device_info_request request = {
		.info_off = vgpu.window.arena_off,
		.info_len = sizeof(struct fgv_device_info),
	};
	struct fgv_device_info info;

	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
			  CUDA_SUCCESS);
	memcpy(&info, vgpu_arena(&vgpu, 0), sizeof(info));
	ck_assert_str_eq(info.name, vgpu.welcome.text);
	ck_assert_uint_eq(info.devices, 1);
	ck_assert_uint_eq(info.memory_bytes, VGPU_QUOTA);
	ck_assert_uint_ne(info.va_base, 0);
	ck_assert_int_eq(info.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 32);
	ck_assert_int_eq(info.attributes[CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS], 0);
	request.device = 1;
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
			  CUDA_ERROR_INVALID_DEVICE);
	request.device = 0;
	request.info_len--;
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
			  CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/*
 * The first failure of several, told once, by a call that would succeed, and not by one that makes
 * something, nor by one that the program knows nothing of.
 */
START_TEST(defers_failures)
{
	struct fgv_stream_destroy_request destroy = {.stream = 0};
	struct fgv_text_read_request read = {.text_off = vgpu.window.arena_off, .text_len = 64};
	struct fgv_text_read_reply text;
	uint64_t address;

	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	vgpu_fill(&vgpu, 0, 1, 0, 3);
	vgpu_mem_free(&vgpu, 0x1234);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_TEXT_READ, &read, sizeof(read), &text),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, 4096, &address), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu.accounts->sessions[2].memory_bytes, 0);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, 4096, &address), CUDA_SUCCESS);
	vgpu_fill(&vgpu, address, UINT64_MAX, 0, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

START_TEST(knows_bad_handles)
{
	struct fgv_stream_sync_request sync = {.stream = 12345};
	struct fgv_event_query_request query = {.event = 0};
	struct fgv_stream_destroy_request destroy = {.stream = 0};

	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_STREAM_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_EVENT_QUERY, &query, sizeof(query), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

START_TEST(orders_streams_and_events)
{
	uint32_t stream = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	uint32_t start = vgpu_must_create_event(&vgpu), end = vgpu_must_create_event(&vgpu);
	struct fgv_stream_wait_event_request wait = {.stream = 0, .event = end};
	struct fgv_event_sync_request sync = {.event = end};
	struct fgv_event_elapsed_request elapsed = {.start = start, .end = end};
	struct fgv_event_elapsed_reply time = {.ms = -1};
	struct fgv_stream_query_request query = {.stream = stream};
	struct fgv_stream_destroy_request destroy = {.stream = stream};
	struct fgv_event_destroy_request destroy_event = {.event = end};

	vgpu_record(&vgpu, start, stream);
	vgpu_record(&vgpu, end, stream);
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_WAIT_EVENT, &wait, sizeof(wait));
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_EVENT_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_EVENT_ELAPSED, &elapsed, sizeof(elapsed), &time),
		CUDA_SUCCESS);
	ck_assert(time.ms >= 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_STREAM_QUERY, &query, sizeof(query), NULL),
			  CUDA_SUCCESS);
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	vgpu_must_post(&vgpu, 0, FGV_OP_EVENT_DESTROY, &destroy_event, sizeof(destroy_event));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_EVENT_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_STREAM_QUERY, &query, sizeof(query), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* Calls that are posted together, the first of which wait for the GPU, are answered in turn. */
START_TEST(answers_in_order)
{
	uint64_t address = vgpu_must_alloc(&vgpu, 1 << 20);
	struct fgv_copy_out_request copy = {
		.address = address, .data_off = vgpu.window.arena_off, .data_len = 1 << 20};
	struct fgv_mem_info_reply info;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++)
			vgpu_must_post(&vgpu, 0, FGV_OP_COPY_OUT, &copy, sizeof(copy));
		vgpu_must_post(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0);
		vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
		for (int i = 0; i < 10; i++) {
			const struct fgv_slot *slot;
			uint32_t call_number = vgpu.lanes[0].calls - 10 + (uint32_t)i;

			while (!(slot = fgv_ring_peek(&vgpu.lanes[0].replies)))
				ck_assert(!vgpu_has_ended(&vgpu));
			ck_assert_uint_eq(slot->call, call_number);
			ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &info), CUDA_SUCCESS);
		}
	}
}
END_TEST

/* A lane that waits for a kernel without end holds up no other; nor does its end. */
START_TEST(serves_other_lanes_meanwhile)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_forever_ptx, "forever");
	struct fgv_mem_info_reply info;

	vgpu_launch(&vgpu, function, 1, NULL, 0);
	vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
	for (int i = 0; i < 100; i++)
		ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_MEM_INFO, NULL, 0, &info),
				  CUDA_SUCCESS);
	ck_assert_ptr_null(fgv_ring_peek(&vgpu.lanes[0].replies));
}
END_TEST

START_TEST(sleeps_and_wakes)
{
	struct fgv_account *account = &vgpu.accounts->sessions[2];
	struct fgv_mem_info_reply info;

	for (int i = 0; i < 20; i++) {
		while (!fgv_park_is_announced(&fgv_window_head(&vgpu.window)->host_parked))
			poll(NULL, 0, 1);
		ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &info),
				  CUDA_SUCCESS);
	}
	ck_assert_uint_ge(account->parks, 20);
	ck_assert_uint_ge(account->doorbells_received, 1);
	ck_assert_uint_le(account->doorbells_received, 20);
	ck_assert_uint_eq(account->requests, 20);
	ck_assert_uint_eq(account->round_trips, 20);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu");
	TCase *tests = tcase_create("vgpu");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, welcomes);
	tcase_add_test(tests, tells_of_its_device);
	tcase_add_test(tests, defers_failures);
	tcase_add_test(tests, knows_bad_handles);
	tcase_add_test(tests, orders_streams_and_events);
	tcase_add_test(tests, answers_in_order);
	tcase_add_test(tests, serves_other_lanes_meanwhile);
	tcase_add_test(tests, sleeps_and_wakes);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
