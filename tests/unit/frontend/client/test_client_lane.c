/*
 * Lanes below the facade: many positions of the ring, messages of all sizes in slot and
 * heap, several calls in flight, and sleeping on both sides.
 */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/util.h"
#include "frontend/client/lane.h"
#include "shmring/park.h"
#include "tests/unit/frontend/client/test_client_host.h"

static struct fgv_lane *lane;

static void setup(void)
{
	host_init();
	host_be_h200();
	host_start();
	ck_assert_int_eq(fgv_lane_enter(&lane), CUDA_SUCCESS);
}

static void teardown(void)
{
	ck_assert_uint_eq(host.violations, 0);
	host_stop();
}

/* What the host has in its memory, once it has done all. */
static void expect_memory(const uint8_t *data, uint32_t len)
{
	ck_assert_int_eq(fgv_call_device_sync(lane), CUDA_SUCCESS);
	host_seen();
	ck_assert_mem_eq(host.memory, data, len);
	host_seen();
}

static uint64_t allocate(uint64_t size)
{
	uint64_t address;

	ck_assert_int_eq(fgv_call_mem_alloc(lane, size, &address), CUDA_SUCCESS);
	return address;
}

static void fill(uint8_t *data, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)((i + seed) * 2654435761u >> 11);
}

/* Past the ring's wrap-around at 2^32, with the heap going round many times. */
START_TEST(messages_of_all_sizes)
{
	static uint8_t data[FGV_DATA_MAX];
	uint64_t address = allocate(FGV_DATA_MAX);
	uint32_t len = 1;

	for (uint32_t i = 0; i < 6000; i++) {
		fill(data, len, i);
		ck_assert_int_eq(fgv_post_copy_in(lane, address, 0, data, len), CUDA_SUCCESS);
		if (i % 50 == 0) {
			expect_memory(data, len);
		}
		len = i % 7 ? len % FGV_SLOT_INLINE + 1 : len * 31 % FGV_DATA_MAX + 1;
	}
	ck_assert_int_eq(fgv_call_device_sync(lane), CUDA_SUCCESS);
	ck_assert(lane->requests.position < FGV_RING_START);
}
END_TEST

START_TEST(largest_messages_in_a_row)
{
	static uint8_t data[FGV_DATA_MAX];
	uint64_t address = allocate(FGV_DATA_MAX);

	for (uint32_t i = 0; i < 200; i++) {
		fill(data, sizeof(data), i);
		ck_assert_int_eq(fgv_post_copy_in(lane, address, 0, data, sizeof(data)), 0);
	}
	expect_memory(data, sizeof(data));
	ck_assert_ptr_eq(fgv_lane_begin(lane, FGV_OP_COPY_IN, FGV_MESSAGE_MAX + 1), NULL);
	ck_assert_int_eq(fgv_post_copy_in(lane, address, 0, data, FGV_MESSAGE_MAX),
			 CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(fgv_call_device_sync(lane), CUDA_SUCCESS);
}
END_TEST

START_TEST(dozes)
{
	int slack = prctl(PR_GET_TIMERSLACK);
	uint64_t before_ns = fgv_now_ns();

	fgv_lane_doze(lane, FGV_NS_PER_MS);
	ck_assert_uint_ge(fgv_now_ns() - before_ns, FGV_NS_PER_MS);
	fgv_doorbell_ring(lane->doorbell);
	fgv_lane_doze(lane, 3600 * FGV_NS_PER_SEC);
	ck_assert_int_eq(prctl(PR_GET_TIMERSLACK), slack);
}
END_TEST

/* Once the producer has filled its ring, or its heap, and sleeps. */
static void *unpause_later(void *arg)
{
	(void)arg;
	while (!fgv_park_is_announced_for_room(&lane->head->guest_parked))
		sched_yield();
	HOST_SET(pause, 0);
	return NULL;
}

static void fill_up(uint32_t len, uint32_t count)
{
	static uint8_t data[FGV_DATA_MAX];
	uint64_t address = allocate(FGV_DATA_MAX);
	pthread_t thread;

	HOST_SET(pause, 1);
	pthread_create(&thread, NULL, unpause_later, NULL);
	for (uint32_t i = 0; i < count; i++) {
		fill(data, len, i);
		ck_assert_int_eq(fgv_post_copy_in(lane, address, 0, data, len), CUDA_SUCCESS);
	}
	pthread_join(thread, NULL);
	expect_memory(data, len);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_COPY_IN]), count);
}

START_TEST(sleeps_while_the_ring_is_full)
{
	fill_up(8, 3 * FGV_REQUEST_SLOTS);
}
END_TEST

START_TEST(sleeps_while_the_heap_is_full)
{
	fill_up(FGV_DATA_MAX, 20);
}
END_TEST

/* A heap message, then many laps of inline ones, then heap messages again. */
START_TEST(heap_after_long_disuse)
{
	static uint8_t data[FGV_DATA_MAX];
	uint64_t address = allocate(FGV_DATA_MAX);

	for (int round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			fill(data, sizeof(data), i);
			ck_assert_int_eq(fgv_post_copy_in(lane, address, 0, data, sizeof(data)),
					 CUDA_SUCCESS);
		}
		for (uint32_t i = 0; i < 10 * FGV_REQUEST_SLOTS + 17; i++)
			ck_assert_int_eq(fgv_post_fill(lane, address, 1, i, 1, 0), CUDA_SUCCESS);
	}
	data[0] = (uint8_t)(10 * FGV_REQUEST_SLOTS + 16);
	expect_memory(data, sizeof(data));
}
END_TEST

static void *see_own_lane(void *arg)
{
	struct fgv_lane *own;

	(void)arg;
	ck_assert_int_eq(fgv_lane_enter(&own), CUDA_SUCCESS);
	ck_assert_uint_eq(own->head->guest_thread, (uint32_t)gettid());
	fgv_lane_leave(own);
	return own;
}

/* Each names its own, also where it goes on with the lane of one that has ended. */
START_TEST(lanes_name_their_threads)
{
	void *owns[2];

	ck_assert_uint_eq(lane->head->guest_thread, (uint32_t)gettid());
	for (int i = 0; i < 2; i++) {
		pthread_t thread;

		ck_assert_int_eq(pthread_create(&thread, NULL, see_own_lane, NULL), 0);
		ck_assert_int_eq(pthread_join(thread, &owns[i]), 0);
		ck_assert_ptr_ne(owns[i], lane);
	}
	ck_assert_ptr_eq(owns[0], owns[1]);
	ck_assert_uint_eq(lane->head->guest_thread, (uint32_t)gettid());
}
END_TEST

START_TEST(calls_in_flight)
{
	uint32_t calls[FGV_REPLY_SLOTS];
	struct fgv_mem_info_reply reply;

	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < FGV_REPLY_SLOTS; i++)
			calls[i] = fgv_send_mem_info(lane);
		for (uint32_t i = 0; i < FGV_REPLY_SLOTS; i++) {
			ck_assert_uint_eq(calls[i], calls[0] + i);
			ck_assert_int_eq(fgv_lane_wait(lane, calls[i], &reply, sizeof(reply)), 0);
			ck_assert_uint_eq(reply.total, HOST_MEMORY);
		}
	}
	ck_assert_uint_eq(lane->counts[FGV_OP_MEM_INFO].requests, 10 * FGV_REPLY_SLOTS);
	ck_assert_uint_eq(lane->counts[FGV_OP_MEM_INFO].round_trips, 10 * FGV_REPLY_SLOTS);
}
END_TEST

START_TEST(reply_of_another_length)
{
	uint32_t call = fgv_send_mem_info(lane);
	uint64_t one = 5;

	ck_assert_int_eq(fgv_lane_wait(lane, call, &one, sizeof(one)), CUDA_ERROR_UNKNOWN);
	ck_assert_uint_eq(one, 5);
	ck_assert_int_eq(fgv_call_device_sync(lane), CUDA_SUCCESS);
}
END_TEST

START_TEST(answer_to_something_else)
{
	uint32_t call = fgv_send_mem_info(lane);
	struct fgv_mem_info_reply reply;

	ck_assert_int_eq(fgv_lane_wait(lane, call + 1, &reply, sizeof(reply)),
			 CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_int_eq(fgv_lane_status(lane), CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

/* An ended session's lane takes requests, and they lead nowhere. */
START_TEST(after_the_end)
{
	static uint8_t data[FGV_DATA_MAX];
	uint64_t address = allocate(FGV_DATA_MAX), sent, free_bytes, total;

	ck_assert_int_eq(fgv_call_device_sync(lane), CUDA_SUCCESS);
	ck_assert(fgv_session_end(lane->client, CUDA_ERROR_ILLEGAL_ADDRESS));
	ck_assert(!fgv_session_end(lane->client, CUDA_ERROR_ASSERT));
	sent = lane->client->ticket;
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(fgv_post_copy_in(lane, address, 0, data, sizeof(data)),
				 CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fgv_call_mem_info(lane, &free_bytes, &total), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_uint_eq(lane->client->ticket, sent);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_COPY_IN]), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client: lanes");
	TCase *tests = tcase_create("lanes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, messages_of_all_sizes);
	tcase_add_test(tests, largest_messages_in_a_row);
	tcase_add_test(tests, dozes);
	tcase_add_test(tests, sleeps_while_the_ring_is_full);
	tcase_add_test(tests, sleeps_while_the_heap_is_full);
	tcase_add_test(tests, heap_after_long_disuse);
	tcase_add_test(tests, lanes_name_their_threads);
	tcase_add_test(tests, calls_in_flight);
	tcase_add_test(tests, reply_of_another_length);
	tcase_add_test(tests, answer_to_something_else);
	tcase_add_test(tests, after_the_end);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
