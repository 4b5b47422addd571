/* How long a wait lasts at least. */
#include <check.h>
#include <stdlib.h>
#include "shmring/usual.h"

#define LATE_NS 25000

static void note_often(uint32_t *usual_ns, uint64_t took_ns, int times)
{
	for (int i = 0; i < times; i++)
		fgv_usual_note(usual_ns, took_ns, false);
}

START_TEST(rises_slowly_and_falls_at_once)
{
	uint32_t usual_ns = 0;

	fgv_usual_note(&usual_ns, 1000000, false);
	ck_assert_uint_gt(usual_ns, 0);
	ck_assert_uint_lt(usual_ns, 10000);
	note_often(&usual_ns, 1000000, 100);
	ck_assert_uint_eq(usual_ns, 1000000);
	fgv_usual_note(&usual_ns, 30000, false);
	ck_assert_uint_eq(usual_ns, 30000);
	for (int i = 0; i < 100; i++) {
		fgv_usual_note(&usual_ns, 1000000, false);
		fgv_usual_note(&usual_ns, 30000, false);
	}
	ck_assert_uint_eq(usual_ns, 30000);
}
END_TEST

/* Else each would sleep longer than the one before. */
START_TEST(gets_shorter_where_it_was_too_long)
{
	uint32_t usual_ns = 800000;

	fgv_usual_note(&usual_ns, 850000, true);
	ck_assert_uint_eq(usual_ns, 700000);
	fgv_usual_note(&usual_ns, 650000, true);
	ck_assert_uint_eq(usual_ns, 612500);
	fgv_usual_note(&usual_ns, 500000, true);
	ck_assert_uint_eq(usual_ns, 500000);
}
END_TEST

START_TEST(ends_at_what_it_can_hold)
{
	uint32_t usual_ns = 0;

	note_often(&usual_ns, UINT64_MAX, 1000);
	ck_assert_uint_eq(usual_ns, UINT32_MAX);
	fgv_usual_note(&usual_ns, 0, false);
	ck_assert_uint_eq(usual_ns, 0);
}
END_TEST

START_TEST(rests_for_the_most_of_it)
{
	ck_assert_uint_eq(fgv_usual_rest_ns(1000000, LATE_NS), 1000000 - LATE_NS);
	ck_assert_uint_eq(fgv_usual_rest_ns(2 * LATE_NS, LATE_NS), 0);
	ck_assert_uint_eq(fgv_usual_rest_ns(0, LATE_NS), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("usual");
	TCase *tcase = tcase_create("usual");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, rises_slowly_and_falls_at_once);
	tcase_add_test(tcase, gets_shorter_where_it_was_too_long);
	tcase_add_test(tcase, ends_at_what_it_can_hold);
	tcase_add_test(tcase, rests_for_the_most_of_it);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
