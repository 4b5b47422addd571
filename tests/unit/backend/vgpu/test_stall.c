/*
 * Functions of the guest's program in streams: what waits for one and what does not, whose turn
 * it is, what there is room for, and a guest that plays tricks. The first lane does the work,
 * the second asks for functions, the third belongs to a thread that has to do with neither.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/stall.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define DATA_OFF (1 << 20)
#define DATA_LEN (64u << 10)

static struct vgpu vgpu;

static uint64_t used_bytes(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}
static volatile uint32_t *data; /* what the GPU has at VGPU_SHARED_ADDRESS */
static uint32_t first, second, blocking;

static void setup(void)
{
	vgpu_start(&vgpu);
	data = vgpu_arena(&vgpu, DATA_OFF);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, DATA_OFF, DATA_LEN),
			  CUDA_SUCCESS);
	first = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	second = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	blocking = vgpu_must_create_stream(&vgpu, CU_STREAM_DEFAULT);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static void put_function(uint32_t stream, uint64_t number)
{
	struct fgv_host_func_request request = {.stream = stream, .number = number};

	vgpu_must_post(&vgpu, 0, FGV_OP_HOST_FUNC, &request, sizeof(request));
}

/* Says that function @done has returned, and asks for the next. */
static void ask(uint64_t done)
{
	struct fgv_host_func_next_request request = {.done = done};

	vgpu_must_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &request, sizeof(request));
}

static void expect_turn(uint64_t number)
{
	struct fgv_host_func_next_reply reply = {0};

	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.number, number);
}

/* Sets word @at of the data, in the order of @stream. */
static void set_word(uint32_t stream, uint32_t at, uint32_t value)
{
	struct fgv_fill_request request = {
		.address = VGPU_SHARED_ADDRESS + 4ull * at,
		.count = 1,
		.value = value,
		.width = 4,
		.stream = stream,
	};

	vgpu_must_post(&vgpu, 0, FGV_OP_FILL, &request, sizeof(request));
}

static uint32_t sync_stream(uint32_t lane, uint32_t stream)
{
	struct fgv_stream_sync_request request = {.stream = stream};

	return vgpu_call(&vgpu, lane, FGV_OP_STREAM_SYNC, &request, sizeof(request), NULL);
}

static uint32_t query_stream(uint32_t lane, uint32_t stream)
{
	struct fgv_stream_query_request request = {.stream = stream};

	return vgpu_call(&vgpu, lane, FGV_OP_STREAM_QUERY, &request, sizeof(request), NULL);
}

static uint32_t query_event(uint32_t event)
{
	struct fgv_event_query_request request = {.event = event};

	return vgpu_call(&vgpu, 0, FGV_OP_EVENT_QUERY, &request, sizeof(request), NULL);
}

static void await_event(uint32_t stream, uint32_t event)
{
	struct fgv_stream_wait_event_request request = {.stream = stream, .event = event};

	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_WAIT_EVENT, &request, sizeof(request));
}

/* All that was posted has been taken and judged, or stays in its lane. */
static void expect_no_reply(uint32_t lane)
{
	query_stream(2, second);
	ck_assert_ptr_null(fgv_ring_peek(&vgpu.lanes[lane].replies));
}

/* What comes after a function waits, what comes before it or in other streams does not. */
START_TEST(holds_up_its_stream)
{
	set_word(first, 0, 1);
	put_function(first, 11);
	set_word(first, 0, 2);
	set_word(second, 1, 3);
	ck_assert_uint_eq(sync_stream(0, second), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 3);
	ask(0);
	expect_turn(11);
	ck_assert_uint_eq(data[0], 1);
	ck_assert_uint_eq(query_stream(0, first), CUDA_ERROR_NOT_READY);
	ck_assert_uint_eq(query_stream(0, second), CUDA_SUCCESS);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 2);
	ck_assert_uint_eq(query_stream(0, first), CUDA_SUCCESS);
}
END_TEST

/* It is told when the work before it is done, one at a time, in the order of its stream. */
START_TEST(takes_turns)
{
	put_function(first, 11);
	put_function(first, 12);
	put_function(second, 21);
	ask(0);
	expect_turn(11);
	ask(0);
	expect_turn(21);
	ask(0);
	expect_no_reply(1);
	ck_assert_uint_eq(query_stream(0, second), CUDA_ERROR_NOT_READY);
	ck_assert_uint_eq(vgpu_call(&vgpu, 2, FGV_OP_HOST_FUNC_NEXT,
				    &(struct fgv_host_func_next_request){.done = 11},
				    sizeof(struct fgv_host_func_next_request), NULL),
			  CUDA_ERROR_INVALID_VALUE);
	expect_no_reply(1);
}
END_TEST

/* With one asking thread, the second function of a stream comes once the first has returned. */
START_TEST(returns_and_goes_on)
{
	for (uint64_t number = 1; number <= 20; number++) {
		put_function(first, number);
		set_word(first, 0, (uint32_t)number);
	}
	ask(0);
	for (uint64_t number = 1; number <= 20; number++) {
		expect_turn(number);
		ck_assert_uint_eq(data[0], number - 1);
		ask(number);
	}
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 20);
}
END_TEST

/* The legacy stream and those that are blocking wait for each other, others for neither. */
START_TEST(knows_the_legacy_stream)
{
	uint32_t with = _i ? blocking : 0, waits = _i ? 0 : blocking;

	put_function(with, 11);
	set_word(waits, 0, 1);
	set_word(first, 1, 1);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 1);
	ck_assert_uint_eq(query_stream(0, waits), CUDA_ERROR_NOT_READY);
	ask(0);
	expect_turn(11);
	ck_assert_uint_eq(data[0], 0);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, waits), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 1);
}
END_TEST

/* Two blocking streams have nothing to do with each other. */
START_TEST(leaves_other_blocking_streams_alone)
{
	uint32_t other = vgpu_must_create_stream(&vgpu, CU_STREAM_DEFAULT);

	put_function(blocking, 11);
	set_word(other, 0, 1);
	ck_assert_uint_eq(sync_stream(0, other), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 1);
	/* But once the legacy stream waits for the one, the other waits for that. */
	set_word(0, 1, 1);
	set_word(other, 1, 2);
	ck_assert_uint_eq(query_stream(0, other), CUDA_ERROR_NOT_READY);
	ask(0);
	expect_turn(11);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, other), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 2);
}
END_TEST

/* An event that is recorded behind a function has not happened, and a wait for it waits. */
START_TEST(goes_by_events)
{
	uint32_t event = vgpu_must_create_event(&vgpu), before = vgpu_must_create_event(&vgpu);
	struct fgv_event_sync_request sync = {.event = event};

	vgpu_record(&vgpu, before, first);
	vgpu_record(&vgpu, event, first);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	put_function(first, 11);
	vgpu_record(&vgpu, event, first);
	await_event(second, event);
	set_word(second, 0, 1);
	ck_assert_uint_eq(query_event(before), CUDA_SUCCESS);
	ck_assert_uint_eq(query_event(event), CUDA_ERROR_NOT_READY);
	ck_assert_uint_eq(query_stream(0, second), CUDA_ERROR_NOT_READY);
	vgpu_must_post(&vgpu, 0, FGV_OP_EVENT_SYNC, &sync, sizeof(sync));
	ask(0);
	expect_turn(11);
	expect_no_reply(0);
	ck_assert_uint_eq(data[0], 0);
	ask(11);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(sync_stream(0, second), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 1);
}
END_TEST

/* A wait that waits is for the record before it: the next one comes behind it. */
START_TEST(keeps_records_behind_waits)
{
	uint32_t event = vgpu_must_create_event(&vgpu);

	vgpu_record(&vgpu, event, second);
	ck_assert_uint_eq(sync_stream(0, second), CUDA_SUCCESS);
	put_function(first, 11);
	await_event(first, event);
	ck_assert_uint_eq(query_event(event), CUDA_SUCCESS);
	vgpu_record(&vgpu, event, second);
	ck_assert_uint_eq(query_event(event), CUDA_ERROR_NOT_READY);
	ask(0);
	expect_turn(11);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	ck_assert_uint_eq(sync_stream(0, second), CUDA_SUCCESS);
	ck_assert_uint_eq(query_event(event), CUDA_SUCCESS);
}
END_TEST

/* What names neither stream nor event waits for all; what is apart, for nothing. */
START_TEST(holds_up_the_device)
{
	struct fgv_mem_alloc_request all = {.size = VGPU_QUOTA - 4096};
	uint64_t before = used_bytes(), address = vgpu_must_alloc(&vgpu, 4096);
	struct fgv_mem_alloc_reply reply;

	put_function(first, 11);
	vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
	ask(0);
	expect_turn(11);
	expect_no_reply(0);
	ask(11);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_SUCCESS);
	put_function(first, 12);
	vgpu_mem_free(&vgpu, vgpu_must_alloc(&vgpu, 4096));
	vgpu_mem_free(&vgpu, address);
	expect_turn(12);
	/* What the program has freed is free for it, but is not yet. */
	vgpu_must_post(&vgpu, 0, FGV_OP_MEM_ALLOC, &all, sizeof(all));
	expect_no_reply(0);
	ck_assert_uint_eq(used_bytes(), before + 8192);
	ask(12);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
}
END_TEST

/* An allocation waits for what was freed before it, not for what waits behind it. */
START_TEST(allocates_between_frees)
{
	struct fgv_mem_alloc_request alloc = {.size = 4096};
	struct fgv_mem_alloc_reply reply;
	uint64_t before = used_bytes();
	uint64_t early = vgpu_must_alloc(&vgpu, 4096), late = vgpu_must_alloc(&vgpu, 4096);

	put_function(first, 11);
	vgpu_mem_free(&vgpu, early);
	expect_no_reply(0);
	vgpu_must_post(&vgpu, 2, FGV_OP_MEM_ALLOC, &alloc, sizeof(alloc));
	query_stream(0, second);
	vgpu_mem_free(&vgpu, late);
	ask(0);
	expect_turn(11);
	ask(11);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 2, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + 4096);
}
END_TEST

/* What a lane has asked is answered in turn, also where the second could be at once. */
START_TEST(answers_a_lane_in_order)
{
	struct fgv_stream_sync_request sync = {.stream = first};
	struct fgv_stream_query_request query = {.stream = second};
	struct fgv_mem_info_reply info;

	put_function(first, 11);
	put_function(second, 21);
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_SYNC, &sync, sizeof(sync));
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_QUERY, &query, sizeof(query));
	vgpu_must_post(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0);
	ask(0);
	expect_turn(11);
	expect_no_reply(0);
	ask(11);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_ERROR_NOT_READY);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &info), CUDA_SUCCESS);
	expect_turn(21);
}
END_TEST

/* Nothing of what waits is on the GPU, so the grant is not kept for it. */
START_TEST(gives_the_grant_back)
{
	put_function(first, 11);
	set_word(first, 0, 1);
	vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
	ask(0);
	expect_turn(11);
	vgpu_await_grant(&vgpu, FGV_GRANT_IDLE);
	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	ask(11);
	vgpu_await_wants(&vgpu);
	expect_no_reply(0);
	ck_assert_uint_eq(data[0], 0);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 1);
}
END_TEST

/*
 * More waits than there is room for, in number or in bytes: the rest stays in the lane, all of
 * it runs in its order, and that the function has returned is heard.
 */
START_TEST(has_room_for_so_many)
{
	const uint32_t words = FGV_DATA_MAX / 4, posts = _i ? 66 : FGV_HELD_MAX + 200;
	struct fgv_copy_in_request *head = calloc(1, sizeof(*head) + FGV_DATA_MAX);

	ck_assert_ptr_nonnull(head);
	head->address = VGPU_SHARED_ADDRESS;
	head->stream = first;
	put_function(first, 11);
	ask(0);
	expect_turn(11);
	for (uint32_t i = 1; i <= posts; i++) {
		if (_i == 0) {
			set_word(first, i % words, i);
			continue;
		}
		for (uint32_t at = 0; at < words; at++)
			((uint32_t *)(head + 1))[at] = i;
		vgpu_must_post(&vgpu, 0, FGV_OP_COPY_IN, head,
			       (uint32_t)sizeof(*head) + FGV_DATA_MAX);
	}
	free(head);
	ck_assert_uint_eq(data[posts % words], 0);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	for (uint32_t i = 1; i <= posts && i < words; i++)
		ck_assert_uint_eq(data[i], _i ? posts : i);
}
END_TEST

/* As many functions as may be pending, of as many streams; one more is refused. */
START_TEST(has_room_for_so_many_functions)
{
	struct fgv_stream_destroy_request destroy = {.stream = blocking};
	uint64_t number = 0;

	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	put_function(first, ++number);
	put_function(second, ++number);
	while (number < FGV_FUNCTIONS_PENDING_MAX)
		put_function(vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING), ++number);
	put_function(0, ++number);
	ask(0);
	expect_turn(1);
	ask(1);
	expect_turn(2);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	put_function(0, ++number);
	ck_assert_uint_eq(query_stream(0, 0), CUDA_ERROR_NOT_READY);
}
END_TEST

static uint64_t requests_taken(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].requests, __ATOMIC_RELAXED);
}

/*
 * With everything full, what would have to wait behind a call of its own lane is left there, and
 * the guest's other lanes get through.
 */
START_TEST(keeps_to_its_bound)
{
	static uint8_t long_message[FGV_MESSAGE_MAX];
	struct fgv_stream_sync_request sync = {.stream = first};
	const unsigned lanes[] = {0, 2};
	uint64_t taken;

	put_function(first, 11);
	for (size_t i = 0; i < 2; i++)
		vgpu_must_post(&vgpu, lanes[i], FGV_OP_STREAM_SYNC, &sync, sizeof(sync));
	for (uint32_t i = 2; i < FGV_HELD_MAX; i++)
		set_word(first, 0, i);
	ask(0);
	expect_turn(11);
	taken = requests_taken();
	for (size_t i = 0; i < 2; i++) {
		for (int more = 0; more < 3; more++)
			ck_assert(vgpu_post(&vgpu, lanes[i], FGV_OP_HOST_FUNC_NEXT, long_message,
					    sizeof(long_message) / 2));
	}
	/* Only one may ask at a time, so that there is a reply behind which all has been seen. */
	ask(12);
	ask(12);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(requests_taken(), taken + 2);
}
END_TEST

/* Returns of functions that there are not, that were not told, or that have returned. */
START_TEST(believes_no_wrong_return)
{
	put_function(first, 11);
	set_word(first, 0, 1);
	ask(12);
	expect_turn(11);
	put_function(second, 21);
	set_word(second, 1, 1);
	ask(21);
	expect_turn(21);
	ask(12);
	expect_no_reply(1);
	ck_assert_uint_eq(data[0], 0);
	ck_assert_uint_eq(data[1], 0);
	ck_assert_uint_eq(query_stream(0, first), CUDA_ERROR_NOT_READY);
	ck_assert_uint_eq(query_stream(0, second), CUDA_ERROR_NOT_READY);
}
END_TEST

/* Two functions of one number: each return is one function's. */
START_TEST(tells_equal_numbers_apart)
{
	put_function(first, 11);
	put_function(second, 11);
	set_word(first, 0, 1);
	set_word(second, 1, 1);
	ask(0);
	expect_turn(11);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_SUCCESS);
	expect_turn(11);
	ck_assert_uint_eq(query_stream(0, second), CUDA_ERROR_NOT_READY);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, second), CUDA_SUCCESS);
	ck_assert(data[0] == 1 && data[1] == 1);
}
END_TEST

/* A stream and an event that are destroyed while functions, records and waits are pending. */
START_TEST(outlives_its_stream)
{
	uint32_t event = vgpu_must_create_event(&vgpu);
	struct fgv_stream_destroy_request stream = {.stream = first};
	struct fgv_event_destroy_request gone = {.event = event};

	put_function(first, 11);
	set_word(first, 0, 1);
	vgpu_record(&vgpu, event, first);
	await_event(second, event);
	set_word(second, 1, 1);
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &stream, sizeof(stream));
	vgpu_must_post(&vgpu, 0, FGV_OP_EVENT_DESTROY, &gone, sizeof(gone));
	ask(0);
	expect_turn(11);
	ck_assert_uint_eq(data[0], 0);
	ask(11);
	ck_assert_uint_eq(sync_stream(0, second), CUDA_SUCCESS);
	ck_assert(data[0] == 1 && data[1] == 1);
	ck_assert_uint_eq(query_event(event), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(sync_stream(0, first), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* Handles of nothing, or of something else, are what they always are. */
START_TEST(knows_bad_handles)
{
	uint32_t event = vgpu_must_create_event(&vgpu);

	put_function(12345, 11);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	put_function(first, 12);
	set_word(first + 1000, 0, 1);
	vgpu_record(&vgpu, event + 1000, first);
	await_event(second, event + 1000);
	ask(0);
	expect_turn(12);
	ask(12);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 0);
}
END_TEST

/* What is no request is found out, at once or when its turn comes. */
START_TEST(finds_what_is_no_request)
{
	static const struct {
		uint16_t op;
		uint32_t len;
	} requests[] = {
		{UINT16_MAX, 8},
		{FGV_OP_MAX + 1, 0},
		{FGV_OP_FILL, 3},
		{FGV_OP_EVENT_RECORD, 0},
		{FGV_OP_HOST_FUNC, 4},
		{FGV_OP_STREAM_SYNC, 2},
		{FGV_OP_HOST_FUNC_NEXT, 9},
		{FGV_OP_COPY_OUT, 24},
		{FGV_OP_EVENT_ELAPSED, 4},
		{FGV_OP_STREAM_DESTROY, 0},
		{FGV_OP_STREAM_WAIT_EVENT, UINT32_MAX},
		{FGV_OP_LAUNCH, 20},
	};
	struct fgv_slot slot = {
		.op = requests[_i].op, .len = requests[_i].len, .heap_off = UINT64_MAX};
	unsigned lines;

	setup();
	put_function(0, 11);
	ask(0);
	expect_turn(11);
	slot.ticket = ++vgpu.ticket;
	vgpu_publish(&vgpu, 0, &slot);
	if (!vgpu_has_ended(&vgpu))
		vgpu_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT,
			  &(struct fgv_host_func_next_request){.done = 11},
			  sizeof(struct fgv_host_func_next_request));
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

/* With everything pending that can be. */
START_TEST(ends_at_work)
{
	uint32_t event = vgpu_must_create_event(&vgpu);

	put_function(first, 11);
	put_function(second, 21);
	put_function(0, 31);
	vgpu_record(&vgpu, event, first);
	await_event(blocking, event);
	for (uint32_t i = 0; i < FGV_HELD_MAX; i++)
		set_word(blocking, 0, i);
	ask(0);
	expect_turn(11);
	ask(11);
	expect_turn(21);
	ask(0);
	vgpu_post(&vgpu, 2, FGV_OP_DEVICE_SYNC, NULL, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stall");
	TCase *rules = tcase_create("rules"), *broken = tcase_create("broken");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(rules, setup, teardown);
	tcase_set_timeout(rules, 120);
	tcase_add_test(rules, holds_up_its_stream);
	tcase_add_test(rules, takes_turns);
	tcase_add_test(rules, returns_and_goes_on);
	tcase_add_loop_test(rules, knows_the_legacy_stream, 0, 2);
	tcase_add_test(rules, leaves_other_blocking_streams_alone);
	tcase_add_test(rules, goes_by_events);
	tcase_add_test(rules, keeps_records_behind_waits);
	tcase_add_test(rules, holds_up_the_device);
	tcase_add_test(rules, allocates_between_frees);
	tcase_add_test(rules, answers_a_lane_in_order);
	tcase_add_test(rules, gives_the_grant_back);
	tcase_add_loop_test(rules, has_room_for_so_many, 0, 2);
	tcase_add_test(rules, keeps_to_its_bound);
	tcase_add_test(rules, has_room_for_so_many_functions);
	tcase_add_test(rules, believes_no_wrong_return);
	tcase_add_test(rules, tells_equal_numbers_apart);
	tcase_add_test(rules, outlives_its_stream);
	tcase_add_test(rules, knows_bad_handles);
	tcase_add_test(rules, ends_at_work);
	tcase_set_timeout(broken, 120);
	tcase_add_loop_test(broken, finds_what_is_no_request, 0, 12);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, broken);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
