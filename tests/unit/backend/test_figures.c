/*
 * Figures of a GPU: what NVML tells, what it does not, and how often it is asked.
 */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <unistd.h>
#include "backend/figures.h"
#include "backend/nvml.h"

#define PLACE "0000:1b:00.0"
#define NOW   5000000000u

static struct fgv_figures figures;
static struct fgv_nvml *nvml;

static void setup(void)
{
	char why[256];

	ck_assert_int_eq(fgv_nvml_open(&nvml, why, sizeof(why)), 0);
	fgv_figures_init(&figures, nvml);
}

static void teardown(void)
{
	fgv_nvml_close(nvml);
}

static void assert_unknown(const uint32_t *values)
{
	for (unsigned i = 0; i < FGV_FIGURES; i++)
		ck_assert_uint_eq(values[i], FGV_FIGURE_UNKNOWN);
}

START_TEST(what_is_told)
{
	const uint32_t *values = fgv_figures_read(&figures, 1, PLACE, NOW);

	ck_assert_uint_eq(values[FGV_FIGURE_TEMPERATURE], 41);
	ck_assert_uint_eq(values[FGV_FIGURE_POWER], 1000);
	ck_assert_uint_eq(values[FGV_FIGURE_POWER_LEAST], 200000);
	ck_assert_uint_eq(values[FGV_FIGURE_POWER_MOST], 700000);
	ck_assert_uint_eq(values[FGV_FIGURE_CLOCK_GRAPHICS], 1000);
	ck_assert_uint_eq(values[FGV_FIGURE_CLOCK_VIDEO], 1003);
	/* A function that fails, a state that is unknown, and functions that are not there. */
	ck_assert_uint_eq(values[FGV_FIGURE_FAN], FGV_FIGURE_UNKNOWN);
	ck_assert_uint_eq(values[FGV_FIGURE_STATE], FGV_FIGURE_UNKNOWN);
	ck_assert_uint_eq(values[FGV_FIGURE_MAX_SM], FGV_FIGURE_UNKNOWN);
	ck_assert_uint_eq(values[FGV_FIGURE_LINK_WIDTH], FGV_FIGURE_UNKNOWN);
}
END_TEST

START_TEST(asked_once_a_second)
{
	for (unsigned i = 0; i < 100; i++) {
		const uint32_t *values =
			fgv_figures_read(&figures, 0, PLACE, NOW + i * (FGV_FIGURES_NS / 100));

		ck_assert_uint_eq(values[FGV_FIGURE_POWER], 1000);
	}
	ck_assert_uint_eq(
		fgv_figures_read(&figures, 0, PLACE, NOW + FGV_FIGURES_NS)[FGV_FIGURE_POWER], 2000);
	/* Another device has figures of its own. */
	ck_assert_uint_eq(
		fgv_figures_read(&figures, 1, PLACE, NOW + FGV_FIGURES_NS)[FGV_FIGURE_POWER], 3000);
}
END_TEST

/* Those that are up, are for peers, and lead to more than one GPU. */
START_TEST(links)
{
	ck_assert_uint_eq(fgv_figures_nvlinks(&figures, 0, PLACE), 5);
	ck_assert_uint_eq(fgv_figures_nvlinks(&figures, 0, PLACE), 5);
	ck_assert_uint_eq(fgv_figures_nvlinks(&figures, 1, "0000:ff:00.0"), 0);
	ck_assert_uint_eq(fgv_figures_nvlinks(&figures, 2, ""), 0);
}
END_TEST

START_TEST(nothing_known)
{
	assert_unknown(fgv_figures_read(&figures, 0, "", NOW));
	assert_unknown(fgv_figures_read(&figures, 0, "0000:ff:00.0", NOW));
	fgv_figures_init(&figures, NULL);
	assert_unknown(fgv_figures_read(&figures, 0, PLACE, NOW));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("figures");
	TCase *t = tcase_create("figures");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_is_told);
	tcase_add_test(t, asked_once_a_second);
	tcase_add_test(t, links);
	tcase_add_test(t, nothing_known);
	suite_add_tcase(s, t);
	return s;
}

/* The loader reads where it looks when a program starts: so this one starts twice. */
int main(int argc, char **argv)
{
	SRunner *runner;
	int failed;

	(void)argc;
	if (!getenv("FAKE_NVML")) {
		setenv("LD_LIBRARY_PATH", FGV_TEST_FAKE_CUDA, 1);
		setenv("FAKE_NVML", "/nonexistent", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	runner = srunner_create(suite());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
