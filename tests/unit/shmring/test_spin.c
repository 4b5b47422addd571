/* The spinning policy: FAIRGV_SPIN_US is obeyed or ignored, and a spin ends. */
#define _GNU_SOURCE
#include <check.h>
#include <sched.h>
#include <stdlib.h>

#include "common/util.h"
#include "shmring/spin.h"

/* The time that a spin that starts now is given; *slack_ns: more or less. */
static uint64_t time_given_ns(uint64_t *slack_ns)
{
	struct fgv_spin spin = fgv_spin_start();
	uint64_t before_ns = fgv_now_ns();

	ck_assert(fgv_spin_again(&spin));
	*slack_ns = fgv_now_ns() - before_ns;
	ck_assert_uint_ge(spin.deadline_ns, before_ns);
	return spin.deadline_ns - before_ns;
}

static void check_time(const char *asked, uint64_t want_us)
{
	uint64_t slack_ns, given_ns;

	setenv("FAIRGV_SPIN_US", asked, 1);
	fgv_spin_init();
	given_ns = time_given_ns(&slack_ns);
	ck_assert_uint_ge(given_ns, want_us * FGV_NS_PER_US);
	ck_assert_uint_le(given_ns, want_us * FGV_NS_PER_US + slack_ns);
}

START_TEST(obeys_the_environment)
{
	check_time("1", 1);
	check_time("300", 300);
	check_time("100000", 100000);
}
END_TEST

START_TEST(zero_never_spins)
{
	struct fgv_spin spin = fgv_spin_start();

	setenv("FAIRGV_SPIN_US", "0", 1);
	fgv_spin_init();
	ck_assert(!fgv_spin_again(&spin));
	ck_assert(!fgv_spin_again(&spin));
}
END_TEST

static const char *const nonsense[] = {
	"", "abc", "-1", "10x", "100001", "99999999999999999999", " 5", "0x10",
};

/* What is ignored leaves the default, which is what no variable at all gives. */
START_TEST(ignores_nonsense)
{
	uint64_t slack_ns, other_slack_ns, default_ns, given_ns;

	unsetenv("FAIRGV_SPIN_US");
	fgv_spin_init();
	default_ns = time_given_ns(&slack_ns);
	setenv("FAIRGV_SPIN_US", nonsense[_i], 1);
	fgv_spin_init();
	given_ns = time_given_ns(&other_slack_ns);
	ck_assert_uint_le(given_ns, default_ns + other_slack_ns);
	ck_assert_uint_le(default_ns, given_ns + slack_ns);
}
END_TEST

/* It gives up after its deadline and not before. */
START_TEST(ends)
{
	struct fgv_spin spin = fgv_spin_start();

	setenv("FAIRGV_SPIN_US", "200", 1);
	fgv_spin_init();
	while (fgv_spin_again(&spin))
		continue;
	ck_assert_uint_ge(fgv_now_ns(), spin.deadline_ns);
	ck_assert(spin.turns > 1);
}
END_TEST

/* In the place of the C library's, so that the machine has as many as a test needs. */
static int processors;

int sched_getaffinity(pid_t pid, size_t len, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(len, set);
	for (int i = 0; i < processors; i++)
		CPU_SET_S((size_t)i, len, set);
	return 0;
}

/* Where processors are few, nobody goes on; where they are not, it ends too, and later. */
START_TEST(longer_ends)
{
	static const int machines[] = {1, 2, 16};
	struct fgv_spin spin = fgv_spin_start();
	uint64_t end_ns;

	processors = machines[_i];
	setenv("FAIRGV_SPIN_US", "50", 1);
	fgv_spin_init();
	ck_assert_int_eq(fgv_spin_is_cheap(), processors == 16);
	ck_assert(!fgv_spin_longer(&spin));
	while (fgv_spin_again(&spin) || fgv_spin_longer(&spin))
		continue;
	end_ns = fgv_now_ns();
	ck_assert_uint_ge(end_ns, spin.deadline_ns);
	if (fgv_spin_is_cheap())
		ck_assert_uint_ge(end_ns - spin.deadline_ns, 1000 * FGV_NS_PER_US);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spin");
	TCase *tcase = tcase_create("spin");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, obeys_the_environment);
	tcase_add_test(tcase, zero_never_spins);
	tcase_add_loop_test(tcase, ignores_nonsense, 0, FGV_ARRAY_LEN(nonsense));
	tcase_add_test(tcase, ends);
	tcase_add_loop_test(tcase, longer_ends, 0, 3);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
