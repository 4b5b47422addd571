/*
 * The order in which lanes are served, replies and wake-ups, and a guest that lies.
 * The guest's side is played here, by the rules or against them.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "shmring/lanes.h"
#include "shmring/park.h"
#include "shmring/ring.h"

#define LANES 8u
#define LEN   (4ull << 20)

static struct fgv_window window;
static struct fgv_lanes *lanes;
static struct fgv_ring requests[LANES], replies[LANES];

static void set_up(void)
{
	int fd;

	ck_assert_int_eq(fgv_window_layout(&window, LEN, LANES), 0);
	fd = fgv_window_create(&window);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fgv_window_map(&window, fd), 0);
	close(fd);
	lanes = fgv_lanes_create(&window);
	ck_assert_ptr_nonnull(lanes);
	for (uint32_t i = 0; i < LANES; i++) {
		ck_assert_int_eq(fgv_lanes_attach(lanes, i, -1), 0);
		fgv_ring_attach(&requests[i], fgv_window_requests(&window, i), FGV_REQUEST_SLOTS,
				FGV_RING_START);
		fgv_ring_attach(&replies[i], fgv_window_replies(&window, i), FGV_REPLY_SLOTS,
				FGV_RING_START);
	}
}

static void tear_down(void)
{
	fgv_lanes_destroy(lanes);
	fgv_window_unmap(&window);
}

static bool post(uint32_t lane, uint64_t ticket)
{
	struct fgv_slot *slot = fgv_ring_reserve(&requests[lane]);

	if (!slot)
		return false;
	slot->ticket = ticket;
	slot->call = requests[lane].position;
	slot->len = 0;
	fgv_ring_publish(&requests[lane]);
	return true;
}

/* The next request's ticket; it is released. 0 if there is none. */
static uint64_t run(void)
{
	uint32_t lane;
	const struct fgv_slot *slot = fgv_lanes_next(lanes, &lane);
	uint64_t ticket;

	if (!slot)
		return 0;
	ticket = slot->ticket;
	fgv_lanes_release(lanes, lane);
	return ticket;
}

static void expect_order(const uint64_t *tickets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(run(), tickets[i]);
	ck_assert_uint_eq(run(), 0);
}

START_TEST(one_lane_in_order)
{
	uint64_t sent = 1, got = 1;

	/* Past the wrap-around of positions, with rings both full and empty. */
	for (int lap = 0; lap < 12; lap++) {
		while (post(3, sent))
			sent++;
		ck_assert_uint_eq(sent - got, FGV_REQUEST_SLOTS);
		while (got < sent)
			ck_assert_uint_eq(run(), got++);
		ck_assert_uint_eq(run(), 0);
	}
}
END_TEST

START_TEST(lanes_by_ticket)
{
	const uint64_t order[] = {1, 2, 3, 4, 5, 6, 7};

	post(5, 3);
	post(5, 4);
	post(0, 5);
	post(7, 1);
	post(2, 2);
	post(7, 6);
	post(0, 7);
	expect_order(order, FGV_ARRAY_LEN(order));
}
END_TEST

/* What is not published yet is not waited for. */
START_TEST(missing_tickets_hold_up_nothing)
{
	const uint64_t order[] = {4, 9};
	const uint64_t late[] = {1, 2};

	post(1, 9);
	post(6, 4);
	expect_order(order, FGV_ARRAY_LEN(order));
	post(0, 2);
	post(3, 1);
	expect_order(late, FGV_ARRAY_LEN(late));
}
END_TEST

/*
 * Ticket 2 is drawn, but published only after 3 has run; 4 is posted after that, by the
 * lane that ran last. It must not profit from following 3.
 */
START_TEST(late_ticket_goes_before_what_followed_it)
{
	post(0, 1);
	post(0, 3);
	ck_assert_uint_eq(run(), 1);
	ck_assert_uint_eq(run(), 3);
	post(1, 2);
	post(0, 4);
	ck_assert_uint_eq(run(), 2);
	ck_assert_uint_eq(run(), 4);
}
END_TEST

/* A head that was seen does not run before a smaller one that came later. */
START_TEST(seen_heads_wait_for_smaller_ones)
{
	uint32_t lane;

	post(0, 5);
	post(1, 6);
	ck_assert_uint_eq(fgv_lanes_next(lanes, &lane)->ticket, 5);
	post(2, 3);
	ck_assert_uint_eq(fgv_lanes_next(lanes, &lane)->ticket, 3);
	ck_assert_uint_eq(lane, 2);
	ck_assert_uint_eq(run(), 3);
	post(3, 4);
	ck_assert_uint_eq(run(), 4);
	ck_assert_uint_eq(run(), 5);
	ck_assert_uint_eq(run(), 6);
}
END_TEST

/* The guest changes a slot after it was handed out: nobody sees that. */
START_TEST(copies_are_private)
{
	struct fgv_slot *shared =
		fgv_window_requests(&window, 0) + FGV_RING_START % FGV_REQUEST_SLOTS;
	const struct fgv_slot *slot;
	struct fgv_slot before;
	uint32_t lane;

	post(0, 1);
	slot = fgv_lanes_next(lanes, &lane);
	before = *slot;
	memset(shared, 0xa5, sizeof(*shared));
	ck_assert_mem_eq(slot, &before, sizeof(before));
	ck_assert_ptr_eq(fgv_lanes_next(lanes, &lane), slot);
	ck_assert_mem_eq(slot, &before, sizeof(before));
	fgv_lanes_release(lanes, lane);
	ck_assert_ptr_null(fgv_lanes_next(lanes, &lane));
}
END_TEST

static const uint64_t lies[] = {0, 1, 1, UINT64_MAX, 7, 6, 5, 2, UINT64_MAX - 1, 0, 3, 1ull << 63};

/* Repeated, decreasing and wild tickets: every request is still handed out once. */
START_TEST(wrong_tickets_do_no_harm)
{
	uint64_t sent = 0, got = 0;
	uint32_t next[LANES], lane;

	srand((unsigned int)_i + 1);
	for (lane = 0; lane < LANES; lane++)
		next[lane] = FGV_RING_START;
	for (int step = 0; step < 20000; step++) {
		uint64_t ticket = rand() % 2 ? lies[(size_t)rand() % FGV_ARRAY_LEN(lies)]
					     : (uint64_t)rand() % 30;
		const struct fgv_slot *slot;

		sent += post((uint32_t)rand() % LANES, ticket);
		if (rand() % 2)
			continue;
		slot = fgv_lanes_next(lanes, &lane);
		if (!slot)
			continue;
		ck_assert_uint_eq(slot->call, next[lane]++);
		fgv_lanes_release(lanes, lane);
		got++;
	}
	for (; fgv_lanes_next(lanes, &lane); got++)
		fgv_lanes_release(lanes, lane);
	ck_assert_uint_eq(sent, got);
}
END_TEST

/* Any values in a ring's marks: at most a ring of requests comes out, and it ends. */
START_TEST(wrong_marks_do_no_harm)
{
	uint32_t lane, count = 0;

	for (uint32_t i = 0; i < LANES; i++) {
		for (uint32_t j = 0; j < FGV_REQUEST_SLOTS; j++)
			fgv_window_requests(&window, i)[j].mark = FGV_RING_START + j + (uint32_t)_i;
	}
	for (; fgv_lanes_next(lanes, &lane); count++) {
		fgv_lanes_release(lanes, lane);
		ck_assert_uint_le(count, LANES * FGV_REQUEST_SLOTS);
	}
	ck_assert_uint_eq(count, _i == 1 ? LANES * FGV_REQUEST_SLOTS : 0);
}
END_TEST

START_TEST(attaches_and_detaches)
{
	int doorbell = fgv_doorbell_create();
	uint32_t lane;

	ck_assert_int_eq(fgv_lanes_attach(lanes, LANES, -1), -EINVAL);
	ck_assert_int_eq(fgv_lanes_attach(lanes, UINT32_MAX, -1), -EINVAL);
	ck_assert_int_eq(fgv_lanes_attach(lanes, 0, doorbell), -EEXIST);
	ck_assert_int_ne(fcntl(doorbell, F_GETFD), -1);
	post(2, 1);
	post(2, 2);
	ck_assert_uint_eq(fgv_lanes_next(lanes, &lane)->ticket, 1);
	fgv_lanes_detach(lanes, 2);
	fgv_lanes_detach(lanes, 2);
	fgv_lanes_detach(lanes, LANES);
	ck_assert(!fgv_lanes_any_ordered(lanes));
	ck_assert_ptr_null(fgv_lanes_next(lanes, &lane));
	fgv_lanes_release(lanes, 2);
	ck_assert_int_eq(fgv_lanes_attach(lanes, 2, doorbell), 0);
	ck_assert_uint_eq(run(), 1);
	ck_assert_uint_eq(run(), 2);
	fgv_lanes_detach(lanes, 2);
	ck_assert_int_eq(fcntl(doorbell, F_GETFD), -1);
}
END_TEST

START_TEST(says_whether_there_is_any)
{
	uint32_t lane;

	ck_assert(!fgv_lanes_any_ordered(lanes));
	post(4, 1);
	ck_assert(fgv_lanes_any_ordered(lanes));
	ck_assert_ptr_nonnull(fgv_lanes_next(lanes, &lane));
	ck_assert(fgv_lanes_any_ordered(lanes));
	fgv_lanes_release(lanes, lane);
	ck_assert(!fgv_lanes_any_ordered(lanes));
}
END_TEST

START_TEST(sends_replies)
{
	uint8_t data[FGV_SLOT_INLINE + 1] = "a slot's worth and more";
	struct fgv_reply reply = {.op = 7, .call = 9, .status = 700, .data = data, .len = 24};
	const struct fgv_slot *slot;

	ck_assert_int_eq(fgv_lanes_reply(lanes, 1, &reply), 0);
	ck_assert_ptr_null(fgv_ring_peek(&replies[0]));
	slot = fgv_ring_peek(&replies[1]);
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->op, 7);
	ck_assert_uint_eq(slot->call, 9);
	ck_assert_uint_eq(slot->status, 700);
	ck_assert_uint_eq(slot->len, 24);
	ck_assert_str_eq((const char *)slot->data, (char *)data);
	reply.len = FGV_SLOT_INLINE + 1;
	ck_assert_int_eq(fgv_lanes_reply(lanes, 1, &reply), -EINVAL);
	reply.len = 0;
	reply.data = NULL;
	ck_assert_int_eq(fgv_lanes_reply(lanes, LANES, &reply), -EINVAL);
	for (uint32_t i = 1; i < FGV_REPLY_SLOTS; i++)
		ck_assert_int_eq(fgv_lanes_reply(lanes, 1, &reply), 0);
	ck_assert_int_eq(fgv_lanes_reply(lanes, 1, &reply), -EAGAIN);
	fgv_ring_release(&replies[1]);
	ck_assert_int_eq(fgv_lanes_reply(lanes, 1, &reply), 0);
	fgv_lanes_detach(lanes, 1);
	ck_assert_int_eq(fgv_lanes_reply(lanes, 1, &reply), -EINVAL);
}
END_TEST

START_TEST(rings_only_who_sleeps)
{
	struct fgv_reply reply = {.op = 1};
	uint32_t *parked = &fgv_window_lane_head(&window, 0)->guest_parked;
	int doorbell = fgv_doorbell_create();

	fgv_lanes_detach(lanes, 0);
	ck_assert_int_eq(fgv_lanes_attach(lanes, 0, doorbell), 0);
	fgv_lanes_reply(lanes, 0, &reply);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 0);
	ck_assert_uint_eq(fgv_lanes_rings(lanes), 0);
	fgv_park_announce(parked);
	fgv_lanes_reply(lanes, 0, &reply);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 1);
	fgv_doorbell_clear(doorbell);
	/* A wait for a reply is not woken by room. */
	post(0, 1);
	ck_assert_uint_eq(run(), 1);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 0);
	fgv_lanes_wake(lanes);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 1);
	ck_assert_uint_eq(fgv_lanes_rings(lanes), 2);
}
END_TEST

/* A wait for room is woken by a quarter of the ring, and by an empty ring. */
START_TEST(rings_for_room)
{
	uint32_t *parked = &fgv_window_lane_head(&window, 0)->guest_parked;
	int doorbell = fgv_doorbell_create();
	uint64_t sent = 0;

	fgv_lanes_detach(lanes, 0);
	ck_assert_int_eq(fgv_lanes_attach(lanes, 0, doorbell), 0);
	while (post(0, sent + 1))
		sent++;
	fgv_park_announce_for_room(parked);
	for (uint32_t i = 0; i < FGV_REQUEST_SLOTS; i++) {
		int rung = fgv_doorbell_wait(doorbell, -1, 0);

		ck_assert_int_eq(rung, i && i % (FGV_REQUEST_SLOTS / 4) == 0);
		fgv_doorbell_clear(doorbell);
		run();
	}
	fgv_doorbell_clear(doorbell);
	post(0, sent + 1);
	post(0, sent + 2);
	run();
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 0);
	run();
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 1);
	ck_assert_uint_eq(fgv_lanes_rings(lanes), 5);
}
END_TEST

#define ROUNDS	  10000u
#define UNORDERED UINT32_MAX

/* A token that eight threads hand around, and the tickets that they draw. */
static struct {
	uint32_t turn;
	uint64_t ticket;
} token;

/* @call: the turn, or UNORDERED. @is_slow: others get between ticket and publishing. */
static void post_as_client(uint32_t lane, uint32_t call, bool is_slow)
{
	struct fgv_slot *slot;

	while (!(slot = fgv_ring_reserve(&requests[lane])))
		sched_yield();
	slot->ticket = __atomic_add_fetch(&token.ticket, 1, __ATOMIC_RELAXED);
	slot->call = call;
	slot->len = 0;
	if (is_slow)
		sched_yield();
	fgv_ring_publish(&requests[lane]);
}

static void *hand_around(void *arg)
{
	uint32_t lane = *(uint32_t *)arg;

	for (uint32_t turn = lane; turn < LANES * ROUNDS; turn += LANES) {
		if (turn % 3 == 0)
			post_as_client(lane, UNORDERED, turn % 2);
		while (fgv_load_acquire(&token.turn) != turn)
			sched_yield();
		post_as_client(lane, turn, turn % 31 == 0);
		fgv_store_release(&token.turn, turn + 1);
	}
	return NULL;
}

/*
 * Each posts its turn after the one before it has returned: so must they be handed out.
 * What the others post at the same time, with tickets that come late, is in between.
 */
START_TEST(handed_around_between_threads)
{
	uint32_t ids[LANES], turn = 0, lane;
	pthread_t threads[LANES];

	for (uint32_t i = 0; i < LANES; i++) {
		ids[i] = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, hand_around, &ids[i]), 0);
	}
	while (turn < LANES * ROUNDS) {
		const struct fgv_slot *slot = fgv_lanes_next(lanes, &lane);

		if (!slot) {
			sched_yield();
			continue;
		}
		if (slot->call != UNORDERED && slot->call != turn++)
			ck_abort_msg("turn %u came as number %u", slot->call, turn);
		fgv_lanes_release(lanes, lane);
	}
	for (uint32_t i = 0; i < LANES; i++)
		pthread_join(threads[i], NULL);
	ck_assert_ptr_null(fgv_lanes_next(lanes, &lane));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lanes");
	TCase *tcase = tcase_create("lanes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, one_lane_in_order);
	tcase_add_test(tcase, lanes_by_ticket);
	tcase_add_test(tcase, missing_tickets_hold_up_nothing);
	tcase_add_test(tcase, late_ticket_goes_before_what_followed_it);
	tcase_add_test(tcase, seen_heads_wait_for_smaller_ones);
	tcase_add_test(tcase, copies_are_private);
	tcase_add_loop_test(tcase, wrong_tickets_do_no_harm, 0, 4);
	tcase_add_loop_test(tcase, wrong_marks_do_no_harm, 0, 5);
	tcase_add_test(tcase, attaches_and_detaches);
	tcase_add_test(tcase, says_whether_there_is_any);
	tcase_add_test(tcase, sends_replies);
	tcase_add_test(tcase, rings_only_who_sleeps);
	tcase_add_test(tcase, rings_for_room);
	tcase_add_test(tcase, handed_around_between_threads);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
