/*
 * MPS as the daemon runs it, with fake_mps.sh in the place of NVIDIA's program. This
 * process plays the daemon, and as its own program plays the keeper, too.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/mps/keeper.h"
#include "backend/mps/mps.h"
#include "common/log.h"
#include "common/util.h"
#include "tests/unit/backend/daemon_harness.h"

#define READY_MS 30000
#define SHORT_MS 300 /* for what never gets ready */

static char notes[32], program[64], place[64], folder[80];
static struct fgv_config config;
static struct fgv_devices devices;
static struct fgv_mps mps;
static int loop;
static char why[1024];

static void write_note(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", notes, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

/* All of a file in the folder of notes, in a static buffer; "" where there is none. */
static const char *read_note(const char *name)
{
	static char text[65536];
	char path[128];
	size_t len = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", notes, name);
	file = fopen(path, "r");
	if (file) {
		len = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[len] = '\0';
	return text;
}

/* The last number in a note, or 0. */
static pid_t noted_process(const char *name)
{
	const char *line = read_note(name);
	pid_t pid = 0;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n')
		pid = atoi(line);
	return pid;
}

/* Orphans come to this process, which has to take them off the list of processes. */
static bool runs(pid_t pid)
{
	waitpid(pid, NULL, WNOHANG);
	return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

static bool any_runs(const char *name)
{
	const char *line = read_note(name);

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (runs(atoi(line)))
			return true;
	}
	return false;
}

static void set_up(void)
{
	char path[512];

	strcpy(notes, "/tmp/fairgv-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(notes));
	snprintf(program, sizeof(program), "%s/" FGV_MPS_PROGRAM, notes);
	ck_assert_int_eq(symlink(FGV_TEST_FAKE_MPS, program), 0);
	snprintf(place, sizeof(place), "%s/socket", notes);
	snprintf(folder, sizeof(folder), "%s/socket.mps", notes);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", notes);
	setenv("PATH", path, 1);
	setenv("FAKE_MPS", notes, 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	devices = (struct fgv_devices){.count = 1, .list = {{.ordinal = 0}}};
	ck_assert_int_eq(fgv_config_parse(&config,
					  "context = \"mps\"; vms = ( { name = \"a\"; } );", "conf",
					  why, sizeof(why)),
			 0);
	loop = fgv_loop_create();
	ck_assert_int_ge(loop, 0);
}

/* Whatever the test was about: nothing of MPS may be left. */
static void tear_down(void)
{
	char command[64];

	ck_assert(!any_runs("controls"));
	ck_assert(!any_runs("servers"));
	ck_assert_int_ne(access(folder, F_OK), 0);
	close(loop);
	fgv_config_fini(&config);
	snprintf(command, sizeof(command), "/bin/rm -r %s", notes);
	ck_assert_int_eq(system(command), 0);
}

static int start(const char *mode, unsigned ready_ms)
{
	write_note("mode", mode);
	why[0] = '\0';
	return fgv_mps_start(&mps, &config, loop, place, &devices, ready_ms, why, sizeof(why));
}

static void must_start(const char *mode)
{
	int ret = start(mode, READY_MS);

	ck_assert_msg(ret == 0, "%s", why);
	ck_assert(mps.ready);
}

static bool note_has(const char *name, const char *line)
{
	char wanted[260];

	snprintf(wanted, sizeof(wanted), "%s\n", line);
	return strstr(read_note(name), wanted) != NULL;
}

static void expect_environment(const char *name, const char *subfolder)
{
	char path[128], line[256];

	snprintf(path, sizeof(path), "%s/%s", folder, subfolder);
	snprintf(line, sizeof(line), "%s=%s", name, path);
	ck_assert(note_has("environment", line));
	ck_assert_str_eq(getenv(name), path);
}

START_TEST(starts_and_ends)
{
	struct stat status;
	char line[64];

	must_start("good");
	expect_environment("CUDA_MPS_PIPE_DIRECTORY", "pipe");
	expect_environment("CUDA_MPS_LOG_DIRECTORY", "log");
	ck_assert(note_has("environment", "CUDA_VISIBLE_DEVICES=0"));
	snprintf(line, sizeof(line), "-uid %u", (unsigned)geteuid());
	ck_assert(note_has("started", line));
	ck_assert(note_has("status", "ACTIVE"));
	ck_assert(runs(noted_process("controls")));
	ck_assert(runs(noted_process("servers")));
	/* Nobody else's programs become clients: for them MPS would change its server. */
	ck_assert_int_eq(stat(folder, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0700);
	fgv_mps_stop(&mps);
	ck_assert_str_eq(read_note("quit"), "\n");
	ck_assert_int_eq(mps.keeper, 0);
}
END_TEST

START_TEST(foreign_environment)
{
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps", 1);
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "10", 1);
	setenv("CUDA_MPS_PROTOCOL_VERSION", "3", 1);
	fgv_mps_hide();
	/* Where no MPS can be. */
	ck_assert_str_eq(getenv("CUDA_MPS_PIPE_DIRECTORY"), "/dev/null");
	ck_assert_ptr_null(getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
	must_start("good");
	expect_environment("CUDA_MPS_PIPE_DIRECTORY", "pipe");
	ck_assert_ptr_null(strstr(read_note("environment"), "CUDA_MPS_ACTIVE"));
	ck_assert_ptr_null(strstr(read_note("environment"), "CUDA_MPS_PROTOCOL"));
	fgv_mps_stop(&mps);
}
END_TEST

/* MPS counts its clients' devices anew, from 0. */
static void devices_two_and_five(const char *visible, const char *line)
{
	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	devices = (struct fgv_devices){.count = 2, .list = {{.ordinal = 2}, {.ordinal = 5}}};
	must_start("good");
	ck_assert(note_has("environment", line));
	ck_assert_ptr_null(getenv("CUDA_VISIBLE_DEVICES"));
	ck_assert_uint_eq(devices.list[0].ordinal, 0);
	ck_assert_uint_eq(devices.list[1].ordinal, 1);
	fgv_mps_stop(&mps);
}

START_TEST(some_devices)
{
	devices_two_and_five(NULL, "CUDA_VISIBLE_DEVICES=2,5");
}
END_TEST

START_TEST(some_devices_of_some)
{
	devices_two_and_five("7,6,GPU-1234,4,3,2", "CUDA_VISIBLE_DEVICES=GPU-1234,2");
}
END_TEST

START_TEST(control_ends_at_once)
{
	ck_assert_int_lt(start("broken", READY_MS), 0);
	ck_assert_msg(strstr(why, "ended with status 3; it said: there is no GPU in here"), "%s",
		      why);
	ck_assert_int_eq(mps.keeper, 0);
}
END_TEST

/* One that never gets ready is given up, also with so much time that it can leave the note. */
static void expect_given_up(const char *mode, const char *note)
{
	for (int limit_ms = SHORT_MS; !*read_note(note); limit_ms *= 2) {
		char text[64];

		ck_assert_int_lt(limit_ms, HANG_LIMIT_SEC * 1000);
		snprintf(text, sizeof(text), "did not get ready in %d.%d s", limit_ms / 1000,
			 limit_ms / 100 % 10);
		ck_assert_int_lt(start(mode, limit_ms), 0);
		ck_assert_msg(strstr(why, text), "%s", why);
	}
}

START_TEST(control_never_answers)
{
	expect_given_up("mute", "controls");
}
END_TEST

START_TEST(server_never_comes)
{
	expect_given_up("barren", "started");
}
END_TEST

START_TEST(folder_of_too_long_a_name)
{
	ck_assert_int_eq(fgv_mps_start(&mps, &config, loop,
				       "/a/path/that/leaves/no/room/for/the/names/of/the/sockets/"
				       "that/are/to/be/made/in/the/folder/beside/it",
				       &devices, READY_MS, why, sizeof(why)),
			 -ENAMETOOLONG);
	ck_assert_msg(strstr(why, "beside/it.mps: File name too long"), "%s", why);
}
END_TEST

START_TEST(folder_of_somebody_else)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(chown(folder, 1, 1), 0);
	ck_assert_int_lt(start("good", READY_MS), 0);
	ck_assert_msg(strstr(why, "can't have its folder: Operation not permitted"), "%s", why);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(stale_folder)
{
	char path[128];

	ck_assert_int_eq(mkdir(folder, 0777), 0);
	snprintf(path, sizeof(path), "%s/pipe", folder);
	ck_assert_int_eq(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/pipe/server", folder);
	close(open(path, O_WRONLY | O_CREAT, 0666));
	must_start("good");
	fgv_mps_stop(&mps);
}
END_TEST

static void await_ready(bool ready)
{
	for (int tries = 0; mps.ready != ready; tries++) {
		ck_assert_int_lt(tries, HANG_LIMIT_SEC);
		fgv_loop_turn(loop, fgv_now_ns() + FGV_NS_PER_SEC);
	}
}

START_TEST(control_is_killed)
{
	pid_t control, server;

	must_start("good");
	control = noted_process("controls");
	server = noted_process("servers");
	kill(control, SIGKILL);
	await_ready(false);
	await_ready(true);
	ck_assert(!runs(control));
	ck_assert(!runs(server)); /* its clients have lost it, so none may stay behind */
	ck_assert_int_ne(noted_process("controls"), control);
	ck_assert(runs(noted_process("controls")));
	ck_assert(runs(noted_process("servers")));
	fgv_mps_stop(&mps);
}
END_TEST

START_TEST(stopped_before_it_is_started_again)
{
	must_start("good");
	kill(noted_process("controls"), SIGKILL);
	await_ready(false);
	fgv_mps_stop(&mps);
}
END_TEST

START_TEST(keeper_is_killed)
{
	must_start("good");
	kill(mps.keeper, SIGKILL);
	await_ready(false);
	AWAIT(!any_runs("controls"));
	ck_assert_int_eq(kill(noted_process("servers"), SIGKILL), 0); /* nobody is left to do it */
	AWAIT(!any_runs("servers"));
	fgv_mps_stop(&mps);
	/* The next one clears away behind it. */
	must_start("good");
	fgv_mps_stop(&mps);
}
END_TEST

START_TEST(deaf_to_everything)
{
	must_start("deaf");
	fgv_mps_stop(&mps);
	ck_assert_str_eq(read_note("quit"), "");
}
END_TEST

/* A daemon of its own, which has started MPS when this returns. */
static pid_t fork_daemon(const char *mode)
{
	int fds[2];
	char byte;
	pid_t pid;

	write_note("mode", mode);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fgv_mps_start(&mps, &config, loop, place, &devices, READY_MS, why, sizeof(why)))
			_exit(1);
		if (write(fds[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

static void kill_daemon(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(daemon_is_killed)
{
	kill_daemon(fork_daemon("good"));
	AWAIT(!any_runs("controls") && !any_runs("servers"));
	AWAIT(access(folder, F_OK) != 0);
}
END_TEST

START_TEST(daemon_is_killed_and_started_again)
{
	pid_t control;

	kill_daemon(fork_daemon("deaf"));
	control = noted_process("controls");
	/* While the MPS of the first is being taken down, in the same place. */
	must_start("good");
	ck_assert(!runs(control));
	ck_assert_int_eq(access(folder, F_OK), 0);
	fgv_mps_stop(&mps);
}
END_TEST

START_TEST(second_daemon_in_the_same_place)
{
	pid_t first = fork_daemon("good");

	ck_assert_int_lt(start("good", SHORT_MS), 0);
	ck_assert_msg(strstr(why, "can't have its folder: another daemon's is in it"), "%s", why);
	ck_assert(runs(noted_process("controls")));
	kill_daemon(first);
	AWAIT(access(folder, F_OK) != 0);
}
END_TEST

static void expect_refusal(const char *choice, const char *text)
{
	ck_assert_int_lt(fgv_mps_check(&config, &devices, choice, why, sizeof(why)), 0);
	ck_assert_msg(strstr(why, text) == why, "%s", why);
}

START_TEST(program_is_missing)
{
	ck_assert_int_eq(fgv_mps_check(&config, &devices, "", why, sizeof(why)), 0);
	setenv("PATH", "/nonexistent:/tmp", 1);
	expect_refusal(
		"", "conf:1: context: \"mps\" needs nvidia-cuda-mps-control, which is not on PATH");
}
END_TEST

START_TEST(soft_gpu)
{
	devices.list[0].soft = true;
	expect_refusal(
		"using the soft GPU: configured",
		"conf:1: context: \"mps\" needs an NVIDIA GPU; using the soft GPU: configured");
}
END_TEST

START_TEST(isolated)
{
	config.context = FGV_CONTEXT_ISOLATED;
	setenv("PATH", "/nonexistent", 1);
	ck_assert_int_eq(fgv_mps_check(&config, &devices, "", why, sizeof(why)), 0);
	must_start("good");
	ck_assert_str_eq(read_note("controls"), "");
	fgv_mps_stop(&mps);
}
END_TEST

static Suite *mps_suite(void)
{
	Suite *suite = suite_create("mps");
	TCase *tcase = tcase_create("mps");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 2 * HANG_LIMIT_SEC);
	tcase_add_test(tcase, starts_and_ends);
	tcase_add_test(tcase, foreign_environment);
	tcase_add_test(tcase, some_devices);
	tcase_add_test(tcase, some_devices_of_some);
	tcase_add_test(tcase, control_ends_at_once);
	tcase_add_test(tcase, control_never_answers);
	tcase_add_test(tcase, server_never_comes);
	tcase_add_test(tcase, folder_of_too_long_a_name);
	tcase_add_test(tcase, folder_of_somebody_else);
	tcase_add_test(tcase, stale_folder);
	tcase_add_test(tcase, control_is_killed);
	tcase_add_test(tcase, stopped_before_it_is_started_again);
	tcase_add_test(tcase, keeper_is_killed);
	tcase_add_test(tcase, deaf_to_everything);
	tcase_add_test(tcase, daemon_is_killed);
	tcase_add_test(tcase, daemon_is_killed_and_started_again);
	tcase_add_test(tcase, second_daemon_in_the_same_place);
	tcase_add_test(tcase, program_is_missing);
	tcase_add_test(tcase, soft_gpu);
	tcase_add_test(tcase, isolated);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(int argc, char **argv)
{
	SRunner *runner;
	int failed;

	if (fgv_mps_keeper_asked(argc, argv))
		return fgv_mps_keeper_run(argv);
	fgv_log_init("test_mps");
	runner = srunner_create(mps_suite());
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
