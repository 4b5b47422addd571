/*
 * How the daemon starts and ends: its options, its socket's file, and that no session
 * outlives it.
 */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/relay.h"
#include "backend/shared.h"
#include "tests/unit/backend/daemon_harness.h"

#define ONE_VM "gpu = \"soft\"; window = \"8M\"; lanes = 4; vms = ( { name = \"a\"; } );\n"

static struct daemon server;

START_TEST(end_takes_the_sessions_along)
{
	int fds[3];

	daemon_start(&server, ONE_VM);
	fds[0] = guest_open(&server, "a", "p", NULL);
	fds[1] = guest_open(&server, "a", "stubborn", NULL);
	fds[2] = guest_connect(&server);
	daemon_stop(&server); /* reports its sessions as reaped, or it would not end with 0 */
	guest_await_reason(fds[0], "the host's daemon is ending");
	guest_await_reason(fds[1], "the host's daemon is ending");
	guest_await_end(fds[2]);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}
END_TEST

START_TEST(killed_daemon)
{
	pid_t session;
	int fd;

	daemon_start(&server, ONE_VM);
	fd = guest_open(&server, "a", "p", NULL);
	session = daemon_session_pid(&server, 1);
	kill(server.pid, SIGKILL);
	ck_assert_int_eq(daemon_wait(&server), -SIGKILL);
	guest_await_end(fd);
	close(fd);
	AWAIT(!process_is_running(session));
	/* Its socket is there still, and the next daemon takes its place. */
	ck_assert_int_eq(access(server.socket, F_OK), 0);
	daemon_launch(&server);
	ck_assert(server.ready[0]);
	close(guest_open(&server, "a", "p", NULL));
	daemon_stop(&server);
}
END_TEST

#define TWO_VMS_AND_NO_PATIENCE                                                                    \
	"gpu = \"soft\"; window = \"8M\"; lanes = 4; hang = \"100ms\";\n"                          \
	"vms = ( { name = \"a\"; }, { name = \"b\"; } );\n"

/* The second is not welcomed before it has the grant. */
START_TEST(hung_session)
{
	const char *line;
	int first, second;

	daemon_start(&server, TWO_VMS_AND_NO_PATIENCE);
	first = guest_open(&server, "a", "greedy", NULL);
	second = guest_open(&server, "b", "greedy", NULL);
	guest_await_reason(first, "the host has ended it: it does not give the GPU back");
	line = daemon_await_log(&server, "session 1: vm a, program \"greedy\": killed by signal 9 "
					 "(Killed), as it does not give the GPU back (key \"hang\"), "
					 "after ");
	ck_assert_ptr_nonnull(strstr(line, " in 1 grants, "));
	close(first);
	close(second);
	line = daemon_await_log(&server,
				"session 2: vm b, program \"greedy\": ended with status 0");
	ck_assert_ptr_nonnull(strstr(line, " in 1 grants, 0.000 ms overrun, waits p50 "));
	daemon_stop(&server);
}
END_TEST

START_TEST(forged_grant)
{
	int fd;

	daemon_start(&server, TWO_VMS_AND_NO_PATIENCE);
	fd = guest_open(&server, "a", "forger", NULL);
	guest_await_reason(fd, "it took a grant that it was not given");
	close(fd);
	daemon_await_log(&server, "program \"forger\": killed by signal 9 (Killed), as it took a "
				  "grant that it was not given, after ");
	daemon_stop(&server);
}
END_TEST

/* It is about its own session, and no more than is a VM's. */
START_TEST(what_a_process_logs)
{
	int fds[2];

	daemon_start(&server, TWO_VMS_AND_NO_PATIENCE);
	fds[0] = guest_open(&server, "a", "shouter", NULL);
	fds[1] = guest_open(&server, "b", "p", NULL);
	daemon_await_log(&server, " fairgv-vgpu: error: vm a, program shouter, session 1: vm b: "
				  "this is not so");
	daemon_await_log(&server, " fairgv-vgpu: warning: vm a, program shouter, session 1: "
				  "fairgv-backend: nor this");
	close(fds[0]);
	daemon_await_log(&server, "session 1: vm a, program \"shouter\": ended with status 0");
	ck_assert_uint_ge(daemon_count_log(&server, "session 1: more"), FGV_RELAY_BURST / 2);
	ck_assert_uint_lt(daemon_count_log(&server, "session 1: more"), 10000);
	close(fds[1]);
	daemon_stop(&server);
}
END_TEST

START_TEST(second_daemon_is_refused)
{
	struct daemon second;

	daemon_start(&server, ONE_VM);
	second = server;
	daemon_launch(&second);
	ck_assert_str_eq(second.ready, "");
	ck_assert_int_eq(daemon_wait(&second), 1);
	daemon_await_log(&server, "socket: a daemon answers there already");
	close(guest_open(&server, "a", "p", NULL));
	daemon_stop(&server);
}
END_TEST

START_TEST(file_in_the_way)
{
	daemon_prepare(&server, ONE_VM);
	close(open(server.socket, O_WRONLY | O_CREAT, 0600));
	daemon_launch(&server);
	ck_assert_str_eq(server.ready, "");
	ck_assert_int_eq(daemon_wait(&server), 1);
	daemon_await_log(&server, "socket: there is a file that is not a socket");
	ck_assert_int_eq(access(server.socket, F_OK), 0);
	daemon_remove(&server);
}
END_TEST

START_TEST(bad_configuration)
{
	daemon_prepare(&server, "vms = ( { name = \"a\";\nweight = 0; } );");
	daemon_launch(&server);
	ck_assert_str_eq(server.ready, "");
	ck_assert_int_eq(daemon_wait(&server), 1);
	daemon_await_log(&server, "conf:2: weight: out of range: must be 1 to 10000");
	daemon_remove(&server);
}
END_TEST

START_TEST(missing_device)
{
	daemon_prepare(&server, "gpu = \"soft:2\"; vms = ( { name = \"a\";\ndevice = 2; } );");
	daemon_launch(&server);
	ck_assert_int_eq(daemon_wait(&server), 1);
	daemon_await_log(&server, "conf:2: device: there is no device 2");
	daemon_remove(&server);
}
END_TEST

/* Runs the daemon with an input that ends at once; its exit status, and what it said. */
static int run_backend(const char *options, char *said, size_t len)
{
	char command[512];
	size_t got;
	FILE *pipe;

	snprintf(command, sizeof(command), ": | %s %s 2>&1", FGV_TEST_BACKEND, options);
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	got = fread(said, 1, len - 1, pipe);
	said[got] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

START_TEST(command_line)
{
	char options[128], said[4096];

	ck_assert_int_eq(run_backend("--help", said, sizeof(said)), 0);
	ck_assert_ptr_nonnull(strstr(said, "usage: fairgv-backend"));
	ck_assert_int_eq(run_backend("--version", said, sizeof(said)), 0);
	ck_assert_ptr_nonnull(strstr(said, "fairgv "));
	ck_assert_int_eq(run_backend("--nonsense", said, sizeof(said)), 2);
	ck_assert_int_eq(run_backend("something", said, sizeof(said)), 2);
	ck_assert_int_eq(run_backend("--ready-fd 77", said, sizeof(said)), 2);
	ck_assert_int_eq(run_backend("--private x", said, sizeof(said)), 2);
	ck_assert_int_eq(run_backend("--check --config /nowhere", said, sizeof(said)), 1);
	ck_assert_ptr_nonnull(strstr(said, "/nowhere: No such file or directory"));
	daemon_prepare(&server, ONE_VM);
	snprintf(options, sizeof(options), "--check --config %s", server.config);
	ck_assert_int_eq(run_backend(options, said, sizeof(said)), 0);
	ck_assert_str_eq(said, "OK: VMs: 1; using the soft GPU: configured\n");
	daemon_remove(&server);
}
END_TEST

/* Its input stands for the starter; test_run.c has one that lives for a while. */
START_TEST(private_daemon_ends_with_its_starter)
{
	char options[256], said[4096];
	char folder[] = "/tmp/fairgv-test-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("FAIRGV_VGPU", FGV_TEST_SESSION, 1);
	snprintf(options, sizeof(options), "--private 0 --socket %s/socket", folder);
	ck_assert_int_eq(run_backend(options, said, sizeof(said)), FGV_EXIT_UNUSED);
	ck_assert_ptr_nonnull(strstr(said, "the one that it was started for is gone"));
	ck_assert_int_ne(access(folder, F_OK), 0);
}
END_TEST

/* A fresh prefix has no run folder yet. */
START_TEST(missing_folders_are_made)
{
	char options[256], said[4096], above[256];
	char folder[] = "/tmp/fairgv-test-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("FAIRGV_VGPU", FGV_TEST_SESSION, 1);
	snprintf(options, sizeof(options), "--private 0 --socket %s/var/run/socket", folder);
	ck_assert_int_eq(run_backend(options, said, sizeof(said)), FGV_EXIT_UNUSED);
	ck_assert_ptr_nonnull(strstr(said, "/var/run/socket"));
	/* A private daemon takes the socket's own folder away again. */
	snprintf(above, sizeof(above), "%s/var", folder);
	ck_assert_int_eq(rmdir(above), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void)
{
	SRunner *runner;
	Suite *suite = suite_create("daemon_end");
	TCase *tcase = tcase_create("end");
	int failed;

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_test(tcase, end_takes_the_sessions_along);
	tcase_add_test(tcase, killed_daemon);
	tcase_add_test(tcase, hung_session);
	tcase_add_test(tcase, forged_grant);
	tcase_add_test(tcase, what_a_process_logs);
	tcase_add_test(tcase, second_daemon_is_refused);
	tcase_add_test(tcase, file_in_the_way);
	tcase_add_test(tcase, bad_configuration);
	tcase_add_test(tcase, missing_device);
	tcase_add_test(tcase, command_line);
	tcase_add_test(tcase, private_daemon_ends_with_its_starter);
	tcase_add_test(tcase, missing_folders_are_made);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
