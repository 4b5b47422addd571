/*
 * Key "context" as the whole daemon obeys it, with fake_mps.sh and fake_cuda.c in the place
 * of what NVIDIA ships.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/backend/daemon_harness.h"

#define REST "window = \"8M\"; lanes = 4; vms = ( { name = \"a\"; } );\n"
#define MPS  "gpu = \"cuda:1\"; context = \"mps\"; " REST

static struct daemon server;
static char notes[32];

static void set_mode(const char *mode)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/mode", notes);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(mode, file);
	fclose(file);
}

static void set_up(void)
{
	char path[128];

	strcpy(notes, "/tmp/fairgv-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(notes));
	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control", notes);
	ck_assert_int_eq(symlink(FGV_TEST_FAKE_MPS, path), 0);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", notes);
	setenv("PATH", path, 1);
	setenv("FAKE_MPS", notes, 1);
	setenv("LD_LIBRARY_PATH", FGV_TEST_FAKE_CUDA, 1);
	/* What somebody else's MPS would be found by. */
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps", 1);
	setenv("CUDA_VISIBLE_DEVICES", "4,5", 1);
	set_mode("good");
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "/bin/rm -r %s", notes);
	ck_assert_int_eq(system(command), 0);
}

/* The last process that is noted in a file of fake_mps.sh's. */
static pid_t noted(const char *name)
{
	char path[64], line[32];
	pid_t pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", notes, name);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		pid = atoi(line);
	fclose(file);
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* Orphans come to this process, which has to take them off the list of processes. */
static bool runs(pid_t pid)
{
	waitpid(pid, NULL, WNOHANG);
	return kill(pid, 0) == 0;
}

static void expect_mps_gone(void)
{
	AWAIT(!runs(noted("controls")) && !runs(noted("servers")));
}

/* Whether the process of session @number has @entry in its environment. */
static bool session_has(unsigned number, const char *entry)
{
	static char text[65536];
	char path[64];
	const char *at, *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)daemon_session_pid(&server, number));
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	end = text + fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	for (at = text; at < end; at += strlen(at) + 1) {
		if (!strncmp(at, entry, strlen(entry)))
			return true;
	}
	return false;
}

START_TEST(clients_of_mps)
{
	char entry[128];
	int fd;

	daemon_start(&server, MPS);
	daemon_await_log(&server, "for CUDA devices 5");
	fd = guest_open(&server, "a", "p", NULL);
	snprintf(entry, sizeof(entry), "CUDA_MPS_PIPE_DIRECTORY=%s.mps/pipe", server.socket);
	ck_assert(session_has(1, entry));
	snprintf(entry, sizeof(entry), "CUDA_MPS_LOG_DIRECTORY=%s.mps/log", server.socket);
	ck_assert(session_has(1, entry));
	ck_assert(!session_has(1, "CUDA_VISIBLE_DEVICES="));
	close(fd);
	daemon_stop(&server); /* which leaves nothing in its folder */
	ck_assert(!runs(noted("controls")));
	ck_assert(!runs(noted("servers")));
}
END_TEST

/* No client may have more than the largest quota, by MPS's own count; without one, there is none.
 */
START_TEST(clients_have_a_limit)
{
	static const char head[] =
		"gpu = \"cuda:1\"; context = \"mps\"; window = \"8M\"; lanes = 4;";
	char config[256];
	int fd;

	snprintf(config, sizeof(config),
		 "%s vms = ( { name = \"a\"; memory = \"2G\"; }, { name = \"b\"; %s } );\n", head,
		 _i ? "" : "memory = \"4G\";");
	daemon_start(&server, config);
	fd = guest_open(&server, "a", "p", NULL);
	ck_assert(session_has(1, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=5121M") == !_i);
	ck_assert(session_has(1, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=") == !_i);
	close(fd);
	daemon_stop(&server);
}
END_TEST

START_TEST(none_of_mps)
{
	int fd;

	daemon_start(&server, "gpu = \"cuda:1\"; " REST);
	fd = guest_open(&server, "a", "p", NULL);
	ck_assert(session_has(1, "CUDA_MPS_PIPE_DIRECTORY=/dev/null"));
	ck_assert(session_has(1, "CUDA_VISIBLE_DEVICES=4,5"));
	close(fd);
	daemon_stop(&server);
}
END_TEST

START_TEST(no_session_without_mps)
{
	daemon_start(&server, MPS);
	kill(noted("controls"), SIGKILL);
	daemon_await_log(&server, "it is started again in 1 s");
	guest_expect_refusal(&server, "a", CUDA_ERROR_MPS_SERVER_NOT_READY,
			     "NVIDIA's MPS is not ready; try again later");
	daemon_await_log(&server, "NVIDIA's MPS is ready again");
	close(guest_open(&server, "a", "p", NULL));
	daemon_stop(&server);
}
END_TEST

static void await_ready(unsigned count)
{
	AWAIT(daemon_count_log(&server, " is ready for CUDA device 1") == count);
}

/* No client is kept of a server that has died, or that takes nobody before all have gone. */
START_TEST(processes_kept_ready)
{
	struct guest_answer answer;
	int fd;

	daemon_start(&server, "warm = 2; " MPS);
	await_ready(2);
	kill(noted("controls"), SIGKILL);
	daemon_await_log(&server, "it is started again in 1 s");
	AWAIT(daemon_children(&server) == 1); /* the keeper */
	await_ready(4);
	fd = guest_connect(&server);
	guest_send_hello(fd, "a", "unable"); /* takes one, ends with a status, the other goes */
	guest_receive(fd, &answer);
	guest_close(fd, &answer);
	await_ready(6);
	ck_assert_uint_eq(daemon_count_log(&server, "kept ready"), 0);
	daemon_stop(&server);
}
END_TEST

START_TEST(killed_daemon)
{
	daemon_start(&server, MPS);
	kill(server.pid, SIGKILL);
	ck_assert_int_eq(daemon_wait(&server), -SIGKILL);
	expect_mps_gone();
	daemon_launch(&server);
	ck_assert(server.ready[0]);
	close(guest_open(&server, "a", "p", NULL));
	daemon_stop(&server);
}
END_TEST

static void expect_no_start(const char *config, const char *log)
{
	daemon_prepare(&server, config);
	daemon_launch(&server);
	ck_assert_str_eq(server.ready, "");
	ck_assert_int_eq(daemon_wait(&server), 1);
	daemon_await_log(&server, log);
	daemon_remove(&server); /* no socket, no folder */
}

START_TEST(mps_that_fails)
{
	set_mode("broken");
	expect_no_start("gpu = \"cuda\";\ncontext = \"mps\"; " REST,
			"conf:2: context: NVIDIA's MPS (process ");
}
END_TEST

START_TEST(mps_that_is_missing)
{
	setenv("PATH", "/nonexistent", 1);
	expect_no_start(MPS, "conf:1: context: \"mps\" needs nvidia-cuda-mps-control, which is "
			     "not on PATH");
}
END_TEST

START_TEST(soft_gpu)
{
	expect_no_start("gpu = \"soft\";\ncontext = \"mps\"; " REST,
			"conf:2: context: \"mps\" needs an NVIDIA GPU; using the soft GPU: "
			"configured");
}
END_TEST

START_TEST(soft_gpu_for_want_of_another)
{
	setenv("FAKE_CUDA", "none", 1);
	expect_no_start("context = \"mps\"; " REST,
			"conf:1: context: \"mps\" needs an NVIDIA GPU; using the soft GPU: no CUDA "
			"device: ");
}
END_TEST

/* The driver says of its devices that their kernels reach all memory. */
START_TEST(gpu_that_reaches_memory)
{
	setenv("FAKE_CUDA", "pageable", 1);
	expect_no_start("gpu = \"cuda\";\npageable_memory = \"refuse\"; " REST,
			"conf:2: pageable_memory: kernels on CUDA device 0 reach the memory of");
	daemon_start(&server, "gpu = \"cuda\"; " REST);
	daemon_await_log(&server, "warning: kernels on CUDA device 0 reach the memory of");
	daemon_stop(&server);
}
END_TEST

START_TEST(gpu_that_reaches_no_memory)
{
	daemon_start(&server, "gpu = \"cuda\"; pageable_memory = \"refuse\"; " REST);
	daemon_stop(&server);
}
END_TEST

static Suite *mps_daemon_suite(void)
{
	Suite *suite = suite_create("mps_daemon");
	TCase *tcase = tcase_create("mps_daemon");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 2 * HANG_LIMIT_SEC);
	tcase_add_test(tcase, clients_of_mps);
	tcase_add_loop_test(tcase, clients_have_a_limit, 0, 2);
	tcase_add_test(tcase, none_of_mps);
	tcase_add_test(tcase, no_session_without_mps);
	tcase_add_test(tcase, processes_kept_ready);
	tcase_add_test(tcase, killed_daemon);
	tcase_add_test(tcase, mps_that_fails);
	tcase_add_test(tcase, mps_that_is_missing);
	tcase_add_test(tcase, soft_gpu);
	tcase_add_test(tcase, soft_gpu_for_want_of_another);
	tcase_add_test(tcase, gpu_that_reaches_memory);
	tcase_add_test(tcase, gpu_that_reaches_no_memory);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(mps_daemon_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
