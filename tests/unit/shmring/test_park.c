/* Doorbells and parking: what a wait says, that it neither hangs nor loses a ring. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/util.h"
#include "api/wire.h"
#include "shmring/park.h"

static int doorbell, pair[2];

static void set_up(void)
{
	doorbell = fgv_doorbell_create();
	ck_assert_int_ge(doorbell, 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
}

static void tear_down(void)
{
	close(doorbell);
	close(pair[0]);
	close(pair[1]);
}

START_TEST(counts_rings_until_cleared)
{
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 0);
	fgv_doorbell_ring(doorbell);
	fgv_doorbell_ring(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, -1), 1);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], -1), 1);
	fgv_doorbell_clear(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], FGV_NS_PER_MS), 0);
	fgv_doorbell_clear(doorbell);
	fgv_doorbell_ring(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], -1), 1);
}
END_TEST

START_TEST(tells_why_it_woke)
{
	ck_assert_int_eq(send(pair[1], "x", 1, 0), 1);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], -1), -EAGAIN);
	fgv_doorbell_ring(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], -1), -EAGAIN);
	close(pair[1]);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], -1), -ECONNRESET);
	pair[1] = -1;
	ck_assert_int_eq(fgv_doorbell_wait(pair[0], -1, -1), -EBADF);
}
END_TEST

/* A peer that only shuts its side down has left as well. */
START_TEST(notices_shutdown)
{
	shutdown(pair[1], SHUT_WR);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], -1), -ECONNRESET);
}
END_TEST

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	(void)number;
	alarms++;
}

START_TEST(goes_on_after_signals)
{
	struct sigaction action = {.sa_handler = count_alarm};
	struct itimerval every_ms = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	while (alarms < 5)
		ck_assert_int_eq(fgv_doorbell_wait(doorbell, pair[0], 30 * FGV_NS_PER_MS), 0);
	setitimer(ITIMER_REAL, &off, NULL);
}
END_TEST

START_TEST(full_counter_does_not_block)
{
	uint64_t most = UINT64_MAX - 1;

	ck_assert_int_eq(write(doorbell, &most, sizeof(most)), sizeof(most));
	fgv_doorbell_ring(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, -1), 1);
	fgv_doorbell_clear(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 0);
}
END_TEST

/* The peer shares the open file, and may make it blocking. */
START_TEST(clear_never_blocks)
{
	ck_assert_int_eq(fcntl(doorbell, F_SETFL, 0), 0);
	fgv_doorbell_clear(doorbell);
	fgv_doorbell_ring(doorbell);
	fgv_doorbell_clear(doorbell);
	fgv_doorbell_clear(doorbell);
	ck_assert_int_eq(fgv_doorbell_wait(doorbell, -1, 0), 0);
}
END_TEST

START_TEST(accepts_eventfds_only)
{
	ck_assert_int_eq(fcntl(doorbell, F_SETFL, 0), 0);
	ck_assert_int_eq(fgv_doorbell_check(doorbell), 0);
	ck_assert(fcntl(doorbell, F_GETFL) & O_NONBLOCK);
	ck_assert_int_eq(fgv_doorbell_check(pair[0]), -EINVAL);
	ck_assert_int_eq(fgv_doorbell_check(-1), -ENOENT);
}
END_TEST

#define ROUNDS 20000

/* One side of a ball that is hit to and fro, with no spinning at all. */
struct side {
	uint32_t ball; /* written by the other side */
	uint32_t parked;
	int doorbell;
};

static void await(struct side *self, uint32_t round)
{
	while (fgv_load_acquire(&self->ball) != round) {
		fgv_doorbell_clear(self->doorbell);
		fgv_park_announce(&self->parked);
		if (fgv_load_ordered(&self->ball) != round)
			ck_assert_int_eq(fgv_doorbell_wait(self->doorbell, -1, -1), 1);
		fgv_park_withdraw(&self->parked);
	}
}

static void hit(struct side *other, uint32_t round)
{
	fgv_store_ordered(&other->ball, round);
	if (fgv_park_is_announced(&other->parked))
		fgv_doorbell_ring(other->doorbell);
}

static void *play_back(void *arg)
{
	struct side *sides = arg;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		await(&sides[1], round);
		hit(&sides[0], round);
	}
	return NULL;
}

/* A lost wake-up shows as a time-out of the test. */
START_TEST(loses_no_wake_up)
{
	struct side sides[2] = {{.doorbell = doorbell}, {.doorbell = fgv_doorbell_create()}};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, play_back, sides), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		hit(&sides[1], round);
		await(&sides[0], round);
	}
	pthread_join(thread, NULL);
	close(sides[1].doorbell);
}
END_TEST

#define STORES 200000u

/* Two threads, each of which stores to its own word, then loads the other's. */
struct storer {
	uint32_t *own;
	const uint32_t *other;
	uint32_t *ready;
	uint32_t *seen; /* seen[i]: what the load after store i gave */
};

static void *store_and_load(void *arg)
{
	struct storer *storer = arg;

	/* Both begin at once. */
	__atomic_add_fetch(storer->ready, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(storer->ready, __ATOMIC_RELAXED) < 2)
		sched_yield();
	for (uint32_t i = 1; i <= STORES; i++) {
		fgv_store_ordered(storer->own, i);
		storer->seen[i] = fgv_load_ordered(storer->other);
	}
	return NULL;
}

/*
 * The property that parking stands on: of store i here and store j there, at least one
 * side's load sees the other's store. Plain releases fail this where both threads do
 * run at once, which can't be forced; models/park.pml does not depend on luck.
 */
START_TEST(ordered_stores_are_seen)
{
	static uint32_t words[2 * FGV_CACHE_LINE / sizeof(uint32_t)];
	static uint32_t seen[2][STORES + 2];
	uint32_t *a = &words[0], *b = &words[FGV_CACHE_LINE / sizeof(uint32_t)];
	uint32_t ready = 0;
	struct storer storers[2] = {{a, b, &ready, seen[0]}, {b, a, &ready, seen[1]}};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, store_and_load, &storers[1]), 0);
	store_and_load(&storers[0]);
	pthread_join(thread, NULL);
	for (uint32_t i = 1; i <= STORES; i++) {
		/* The first store there that this side did not see. */
		uint32_t j = seen[0][i] + 1;

		if (j <= STORES && seen[1][j] < i)
			ck_abort_msg("neither store %u nor store %u was seen", i, j);
	}
}
END_TEST

START_TEST(tells_kinds_of_parking)
{
	uint32_t parked = FGV_AWAKE;

	ck_assert(!fgv_park_is_announced(&parked));
	fgv_park_announce(&parked);
	ck_assert(fgv_park_is_announced(&parked) && !fgv_park_is_announced_for_room(&parked));
	fgv_park_announce_for_room(&parked);
	ck_assert(fgv_park_is_announced(&parked) && fgv_park_is_announced_for_room(&parked));
	fgv_park_withdraw(&parked);
	ck_assert(!fgv_park_is_announced(&parked));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("park");
	TCase *tcase = tcase_create("park");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, counts_rings_until_cleared);
	tcase_add_test(tcase, tells_why_it_woke);
	tcase_add_test(tcase, notices_shutdown);
	tcase_add_test(tcase, goes_on_after_signals);
	tcase_add_test(tcase, full_counter_does_not_block);
	tcase_add_test(tcase, clear_never_blocks);
	tcase_add_test(tcase, accepts_eventfds_only);
	tcase_add_test(tcase, loses_no_wake_up);
	tcase_add_loop_test(tcase, ordered_stores_are_seen, 0, 16);
	tcase_add_test(tcase, tells_kinds_of_parking);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
