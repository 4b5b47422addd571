/* What log lines begin with: for people, for a service, for systemd's journal. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/log.h"

static int fd;
static const struct fgv_log_subject own = {.label = "vm a, session 1", .vm = "a", .session = 1};

static void setup(void)
{
	unsetenv("FAIRGV_LOG");
	unsetenv("FAIRGV_QUIET");
	unsetenv("JOURNAL_STREAM");
	fd = memfd_create("stderr", MFD_CLOEXEC);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
}

static void say_all(void)
{
	fgv_error("one");
	fgv_warning("two");
	fgv_info("three");
	fgv_debug("four");
}

static void expect(const char *expected)
{
	char text[4096];
	regex_t regex;

	text[pread(fd, text, sizeof(text) - 1, 0)] = '\0';
	ck_assert_int_eq(regcomp(&regex, expected, REG_EXTENDED | REG_NOSUB), 0);
	ck_assert_msg(!regexec(&regex, text, 0, NULL, 0), "%s", text);
	regfree(&regex);
}

START_TEST(for_people)
{
	fgv_log_init("name");
	say_all();
	expect("^name: error: one\nname: warning: two\nname: three\n$");
}
END_TEST

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3} "

START_TEST(of_a_service)
{
	fgv_log_init("name");
	fgv_log_be_service();
	say_all();
	expect("^" TIME "name: error: one\n" TIME "name: warning: two\n" TIME "name: three\n$");
}
END_TEST

START_TEST(for_the_journal)
{
	char stream[64];
	struct stat file;

	ck_assert_int_eq(fstat(fd, &file), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)file.st_dev,
		 (unsigned long long)file.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	setenv("FAIRGV_LOG", "debug", 1);
	fgv_log_init("name");
	fgv_log_be_service();
	say_all();
	expect("^<3>name: error: one\n<4>name: warning: two\n<6>name: three\n"
	       "<7>name: debug: four\n$");
}
END_TEST

/* A service of another unit may have passed its variable on; the stream tells. */
START_TEST(for_another_journal)
{
	setenv("JOURNAL_STREAM", "1:1", 1);
	fgv_log_init("name");
	fgv_log_be_service();
	fgv_error("one");
	expect("^" TIME "name: error: one\n$");
}
END_TEST

START_TEST(about_something)
{
	static const struct fgv_log_subject other = {
		.label = "session 1", .vm = "a", .session = 1, .writer = "other", .writer_pid = 7};

	fgv_log_init("name");
	fgv_error_of(FGV_LOG_VM("b"), "one %d", 1);
	fgv_error("two");
	fgv_warning_of(&other, "three");
	fgv_info_of(FGV_LOG_GPU("GPU 0"), "four");
	expect("^name: error: vm b: one 1\nname: error: two\n"
	       "other: warning: session 1: three\nname: GPU 0: four\n$");
}
END_TEST

/* Whoever passes them on puts the name and the time to them. */
START_TEST(for_a_relay)
{
	fgv_log_init("name");
	fgv_log_be_relayed();
	say_all();
	expect("^<3>one\n<4>two\n<6>three\n$");
}
END_TEST

/* A pipe that is full, does not block and is read again. */
START_TEST(full)
{
	char text[65536], *last;
	int fds[2];
	ssize_t len;

	ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
	ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
	fgv_log_init("name");
	ck_assert(fgv_log_has_room());
	while (fgv_log_has_room())
		fgv_error("one");
	fcntl(fds[1], F_SETPIPE_SZ, 4096); /* as far as the kernel allows */
	while (write(fds[1], "rest\n", 5) > 0)
		continue;
	for (unsigned i = 0; i < 3; i++)
		fgv_error("lost");
	while ((len = read(fds[0], text, sizeof(text) - 1)) > 0) {
		text[len] = '\0';
		ck_assert_ptr_null(strstr(text, "lost"));
	}
	fgv_error("two");
	fgv_error("three");
	len = read(fds[0], text, sizeof(text) - 1);
	ck_assert_int_gt(len, 0);
	text[len] = '\0';
	last = strstr(text, "two");
	ck_assert_ptr_nonnull(last);
	ck_assert_str_eq(last, "two (lines lost before it: 3)\nname: error: three\n");
}
END_TEST

/* What is too long is cut, and is a line. */
START_TEST(long_line)
{
	char text[4000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	fgv_log_init("name");
	fgv_error_of(FGV_LOG_VM(text), "%s", text);
	fgv_error_of(&own, "%s", text);
	expect("^name: error: vm x{900,}\nname: error: vm a, session 1: x{900,}\n$");
}
END_TEST

START_TEST(quiet)
{
	static const char *const chosen[] = {NULL, "warning"};

	setenv("FAIRGV_QUIET", "1", 1);
	if (chosen[_i])
		setenv("FAIRGV_LOG", chosen[_i], 1);
	fgv_log_init("name");
	say_all();
	expect(chosen[_i] ? "^name: error: one\nname: warning: two\n$" : "^name: error: one\n$");
}
END_TEST

START_TEST(not_quiet)
{
	setenv("FAIRGV_QUIET", "0", 1);
	fgv_log_init("name");
	say_all();
	expect("three\n$");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tests = tcase_create("log");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, for_people);
	tcase_add_test(tests, of_a_service);
	tcase_add_test(tests, for_the_journal);
	tcase_add_test(tests, for_another_journal);
	tcase_add_test(tests, about_something);
	tcase_add_test(tests, for_a_relay);
	tcase_add_test(tests, full);
	tcase_add_test(tests, long_line);
	tcase_add_loop_test(tests, quiet, 0, 2);
	tcase_add_test(tests, not_quiet);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
