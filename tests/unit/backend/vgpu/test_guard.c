/*
 * What guards the daemon: rates, who a peer is, and refused system calls, with a process in
 * the sandbox that makes them.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/guard/cgroup.h"
#include "backend/guard/peer.h"
#include "backend/guard/rate.h"
#include "backend/guard/refusals.h"
#include "backend/shared.h"
#include "backend/vgpu/sandbox/sandbox.h"
#include "common/log.h"
#include "common/util.h"

/* --- Rates ----------------------------------------------------------------- */

#define START_NS (1000 * FGV_NS_PER_SEC)

static const struct fgv_rate rate = {.per_second = 10, .burst = 5};

START_TEST(rate_has_a_burst_and_a_speed)
{
	struct fgv_rate_bucket bucket = {0};
	unsigned taken = 0;

	while (fgv_rate_take(&rate, &bucket, START_NS))
		taken++;
	ck_assert_uint_eq(taken, rate.burst);
	ck_assert_uint_ge(fgv_rate_wait_ms(&rate, &bucket, START_NS), 100);
	ck_assert(!fgv_rate_take(&rate, &bucket, START_NS + 99 * FGV_NS_PER_MS));
	ck_assert(fgv_rate_take(&rate, &bucket, START_NS + 100 * FGV_NS_PER_MS));
	ck_assert(!fgv_rate_take(&rate, &bucket, START_NS + 100 * FGV_NS_PER_MS));
	/* However long the pause was, there is no more than a burst. */
	taken = 0;
	while (fgv_rate_take(&rate, &bucket, 2 * START_NS))
		taken++;
	ck_assert_uint_eq(taken, rate.burst);
}
END_TEST

START_TEST(rate_of_users_is_each_ones)
{
	static struct fgv_rate_users users;

	while (fgv_rate_take(&rate, fgv_rate_user(&users, 1, START_NS), START_NS))
		continue;
	ck_assert(fgv_rate_take(&rate, fgv_rate_user(&users, 2, START_NS), START_NS));
	ck_assert(!fgv_rate_take(&rate, fgv_rate_user(&users, 1, START_NS), START_NS));
}
END_TEST

/* Somebody with many users gets room for all of them, but an exhausted one stays so. */
START_TEST(rate_of_users_is_bounded)
{
	static struct fgv_rate_users users;

	while (fgv_rate_take(&rate, fgv_rate_user(&users, 1, START_NS), START_NS))
		continue;
	for (uid_t uid = 1000; uid < 1000 + 4 * FGV_RATE_USERS_MAX; uid++)
		ck_assert(fgv_rate_take(&rate, fgv_rate_user(&users, uid, START_NS), START_NS));
	ck_assert_uint_le(users.count, FGV_RATE_USERS_MAX);
	ck_assert(!fgv_rate_take(&rate, fgv_rate_user(&users, 1, START_NS), START_NS));
}
END_TEST

/* --- Peers ----------------------------------------------------------------- */

START_TEST(peer_of_here)
{
	struct fgv_peer peer;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(fgv_peer_look(pair[0], &peer), 0);
	ck_assert_int_eq(peer.pid, getpid());
	ck_assert_uint_eq(peer.uid, geteuid());
	ck_assert_int_eq(peer.place, FGV_PEER_HERE);
	ck_assert(fgv_peer_is_user(&peer));
	ck_assert(fgv_peer_is_own(&peer));
}
END_TEST

START_TEST(peer_of_a_container_is_nobody)
{
	const struct fgv_peer contained = {.pid = 1, .uid = 1000, .place = FGV_PEER_CONTAINER};
	const struct fgv_peer root = {.pid = 1, .uid = 0, .place = FGV_PEER_MAPPED};
	const struct fgv_peer mapped = {.pid = 1, .uid = 1000, .place = FGV_PEER_MAPPED};

	ck_assert(!fgv_peer_is_user(&contained));
	ck_assert(!fgv_peer_is_own(&contained));
	ck_assert(!fgv_peer_is_user(&root));
	ck_assert(!fgv_peer_is_own(&root));
	ck_assert(fgv_peer_is_user(&mapped));
	ck_assert(!fgv_peer_is_own(&mapped));
}
END_TEST

/* --- Refused system calls -------------------------------------------------- */

#define CALLS (2 * FGV_REFUSALS_MAX)

/* Makes refused calls until there is no more listening, and one of another kind. */
static void be_refused(int socket, bool record)
{
	const struct fgv_prepare prepare = {.soft = 1, .listen = 1, .record = record};
	const struct fgv_sandbox_terms terms = {0};
	const struct fgv_confined message = {.has_listener = 1};
	struct fgv_sandbox sandbox;
	int ok = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fgv_sandbox_begin() || fgv_sandbox_enter(&sandbox, &prepare) ||
	    fgv_sandbox_close(&sandbox, &terms) || sandbox.listener < 0)
		_exit(2);
	if (fgv_fds_send(socket, &message, sizeof(message), &sandbox.listener, 1))
		_exit(3);
	close(sandbox.listener);
	for (int i = 0; i < CALLS; i++)
		ok &= syscall(SYS_io_uring_setup, 0, NULL) == -1 && (record || errno == ENOSYS);
	if (record)
		ok &= syscall(SYS_getpgrp) > 0;
	_exit(!ok);
}

static pid_t start_refused(bool record, int *listener)
{
	struct fgv_confined message;
	struct pollfd from = {.events = POLLIN};
	int pair[2];
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		be_refused(pair[1], record);
	close(pair[1]);
	from.fd = pair[0];
	ck_assert_int_eq(poll(&from, 1, 60000), 1);
	ck_assert_int_eq(fgv_fds_receive(pair[0], &message, sizeof(message), listener),
			 sizeof(message));
	return pid;
}

static void await_end(int loop, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		fgv_loop_turn(loop, fgv_now_ns() + FGV_NS_PER_MS);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

static const struct fgv_log_subject subject = {.vm = "test"};

START_TEST(refusals_are_counted_and_bounded)
{
	struct fgv_refusals refusals;
	int loop = fgv_loop_create(), listener;
	pid_t pid = start_refused(false, &listener);

	fgv_refusals_init(&refusals);
	ck_assert_int_eq(fgv_refusals_listen(&refusals, loop, listener, &subject, false), 0);
	await_end(loop, pid);
	ck_assert_uint_eq(refusals.count, FGV_REFUSALS_MAX);
	ck_assert_uint_eq(refusals.kind_count, 1);
	ck_assert_int_eq(refusals.kinds[0].number, SYS_io_uring_setup);
	ck_assert_int_lt(refusals.watch.fd, 0);
	fgv_refusals_fini(&refusals);
	close(loop);
}
END_TEST

START_TEST(recording_lets_calls_through)
{
	struct fgv_refusals refusals;
	int loop = fgv_loop_create(), listener;
	pid_t pid = start_refused(true, &listener);

	fgv_refusals_init(&refusals);
	ck_assert_int_eq(fgv_refusals_listen(&refusals, loop, listener, &subject, true), 0);
	await_end(loop, pid);
	ck_assert_uint_eq(refusals.count, CALLS + 1);
	ck_assert_uint_eq(refusals.kind_count, 2);
	fgv_refusals_fini(&refusals);
	close(loop);
}
END_TEST

/* --- Control groups -------------------------------------------------------- */

static char group_folder[] = "/tmp/fairgv-guard-XXXXXX";

static void write_text(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", group_folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static const char *read_text(const char *name)
{
	static char text[128];
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", group_folder, name);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* Files in the place of the kernel's, which tests may not have. */
static void make_files(void)
{
	static const char *const files[] = {"cgroup.subtree_control", "vm-a/memory.max",
					    "vm-a/pids.max", "vm-a/cpu.max", "vm-a/cgroup.procs"};
	char path[128];

	ck_assert_ptr_nonnull(mkdtemp(group_folder));
	snprintf(path, sizeof(path), "%s/vm-a", group_folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	for (size_t i = 0; i < FGV_ARRAY_LEN(files); i++)
		write_text(files[i], "");
}

static void remove_files(void)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", group_folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(group_of_a_vm_has_limits)
{
	struct fgv_config_vm vm = {.name = "a", .host_memory_bytes = 1 << 30, .processors = 3};
	struct fgv_cgroups cgroups;
	char why[256];
	int fd;

	make_files();
	ck_assert_int_eq(fgv_cgroups_init(&cgroups, group_folder, why, sizeof(why)), 0);
	fd = fgv_cgroups_open(&cgroups, &vm, 77, why, sizeof(why));
	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(read_text("vm-a/memory.max"), "1073741824");
	ck_assert_str_eq(read_text("vm-a/pids.max"), "77");
	ck_assert_str_eq(read_text("vm-a/cpu.max"), "300000 100000");
	ck_assert_int_eq(write(fd, "0", 1), 1);
	ck_assert_str_eq(read_text("vm-a/cgroup.procs"), "0");
	close(fd);
	fgv_cgroups_close(&cgroups, "a");
	fgv_cgroups_fini(&cgroups);
	remove_files();
}
END_TEST

START_TEST(group_without_limits)
{
	const struct fgv_config_vm vm = {.name = "a", .host_memory_bytes = FGV_CONFIG_NO_LIMIT};
	struct fgv_cgroups cgroups;
	char why[256];

	make_files();
	ck_assert_int_eq(fgv_cgroups_init(&cgroups, group_folder, why, sizeof(why)), 0);
	close(fgv_cgroups_open(&cgroups, &vm, 1, why, sizeof(why)));
	ck_assert_str_eq(read_text("vm-a/memory.max"), "max");
	ck_assert_str_eq(read_text("vm-a/cpu.max"), "max 100000");
	remove_files();
}
END_TEST

/* What was configured and can't be had is an error; what was only hoped for is a line. */
START_TEST(groups_that_can_not_be)
{
	const struct fgv_config_vm vm = {.name = "a"};
	struct fgv_cgroups cgroups;
	char why[256];
	int fd;

	ck_assert_int_eq(fgv_cgroups_init(&cgroups, "/proc/none/there", why, sizeof(why)), -EINVAL);
	ck_assert(*why);
	ck_assert_int_eq(fgv_cgroups_init(&cgroups, "off", why, sizeof(why)), 0);
	fd = fgv_cgroups_open(&cgroups, &vm, 1, why, sizeof(why));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "0", 1), 1);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard");
	TCase *tcase = tcase_create("guard");
	SRunner *runner = srunner_create(suite);
	int failed;

	fgv_log_init("test_guard");
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, rate_has_a_burst_and_a_speed);
	tcase_add_test(tcase, rate_of_users_is_each_ones);
	tcase_add_test(tcase, rate_of_users_is_bounded);
	tcase_add_test(tcase, peer_of_here);
	tcase_add_test(tcase, peer_of_a_container_is_nobody);
	tcase_add_test(tcase, refusals_are_counted_and_bounded);
	tcase_add_test(tcase, recording_lets_calls_through);
	tcase_add_test(tcase, group_of_a_vm_has_limits);
	tcase_add_test(tcase, group_without_limits);
	tcase_add_test(tcase, groups_that_can_not_be);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
