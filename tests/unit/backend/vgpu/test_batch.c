/*
 * Batches of launches: whatever goes together, the GPU gets the same launches in the same order
 * as without batches, also where it fails at some of them.
 */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/backend/vgpu/batch_driver.h"

START_TEST(an_idle_gpu_gets_the_first_at_once)
{
	driver.session.gate.finished = driver.session.gate.submitted;
	driver_put(1, 0, 1, 0);
	ck_assert_uint_eq(driver.executed, 1);
	driver.session.gate.submitted++;
	driver_put(1, 0, 2, 0);
	ck_assert_uint_eq(driver.executed, 1);
	driver_put(1, 0, 3, 0);
	ck_assert_uint_eq(driver.executed, 3);
	for (unsigned i = 0; i < 3; i++)
		driver_put(1, 0, i, 0);
	ck_assert_uint_eq(driver.executed, 3);
	driver_put(1, 0, 4, 0);
	ck_assert_uint_eq(driver.executed, 7);
	driver_compare();
}
END_TEST

/* As many as may wait, again and again. */
static void put_many(unsigned batches, uint8_t seed)
{
	for (unsigned i = 0; i < batches; i++) {
		for (unsigned k = 0; k < FGV_BATCH_MAX; k++)
			driver_put(k % 4, 1, k, seed);
		driver_compare();
	}
}

START_TEST(long_queues_become_graphs)
{
	put_many(10, 1);
	ck_assert_uint_gt(driver.launched_graphs, 0);
	ck_assert_uint_gt(driver.session.account->batched, 0);
	/* What is the same as last time is not told again. */
	driver.updates = 0;
	put_many(4, 1);
	ck_assert_uint_eq(driver.updates, 0);
	put_many(2, 2);
	ck_assert_uint_eq(driver.updates, FGV_BATCH_MAX * 3 / 4);
}
END_TEST

START_TEST(off_means_one_by_one)
{
	fgv_batch_init(&driver.session.batch, false);
	put_many(10, 1);
	ck_assert_uint_eq(driver.graphs + driver.launched_graphs, 0);
}
END_TEST

/* A graph's kernels would have the usual priority. */
START_TEST(urgent_streams_go_one_by_one)
{
	driver_make_urgent(1);
	put_many(10, 1);
	ck_assert_uint_eq(driver.graphs + driver.launched_graphs, 0);
}
END_TEST

START_TEST(what_goes_is_forgotten)
{
	put_many(10, 1);
	ck_assert_uint_gt(driver.graphs, 0);
	fgv_batch_forget_stream(&driver.session, driver_stream(2));
	ck_assert_uint_gt(driver.graphs, 0);
	fgv_batch_forget_stream(&driver.session, driver_stream(1));
	ck_assert_uint_eq(driver.graphs, 0);
	put_many(10, 1);
	ck_assert_uint_gt(driver.graphs, 0);
	fgv_batch_forget_functions(&driver.session);
	ck_assert_uint_eq(driver.graphs, 0);
	put_many(1, 1);
}
END_TEST

static void do_something(unsigned *stream)
{
	unsigned what = (unsigned)random() % 1000;

	if (what < 10) {
		fgv_batch_flush(&driver.session);
		fgv_batch_forget_functions(&driver.session);
	} else if (what < 20) {
		fgv_batch_flush(&driver.session);
		fgv_batch_forget_stream(&driver.session,
					driver_stream((unsigned)random() % DRIVER_STREAMS));
	} else if (what < 30) {
		driver.session.gate.finished = driver.session.gate.submitted - what % 2;
	} else if (what < 60) {
		fgv_batch_flush(&driver.session);
	} else if (what < 80) {
		*stream = (unsigned)random() % DRIVER_STREAMS;
	} else {
		driver_put((unsigned)random() % DRIVER_FUNCTIONS, *stream, (uint32_t)random() % 4,
			   (uint8_t)(random() % 2));
	}
}

/* With failures of the driver's, in one of so many calls: 0, 100, 10. */
START_TEST(any_sequence)
{
	static const unsigned rates[] = {0, 100, 10};
	unsigned stream = 0;

	driver.fails = rates[_i];
	for (unsigned i = 0; i < 100000; i++) {
		do_something(&stream);
		if (driver.wanted > DRIVER_LOG_MAX - 10)
			driver_compare();
		if (i % 1000 == 0)
			driver.session.batch.failures = 0;
	}
	driver_compare();
	ck_assert_int_eq(driver.session.deferred, CUDA_SUCCESS);
	if (!driver.fails)
		ck_assert_uint_gt(driver.launched_graphs, 100);
}
END_TEST

/* Where the driver cannot follow at all, it is not asked for ever. */
START_TEST(a_driver_that_cannot)
{
	driver.fails = 1;
	put_many(100, 1);
	ck_assert(!driver.session.batch.is_on);
	ck_assert_uint_eq(driver.graphs + driver.launched_graphs, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("batch");
	TCase *t = tcase_create("batch");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, driver_setup, driver_teardown);
	tcase_add_test(t, an_idle_gpu_gets_the_first_at_once);
	tcase_add_test(t, long_queues_become_graphs);
	tcase_add_test(t, off_means_one_by_one);
	tcase_add_test(t, urgent_streams_go_one_by_one);
	tcase_add_test(t, what_goes_is_forgotten);
	tcase_add_loop_test(t, any_sequence, 0, 3);
	tcase_add_test(t, a_driver_that_cannot);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
