/*
 * fairgv-run: the private daemon and the one that is there, exit statuses, signals,
 * and that nothing stays behind. The programs are shell scripts, which need no GPU.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/backend/daemon_harness.h"

#define NOWHERE "/nowhere/socket"

/* A fairgv-run, and what it and its program print. */
struct tool {
	pid_t pid;
	FILE *output;
	char said[4096];
};

static char *const no_daemon[] = {"FAIRGV_SOCKET=" NOWHERE, NULL};
static char *const nothing[] = {NULL};

/* Starts fairgv-run with @arguments, up to a NULL, and @environment added. */
static void tool_start(struct tool *tool, char *const arguments[], char *const environment[])
{
	int pipe_fds[2];

	ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	tool->pid = fork();
	ck_assert_int_ge(tool->pid, 0);
	if (tool->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipe_fds[1], STDOUT_FILENO);
		dup2(pipe_fds[1], STDERR_FILENO);
		for (; *environment; environment++)
			putenv(*environment);
		execv(FGV_TEST_RUN, arguments);
		_exit(101);
	}
	close(pipe_fds[1]);
	tool->output = fdopen(pipe_fds[0], "r");
}

/* All that is printed until nobody is left to print. */
static int tool_finish(struct tool *tool)
{
	size_t got = fread(tool->said, 1, sizeof(tool->said) - 1, tool->output);
	int status;

	tool->said[got] = '\0';
	fclose(tool->output);
	ck_assert_int_eq(waitpid(tool->pid, &status, 0), tool->pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void tool_read_line(struct tool *tool)
{
	ck_assert_ptr_nonnull(fgets(tool->said, sizeof(tool->said), tool->output));
	tool->said[strcspn(tool->said, "\n")] = '\0';
}

static struct tool tool;

/* Runs the arguments to the end; without a daemon; with one for this run. */
#define RUN_IN(environment, ...)                                                                   \
	(tool_start(&tool, (char *[]){"fairgv-run", __VA_ARGS__, NULL}, environment),              \
	 tool_finish(&tool))
#define RUN(...)	 RUN_IN(no_daemon, __VA_ARGS__)
#define RUN_PRIVATE(...) RUN_IN(nothing, "--private", "--quiet", __VA_ARGS__)

static void use_stand_in(void)
{
	unsetenv("FAIRGV_VM");
	unsetenv("FAIRGV_SOCKET");
	unsetenv("FAIRGV_DEVICE");
	unsetenv("FAIRGV_STATS");
	unsetenv("FAIRGV_LOG");
	setenv("FAIRGV_VGPU", FGV_TEST_SESSION, 1);
}

START_TEST(private_daemon)
{
	char *folder_end;

	ck_assert_int_eq(RUN_PRIVATE("sh", "-c",
				     "test -S $FAIRGV_SOCKET || exit 1;"
				     "stat -c %a $(dirname $FAIRGV_SOCKET);"
				     "printf %s $FAIRGV_SOCKET; exit 7"),
			 7);
	ck_assert_msg(!strncmp(tool.said, "700\n/", 5), "%s", tool.said);
	ck_assert_int_ne(access(tool.said + 4, F_OK), 0);
	folder_end = strrchr(tool.said, '/');
	*folder_end = '\0';
	ck_assert_int_ne(access(tool.said + 4, F_OK), 0);
}
END_TEST

START_TEST(private_folder_is_in_the_runtime_folder)
{
	char folder[] = "/tmp/fairgv-test-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("XDG_RUNTIME_DIR", folder, 1);
	ck_assert_int_eq(RUN_PRIVATE("sh", "-c", "echo $FAIRGV_SOCKET"), 0);
	ck_assert_int_eq(strncmp(tool.said, folder, strlen(folder)), 0);
	ck_assert_int_eq(rmdir(folder), 0); /* empty again */
}
END_TEST

START_TEST(library_path)
{
	setenv("LD_LIBRARY_PATH", "/before", 1);
	ck_assert_int_eq(RUN_PRIVATE("sh", "-c", "printf %s $LD_LIBRARY_PATH"), 0);
	ck_assert_ptr_nonnull(strstr(tool.said, "/frontend/.libs:/before"));
	*strchr(tool.said, ':') = '\0';
	strcat(tool.said, "/libcudart.so.13");
	ck_assert_int_eq(access(tool.said, F_OK), 0);
	unsetenv("LD_LIBRARY_PATH");
	ck_assert_int_eq(RUN_PRIVATE("sh", "-c", "printf %s $LD_LIBRARY_PATH"), 0);
	ck_assert_ptr_null(strchr(tool.said, ':'));
}
END_TEST

START_TEST(exit_statuses)
{
	ck_assert_int_eq(RUN_PRIVATE("true"), 0);
	ck_assert_str_eq(tool.said, ""); /* the private daemon says nothing of no interest */
	ck_assert_int_eq(RUN_PRIVATE("sh", "-c", "kill -9 $$"), 137);
	ck_assert_int_eq(RUN_PRIVATE("/nowhere/program"), 127);
	ck_assert_str_eq(tool.said, "fairgv-run: error: /nowhere/program: no such program\n");
	ck_assert_int_eq(RUN_PRIVATE("--", "/etc/passwd"), 126);
	ck_assert_str_eq(tool.said, "fairgv-run: error: /etc/passwd: Permission denied\n");
}
END_TEST

START_TEST(options_of_the_program_are_its_own)
{
	ck_assert_int_eq(RUN_PRIVATE("echo", "--vm", "x"), 0);
	ck_assert_str_eq(tool.said, "--vm x\n");
}
END_TEST

START_TEST(wrong_use)
{
	char long_name[80] = "";

	memset(long_name, 'a', sizeof(long_name) - 1);
	ck_assert_int_eq(RUN("--"), 125);
	ck_assert_ptr_nonnull(strstr(tool.said, "usage: fairgv-run"));
	ck_assert_int_eq(RUN("--nonsense", "true"), 125);
	ck_assert_int_eq(RUN("--vm", long_name, "true"), 125);
	ck_assert_int_eq(RUN("--socket", "/x", "--config", "/y", "true"), 125);
	ck_assert_ptr_nonnull(strstr(tool.said, "not both"));
	ck_assert_int_eq(RUN("--socket", NOWHERE, "true"), 125);
	ck_assert_ptr_nonnull(strstr(tool.said, "no daemon answers at " NOWHERE));
	ck_assert_int_eq(RUN("--socket", "/x", "--private", "true"), 125);
	ck_assert_ptr_nonnull(strstr(tool.said, "not both"));
	ck_assert_int_eq(RUN_PRIVATE("--vm", "vm1", "true"), 125);
	ck_assert_ptr_nonnull(strstr(tool.said, "a private daemon has no VM \"vm1\""));
	ck_assert_int_eq(RUN_PRIVATE("--vm", "default", "true"), 0);
	ck_assert_int_eq(RUN("--help"), 0);
	ck_assert_int_eq(RUN("--version"), 0);
}
END_TEST

START_TEST(private_daemon_that_does_not_start)
{
	ck_assert_int_eq(RUN("--config", "/nowhere/conf", "true"), 125);
	ck_assert_str_eq(tool.said,
			 "fairgv-backend: error: /nowhere/conf: No such file or directory\n"
			 "fairgv-run: error: the private daemon did not start\n");
}
END_TEST

START_TEST(statistics)
{
	ck_assert_int_eq(RUN_PRIVATE("--stats", "sh", "-c", "printf %s $FAIRGV_STATS"), 0);
	ck_assert_str_eq(tool.said, "1");
	setenv("FAIRGV_STATS", "/some/file", 1);
	ck_assert_int_eq(RUN_PRIVATE("--stats", "sh", "-c", "printf %s $FAIRGV_STATS"), 0);
	ck_assert_str_eq(tool.said, "/some/file");
}
END_TEST

/* Nothing falls back in silence, but where that is asked for. */
START_TEST(lines_of_its_own)
{
	static char *const quiet[] = {"FAIRGV_QUIET=1", NULL};

	/* A socket that is named, by whatever way, is that of a daemon that runs. */
	ck_assert_int_eq(RUN("true"), 125);
	ck_assert_str_eq(tool.said, "fairgv-run: error: no daemon answers at " NOWHERE
				    ": No such file or directory; --private starts one for this "
				    "run\n");
	/* Nobody answers at this build's own socket. */
	ck_assert_int_eq(RUN_IN(nothing, "true"), 0);
	ck_assert_ptr_nonnull(strstr(tool.said, "fairgv-run: warning: no daemon answers at /"));
	ck_assert_ptr_nonnull(strstr(tool.said, ": this run has a private one\n"));
	ck_assert_ptr_nonnull(strstr(tool.said, "fairgv-run: warning: true has not used FairGV"));
	ck_assert_int_eq(RUN_IN(quiet, "true"), 0);
	ck_assert_str_eq(tool.said, "");
	ck_assert_int_eq(RUN_IN(nothing, "--quiet", "true"), 0);
	ck_assert_str_eq(tool.said, "");
	ck_assert_int_eq(RUN_IN(nothing, "--private", "true"), 0);
	ck_assert_ptr_null(strstr(tool.said, "no daemon answers"));
}
END_TEST

static void start_with_daemon(struct daemon *server)
{
	daemon_start(server, "gpu = \"soft\"; window = \"8M\"; lanes = 4;\n"
			     "vms = ( { name = \"a\"; }, { name = \"b\"; } );\n");
}

/* The program takes the place of fairgv-run: there is nobody in between. */
START_TEST(daemon_that_is_there)
{
	char *arguments[] = {"fairgv-run", "--vm", "b",
			     "sh",	   "-c",   "echo $$ $PPID $FAIRGV_SOCKET $FAIRGV_VM",
			     NULL};
	char variable[80], expected[128];
	char *environment[] = {variable, NULL};
	struct daemon server;

	start_with_daemon(&server);
	snprintf(variable, sizeof(variable), "FAIRGV_SOCKET=%s", server.socket);
	tool_start(&tool, arguments, environment);
	snprintf(expected, sizeof(expected), "%d %d %s b\n", (int)tool.pid, (int)getpid(),
		 server.socket);
	ck_assert_int_eq(tool_finish(&tool), 0);
	ck_assert_str_eq(tool.said, expected);
	daemon_stop(&server);
}
END_TEST

START_TEST(daemon_that_is_named)
{
	struct daemon server;

	start_with_daemon(&server);
	ck_assert_int_eq(RUN("--socket", server.socket, "sh", "-c", "printf %s $FAIRGV_SOCKET"),
			 0);
	ck_assert_str_eq(tool.said, server.socket);
	daemon_stop(&server);
}
END_TEST

/* A configuration means a private daemon even where another one is there. */
START_TEST(configuration_means_private)
{
	struct daemon server;

	start_with_daemon(&server);
	setenv("FAIRGV_SOCKET", server.socket, 1);
	tool_start(&tool,
		   (char *[]){"fairgv-run", "--config", server.config, "--vm", "b", "sh", "-c",
			      "test -S $FAIRGV_SOCKET && echo $FAIRGV_SOCKET $FAIRGV_VM", NULL},
		   (char *[]){NULL});
	ck_assert_int_eq(tool_finish(&tool), 0);
	ck_assert_ptr_null(strstr(tool.said, server.socket));
	ck_assert_ptr_nonnull(strstr(tool.said, "/socket b\n"));
	daemon_stop(&server);
}
END_TEST

/* In a guest nothing is decided here: there is a device, which libcudart finds. */
START_TEST(device_is_left_to_the_library)
{
	static char *const with_device[] = {"FAIRGV_DEVICE=/dev/null", NULL};
	static char *const with_both[] = {"FAIRGV_DEVICE=/dev/null", "FAIRGV_SOCKET=" NOWHERE,
					  NULL};
	char *say = "echo ${FAIRGV_SOCKET-unset} ${FAIRGV_VM-unset}";
	char *test = "test -S $FAIRGV_SOCKET";
	struct daemon server;

	start_with_daemon(&server);
	ck_assert_int_eq(RUN_IN(with_device, "sh", "-c", say), 0);
	ck_assert_str_eq(tool.said, "unset unset\n");
	ck_assert_int_eq(RUN_IN(with_device, "--vm", "b", "sh", "-c", say), 125);
	ck_assert_ptr_nonnull(strstr(tool.said, "--vm: the host knows which VM /dev/null"));
	ck_assert_int_eq(RUN_IN(with_device, "--socket", server.socket, "sh", "-c", test), 0);
	ck_assert_int_eq(RUN_IN(with_device, "--config", server.config, "sh", "-c", test), 0);
	ck_assert_int_eq(RUN_IN(with_both, "sh", "-c", test), 125);
	ck_assert_int_eq(RUN_IN(with_device, "--private", "sh", "-c", test), 0);
	daemon_stop(&server);
}
END_TEST

static void start_waiting_program(const char *trap)
{
	char script[256];

	snprintf(script, sizeof(script),
		 "%s; echo $FAIRGV_SOCKET; while test -S $FAIRGV_SOCKET; do sleep 0.05; done",
		 trap);
	tool_start(&tool, (char *[]){"fairgv-run", "--private", "sh", "-c", script, NULL}, nothing);
	tool_read_line(&tool);
}

START_TEST(signals_reach_the_program)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	start_waiting_program("trap 'exit 9' INT TERM HUP");
	ck_assert_int_eq(kill(tool.pid, signals[_i]), 0);
	ck_assert_int_eq(tool_finish(&tool), 9);
}
END_TEST

START_TEST(signal_that_kills_the_program)
{
	start_waiting_program("true");
	ck_assert_int_eq(kill(tool.pid, SIGTERM), 0);
	ck_assert_int_eq(tool_finish(&tool), 128 + SIGTERM);
}
END_TEST

/* The daemon sees it, and clears the folder away. */
START_TEST(killed_tool_leaves_nothing)
{
	char folder[4096];

	start_waiting_program("true");
	strcpy(folder, tool.said);
	*strrchr(folder, '/') = '\0';
	ck_assert_int_eq(access(folder, F_OK), 0);
	ck_assert_int_eq(kill(tool.pid, SIGKILL), 0);
	AWAIT(access(folder, F_OK) && errno == ENOENT);
	fclose(tool.output);
	ck_assert_int_eq(waitpid(tool.pid, NULL, 0), tool.pid);
}
END_TEST

START_TEST(ignored_child_signal_is_no_obstacle)
{
	signal(SIGCHLD, SIG_IGN);
	tool_start(&tool, (char *[]){"fairgv-run", "--private", "sh", "-c", "exit 7", NULL}, nothing);
	signal(SIGCHLD, SIG_DFL);
	ck_assert_int_eq(tool_finish(&tool), 7);
}
END_TEST

int main(void)
{
	SRunner *runner;
	Suite *suite = suite_create("run");
	TCase *tcase = tcase_create("run");
	int failed;

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, use_stand_in, NULL);
	tcase_add_test(tcase, private_daemon);
	tcase_add_test(tcase, private_folder_is_in_the_runtime_folder);
	tcase_add_test(tcase, library_path);
	tcase_add_test(tcase, exit_statuses);
	tcase_add_test(tcase, options_of_the_program_are_its_own);
	tcase_add_test(tcase, wrong_use);
	tcase_add_test(tcase, private_daemon_that_does_not_start);
	tcase_add_test(tcase, statistics);
	tcase_add_test(tcase, lines_of_its_own);
	tcase_add_test(tcase, daemon_that_is_there);
	tcase_add_test(tcase, daemon_that_is_named);
	tcase_add_test(tcase, configuration_means_private);
	tcase_add_test(tcase, device_is_left_to_the_library);
	tcase_add_loop_test(tcase, signals_reach_the_program, 0, 3);
	tcase_add_test(tcase, signal_that_kills_the_program);
	tcase_add_test(tcase, killed_tool_leaves_nothing);
	tcase_add_test(tcase, ignored_child_signal_is_no_obstacle);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
