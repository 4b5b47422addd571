/* When processes that are kept ready are started: never too many, never too soon, never lost. */
#include <check.h>
#include <stdlib.h>

#include "backend/warm_plan.h"
#include "common/util.h"

#define NOW	(100 * FGV_NS_PER_SEC)
#define SOON	(NOW + FGV_WARM_QUIET_NS)
#define AT_ONCE 1000

static struct fgv_warm_plan plan;

static void init(unsigned wanted)
{
	fgv_warm_plan_init(&plan, wanted, NOW);
}

static void start_one(void)
{
	fgv_warm_plan_started(&plan);
	fgv_warm_plan_opened(&plan);
}

START_TEST(starts_as_many_as_are_wanted)
{
	init((unsigned)_i);
	for (int i = 0; i < _i; i++) {
		ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), NOW);
		fgv_warm_plan_started(&plan);
		ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), 0); /* one at a time */
		fgv_warm_plan_opened(&plan);
	}
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), 0);
}
END_TEST

START_TEST(leaves_a_session_its_first_calls)
{
	init(1);
	start_one();
	fgv_warm_plan_taken(&plan, true);
	fgv_warm_plan_session(&plan, NOW);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), SOON);
	/* The next one begins before. */
	fgv_warm_plan_session(&plan, NOW + 7);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), SOON + 7);
}
END_TEST

/* Sessions that begin all the time do not keep all that follow from a process that is ready. */
START_TEST(is_not_put_off_for_ever)
{
	uint64_t now_ns = NOW;

	init(1);
	for (int i = 0; i < AT_ONCE; i++, now_ns += FGV_WARM_QUIET_NS / 2)
		fgv_warm_plan_session(&plan, now_ns);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), NOW + FGV_WARM_QUIET_MAX_NS);
	fgv_warm_plan_started(&plan);
	fgv_warm_plan_taken(&plan, false);
	fgv_warm_plan_session(&plan, now_ns);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), now_ns + FGV_WARM_QUIET_NS);
}
END_TEST

START_TEST(replaces_what_was_taken_or_dropped)
{
	init(2);
	start_one();
	fgv_warm_plan_started(&plan);
	fgv_warm_plan_taken(&plan, false);
	ck_assert_uint_eq(plan.ready, 1);
	ck_assert_uint_eq(plan.opening, 0);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), NOW);
	start_one();
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), 0);
	fgv_warm_plan_dropped(&plan, true);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), NOW);
}
END_TEST

/* Fails after @lived_ns, and returns the pause. */
static uint64_t fail_one(uint64_t lived_ns)
{
	uint64_t pause_ns;

	start_one();
	pause_ns = fgv_warm_plan_failed(&plan, true, lived_ns, NOW);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), NOW + pause_ns);
	return pause_ns;
}

START_TEST(backs_off)
{
	uint64_t last_ns = FGV_WARM_AGAIN_MIN_NS;

	init(1);
	ck_assert_uint_eq(fail_one(0), FGV_WARM_AGAIN_MIN_NS);
	for (int i = 0; i < AT_ONCE; i++) {
		uint64_t pause_ns = fail_one(0);

		ck_assert_uint_eq(pause_ns, fgv_min_u64(2 * last_ns, FGV_WARM_AGAIN_MAX_NS));
		last_ns = pause_ns;
	}
	ck_assert_uint_eq(last_ns, FGV_WARM_AGAIN_MAX_NS);
	/* A session does not end the pause. */
	fgv_warm_plan_session(&plan, NOW + 1);
	ck_assert_uint_eq(fgv_warm_plan_due_ns(&plan), NOW + FGV_WARM_AGAIN_MAX_NS);
}
END_TEST

START_TEST(forgets_failures)
{
	init(1);
	fail_one(0);
	fail_one(0);
	ck_assert_uint_eq(fail_one(FGV_WARM_AGAIN_MAX_NS),
			  FGV_WARM_AGAIN_MIN_NS); /* it lived long */
	fail_one(0);
	start_one();
	fgv_warm_plan_taken(&plan, true); /* it was good for somebody */
	ck_assert_uint_eq(fail_one(0), FGV_WARM_AGAIN_MIN_NS);
	/* That it was taken before it was ready says nothing. */
	fgv_warm_plan_started(&plan);
	fgv_warm_plan_taken(&plan, false);
	ck_assert_uint_eq(fail_one(0), 2 * FGV_WARM_AGAIN_MIN_NS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("warm_plan");
	TCase *tcase = tcase_create("warm_plan");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, starts_as_many_as_are_wanted, 0, 4);
	tcase_add_test(tcase, leaves_a_session_its_first_calls);
	tcase_add_test(tcase, is_not_put_off_for_ever);
	tcase_add_test(tcase, replaces_what_was_taken_or_dropped);
	tcase_add_test(tcase, backs_off);
	tcase_add_test(tcase, forgets_failures);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
