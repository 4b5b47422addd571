/* Histograms of durations: every duration in the right bucket, quantiles, the ends. */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/hist.h"

START_TEST(edges_grow_and_hold)
{
	struct fgv_hist h = {0};
	uint64_t last = 0;

	for (unsigned int i = 0; i < FGV_HIST_BUCKETS - 1; i++) {
		uint64_t edge = fgv_hist_edge_ns(i);

		ck_assert_uint_gt(edge, last);
		fgv_hist_add(&h, edge - 1);
		ck_assert_uint_eq(h.bucket[i], i == 0 ? 1 : 2);
		fgv_hist_add(&h, edge);
		ck_assert_uint_eq(h.bucket[i + 1], 1);
		last = edge;
	}
	ck_assert_uint_eq(fgv_hist_edge_ns(FGV_HIST_BUCKETS - 1), UINT64_MAX);
}
END_TEST

START_TEST(the_ends)
{
	struct fgv_hist h = {0};

	ck_assert_uint_eq(fgv_hist_quantile_ns(&h, 500), 0);
	fgv_hist_add(&h, 0);
	ck_assert_uint_eq(h.bucket[0], 1);
	fgv_hist_add(&h, UINT64_MAX);
	ck_assert_uint_eq(h.bucket[FGV_HIST_BUCKETS - 1], 1);
	ck_assert_uint_eq(fgv_hist_quantile_ns(&h, 1000), UINT64_MAX);
}
END_TEST

START_TEST(quantiles_are_an_eighth_off_at_most)
{
	struct fgv_hist h = {0};

	for (uint64_t us = 1; us <= 10000; us++)
		fgv_hist_add(&h, us * FGV_NS_PER_US);
	for (unsigned int permille = 10; permille <= 1000; permille += 10) {
		uint64_t exact = 10 * permille * FGV_NS_PER_US;
		uint64_t got = fgv_hist_quantile_ns(&h, permille);

		ck_assert_uint_ge(got, exact);
		ck_assert_uint_le(got, exact + exact / 8);
	}
	ck_assert_uint_eq(h.count, 10000);
	ck_assert_uint_eq(h.max_ns, 10000 * FGV_NS_PER_US);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_hist");
	TCase *tc = tcase_create("hist");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, edges_grow_and_hold);
	tcase_add_test(tc, the_ends);
	tcase_add_test(tc, quantiles_are_an_eighth_off_at_most);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
