/* What was used in the last second: all of it, nothing else, and in the right proportion. */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/recent.h"

#define MS  FGV_NS_PER_MS
#define SEC FGV_NS_PER_SEC

START_TEST(nothing_is_nothing)
{
	struct fgv_recent recent = {0};

	ck_assert_uint_eq(fgv_recent_ns(&recent, 0), 0);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 1234567 * SEC), 0);
}
END_TEST

START_TEST(a_turn_counts_for_a_second)
{
	struct fgv_recent recent = {0};

	fgv_recent_add(&recent, 5 * MS, 1000 * SEC + 10 * MS, 1000 * SEC + 16 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 1000 * SEC + 16 * MS), 5 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 1001 * SEC), 5 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 1001 * SEC + 100 * MS), 0);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 2000 * SEC), 0);
}
END_TEST

/* Turns of 6 ms, every other one its own, and one report an hour: half of the time. */
START_TEST(half_is_half_however_it_is_reported)
{
	struct fgv_recent often = {0}, seldom = {0};
	uint64_t at_ns = 3600 * SEC;

	for (int turn = 0; turn < 1000; turn++, at_ns += 12 * MS)
		fgv_recent_add(&often, 6 * MS, at_ns, at_ns + 6 * MS);
	fgv_recent_add(&seldom, at_ns / 2, 0, at_ns);
	ck_assert_uint_ge(fgv_recent_ns(&often, at_ns), SEC / 2 - 6 * MS);
	ck_assert_uint_le(fgv_recent_ns(&often, at_ns), SEC / 2 + 6 * MS);
	ck_assert_uint_ge(fgv_recent_ns(&seldom, at_ns), SEC / 2 - MS);
	ck_assert_uint_le(fgv_recent_ns(&seldom, at_ns), SEC / 2 + MS);
}
END_TEST

/* Two holders of one vGPU, charged one after the other for the same time. */
START_TEST(holders_at_once_add_up)
{
	struct fgv_recent recent = {0};

	fgv_recent_add(&recent, 300 * MS, 10 * SEC, 10 * SEC + 500 * MS);
	fgv_recent_add(&recent, 400 * MS, 10 * SEC, 10 * SEC + 500 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 10 * SEC + 500 * MS), 700 * MS);
	/* Half of that time ago, the other half of the use is left. */
	ck_assert_uint_eq(fgv_recent_ns(&recent, 11 * SEC + 250 * MS), 350 * MS);
}
END_TEST

/* Nothing is lost or invented, whatever is added in which order. */
START_TEST(sums_hold)
{
	struct fgv_recent recent = {0};
	uint64_t at_ns = 7 * SEC, sum_ns = 0;
	unsigned seed = 42;

	while (at_ns < 8 * SEC) {
		uint64_t len_ns = (uint64_t)rand_r(&seed) % (90 * MS);
		uint64_t used_ns = (uint64_t)rand_r(&seed) % (len_ns + 1);

		fgv_recent_add(&recent, used_ns, at_ns, at_ns + len_ns);
		at_ns += len_ns;
		sum_ns += used_ns;
		if (at_ns < 8 * SEC)
			ck_assert_uint_eq(fgv_recent_ns(&recent, at_ns), sum_ns);
	}
}
END_TEST

START_TEST(no_time_at_all)
{
	struct fgv_recent recent = {0};

	fgv_recent_add(&recent, 1 * MS, 5 * SEC, 5 * SEC);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 5 * SEC), 1 * MS);
}
END_TEST

/* What a session has used stays its VM's when it is gone, and no longer than otherwise. */
START_TEST(what_is_merged_counts_as_long)
{
	struct fgv_recent vm = {0}, gone = {0};

	fgv_recent_add(&vm, 100 * MS, 20 * SEC, 20 * SEC + 200 * MS);
	fgv_recent_add(&gone, 200 * MS, 20 * SEC + 200 * MS, 20 * SEC + 400 * MS);
	fgv_recent_merge(&vm, &gone, 20 * SEC + 400 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&vm, 20 * SEC + 400 * MS), 300 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&vm, 21 * SEC + 200 * MS), 200 * MS);
	ck_assert_uint_eq(fgv_recent_ns(&vm, 21 * SEC + 400 * MS), 0);
}
END_TEST

START_TEST(a_part_ends_somewhere)
{
	struct fgv_recent recent = {0};

	fgv_recent_add(&recent, 10 * SEC, 5 * SEC, 5 * SEC);
	ck_assert_uint_eq(fgv_recent_ns(&recent, 5 * SEC), UINT32_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recent use");
	TCase *tcase = tcase_create("recent");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, nothing_is_nothing);
	tcase_add_test(tcase, a_turn_counts_for_a_second);
	tcase_add_test(tcase, half_is_half_however_it_is_reported);
	tcase_add_test(tcase, holders_at_once_add_up);
	tcase_add_test(tcase, sums_hold);
	tcase_add_test(tcase, no_time_at_all);
	tcase_add_test(tcase, what_is_merged_counts_as_long);
	tcase_add_test(tcase, a_part_ends_somewhere);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
