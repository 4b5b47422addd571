/*
 * Processes that are kept ready, by the whole daemon with daemon_session.c in the place of
 * fairgv-vgpu: who has them, what becomes of those that fail, and that none stays behind.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/backend/admin/admin_client.h"

#define REST	"window = \"8M\"; lanes = 4;\n"
#define ONE_VM	"gpu = \"soft\"; warm = 1; " REST "vms = ( { name = \"a\"; } );\n"
#define NO_WARM "gpu = \"soft\"; warm = 0; " REST "vms = ( { name = \"a\"; } );\n"
#define TWO_OF_THREE                                                                               \
	"gpu = \"soft:3\"; warm = 2; " REST                                                        \
	"vms = ( { name = \"a\"; }, { name = \"b\"; device = 2; }, { name = \"c\"; } );\n"

#define READY " is ready for "

static struct daemon server;
static char mode_file[48];

/* Of daemon_session.c. */
static void set_mode(const char *mode)
{
	FILE *file = fopen(mode_file, "w");

	ck_assert_ptr_nonnull(file);
	fputs(mode, file);
	fclose(file);
}

static void set_up(void)
{
	snprintf(mode_file, sizeof(mode_file), "/tmp/fairgv-test-mode-%d", (int)getpid());
	set_mode("");
	setenv("FAKE_OPENING", mode_file, 1);
}

static void tear_down(void)
{
	unlink(mode_file);
}

/* The process in the last log line with @text, of which there must be @count. */
static pid_t await_process(const char *text, unsigned count)
{
	char line[1100];
	pid_t pid = 0;
	FILE *file;

	AWAIT(daemon_count_log(&server, text) >= count);
	file = fopen(server.log, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, text) ? strstr(line, ": process ") : NULL;

		if (at)
			pid = atoi(at + strlen(": process "));
	}
	fclose(file);
	ck_assert_int_gt(pid, 0);
	return pid;
}

static json_int_t warm_on(unsigned device)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"list\"}");
	json_int_t count = report_number(report_at(reply, "gpus", device), "warm");

	json_decref(reply);
	return count;
}

START_TEST(each_device_that_is_used)
{
	daemon_start(&server, TWO_OF_THREE);
	AWAIT(warm_on(0) == 2 && warm_on(2) == 2);
	ck_assert_int_eq(warm_on(1), 0);
	ck_assert_uint_eq(daemon_children(&server), 4);
	daemon_stop(&server);
}
END_TEST

START_TEST(none_if_none_is_wanted)
{
	daemon_start(&server, NO_WARM);
	close(guest_open(&server, "a", "p", NULL));
	AWAIT(daemon_children(&server) == 0);
	ck_assert_int_eq(warm_on(0), 0);
	ck_assert_uint_eq(daemon_count_log(&server, READY), 0);
	daemon_stop(&server);
}
END_TEST

START_TEST(a_session_takes_it)
{
	pid_t first, second;
	int fd;

	daemon_start(&server, ONE_VM);
	first = await_process(READY, 1);
	fd = guest_open(&server, "a", "p", NULL);
	ck_assert_int_eq(daemon_session_pid(&server, 1), first);
	second = await_process(READY, 2);
	ck_assert_int_ne(second, first);
	close(fd);
	AWAIT(daemon_children(&server) == 1); /* nobody is served twice by one */
	fd = guest_open(&server, "a", "p", NULL);
	ck_assert_int_eq(daemon_session_pid(&server, 2), second);
	close(fd);
	daemon_stop(&server);
}
END_TEST

/* Whatever is the matter with it, it is nearer to ready than a new one. */
START_TEST(a_session_takes_one_that_opens)
{
	pid_t first;
	int fds[2];

	set_mode("wait");
	daemon_start(&server, ONE_VM);
	AWAIT(daemon_children(&server) == 1);
	fds[0] = guest_open(&server, "a", "p", NULL);
	first = daemon_session_pid(&server, 1);
	set_mode("");
	fds[1] = guest_open(&server, "a", "p", NULL);
	ck_assert_int_ne(daemon_session_pid(&server, 2), first);
	close(fds[0]);
	close(fds[1]);
	daemon_stop(&server);
}
END_TEST

/* The daemon learns of a program before it learns that the process that is ready has gone. */
START_TEST(a_dead_one_serves_nobody)
{
	struct guest_answer answer;
	pid_t pid;
	int fd;

	daemon_start(&server, ONE_VM);
	pid = await_process(READY, 1);
	kill(server.pid, SIGSTOP);
	fd = guest_connect(&server);
	guest_send_hello(fd, "a", "p");
	kill(pid, SIGKILL);
	AWAIT(!process_is_running(pid));
	kill(server.pid, SIGCONT);
	guest_receive(fd, &answer);
	ck_assert(!answer.closed);
	ck_assert_uint_eq(answer.welcome.status, CUDA_SUCCESS);
	ck_assert_int_ne(daemon_session_pid(&server, 1), pid);
	ck_assert_uint_eq(daemon_count_log(&server, "kept ready"), 1);
	guest_close(fd, &answer);
	daemon_stop(&server);
}
END_TEST

START_TEST(one_that_fails_serves_nobody)
{
	static const char *const modes[] = {"fail", "die"};
	static const char *const lines[] = {", can't open it: the test says so; ",
					    ", ended with status 5; "};
	pid_t pid;
	int fd;

	set_mode(modes[_i]);
	daemon_start(&server, ONE_VM);
	pid = await_process(lines[_i], 1);
	AWAIT(daemon_children(&server) == 0);
	set_mode("");
	fd = guest_open(&server, "a", "p", NULL);
	ck_assert_int_ne(daemon_session_pid(&server, 1), pid);
	close(fd);
	daemon_stop(&server);
}
END_TEST

START_TEST(failures_are_less_and_less)
{
	set_mode("fail");
	daemon_start(&server, ONE_VM);
	daemon_await_log(&server, "the next one starts in 1 s");
	daemon_await_log(&server, "the next one starts in 2 s");
	/* Whatever has failed since. */
	ck_assert_uint_eq(daemon_count_log(&server, "the next one starts in 1 s"), 1);
	ck_assert_uint_eq(daemon_count_log(&server, "the next one starts in 2 s"), 1);
	AWAIT(daemon_children(&server) == 0);
	daemon_stop(&server);
}
END_TEST

START_TEST(the_end_takes_them_along)
{
	pid_t pid;

	daemon_start(&server, ONE_VM);
	pid = await_process(READY, 1);
	daemon_stop(&server);
	ck_assert(!process_is_running(pid));
}
END_TEST

START_TEST(a_killed_daemon_takes_them_along)
{
	pid_t pid;

	daemon_start(&server, ONE_VM);
	pid = await_process(READY, 1);
	kill(server.pid, SIGKILL);
	ck_assert_int_eq(daemon_wait(&server), -SIGKILL);
	AWAIT(!process_is_running(pid));
	daemon_remove(&server);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("warm");
	TCase *tcase = tcase_create("warm");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 2 * HANG_LIMIT_SEC);
	tcase_add_test(tcase, each_device_that_is_used);
	tcase_add_test(tcase, none_if_none_is_wanted);
	tcase_add_test(tcase, a_session_takes_it);
	tcase_add_test(tcase, a_session_takes_one_that_opens);
	tcase_add_test(tcase, a_dead_one_serves_nobody);
	tcase_add_loop_test(tcase, one_that_fails_serves_nobody, 0, 2);
	tcase_add_test(tcase, failures_are_less_and_less);
	tcase_add_test(tcase, the_end_takes_them_along);
	tcase_add_test(tcase, a_killed_daemon_takes_them_along);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
