/*
 * Ends: of QEMU, of the daemon, and of the process that tells a guest of the daemon's.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "qemu-device/herald.h"
#include "shmring/park.h"
#include "tests/unit/qemu-device/ivshmem_world.h"

START_TEST(hang_up_ends_all)
{
	struct stat before, after;

	qemu_guest_open(&guest, 0, "p");
	qemu_guest_open(&guest, 1, "p");
	memset(qemu_guest_window(&guest, 1), 'x', WINDOW_LEN);
	memset(qemu_guest_window(&guest, 2), 'x', WINDOW_LEN);
	ck_assert_int_eq(fstat(guest.region_fd, &before), 0);
	qemu_guest_detach(&guest);
	daemon_await_idle(&server, descriptors);
	daemon_await_log(&server, ") has gone");
	qemu_guest_attach(&guest, path_a);
	ck_assert_int_eq(fstat(guest.region_fd, &after), 0);
	ck_assert_uint_ne(after.st_ino, before.st_ino);
	for (uint32_t w = 0; w < WINDOWS; w++)
		check_is_clean(w);
	ck_assert_uint_eq(qemu_guest_slot(&guest, 0)->serial, 0);
	qemu_guest_open(&guest, 0, "p");
	check_window(0);
}
END_TEST

/* A QEMU that is killed with everything it has, at any point. */
static void be_killed(int stage)
{
	struct qemu_guest mine;

	qemu_guest_attach(&mine, path_b);
	if (stage > 0)
		qemu_guest_ask(&mine, 0, stage == 1 ? "p" : "deaf");
	if (stage > 2)
		qemu_guest_request(&mine, 0, FGV_SLOT_CLOSE);
	usleep((unsigned)stage * 1000);
	raise(SIGKILL);
}

START_TEST(qemu_is_killed)
{
	for (int round = 0; round < 12; round++) {
		pid_t pid = fork();
		int status;

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			be_killed(round % 4);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		AWAIT(daemon_count_log(&server, "vm b: QEMU") == 2u * (unsigned)(round + 1));
	}
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

/* --- Telling the guest ----------------------------------------------------------- */

static bool has_left(const struct qemu_guest *who)
{
	const struct fgv_region_head *head = (const struct fgv_region_head *)who->base;

	return fgv_load_acquire(&head->host_gone);
}

/* Waits to be told that the host has gone. */
static void await_leaving(const struct qemu_guest *who)
{
	while (!has_left(who))
		qemu_guest_await_bell(who, 0);
}

/* What /proc has of process @pid; 0 bytes where there is none. */
static size_t read_process(int pid, const char *what, char *text, size_t len)
{
	char path[64];
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	file = fopen(path, "r");
	if (!file)
		return 0;
	got = fread(text, 1, len, file);
	fclose(file);
	return got;
}

/* Whether process @pid is the herald of VM @vm, and ready: it takes its name last. */
static bool is_herald(int pid, const char *vm)
{
	char name[32] = "", arguments[128] = "";
	size_t len = read_process(pid, "cmdline", arguments, sizeof(arguments) - 1);
	size_t vm_len = strlen(vm) + 1;

	read_process(pid, "comm", name, sizeof(name) - 1);
	return !strcmp(name, FGV_HERALD "\n") && len > vm_len &&
	       !memcmp(arguments + len - vm_len, vm, vm_len);
}

/* 0: there is none. */
static pid_t find_herald(const char *vm)
{
	pid_t found = 0;
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)server.pid, (int)server.pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fscanf(file, "%d", &pid) == 1) {
		if (is_herald(pid, vm))
			found = pid;
	}
	fclose(file);
	return found;
}

static pid_t await_herald(const char *vm)
{
	AWAIT(find_herald(vm));
	return find_herald(vm);
}

static void kill_daemon(void)
{
	ck_assert_int_eq(kill(server.pid, SIGKILL), 0);
	ck_assert_int_eq(daemon_wait(&server), -SIGKILL);
}

/* The daemon can be started again, and QEMU connected. */
static void start_again(void)
{
	qemu_guest_detach(&guest);
	daemon_launch(&server);
	ck_assert_msg(server.ready[0], "the daemon did not start; see %s", server.log);
	qemu_guest_attach(&guest, path_a);
	ck_assert(!has_left(&guest));
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_detach(&guest);
	stop_daemon();
}

START_TEST(daemon_ends)
{
	pid_t herald = await_herald("a");

	ck_assert(!has_left(&guest));
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_ask(&guest, 1, "deaf");
	session_process("deaf");
	ck_assert_int_eq(kill(server.pid, SIGTERM), 0);
	qemu_guest_await_state(&guest, 0, FGV_SLOT_GONE);
	qemu_guest_await_bell(&guest, 1);
	qemu_guest_await(&guest, 1, FGV_SLOT_REFUSED);
	await_leaving(&guest);
	ck_assert_int_eq(daemon_wait(&server), 0);
	ck_assert(!is_herald(herald, "a"));
	ck_assert_int_ne(access(path_a, F_OK), 0);
	ck_assert_uint_eq(daemon_count_log(&server, "its guest has been told"), 0);
	qemu_guest_detach(&guest);
	daemon_remove(&server);
}
END_TEST

/* Its heralds tell the guests; a daemon that comes after finds its way past what was left. */
START_TEST(daemon_is_killed)
{
	struct qemu_guest other;
	pid_t herald;
	char byte;

	qemu_guest_attach(&other, path_b);
	qemu_guest_open(&guest, 0, "orphan");
	session_process("orphan");
	herald = await_herald("a");
	ck_assert_int_eq(kill(herald, SIGTERM), 0); /* as the end of a service sends it to all */
	ck_assert(!has_left(&guest) && !has_left(&other));
	kill_daemon();
	ck_assert_int_eq(recv(guest.fd, &byte, 1, 0), 0);
	await_leaving(&guest);
	await_leaving(&other);
	daemon_await_log(&server, "vm a: the daemon has gone, and its guest has been told");
	daemon_await_log(&server, "vm b: the daemon has gone, and its guest has been told");
	AWAIT(!is_herald(herald, "a"));
	ck_assert_uint_eq(qemu_guest_slot(&guest, 0)->state, FGV_SLOT_READY);
	qemu_guest_detach(&other);
	start_again();
}
END_TEST

/* A doorbell that blocks holds no herald up. */
START_TEST(daemon_is_killed_under_a_hostile_qemu)
{
	int bell = guest.bells[FGV_REGION_GUEST][0];
	pid_t herald = await_herald("a");
	uint64_t full = UINT64_MAX - 1;

	fgv_doorbell_clear(bell);
	ck_assert_int_eq(write(bell, &full, sizeof(full)), sizeof(full));
	ck_assert_int_eq(fcntl(bell, F_SETFL, 0), 0);
	kill_daemon();
	AWAIT(has_left(&guest));
	AWAIT(!is_herald(herald, "a"));
	start_again();
}
END_TEST

/* Without its herald a guest is told by a daemon that ends in order. */
START_TEST(herald_is_killed)
{
	pid_t herald = await_herald("a");

	ck_assert_int_eq(kill(herald, SIGKILL), 0);
	daemon_await_log(&server, "vm a: its herald was killed");
	ck_assert_int_eq(find_herald("a"), 0);
	ck_assert(!has_left(&guest));
	qemu_guest_open(&guest, 0, "p");
	check_window(0);
	ck_assert_int_eq(kill(server.pid, SIGTERM), 0);
	await_leaving(&guest);
	ck_assert_int_eq(daemon_wait(&server), 0);
	qemu_guest_detach(&guest);
	daemon_remove(&server);
}
END_TEST

/* --- ----------------------------------------------------------------------------- */

static TCase *served_tests(void)
{
	TCase *tcase = served_case();

	tcase_add_test(tcase, hang_up_ends_all);
	tcase_add_test(tcase, qemu_is_killed);
	return tcase;
}

/* After which there is no daemon to stop. */
static TCase *end_tests(void)
{
	TCase *tcase = tcase_create("ends");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_server, NULL);
	tcase_add_test(tcase, daemon_ends);
	tcase_add_test(tcase, daemon_is_killed);
	tcase_add_test(tcase, daemon_is_killed_under_a_hostile_qemu);
	tcase_add_test(tcase, herald_is_killed);
	return tcase;
}

int main(void)
{
	return run_suite("ivshmem-end", served_tests(), end_tests());
}
