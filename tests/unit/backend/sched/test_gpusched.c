/*
 * The daemon's scheduler of a device: how grants are asked for, given, limited and taken, and
 * that shares follow weights. What is charged is made exact by holding for as long as is
 * reported.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include "shmring/park.h"
#include "tests/unit/backend/sched/gpusched_fake.h"

/* --- The protocol ---------------------------------------------------------- */

START_TEST(who_is_alone_has_no_limit)
{
	struct fgv_gpusched_stats stats;

	fake_one_alone();
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(one.grant->flags, 0);
	fgv_gpusched_session_stats(one.session, &stats);
	ck_assert(stats.holding && !stats.waiting && !stats.killed_for);
	ck_assert_uint_eq(stats.sched.grants, 1);
	fake_give_back(&one, false);
	do
		fgv_gpusched_session_stats(one.session, &stats);
	while (stats.holding);
	fake_both_leave();
}
END_TEST

START_TEST(newcomer_limits_and_gets_the_grant)
{
	fake_one_alone();
	fake_report(&one, 7777);
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	ck_assert_uint_gt(fake_limit(&one), 7777);
	ck_assert_uint_le(fake_limit(&one), 7777 + SLICE_NS);
	/* What it had used by then was charged before two was heard of. */
	pthread_mutex_lock(&gpusched->lock);
	ck_assert_uint_eq(one.session->used_ns, 7777);
	pthread_mutex_unlock(&gpusched->lock);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	ck_assert_uint_eq(fake_limit(&two), FGV_GRANT_NO_LIMIT);
	fake_both_leave();
}
END_TEST

START_TEST(both_busy_have_limits)
{
	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_report(&one, 1000);
	fake_give_back(&one, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_uint_eq(fake_limit(&two), SLICE_NS);
	fake_report(&two, 2000);
	fake_give_back(&two, true);
	AWAIT(fake_state(&one) == FGV_GRANT_BUSY || fake_state(&two) == FGV_GRANT_BUSY);
	if (fake_state(&one) == FGV_GRANT_BUSY)
		ck_assert_uint_eq(fake_limit(&one), 1000 + SLICE_NS);
	else
		ck_assert_uint_eq(fake_limit(&two), 2000 + SLICE_NS);
	fake_both_leave();
}
END_TEST

static bool holds(const struct fake *fake)
{
	return fake_state(fake) == FGV_GRANT_BUSY;
}

/* What two has been charged; @at_ns: up to when. */
static uint64_t charged_to_two(uint64_t *at_ns)
{
	uint64_t charged_ns;

	pthread_mutex_lock(&gpusched->lock);
	charged_ns = fgv_sched_session_stats(two.session->sched)->gpu_ns;
	*at_ns = two.session->charged_at_ns;
	pthread_mutex_unlock(&gpusched->lock);
	return charged_ns;
}

/*
 * Two says that it made @changes in its next turn: what the turn is charged beyond its time by the
 * clock. Both sessions give back at once, and go on asking.
 */
static int64_t beyond_the_clock(uint32_t changes)
{
	uint64_t before_ns, charged_ns, from_ns, to_ns;

	for (;;) {
		AWAIT(holds(&one) || holds(&two));
		if (holds(&two))
			break;
		fake_give_back(&one, true);
	}
	before_ns = charged_to_two(&from_ns);
	__atomic_store_n(&two.grant->changes, two.grant->changes + changes, __ATOMIC_RELAXED);
	fake_give_back(&two, true);
	AWAIT(holds(&one) || holds(&two));
	charged_ns = charged_to_two(&to_ns) - before_ns;
	return (int64_t)charged_ns - (int64_t)(to_ns - from_ns);
}

/*
 * A turn in which modules were loaded pays once for what the next one loses by it. The clock that
 * is read here runs a little longer than the grant, so the charge may be less than it says.
 */
START_TEST(changes_are_charged)
{
	int64_t beyond_ns, most_ns = INT64_MIN;

	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_give_back(&one, true);
	for (int turn = 0; turn < 20; turn++) {
		ck_assert_int_le(beyond_the_clock(0), 0);
		beyond_ns = beyond_the_clock(1 + (uint32_t)turn);
		ck_assert_int_le(beyond_ns, FGV_GRANT_CHANGE_NS);
		most_ns = beyond_ns > most_ns ? beyond_ns : most_ns;
	}
	ck_assert_int_gt(most_ns, 0);
	fake_both_leave();
}
END_TEST

START_TEST(next_is_told_before)
{
	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	ck_assert(!fake_is_next(&two));
	fake_both_leave();
}
END_TEST

START_TEST(next_that_withdraws_is_next_no_more)
{
	struct fgv_gpusched_stats stats;

	fake_one_alone();
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	fake_want(&two, false);
	AWAIT(!fake_is_next(&two));
	fgv_gpusched_session_stats(two.session, &stats);
	ck_assert(!stats.waiting);
	fake_give_back(&one, false);
	fake_want(&one, true);
	AWAIT_STATE(&one, BUSY);
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	fake_both_leave();
}
END_TEST

/* The session that sleeps is not woken for it: its bell stays silent. */
START_TEST(idle_is_taken_without_waking)
{
	fake_one_alone();
	fgv_park_announce(&one.grant->parked);
	ck_assert(fake_move(&one, FGV_GRANT_IDLE));
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_NONE);
	ck_assert_int_eq(fgv_doorbell_wait(one.bell_fd, -1, 0), 0);
	/* And it gets the grant again when it asks. */
	ck_assert(!fgv_grant_move(one.grant, 4 | FGV_GRANT_IDLE, FGV_GRANT_BUSY));
	fake_want(&one, true);
	AWAIT(fake_limit(&two) != FGV_GRANT_NO_LIMIT);
	fake_give_back(&two, false);
	AWAIT_STATE(&one, BUSY);
	fake_both_leave();
}
END_TEST

START_TEST(idle_and_back_while_alone)
{
	struct fgv_gpusched_stats stats;

	fake_one_alone();
	for (int i = 0; i < 1000; i++) {
		ck_assert(fake_move(&one, FGV_GRANT_IDLE));
		fake_ring(&one);
		ck_assert(fake_move(&one, FGV_GRANT_BUSY));
	}
	fgv_gpusched_session_stats(one.session, &stats);
	ck_assert_uint_eq(stats.sched.grants, 1);
	fake_both_leave();
}
END_TEST

/* Whatever the order, either the daemon sees IDLE or the session sees the limit. */
START_TEST(idle_against_limit)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	for (int i = 0; i < 2000; i++) {
		uint64_t word;

		fake_want(&one, true);
		AWAIT_STATE(&one, BUSY);
		__atomic_store_n(&one.grant->wants, 0, __ATOMIC_RELEASE);
		fake_want(&two, true);
		for (volatile int spin = i % 500; spin > 0; spin--)
			continue;
		ck_assert(fake_move(&one, FGV_GRANT_IDLE));
		word = fgv_grant_load(one.grant);
		if (fgv_grant_state(word) == FGV_GRANT_IDLE &&
		    fake_limit(&one) != FGV_GRANT_NO_LIMIT &&
		    fgv_grant_move(one.grant, word, FGV_GRANT_NONE))
			fake_ring(&one);
		AWAIT_STATE(&two, BUSY);
		fake_give_back(&two, false);
	}
	fake_both_leave();
}
END_TEST

START_TEST(sleeper_is_woken)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	fgv_park_announce(&one.grant->parked);
	fake_want(&one, true);
	ck_assert_int_eq(fgv_doorbell_wait(one.bell_fd, -1, -1), 1);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	fgv_doorbell_clear(one.bell_fd);
	/* By a limit, too. */
	fake_want(&two, true);
	ck_assert_int_eq(fgv_doorbell_wait(one.bell_fd, -1, -1), 1);
	ck_assert_uint_ne(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	/* The next session is woken by that, unless it is awake. */
	AWAIT(fake_is_next(&two));
	ck_assert_int_eq(fgv_doorbell_wait(two.bell_fd, -1, 0), 0);
	fake_want(&two, false);
	AWAIT(!fake_is_next(&two));
	fgv_park_announce(&two.grant->parked);
	fake_want(&two, true);
	ck_assert_int_eq(fgv_doorbell_wait(two.bell_fd, -1, -1), 1);
	ck_assert(fake_is_next(&two));
	fake_both_leave();
}
END_TEST

START_TEST(time_shared_grants)
{
	uint64_t before_ns, limit_ns;

	gpusched_start_with(&fgv_policy_credit_poll, 0);
	fake_one_alone();
	ck_assert_uint_eq(one.grant->flags, FGV_GRANT_UNDRAINED | FGV_GRANT_KEEP);
	before_ns = fgv_now_ns();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	limit_ns = fake_limit(&one);
	ck_assert_uint_ge(limit_ns, before_ns);
	ck_assert_uint_le(limit_ns, fgv_now_ns() + SLICE_NS);
	fake_both_leave();
	gpusched_stop();
}
END_TEST

/* Under `none` everybody holds, and an idle session keeps what it has. */
START_TEST(everybody_holds_under_none)
{
	gpusched_start_with(&fgv_policy_none, 0);
	fake_one_alone();
	ck_assert(fake_move(&one, FGV_GRANT_IDLE));
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_IDLE);
	ck_assert_uint_eq(fake_limit(&two), FGV_GRANT_NO_LIMIT);
	fake_both_leave();
	gpusched_stop();
}
END_TEST

static struct fgv_policy_vgpu *pick_nobody(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	return NULL;
}

START_TEST(starving_policy_gives_way)
{
	struct fgv_policy starving = {
		.name = "starving",
		.starve_ns = FGV_NS_PER_MS,
		.pick = pick_nobody,
	};

	gpusched_start_with(&starving, 0);
	ck_assert_str_eq(fgv_gpusched_policy(gpusched), "starving");
	fake_one_alone();
	ck_assert_str_eq(fgv_gpusched_policy(gpusched), "fair");
	fake_both_leave();
	gpusched_stop();
}
END_TEST

/* --- Shares ---------------------------------------------------------------- */

struct worker {
	struct fake fake;
	unsigned vm;
	pthread_t thread;
	uint64_t grants; /* that it has had */
	uint32_t over;
};

/*
 * Uses each grant up to its limit, to the nanosecond: the daemon can't think that it was held
 * for less, and what was held longer is not reported.
 */
static void *work(void *arg)
{
	struct worker *worker = arg;
	struct fake *fake = &worker->fake;
	uint64_t since_ns;

	fake_want(fake, true);
	while (!__atomic_load_n(&worker->over, __ATOMIC_RELAXED)) {
		if (fake_state(fake) != FGV_GRANT_BUSY || fake_limit(fake) == FGV_GRANT_NO_LIMIT) {
			usleep(50);
			continue;
		}
		since_ns = fgv_now_ns();
		while (fgv_now_ns() < since_ns + SLICE_NS)
			sched_yield();
		fake_report(fake, fake_limit(fake));
		__atomic_fetch_add(&worker->grants, 1, __ATOMIC_RELAXED);
		fake_give_back(fake, true);
	}
	return NULL;
}

static uint64_t worker_grants(const struct worker *worker)
{
	return __atomic_load_n(&worker->grants, __ATOMIC_RELAXED);
}

static void resume_workers(struct worker *workers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		workers[i].over = 0;
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
}

static void start_workers(struct worker *workers, const unsigned *vms, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		workers[i] = (struct worker){.vm = vms[i]};
		fake_attach(&workers[i].fake, vgpus[vms[i]]);
	}
	resume_workers(workers, count);
}

static void stop_workers(struct worker *workers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(&workers[i].over, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

static void detach_workers(struct worker *workers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(fake_detach(&workers[i].fake, NULL), 0);
}

/* What two VMs, always busy, have been charged since the workers' start. */
struct balance {
	uint64_t charged_ns[2];
	uint64_t reported_ns[2];
};

static const struct balance nothing;

static struct balance look_at_balance(const struct worker *workers, size_t count,
				      const struct balance *start)
{
	struct balance balance = {0};

	for (int i = 0; i < 2; i++)
		balance.charged_ns[i] = gpusched_used_ns(vgpus[i]) - start->charged_ns[i];
	for (size_t i = 0; i < count; i++)
		balance.reported_ns[workers[i].vm] += workers[i].fake.used_ns;
	return balance;
}

/*
 * By the rule of start-time fair queuing they are no further apart than the longest grants of
 * the two: a slice each, and what was charged beyond the report because a worker did not run
 * for long. As much again for where they were stopped, and for where they began.
 */
static bool is_balanced(const struct balance *from, const struct balance *to,
			const uint64_t weights[2])
{
	uint64_t used_ns[2], apart_ns, allowed_ns = 0;

	for (int i = 0; i < 2; i++) {
		ck_assert_uint_ge(to->charged_ns[i], to->reported_ns[i]);
		used_ns[i] = (to->charged_ns[i] - from->charged_ns[i]) / weights[i];
		allowed_ns += 3 * (SLICE_NS + to->charged_ns[i] - to->reported_ns[i]);
	}
	apart_ns = fgv_max_u64(used_ns[0], used_ns[1]) - fgv_min_u64(used_ns[0], used_ns[1]);
	return apart_ns <= allowed_ns;
}

/*
 * A worker that does not run between the start and its first request leaves the GPU to the
 * others, who owe it nothing for that. On a busy machine this happens; not over and over.
 */
#define ATTEMPTS 5

static bool succeeds(bool (*attempt)(void))
{
	for (int i = 0; i < ATTEMPTS; i++) {
		if (attempt())
			return true;
	}
	return false;
}

static bool attempt_weights(void)
{
	static const uint64_t weights[] = {1, 3};
	struct balance start = look_at_balance(NULL, 0, &nothing), end;
	struct worker workers[2];
	bool balanced;

	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[1], 3), 0);
	ck_assert_uint_eq(fgv_gpusched_weight(vgpus[1]), 3);
	start_workers(workers, (unsigned[]){0, 1}, 2);
	AWAIT(worker_grants(&workers[0]) >= 50);
	stop_workers(workers, 2);
	end = look_at_balance(workers, 2, &start);
	balanced = is_balanced(&nothing, &end, weights);
	detach_workers(workers, 2);
	return balanced;
}

START_TEST(shares_follow_weights)
{
	ck_assert(succeeds(attempt_weights));
}
END_TEST

/* What was used before the change does not count against anybody after it. */
static bool attempt_change(void)
{
	static const uint64_t before[] = {1, 1}, after[] = {4, 1};
	struct balance start = look_at_balance(NULL, 0, &nothing), middle, end;
	struct worker workers[2];
	bool balanced;

	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], 1), 0);
	start_workers(workers, (unsigned[]){0, 1}, 2);
	AWAIT(worker_grants(&workers[0]) >= 20 && worker_grants(&workers[1]) >= 20);
	stop_workers(workers, 2);
	middle = look_at_balance(workers, 2, &start);
	balanced = is_balanced(&nothing, &middle, before);
	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], 4), 0);
	resume_workers(workers, 2);
	AWAIT(worker_grants(&workers[1]) >= 60);
	stop_workers(workers, 2);
	end = look_at_balance(workers, 2, &start);
	balanced = is_balanced(&middle, &end, after) && balanced;
	detach_workers(workers, 2);
	return balanced;
}

START_TEST(change_of_weight)
{
	ck_assert(succeeds(attempt_change));
}
END_TEST

START_TEST(weights_have_a_range)
{
	struct fgv_gpusched_vgpu *vgpu;

	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], 0), -EINVAL);
	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], FGV_SCHED_WEIGHT_MAX + 1), -EINVAL);
	ck_assert_uint_eq(fgv_gpusched_weight(vgpus[0]), 1);
	ck_assert_int_eq(fgv_gpusched_attach_vgpu(gpusched, 0, &vgpu), -EINVAL);
}
END_TEST

/* The VM of two sessions gets no more than that of one. */
static bool attempt_sessions(void)
{
	static const uint64_t weights[] = {1, 1};
	struct fgv_gpusched_stats stats;
	struct balance start = look_at_balance(NULL, 0, &nothing), end, sessions;
	struct worker workers[3];
	bool balanced;

	start_workers(workers, (unsigned[]){0, 0, 1}, 3);
	AWAIT(worker_grants(&workers[0]) >= 20 && worker_grants(&workers[1]) >= 20);
	stop_workers(workers, 3);
	end = look_at_balance(workers, 3, &start);
	balanced = is_balanced(&nothing, &end, weights);
	for (int i = 0; i < 2; i++) {
		fgv_gpusched_session_stats(workers[i].fake.session, &stats);
		sessions.charged_ns[i] = stats.sched.gpu_ns;
		sessions.reported_ns[i] = workers[i].fake.used_ns;
	}
	balanced = is_balanced(&nothing, &sessions, weights) && balanced;
	detach_workers(workers, 3);
	/* What has gone still counts for the VM. */
	ck_assert_uint_ge(gpusched_used_ns(vgpus[0]),
			  sessions.charged_ns[0] + sessions.charged_ns[1]);
	return balanced;
}

START_TEST(sessions_share_their_vm)
{
	ck_assert(succeeds(attempt_sessions));
}
END_TEST

static void add_fair(Suite *suite)
{
	TCase *tcase = tcase_create("fair");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, gpusched_start, gpusched_stop);
	tcase_add_test(tcase, who_is_alone_has_no_limit);
	tcase_add_test(tcase, newcomer_limits_and_gets_the_grant);
	tcase_add_test(tcase, both_busy_have_limits);
	tcase_add_test(tcase, idle_is_taken_without_waking);
	tcase_add_test(tcase, idle_and_back_while_alone);
	tcase_add_test(tcase, idle_against_limit);
	tcase_add_test(tcase, shares_follow_weights);
	tcase_add_test(tcase, change_of_weight);
	tcase_add_test(tcase, weights_have_a_range);
	tcase_add_test(tcase, sessions_share_their_vm);
	suite_add_tcase(suite, tcase);
}

static void add_slow(Suite *suite)
{
	TCase *tcase = tcase_create("slow");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, gpusched_start_slow, gpusched_stop);
	tcase_add_test(tcase, changes_are_charged);
	tcase_add_test(tcase, next_is_told_before);
	tcase_add_test(tcase, next_that_withdraws_is_next_no_more);
	tcase_add_test(tcase, sleeper_is_woken);
	suite_add_tcase(suite, tcase);
}

static void add_others(Suite *suite)
{
	TCase *tcase = tcase_create("others");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_test(tcase, time_shared_grants);
	tcase_add_test(tcase, everybody_holds_under_none);
	tcase_add_test(tcase, starving_policy_gives_way);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("gpusched");
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
