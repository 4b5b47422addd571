/*
 * The daemon's scheduler of a device when sessions die, hang, break the rules, or lie; and
 * what it counts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "shmring/park.h"
#include "tests/unit/backend/sched/gpusched_fake.h"

/* --- Ends ------------------------------------------------------------------ */

START_TEST(killed_holder_is_charged)
{
	struct fgv_gpusched_stats last;
	uint64_t since_ns;
	siginfo_t end;

	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	since_ns = fgv_now_ns();
	kill(one.pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)one.pid, &end, WEXITED | WNOWAIT), 0);
	while (fgv_now_ns() < since_ns + SLICE_NS)
		continue;
	ck_assert_int_eq(fake_detach(&one, &last), SIGKILL);
	/* It has reported nothing. */
	ck_assert_uint_ge(last.sched.gpu_ns, SLICE_NS);
	ck_assert_ptr_null(last.killed_for);
	ck_assert_uint_ge(gpusched_used_ns(vgpus[0]), SLICE_NS);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}
END_TEST

START_TEST(waiting_session_goes)
{
	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
	fake_give_back(&one, true);
	AWAIT_STATE(&one, BUSY);
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

START_TEST(hung_holder_is_killed)
{
	struct fgv_gpusched_stats last;
	siginfo_t end;

	gpusched_start_with(&fgv_policy_fair, FGV_NS_PER_MS);
	fake_one_alone();
	fake_want(&two, true);
	ck_assert_int_eq(waitid(P_PID, (id_t)one.pid, &end, WEXITED | WNOWAIT), 0);
	/* Not before it is gone: it may have work on the GPU still. */
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	ck_assert_int_eq(fake_detach(&one, &last), SIGKILL);
	ck_assert_str_eq(last.killed_for, "it does not give the GPU back (key \"hang\")");
	ck_assert_uint_ge(last.sched.gpu_ns, SLICE_NS + FGV_NS_PER_MS);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
	gpusched_stop();
}
END_TEST

/*
 * For tests of what is late, on a machine that may be late itself: as if the slice of `one` had
 * begun far longer ago than the time for which it may hang, which is more than a test takes.
 */
static void start_with_patience(void)
{
	gpusched_start_with(&fgv_policy_fair, fgv_now_ns() / 4);
	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	gpusched_finish_turn();
}

static void let_be_late_locked(void)
{
	one.session->slice_from_ns = fgv_now_ns() / 2;
}

static bool anybody_waits(void)
{
	bool waits;

	pthread_mutex_lock(&gpusched->lock);
	waits = gpusched->waited_since_ns != 0;
	pthread_mutex_unlock(&gpusched->lock);
	return waits;
}

/* A session that is alone, or that others no longer wait for, is never late. */
START_TEST(nobody_hangs_alone)
{
	start_with_patience();
	fake_want(&two, false);
	AWAIT(!anybody_waits());
	pthread_mutex_lock(&gpusched->lock);
	let_be_late_locked();
	pthread_mutex_unlock(&gpusched->lock);
	fake_ring(&one);
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	/* And a newcomer has not waited yet. */
	fake_want(&two, true);
	AWAIT(anybody_waits());
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	fake_both_leave();
	gpusched_stop();
}
END_TEST

START_TEST(late_holder_is_killed)
{
	start_with_patience();
	/* Again and again, since the scheduler forgives where it was late itself. */
	do {
		pthread_mutex_lock(&gpusched->lock);
		let_be_late_locked();
		gpusched->waited_since_ns = one.session->slice_from_ns;
		pthread_mutex_unlock(&gpusched->lock);
		fake_ring(&one);
		usleep(SLICE_NS / FGV_NS_PER_US);
	} while (!fake_is_dead(&one));
	ck_assert_int_eq(fake_detach(&one, NULL), SIGKILL);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
	gpusched_stop();
}
END_TEST

static bool slice_began_after(uint64_t since_ns)
{
	bool began;

	pthread_mutex_lock(&gpusched->lock);
	began = one.session->slice_from_ns > since_ns;
	pthread_mutex_unlock(&gpusched->lock);
	return began;
}

/* The thread can't take the lock, and so comes as late as if it had been stopped. */
START_TEST(time_that_the_daemon_was_stopped_for)
{
	uint64_t since_ns;

	start_with_patience();
	pthread_mutex_lock(&gpusched->lock);
	let_be_late_locked();
	gpusched->waited_since_ns = one.session->slice_from_ns;
	since_ns = fgv_now_ns();
	/* It looks every half second, and notices a second. */
	while (fgv_now_ns() < since_ns + 2 * FGV_NS_PER_SEC)
		usleep(10000);
	pthread_mutex_unlock(&gpusched->lock);
	fake_ring(&one);
	AWAIT(slice_began_after(since_ns));
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	fake_both_leave();
	gpusched_stop();
}
END_TEST

/* Killed as soon as there is a process to kill. */
START_TEST(took_a_grant_before_it_started)
{
	struct fgv_gpusched_session *session;
	struct fgv_grant *grant;
	pid_t pid = fake_child();
	siginfo_t end;
	int fds[3];

	ck_assert_int_eq(fgv_gpusched_attach_session(vgpus[0], FGV_LOG_VM("vm"), &session, fds), 0);
	grant = mmap(NULL, sizeof(*grant), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	ck_assert(grant != MAP_FAILED);
	ck_assert(fgv_grant_move(grant, 0, FGV_GRANT_BUSY));
	fgv_doorbell_ring(fds[2]);
	fgv_gpusched_session_started(session, pid);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(end.si_status, SIGKILL);
	fgv_gpusched_detach_session(session, NULL);
	waitpid(pid, NULL, 0);
	munmap(grant, sizeof(*grant));
}
END_TEST

START_TEST(took_a_grant)
{
	siginfo_t end;

	fake_one_alone();
	__atomic_store_n(&two.grant->word, 64 + FGV_GRANT_BUSY + (uint64_t)_i, __ATOMIC_SEQ_CST);
	fake_want(&two, true);
	ck_assert_int_eq(waitid(P_PID, (id_t)two.pid, &end, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(fake_detach(&two, NULL), SIGKILL);
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

/* --- Lies ------------------------------------------------------------------ */

static const uint64_t lies[] = {0,	   1, FGV_NS_PER_SEC * 3600, UINT64_MAX / 2, UINT64_MAX - 1,
				UINT64_MAX};

/* The next of the two to hold does what it does in a turn; was it @fake? */
static bool take_turn(struct fake *fake, uint64_t used_ns)
{
	AWAIT(fake_state(&one) == FGV_GRANT_BUSY || fake_state(&two) == FGV_GRANT_BUSY);
	if (fake_state(fake) != FGV_GRANT_BUSY)
		return false;
	fake_report(fake, used_ns);
	fake_give_back(fake, true);
	return true;
}

/* Whatever it says, both get on, and no more is charged than there was time. */
static void expect_harmless(uint64_t (*lie)(unsigned turn))
{
	uint64_t begun_ns = fgv_now_ns(), charged_ns;
	unsigned turns = 0, others = 0;

	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	while (turns < 20 || others < 20) {
		turns += take_turn(&one, lie(turns));
		others += take_turn(&two, two.used_ns + 1000);
	}
	charged_ns = gpusched_used_ns(vgpus[0]) + gpusched_used_ns(vgpus[1]);
	ck_assert_uint_le(charged_ns, fgv_now_ns() - begun_ns);
	fake_both_leave();
}

static uint64_t constant_lie;

static uint64_t lie_the_same(unsigned turn)
{
	(void)turn;
	return constant_lie;
}

START_TEST(always_the_same_report)
{
	constant_lie = lies[_i];
	expect_harmless(lie_the_same);
}
END_TEST

static uint64_t lie_in_turn(unsigned turn)
{
	return lies[turn * 5 % FGV_ARRAY_LEN(lies)];
}

START_TEST(reports_that_go_back)
{
	expect_harmless(lie_in_turn);
}
END_TEST

/* Time by the clock in which one held the GPU and two waited, as far as is sure. */
static uint64_t hold_while_two_waits(bool look)
{
	uint64_t since_ns;

	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	since_ns = fgv_now_ns();
	while (fgv_now_ns() < since_ns + 20 * SLICE_NS) {
		if (look)
			gpusched_used_ns(vgpus[0]);
	}
	since_ns = fgv_now_ns() - since_ns;
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	return since_ns;
}

/* Whatever it reports: a session that keeps the GPU from others pays for the time. */
START_TEST(holder_that_reports_nothing_pays)
{
	uint64_t held_ns;

	fake_one_alone();
	held_ns = hold_while_two_waits(_i);
	ck_assert_uint_ge(gpusched_used_ns(vgpus[0]), held_ns);
	fake_both_leave();
}
END_TEST

/* What it has lent, where the daemon could take it at any time, has cost nobody anything. */
START_TEST(what_is_lent_is_free)
{
	uint64_t since_ns;

	fake_one_alone();
	ck_assert(fake_move(&one, FGV_GRANT_IDLE));
	since_ns = fgv_now_ns();
	while (fgv_now_ns() < since_ns + 20 * SLICE_NS)
		continue;
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_uint_eq(gpusched_used_ns(vgpus[0]), 0);
	fake_both_leave();
}
END_TEST

static void fill_bell(int fd, bool blocking)
{
	uint64_t most = UINT64_MAX - 1;
	int flags = fcntl(fd, F_GETFL);

	fgv_doorbell_clear(fd);
	ck_assert_int_eq(write(fd, &most, sizeof(most)), sizeof(most));
	if (blocking)
		ck_assert_int_eq(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK), 0);
}

/* Full is as good as rung. */
START_TEST(full_bell)
{
	fake_one_alone();
	fill_bell(one.bell_fd, false);
	fgv_park_announce(&one.grant->parked);
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	fake_both_leave();
}
END_TEST

START_TEST(blocking_bell)
{
	siginfo_t end;

	fake_one_alone();
	fill_bell(two.bell_fd, true);
	fgv_park_announce(&two.grant->parked);
	fake_want(&two, true);
	/* It is killed when it is to be told that it is next. */
	ck_assert_int_eq(waitid(P_PID, (id_t)two.pid, &end, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(fake_detach(&two, NULL), SIGKILL);
	fake_give_back(&one, true);
	AWAIT_STATE(&one, BUSY);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

/* The bells that the daemon hears: it never reads them, and so has nothing to block on. */
START_TEST(bells_of_the_daemon)
{
	struct fgv_gpusched_stats stats;

	fake_one_alone();
	fill_bell(two.sched_bell_fd, true);
	/* The write that filled it was a ring. */
	__atomic_store_n(&two.grant->wants, 1, __ATOMIC_RELEASE);
	fgv_doorbell_clear(two.sched_bell_fd);
	fake_ring(&two);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	/* One that rings all the time is looked at all the time, like the others. */
	fake_give_back(&one, false);
	for (int i = 0; i < 100; i++) {
		AWAIT_STATE(&two, BUSY);
		for (int j = 0; j < 100; j++)
			fake_ring(&one);
		fake_give_back(&two, true);
	}
	fgv_gpusched_session_stats(two.session, &stats);
	ck_assert_uint_ge(stats.sched.grants, 100);
	fake_both_leave();
}
END_TEST

/* --- Figures ---------------------------------------------------------------- */

static bool is_interactive(const struct fake *fake)
{
	bool interactive;

	pthread_mutex_lock(&gpusched->lock);
	interactive = fgv_sched_interactive(fake->session->sched);
	pthread_mutex_unlock(&gpusched->lock);
	return interactive;
}

START_TEST(calls_are_counted)
{
	uint64_t calls = 0;

	fake_one_alone();
	ck_assert(!is_interactive(&one));
	while (!is_interactive(&one)) {
		__atomic_store_n(&one.grant->sync_calls, calls += 1000, __ATOMIC_RELAXED);
		fake_ring(&one);
		usleep(50);
	}
	fake_both_leave();
}
END_TEST

START_TEST(figures_of_the_process)
{
	struct fgv_gpusched_stats stats;

	fake_one_alone();
	__atomic_store_n(&one.grant->stalls, 5, __ATOMIC_RELAXED);
	__atomic_store_n(&one.grant->sync_calls, 9, __ATOMIC_RELAXED);
	fgv_gpusched_vgpu_stats(vgpus[0], &stats);
	ck_assert_uint_eq(stats.stalls, 5);
	ck_assert_uint_eq(stats.sync_calls, 9);
	ck_assert(stats.holding);
	ck_assert_int_eq(fake_detach(&one, &stats), 0);
	ck_assert_uint_eq(stats.stalls, 5);
	fgv_gpusched_vgpu_stats(vgpus[0], &stats);
	ck_assert_uint_eq(stats.stalls, 5);
	ck_assert_uint_eq(stats.sync_calls, 9);
	ck_assert(!stats.holding);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}
END_TEST

static void add_fair(Suite *suite)
{
	TCase *tcase = tcase_create("fair");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, gpusched_start, gpusched_stop);
	tcase_add_test(tcase, killed_holder_is_charged);
	tcase_add_test(tcase, took_a_grant_before_it_started);
	tcase_add_loop_test(tcase, took_a_grant, 0, 3);
	tcase_add_loop_test(tcase, always_the_same_report, 0, FGV_ARRAY_LEN(lies));
	tcase_add_test(tcase, reports_that_go_back);
	tcase_add_loop_test(tcase, holder_that_reports_nothing_pays, 0, 2);
	tcase_add_test(tcase, what_is_lent_is_free);
	tcase_add_test(tcase, full_bell);
	tcase_add_test(tcase, bells_of_the_daemon);
	tcase_add_test(tcase, calls_are_counted);
	tcase_add_test(tcase, figures_of_the_process);
	suite_add_tcase(suite, tcase);
}

static void add_slow(Suite *suite)
{
	TCase *tcase = tcase_create("slow");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, gpusched_start_slow, gpusched_stop);
	tcase_add_test(tcase, waiting_session_goes);
	tcase_add_test(tcase, blocking_bell);
	suite_add_tcase(suite, tcase);
}

static void add_others(Suite *suite)
{
	TCase *tcase = tcase_create("others");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_test(tcase, hung_holder_is_killed);
	tcase_add_test(tcase, nobody_hangs_alone);
	tcase_add_test(tcase, late_holder_is_killed);
	tcase_add_test(tcase, time_that_the_daemon_was_stopped_for);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("gpusched_end");
	SRunner *runner;
	int failed;

	add_fair(suite);
	add_slow(suite);
	add_others(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
