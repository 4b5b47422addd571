/*
 * How the driver is started, with one that is played here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_driver.h"

static struct {
	CUresult first, then;
	unsigned firsts, asked;
} said;

static CUresult init(unsigned flags)
{
	(void)flags;
	return said.asked++ < said.firsts ? said.first : said.then;
}

static CUresult error_name(CUresult status, const char **name)
{
	*name = status == CUDA_ERROR_NO_DEVICE ? "no device" : "another";
	return CUDA_SUCCESS;
}

static const struct fgv_cuda_driver driver = {.init = init, .error_name = error_name};

/* A server that recovers is waited for, and what it says then counts. */
START_TEST(server_that_recovers_is_waited_for)
{
	char why[128];

	said = (typeof(said)){CUDA_ERROR_MPS_SERVER_NOT_READY, CUDA_SUCCESS, 3, 0};
	ck_assert(fgv_cuda_driver_start(&driver, why, sizeof(why)));
	ck_assert_uint_eq(said.asked, 4);
	said = (typeof(said)){CUDA_ERROR_MPS_SERVER_NOT_READY, CUDA_ERROR_NO_DEVICE, 2, 0};
	ck_assert(!fgv_cuda_driver_start(&driver, why, sizeof(why)));
	ck_assert_uint_eq(said.asked, 3);
	ck_assert_ptr_nonnull(strstr(why, "no device"));
}
END_TEST

START_TEST(other_errors_are_told_at_once)
{
	char why[128];

	said = (typeof(said)){CUDA_ERROR_NO_DEVICE, CUDA_SUCCESS, 1, 0};
	ck_assert(!fgv_cuda_driver_start(&driver, why, sizeof(why)));
	ck_assert_uint_eq(said.asked, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_driver");
	TCase *tests = tcase_create("start");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tests, server_that_recovers_is_waited_for);
	tcase_add_test(tests, other_errors_are_told_at_once);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
