/*
 * The configuration of memory: what VMs are promised beside what a GPU has, memory that may leave
 * it, and memory that programs share.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/config/config.h"
#include "common/util.h"

static struct fgv_config config;
static char why[1024];

static int parse(const char *text)
{
	memset(why, 0, sizeof(why));
	return fgv_config_parse(&config, text, "x.conf", why, sizeof(why));
}

/* Quotas that a GPU has no memory for are refused, at the one that is too much, unless asked for.
 */
START_TEST(memory_that_is_not_there)
{
	static const char text[] = "vms = ( { name = \"a\"; memory = \"3G\"; },\n"
				   "{ name = \"b\"; device = 1; memory = \"2G\"; },\n"
				   "{ name = \"c\"; },\n"
				   "{ name = \"d\"; memory = \"2G\"; } );\n%s";
	const char *const said = "x.conf:4: memory: the VMs of GPU 0 are given 5120 MiB together, "
				 "and it has 4096";
	char file[512];

	for (int overcommit = 0; overcommit < 2; overcommit++) {
		snprintf(file, sizeof(file), text, overcommit ? "overcommit = true;" : "");
		ck_assert_int_eq(fgv_config_parse(&config, file, "x.conf", why, sizeof(why)), 0);
		ck_assert_int_eq(fgv_config_check_memory(&config, 0, 5ull << 30, why, sizeof(why)),
				 0);
		ck_assert_str_eq(why, "");
		ck_assert_int_eq(fgv_config_check_memory(&config, 1, 4ull << 30, why, sizeof(why)),
				 0);
		ck_assert_str_eq(why, "");
		ck_assert_int_eq(fgv_config_check_memory(&config, 0, 4ull << 30, why, sizeof(why)),
				 overcommit ? 0 : -ENOMEM);
		ck_assert(!strncmp(why, said, strlen(said)));
		ck_assert_int_eq(strstr(why, "overcommit = true") == NULL, overcommit);
		fgv_config_fini(&config);
	}
}
END_TEST

/* So many times what a GPU has, where the host has room for what is not on it. */
START_TEST(memory_that_is_moved)
{
	static const struct {
		const char *top, *keys, *said;
	} tries[] = {
		{"overcommit = 2; frozen_memory = \"6G\";", "movable = true;", ""},
		{"overcommit = 1.25; frozen_memory = \"6G\";", "movable = true;",
		 "overcommit says"},
		{"overcommit = 2.0; frozen_memory = \"5G\";", "movable = true;", "frozen_memory"},
		{"overcommit = 2.0; frozen_memory = \"6G\";", "", "without movable"},
	};
	char file[512];

	for (unsigned i = 0; i < FGV_ARRAY_LEN(tries); i++) {
		snprintf(file, sizeof(file),
			 "%s vms = ( { name = \"a\"; memory = \"3G\"; %s },\n"
			 "{ name = \"b\"; memory = \"3G\"; %s } );",
			 tries[i].top, tries[i].keys, tries[i].keys);
		ck_assert_int_eq(fgv_config_parse(&config, file, "x.conf", why, sizeof(why)), 0);
		ck_assert_int_eq(fgv_config_check_memory(&config, 0, 4ull << 30, why, sizeof(why)),
				 *tries[i].said ? -ENOMEM : 0);
		ck_assert_msg(strstr(why, tries[i].said) && !*tries[i].said == !*why, "%s", why);
		fgv_config_fini(&config);
	}
	ck_assert_int_lt(fgv_config_parse(&config, "overcommit = 0.5; vms = ();", "x.conf", why,
					  sizeof(why)),
			 0);
	ck_assert_ptr_nonnull(strstr(why, "from 1 to 100"));
}
END_TEST

/* What is shared stays where it is. */
START_TEST(memory_that_is_shared)
{
	static const struct {
		const char *top, *keys, *said;
	} tries[] = {
		{"", "sharing = true;", NULL},
		{"overcommit = true;", "sharing = true;", NULL},
		{"", "sharing = true; movable = true;",
		 "x.conf:2: sharing: memory that programs "
		 "share stays on the GPU: not with"},
		{"overcommit = 2;", "sharing = true;", "not where overcommit is a number"},
	};
	char file[512];

	for (unsigned i = 0; i < FGV_ARRAY_LEN(tries); i++) {
		int ret;

		snprintf(file, sizeof(file), "%s\nvms = ( { name = \"a\"; %s } );", tries[i].top,
			 tries[i].keys);
		ret = fgv_config_parse(&config, file, "x.conf", why, sizeof(why));
		ck_assert_int_eq(ret < 0, tries[i].said != NULL);
		if (tries[i].said)
			ck_assert_msg(strstr(why, tries[i].said) != NULL, "%s", why);
		else
			ck_assert(config.vms[0].sharing);
		fgv_config_fini(&config);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config_memory");
	TCase *tcase = tcase_create("config_memory");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, memory_that_is_not_there);
	tcase_add_test(tcase, memory_that_is_moved);
	tcase_add_test(tcase, memory_that_is_shared);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
