/*
 * The second opinion on memory: whom it finds over, and a daemon that asks a library in the place
 * of NVML, with daemon_session in the place of its vGPU processes.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/memwatch.h"
#include "backend/nvml.h"
#include "common/util.h"
#include "tests/unit/backend/admin/admin_client.h"

#define MIB	(1024ull * 1024)
#define GIB	(1024 * MIB)
#define CONTEXT (500 * MIB)

/* FairGV's own library, which a daemon can find where it finds its other libraries. */
START_TEST(asks_nobody_but_the_driver)
{
	void *ours =
		dlopen(FGV_TEST_FAKE_CUDA "/../../../../frontend/.libs/libnvidia-ml.so.1", RTLD_NOW);
	struct fgv_nvml *nvml = NULL;
	char why[256] = "";

	ck_assert_msg(ours, "%s", dlerror());
	ck_assert_int_eq(fgv_nvml_open(&nvml, why, sizeof(why)), -ENOENT);
	ck_assert_msg(strstr(why, "FairGV's own"), "%s", why);
	dlclose(ours);
}
END_TEST

/* --- Judging ------------------------------------------------------------------- */

static bool is_over(uint64_t charged_bytes, uint64_t used_bytes, uint64_t quota_bytes)
{
	struct fgv_memwatch_claim claim = {.charged_bytes = charged_bytes,
					   .used_bytes = used_bytes};

	fgv_memwatch_judge(&claim, 1, quota_bytes, CONTEXT, 0);
	return claim.over;
}

START_TEST(judges_one)
{
	/* What it was charged, its context, and what nobody knows of. */
	ck_assert(!is_over(0, 0, 8 * GIB));
	ck_assert(!is_over(0, CONTEXT, 8 * GIB));
	ck_assert(!is_over(4 * GIB, 4 * GIB + CONTEXT + FGV_MEMWATCH_SLACK, 8 * GIB));
	ck_assert(!is_over(4 * GIB, 0, 8 * GIB));
	ck_assert(is_over(0, 60 * GIB, 8 * GIB));
	ck_assert(is_over(0, CONTEXT + FGV_MEMWATCH_SLACK + 1, 8 * GIB));
	ck_assert(is_over(4 * GIB, 6 * GIB, 8 * GIB));
	/* It says that all was charged; the quota does not. */
	ck_assert(is_over(UINT64_MAX, 60 * GIB, 8 * GIB));
	ck_assert(is_over(100 * GIB, 12 * GIB, 8 * GIB));
}
END_TEST

/* Each keeps to what it says that it was charged, but the VM has not so much. */
START_TEST(judges_all_together)
{
	struct fgv_memwatch_claim claims[] = {
		{.number = 1, .charged_bytes = 7 * GIB, .used_bytes = 7 * GIB + CONTEXT},
		{.number = 2, .charged_bytes = 8 * GIB, .used_bytes = 9 * GIB},
		{.number = 3, .charged_bytes = 1 * GIB, .used_bytes = 1 * GIB + CONTEXT / 2},
		{.number = 4, .charged_bytes = 5 * GIB},
	};

	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 8 * GIB, CONTEXT, 0);
	ck_assert(!claims[0].over && claims[1].over && !claims[2].over && !claims[3].over);
	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 17 * GIB, CONTEXT, 0);
	ck_assert(!claims[0].over && !claims[1].over && !claims[2].over && !claims[3].over);
}
END_TEST

/* What two share is counted for both, but charged to neither. */
START_TEST(judges_those_that_share)
{
	struct fgv_memwatch_claim claims[] = {
		{.charged_bytes = GIB, .used_bytes = 7 * GIB, .shared_bytes = 6 * GIB},
		{.used_bytes = 6 * GIB + CONTEXT, .shared_bytes = 6 * GIB},
		{.charged_bytes = GIB, .used_bytes = GIB},
	};

	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 8 * GIB, CONTEXT, 6 * GIB);
	ck_assert(!claims[0].over && !claims[1].over && !claims[2].over);
	/* As much more by one of them. */
	claims[2].used_bytes = 3 * GIB;
	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 8 * GIB, CONTEXT, 6 * GIB);
	ck_assert(!claims[0].over && !claims[1].over && claims[2].over);
	/* Nobody is believed more than the VM may have. */
	claims[2].used_bytes = 30 * GIB;
	claims[2].shared_bytes = UINT64_MAX;
	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 8 * GIB, CONTEXT, 6 * GIB);
	ck_assert(claims[2].over);
	/* One has it, and the others what the quota has left, and one of them more. */
	claims[1].shared_bytes = claims[2].shared_bytes = 0;
	claims[1].used_bytes = claims[1].charged_bytes = 2 * GIB;
	claims[2].used_bytes = claims[2].charged_bytes = 4 * GIB;
	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 8 * GIB, CONTEXT, 6 * GIB);
	ck_assert(claims[0].over || claims[1].over || claims[2].over);
}
END_TEST

/* All claim the whole quota, so none is beyond its own word: the one with the most is ended. */
START_TEST(judges_those_that_claim_all)
{
	struct fgv_memwatch_claim claims[] = {
		{.charged_bytes = UINT64_MAX, .used_bytes = 7 * GIB},
		{.charged_bytes = 8 * GIB, .used_bytes = 8 * GIB},
		{.charged_bytes = 9 * GIB, .used_bytes = 7 * GIB},
	};

	fgv_memwatch_judge(claims, FGV_ARRAY_LEN(claims), 8 * GIB, CONTEXT, 0);
	ck_assert(!claims[0].over && claims[1].over && !claims[2].over);
}
END_TEST

/* --- The daemon's ----------------------------------------------------------------- */

#define CONFIG                                                                                     \
	"gpu = \"cuda:1\"; window = \"8M\"; lanes = 4;\n"                                          \
	"vms = ( { name = \"a\"; memory = \"2G\"; }, { name = \"b\"; } );\n"

static struct daemon server;
static char list[] = "/tmp/fairgv-test-nvml-XXXXXX";

static void set_up(void)
{
	int fd = mkstemp(list);

	ck_assert_int_ge(fd, 0);
	close(fd);
	setenv("LD_LIBRARY_PATH", FGV_TEST_FAKE_CUDA, 1);
	setenv("FAKE_NVML", list, 1);
}

static void tear_down(void)
{
	unlink(list);
	strcpy(list + strlen(list) - 6, "XXXXXX");
}

/* What the library says from now on. */
static void say(const char *lines)
{
	char path[sizeof(list) + 4];
	FILE *file;

	snprintf(path, sizeof(path), "%s.new", list);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(lines, file);
	fclose(file);
	ck_assert_int_eq(rename(path, list), 0);
}

static void say_that(char kind, unsigned session, uint64_t bytes)
{
	char line[64];

	snprintf(line, sizeof(line), "%c %d %llu\n", kind,
		 (int)daemon_session_pid(&server, session), (unsigned long long)bytes);
	say(line);
}

/* A session with far more than it was charged is ended, with one line that says so. */
START_TEST(ends_who_is_far_over)
{
	int honest, greedy;

	daemon_start(&server, CONFIG);
	honest = guest_open(&server, "a", "honest", NULL);
	say_that('c', 1, GIB);
	greedy = guest_open(&server, "a", "greedier", NULL);
	say_that(_i ? 'm' : 'c', 2, 60 * GIB);
	guest_await_end(greedy);
	daemon_await_log(&server,
			 "the driver counts 61440 MiB of GPU memory in use, of which 0 MiB "
			 "were charged");
	ck_assert_uint_eq(daemon_count_log(&server, "the driver counts"), 1);
	daemon_await_log(&server, "killed by signal 9");
	say_that('c', 1, GIB);
	close(honest);
	close(greedy);
	daemon_stop(&server);
}
END_TEST

/* A VM without a quota may have all that there is. */
START_TEST(leaves_others_alone)
{
	char lines[128];
	int unlimited, greedy;

	daemon_start(&server, CONFIG);
	greedy = guest_open(&server, "a", "greedier", NULL);
	unlimited = guest_open(&server, "b", "unlimited", NULL);
	snprintf(lines, sizeof(lines), "c %d %llu\nc %d %llu\nc 1 %llu\n",
		 (int)daemon_session_pid(&server, 1), 60 * GIB, (int)server.pid, 60 * GIB,
		 60 * GIB);
	say(lines);
	/* By then it has been looked at twice; the line comes with the end of its process. */
	guest_await_end(greedy);
	daemon_await_log(&server, "the driver counts");
	ck_assert_uint_eq(daemon_count_log(&server, "the driver counts"), 1);
	close(greedy);
	close(unlimited);
	daemon_stop(&server);
}
END_TEST

/* The first child of the daemon, which is kept ready. */
static pid_t kept_ready(void)
{
	char path[64];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)server.pid, (int)server.pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

/* By what a process has that is ready and has served nobody; as nobody knows better, 640 MiB. */
/* What the administrator is told that the first VM is charged. */
static json_int_t charged_bytes(void)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"stat\"}");
	json_int_t bytes = report_number(report_at(reply, "vms", 0), "memory_bytes");

	json_decref(reply);
	return bytes;
}

START_TEST(contexts_are_charged_as_measured)
{
	pid_t ready, served;
	char line[64];
	int guest;

	daemon_start(&server, "context_memory = true; warm = 1; " CONFIG);
	guest = guest_open(&server, "a", "program", NULL);
	served = daemon_session_pid(&server, 1);
	AWAIT(charged_bytes() == 671092736);
	close(guest);
	AWAIT((ready = kept_ready()) && ready != served);
	snprintf(line, sizeof(line), "c %d %llu\n", (int)ready, 500 * MIB);
	say(line);
	daemon_await_log(&server, "a context takes 500 MiB");
	AWAIT(charged_bytes() == 0);
	guest = guest_open(&server, "a", "program", NULL);
	AWAIT(charged_bytes() == 524292096);
	close(guest);
	daemon_stop(&server);
}
END_TEST

START_TEST(contexts_are_free_unless_it_is_asked_for)
{
	int guest;

	daemon_start(&server, CONFIG);
	guest = guest_open(&server, "a", "program", NULL);
	AWAIT(charged_bytes() == 4096);
	close(guest);
	daemon_stop(&server);
}
END_TEST

START_TEST(says_once_that_there_is_none)
{
	unsetenv("FAKE_NVML");
	daemon_start(&server, CONFIG);
	ck_assert_uint_eq(daemon_count_log(&server, "without a second opinion"), 1);
	close(guest_open(&server, "a", "program", NULL));
	daemon_stop(&server);
}
END_TEST

/* It starts, and fails when it is asked. */
START_TEST(says_once_that_it_is_silent)
{
	int guest;

	daemon_start(&server, CONFIG);
	unlink(list);
	guest = guest_open(&server, "a", "program", NULL);
	daemon_await_log(&server, "without a second opinion");
	close(guest);
	daemon_stop(&server);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memwatch");
	TCase *judging = tcase_create("judging"), *daemons = tcase_create("daemons");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(judging, asks_nobody_but_the_driver);
	tcase_add_test(judging, judges_one);
	tcase_add_test(judging, judges_all_together);
	tcase_add_test(judging, judges_those_that_share);
	tcase_add_test(judging, judges_those_that_claim_all);
	suite_add_tcase(suite, judging);
	tcase_add_checked_fixture(daemons, set_up, tear_down);
	tcase_set_timeout(daemons, HANG_LIMIT_SEC * 2);
	tcase_add_loop_test(daemons, ends_who_is_far_over, 0, 2);
	tcase_add_test(daemons, leaves_others_alone);
	tcase_add_test(daemons, contexts_are_charged_as_measured);
	tcase_add_test(daemons, contexts_are_free_unless_it_is_asked_for);
	tcase_add_test(daemons, says_once_that_there_is_none);
	tcase_add_test(daemons, says_once_that_it_is_silent);
	suite_add_tcase(suite, daemons);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
