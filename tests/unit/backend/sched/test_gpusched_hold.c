/*
 * The daemon's scheduler of a device where sessions can be held: when it takes a grant, in
 * which order sessions are held and let go, and what becomes of those that can't be. The holder is
 * played here, but for the last test, in which a process that ignores its grant meets the real one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "backend/sched/arbiter.h"
#include "shmring/park.h"
#include "softgpu/device/internal.h"
#include "tests/unit/backend/sched/gpusched_fake.h"

/* What a session's holder was asked. */
struct fake_hold {
	struct fgv_hold hold; /* first */
	int held;	      /* as it is now */
	int forgotten;
	bool hold_fails, release_fails;
	struct fgv_grant *works; /* its work makes progress whenever it is let go; or NULL */
};

static struct fake_hold holds[2];
static bool in_turns_only; /* nobody may be let go while somebody has the grant */

static int fake_hold(struct fgv_hold *hold)
{
	struct fake_hold *fake = (struct fake_hold *)hold, *other = &holds[fake == &holds[0]];

	ck_assert_int_eq(fake->held, 0);
	/* Whoever is next goes before the other is held, if it can go. */
	ck_assert(!other->held || other->release_fails);
	if (fake->hold_fails)
		return -EIO;
	__atomic_store_n(&fake->held, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int fake_release(struct fgv_hold *hold)
{
	struct fake_hold *fake = (struct fake_hold *)hold;

	ck_assert_int_eq(fake->held, 1);
	if (fake->release_fails)
		return -EIO;
	if (__atomic_load_n(&in_turns_only, __ATOMIC_SEQ_CST)) {
		ck_assert_int_ne(fake_state(&one), FGV_GRANT_BUSY);
		ck_assert_int_ne(fake_state(&two), FGV_GRANT_BUSY);
	}
	if (fake->works)
		__atomic_add_fetch(&fake->works->progress, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&fake->held, 0, __ATOMIC_SEQ_CST);
	return 0;
}

static void fake_forget(struct fgv_hold *hold)
{
	__atomic_add_fetch(&((struct fake_hold *)hold)->forgotten, 1, __ATOMIC_SEQ_CST);
}

#define DRAIN_NS (300 * FGV_NS_PER_US)

static const struct fgv_holder free_holder = {
	"the test, for nothing", true, DRAIN_NS, false, fake_hold, fake_release, fake_forget,
};
static const struct fgv_holder dear_holder = {
	"the test", false, 2 * DRAIN_NS, true, fake_hold, fake_release, fake_forget,
};
static const struct fgv_holder patient_holder = {
	"the test, later", false, 1000 * FGV_NS_PER_SEC, true, fake_hold, fake_release, fake_forget,
};

static void adopt_both(const struct fgv_holder *holder)
{
	struct fake *fakes[] = {&one, &two};

	for (int i = 0; i < 2; i++) {
		holds[i] = (struct fake_hold){.hold = {holder}};
		fgv_gpusched_session_hold(fakes[i]->session, &holds[i].hold);
	}
}

static bool is_held(int i)
{
	return __atomic_load_n(&holds[i].held, __ATOMIC_SEQ_CST) != 0;
}

static uint64_t count_holds(const struct fake *fake)
{
	struct fgv_gpusched_stats stats;

	fgv_gpusched_session_stats(fake->session, &stats);
	return stats.holds;
}

static uint64_t count_grants(const struct fake *fake)
{
	struct fgv_gpusched_stats stats;

	fgv_gpusched_session_stats(fake->session, &stats);
	return stats.sched.grants;
}

/* Two that are there, both of which could be held, the first with the grant. */
static void begin(const struct fgv_holder *holder)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	adopt_both(holder);
	fake_want(&one, true);
	AWAIT_STATE(&one, BUSY);
}

static void end(void)
{
	fake_both_leave();
	ck_assert_int_eq(holds[0].forgotten, 1);
	ck_assert_int_eq(holds[1].forgotten, 1);
}

/*
 * Waits for a turn of `two` in which `one` is held. Neither gives back, so the turn is short and
 * this thread may run late: it comes back with the lock, and the turn lasts until it is given up.
 */
static void await_turn_of_two(void)
{
	for (;;) {
		AWAIT(is_held(0));
		pthread_mutex_lock(&gpusched->lock);
		if (is_held(0) && fake_state(&two) == FGV_GRANT_BUSY)
			return;
		pthread_mutex_unlock(&gpusched->lock);
	}
}

/* One that does not give back loses the grant, is held, and gets it again in its turn. */
START_TEST(taken_and_held)
{
	begin(&free_holder);
	fake_want(&two, true);
	await_turn_of_two();
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_NONE);
	ck_assert_uint_eq(one.grant->is_held, 1);
	ck_assert(!is_held(1));
	pthread_mutex_unlock(&gpusched->lock);
	AWAIT(count_holds(&one) >= 3 && count_holds(&two) >= 3);
	end();
}
END_TEST

/* Work that goes on after its slice is left alone for as long as the holder says. */
START_TEST(work_may_end_by_itself)
{
	begin(&patient_holder);
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	ck_assert_uint_eq(count_holds(&one), 0);
	end();
}
END_TEST

static bool are_charged_alike(void)
{
	uint64_t used[] = {gpusched_used_ns(vgpus[0]), gpusched_used_ns(vgpus[1])};

	return used[0] > 20 * SLICE_NS && used[0] < 2 * used[1] && used[1] < 2 * used[0];
}

/* Neither reports anything. One that had a long turn, by chance, is behind for a while. */
START_TEST(charged_for_the_time)
{
	begin(&free_holder);
	fake_want(&two, true);
	AWAIT(count_holds(&one) >= 50 && count_holds(&two) >= 50);
	AWAIT(are_charged_alike());
	end();
}
END_TEST

START_TEST(alone_is_not_held)
{
	begin(&free_holder);
	AWAIT(is_held(1));
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	ck_assert(!is_held(0));
	fake_give_back(&one, false);
	/* Nobody has the grant, so nobody is held for it. */
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert(!is_held(0));
	ck_assert_uint_eq(count_holds(&one) + count_holds(&two), 0);
	end();
}
END_TEST

/* One that gives back in time is not held where that costs something, if its turn comes soon. */
START_TEST(drained_is_not_held_at_once)
{
	gpusched_start_slow();
	begin(&dear_holder);
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	ck_assert(!is_held(0));
	pthread_mutex_lock(&gpusched->lock);
	gpusched->config.params.slice_ns = SLICE_NS;
	pthread_mutex_unlock(&gpusched->lock);
	fake_ring(&one);
	AWAIT(is_held(0));
	ck_assert_uint_eq(count_holds(&one), 0);
	end();
	gpusched_stop();
}
END_TEST

/* Before its turn it would take of the GPU what the one before still has, and pays for. */
START_TEST(let_go_in_its_turn)
{
	begin(&dear_holder);
	AWAIT(is_held(1));
	__atomic_store_n(&in_turns_only, true, __ATOMIC_SEQ_CST);
	fake_want(&two, true);
	AWAIT(count_holds(&one) >= 3 && count_holds(&two) >= 3);
	__atomic_store_n(&in_turns_only, false, __ATOMIC_SEQ_CST);
	end();
}
END_TEST

/* A call of the driver's may need the GPU: one that is in it and held gets its turn. */
START_TEST(in_a_call_while_held)
{
	begin(&free_holder);
	AWAIT(is_held(1));
	__atomic_store_n(&two.grant->in_call, 1, __ATOMIC_SEQ_CST);
	fake_ring(&two);
	await_turn_of_two();
	ck_assert(!is_held(1));
	pthread_mutex_unlock(&gpusched->lock);
	end();
}
END_TEST

/* The same where it was in the call before it was held, and so could not ring. */
START_TEST(held_in_a_call)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	__atomic_store_n(&two.grant->in_call, 1, __ATOMIC_SEQ_CST);
	adopt_both(&free_holder);
	fake_want(&one, true);
	AWAIT_STATE(&two, BUSY);
	end();
}
END_TEST

/* The hold of one that ends would keep its memory: it is let go, and goes on like others. */
START_TEST(let_go_when_it_ends)
{
	begin(&dear_holder);
	AWAIT(is_held(1));
	fgv_gpusched_session_ending(two.session);
	ck_assert(!is_held(1));
	ck_assert_int_eq(holds[1].forgotten, 1);
	ck_assert_uint_eq(two.grant->is_holdable, 0);
	fgv_gpusched_session_ending(two.session);
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	AWAIT(is_held(0));
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_BUSY);
	end();
}
END_TEST

/* One that can't be held any more goes on as others that never could. */
START_TEST(hold_fails)
{
	begin(&free_holder);
	holds[0].hold_fails = true;
	fake_want(&two, true);
	AWAIT(__atomic_load_n(&holds[0].forgotten, __ATOMIC_SEQ_CST));
	gpusched_finish_turn();
	ck_assert_uint_eq(one.grant->is_holdable, 0);
	/* It had lost the grant before, to `two`, whose turn may be over. */
	ck_assert_uint_ge(count_grants(&two), 1);
	AWAIT_STATE(&one, BUSY);
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	end();
}
END_TEST

START_TEST(release_fails)
{
	struct fgv_gpusched_stats last;

	begin(&free_holder);
	AWAIT(is_held(1));
	holds[1].release_fails = true;
	fake_want(&two, true);
	AWAIT(fake_is_dead(&two));
	ck_assert_int_eq(fake_detach(&two, &last), SIGKILL);
	ck_assert_str_eq(last.killed_for, "it was held, and can't be let go");
	AWAIT_STATE(&one, BUSY);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

/* As if it had been at it for nearly as long as it may. */
static void let_be_stuck(const struct fake *fake)
{
	pthread_mutex_lock(&gpusched->lock);
	gpusched->config.hang_held_ns = 1000 * FGV_NS_PER_SEC;
	fake->session->stuck_ns = gpusched->config.hang_held_ns - 20 * SLICE_NS;
	pthread_mutex_unlock(&gpusched->lock);
}

/* A session is ended for hanging only if it may be, and if its work makes no progress. */
START_TEST(no_progress)
{
	struct fgv_gpusched_stats last;

	begin(&free_holder);
	holds[1].works = two.grant;
	let_be_stuck(&two);
	fake_want(&two, true);
	AWAIT(count_grants(&two) >= 40);
	ck_assert(!fake_is_dead(&two));
	let_be_stuck(&one);
	AWAIT(fake_is_dead(&one));
	ck_assert_int_eq(fake_detach(&one, &last), SIGKILL);
	ck_assert_str_eq(last.killed_for, "its work does not end (key \"hang\")");
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}
END_TEST

/* --- A process that ignores its grant --------------------------------------- */

/* A process that works without a grant, in memory that it shares with the test. */
struct cheat {
	bool works;
	unsigned stops;
};

/* Its kernel never ends, and it has asked nobody. */
static void ignore_grants(const struct softgpu_engine *engine, struct cheat *cheat)
{
	static const int never;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fgv_engine_acquire(engine, &never);
	__atomic_store_n(&cheat->works, true, __ATOMIC_SEQ_CST);
	for (;;) {
		if (!fgv_engine_is_held(engine))
			continue;
		__atomic_add_fetch(&cheat->stops, 1, __ATOMIC_SEQ_CST);
		fgv_engine_stand_still(engine, &never);
	}
}

static struct softgpu_engine take_seat(struct fgv_arbiter *arbiter, struct fgv_arbiter_seat **seat)
{
	int fds[FGV_SEAT_FDS];
	void *page;

	ck_assert_int_eq(fgv_arbiter_attach(arbiter, false, seat, fds), 0);
	page = mmap(NULL, sizeof(struct softgpu_seat), PROT_READ | PROT_WRITE, MAP_SHARED,
		    fds[FGV_SEAT_PAGE], 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	return (struct softgpu_engine){page, fds[FGV_SEAT_BELL], fds[FGV_SEAT_ARBITER]};
}

/* It has a seat, and works when this returns. */
static pid_t spawn_cheat(struct fgv_arbiter *arbiter, struct cheat *cheat)
{
	struct fgv_arbiter_seat *seat;
	struct softgpu_engine engine = take_seat(arbiter, &seat);
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		ignore_grants(&engine, cheat);
	fgv_arbiter_started(seat, pid);
	AWAIT(__atomic_load_n(&cheat->works, __ATOMIC_SEQ_CST));
	return pid;
}

static void adopt_soft(struct fgv_arbiter *arbiter, struct fake *fake, pid_t pid)
{
	struct fgv_hold *hold;

	ck_assert_int_eq(fgv_hold_soft_adopt(arbiter, pid, &hold), 0);
	fgv_gpusched_session_hold(fake->session, hold);
}

START_TEST(work_without_a_grant)
{
	static const int never;
	struct cheat *cheat = mmap(NULL, sizeof(*cheat), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fgv_arbiter_seat *seat;
	struct softgpu_engine engine;
	struct fgv_arbiter *arbiter;
	pid_t pid;

	ck_assert_int_eq(fgv_arbiter_create(&arbiter, "soft GPU 0", 0), 0);
	pid = spawn_cheat(arbiter, cheat);
	engine = take_seat(arbiter, &seat);
	fgv_arbiter_started(seat, getpid());
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	adopt_soft(arbiter, &one, pid);
	adopt_soft(arbiter, &two, getpid());
	/* Nobody else wants the GPU, so it is left alone. */
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert_uint_eq(cheat->stops, 0);
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert(fgv_engine_acquire(&engine, &never));
	AWAIT(__atomic_load_n(&cheat->stops, __ATOMIC_SEQ_CST) == 1);
	usleep(10 * SLICE_NS / FGV_NS_PER_US);
	ck_assert_uint_eq(softgpu_seat_load(engine.seat), SOFTGPU_SEAT_BUSY);
	ck_assert_uint_eq(__atomic_load_n(&one.grant->wants, __ATOMIC_SEQ_CST), 0);
	fgv_engine_release(&engine);
	fake_both_leave();
	kill(pid, SIGKILL);
	fgv_arbiter_forget(arbiter, pid);
	fgv_arbiter_detach(seat);
	waitpid(pid, NULL, 0);
	fgv_arbiter_destroy(arbiter);
	munmap(cheat, sizeof(*cheat));
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("gpusched_hold");
	TCase *tcase = tcase_create("hold"), *slow = tcase_create("slow");

	tcase_set_timeout(tcase, 2 * HANG_LIMIT_SEC);
	tcase_add_checked_fixture(tcase, gpusched_start, gpusched_stop);
	tcase_add_test(tcase, taken_and_held);
	tcase_add_test(tcase, work_may_end_by_itself);
	tcase_add_test(tcase, charged_for_the_time);
	tcase_add_test(tcase, alone_is_not_held);
	tcase_add_test(tcase, let_go_in_its_turn);
	tcase_add_test(tcase, in_a_call_while_held);
	tcase_add_test(tcase, held_in_a_call);
	tcase_add_test(tcase, let_go_when_it_ends);
	tcase_add_test(tcase, hold_fails);
	tcase_add_test(tcase, release_fails);
	tcase_add_test(tcase, no_progress);
	tcase_add_test(tcase, work_without_a_grant);
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(slow, 2 * HANG_LIMIT_SEC);
	tcase_add_test(slow, drained_is_not_held_at_once);
	suite_add_tcase(suite, slow);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
