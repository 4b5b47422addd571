/*
 * Coscheduling by the daemon's scheduler: the turns of interactive sessions are favoured, and
 * nothing else is. The sessions are played as in test_gpusched.c; one's guest is a child.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "shmring/park.h"
#include "tests/unit/backend/sched/cosched_child.h"

#define MANY_CALLS 1000000000
#define WINDOW_US  50000 /* longer than this process may be stopped between two lines */

static void start_with(struct fgv_cosched *with)
{
	struct fgv_gpusched_config config = {.policy = &fgv_policy_fair, .cosched = with};

	ck_assert_int_eq(fgv_cosched_init(&cosched), 0);
	cosched_child_start();
	fgv_sched_params_init(&config.params);
	config.params.slice_ns = SLICE_NS;
	config.params.starve_ns = STARVE_NS;
	config.params.interactive_window_ns = WINDOW_US * FGV_NS_PER_US;
	ck_assert_int_eq(fgv_gpusched_create(&gpusched, &config), 0);
	for (size_t i = 0; i < FGV_ARRAY_LEN(vgpus); i++)
		ck_assert_int_eq(fgv_gpusched_attach_vgpu(gpusched, 1, &vgpus[i]), 0);
}

static void start_auto(void)
{
	start_with(&cosched);
}

static void start_off(void)
{
	start_with(NULL);
}

static void stop(void)
{
	gpusched_stop();
	cosched_child_stop();
	fgv_cosched_fini(&cosched);
}

/* When the turn of one began, as far as is known here, and when the last two of anybody ended. */
static uint64_t begun_ns, ended_ns[2];

static void note_end(void)
{
	ended_ns[0] = ended_ns[1];
	ended_ns[1] = fgv_now_ns();
}

/* One whose guest is the child, and two, that wants the GPU as well. */
static void attach_both(void)
{
	struct fgv_cosched_owner owner = {.pid = child_pid, .uid = getuid()};

	ended_ns[0] = ended_ns[1] = fgv_now_ns();
	fake_attach(&one, vgpus[0]);
	fgv_gpusched_session_guest(one.session, &owner);
	fake_attach(&two, vgpus[1]);
}

static struct fgv_gpusched_stats stats_of(const struct fake *fake)
{
	struct fgv_gpusched_stats stats;

	fgv_gpusched_session_stats(fake->session, &stats);
	return stats;
}

static bool has_grant(const struct fake *fake)
{
	return fake_state(fake) == FGV_GRANT_BUSY;
}

/* One gets the grant, for a slice, after two has used as much as is fair. */
static void begin_turn(void)
{
	fake_want(&one, true);
	fake_want(&two, true);
	while (!has_grant(&one)) {
		AWAIT(has_grant(&one) || has_grant(&two));
		if (!has_grant(&two))
			continue;
		note_end();
		fake_report(&two, two.used_ns + FGV_NS_PER_SEC);
		fake_give_back(&two, true);
	}
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	begun_ns = fgv_now_ns();
}

/* It gives back after a turn in which @thread, as it says, made @calls. What it is is judged. */
static void end_turn(uint32_t thread, uint64_t calls)
{
	usleep(WINDOW_US);
	/* Longer than two's last turn, or that would not be next; this thread may have been late
	 * for it. */
	AWAIT(fgv_now_ns() - begun_ns > begun_ns - ended_ns[0]);
	note_end();
	fake_report(&one, one.used_ns + FGV_NS_PER_SEC);
	__atomic_store_n(&one.grant->thread, thread, __ATOMIC_RELAXED);
	__atomic_fetch_add(&one.grant->sync_calls, calls, __ATOMIC_RELAXED);
	fake_give_back(&one, true);
	AWAIT_STATE(&two, BUSY);
}

static void turn(uint32_t thread, uint64_t calls)
{
	begin_turn();
	end_turn(thread, calls);
}

/* The main thread's part. */
static void find_asked(void)
{
	AWAIT(fgv_doorbell_wait(cosched.bell_fd, -1, 0) == 1);
	fgv_gpusched_find_vcpu(one.session);
}

START_TEST(interactive_turn_is_favoured)
{
	pid_t thread = child->threads[1];

	attach_both();
	turn((uint32_t)thread, 0);
	ck_assert(!stats_of(&one).interactive);
	turn((uint32_t)thread, MANY_CALLS);
	ck_assert(stats_of(&one).interactive);
	ck_assert_uint_eq(stats_of(&one).favoured, 0);
	/* This turn asks whose thread that is, the next ones know. */
	begin_turn();
	find_asked();
	end_turn((uint32_t)thread, MANY_CALLS);
	ck_assert(cosched_is_usual(thread));
	for (int i = 0; i < 3; i++) {
		begin_turn();
		AWAIT(cosched_is_favoured(thread) || !cosched_may_favour());
		end_turn((uint32_t)thread, MANY_CALLS);
		AWAIT(cosched_is_usual(thread));
	}
	ck_assert_uint_eq(stats_of(&one).favoured, cosched_may_favour() ? 3 : 0);
	ck_assert(!stats_of(&two).interactive);
	ck_assert_uint_eq(stats_of(&two).favoured, 0);
	/* It ends with the session, in the middle of a turn. */
	begin_turn();
	AWAIT(cosched_is_favoured(thread) || !cosched_may_favour());
	fake_both_leave();
	ck_assert(cosched_is_usual(thread));
}
END_TEST

/* No calls, or none any more: it is left alone. */
START_TEST(others_are_left_alone)
{
	pid_t thread = child->threads[1];

	attach_both();
	for (int i = 0; i < 3; i++) {
		turn((uint32_t)thread, 1);
		ck_assert(!stats_of(&one).interactive);
	}
	ck_assert_int_eq(fgv_doorbell_wait(cosched.bell_fd, -1, 0), 0);
	turn((uint32_t)thread, MANY_CALLS);
	begin_turn();
	find_asked();
	end_turn((uint32_t)thread, 0);
	ck_assert(!stats_of(&one).interactive);
	turn((uint32_t)thread, 0);
	ck_assert_uint_eq(stats_of(&one).favoured, 0);
	ck_assert(cosched_is_usual(thread));
	fake_both_leave();
}
END_TEST

/* Alone it has no turns. */
START_TEST(alone_is_not_favoured)
{
	pid_t thread = child->threads[1];

	attach_both();
	turn((uint32_t)thread, MANY_CALLS);
	begin_turn();
	find_asked();
	end_turn((uint32_t)thread, MANY_CALLS);
	fake_give_back(&two, false);
	AWAIT_STATE(&one, BUSY);
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert(cosched_is_usual(thread));
	ck_assert_uint_eq(stats_of(&one).favoured, 0);
	fake_both_leave();
}
END_TEST

/* A liar's turns favour nobody, and are turns like any other. */
START_TEST(liar_favours_nobody)
{
	const uint32_t lies[] = {0, UINT32_MAX, INT32_MAX, 1, (uint32_t)getpid()};

	attach_both();
	for (size_t i = 0; i < FGV_ARRAY_LEN(lies); i++) {
		turn(lies[i], MANY_CALLS);
		ck_assert(stats_of(&one).interactive);
		turn(lies[i], MANY_CALLS);
		fgv_gpusched_find_vcpu(one.session);
	}
	ck_assert_uint_eq(stats_of(&one).favoured, 0);
	ck_assert(cosched_is_usual(getpid()));
	fake_both_leave();
}
END_TEST

START_TEST(off_does_nothing)
{
	pid_t thread = child->threads[1];

	attach_both();
	for (int i = 0; i < 3; i++) {
		begin_turn();
		fgv_gpusched_find_vcpu(one.session);
		ck_assert(cosched_is_usual(thread));
		end_turn((uint32_t)thread, MANY_CALLS);
	}
	ck_assert(stats_of(&one).interactive);
	ck_assert_uint_eq(stats_of(&one).favoured, 0);
	ck_assert_int_eq(fgv_doorbell_wait(cosched.bell_fd, -1, 0), 0);
	fake_both_leave();
}
END_TEST

static void add_off(Suite *suite)
{
	TCase *off = tcase_create("off");

	tcase_set_timeout(off, 2 * HANG_LIMIT_SEC);
	tcase_add_checked_fixture(off, start_off, stop);
	tcase_add_test(off, off_does_nothing);
	suite_add_tcase(suite, off);
}

static void add_turns(Suite *suite)
{
	TCase *turns = tcase_create("turns");

	tcase_set_timeout(turns, 2 * HANG_LIMIT_SEC);
	tcase_add_checked_fixture(turns, start_auto, stop);
	tcase_add_test(turns, interactive_turn_is_favoured);
	tcase_add_test(turns, others_are_left_alone);
	tcase_add_test(turns, alone_is_not_favoured);
	tcase_add_test(turns, liar_favours_nobody);
	suite_add_tcase(suite, turns);
}

int main(void)
{
	Suite *suite = suite_create("cosched: turns");
	SRunner *runner = srunner_create(suite);
	int failed;

	add_turns(suite);
	add_off(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
