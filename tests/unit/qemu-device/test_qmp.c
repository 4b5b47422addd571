/*
 * Asking QEMU which threads its vCPUs are: a QEMU as it is, and such that hang, lie, talk
 * nonsense, end too early or are started again. This process plays QEMU, and turns the loop.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/loop.h"
#include "backend/vms.h"
#include "common/util.h"
#include "qemu-device/qmp.h"

#define GREETING "{\"QMP\": {\"version\": {\"qemu\": {\"major\": 7}}, \"capabilities\": []}}\r\n"
#define EVENT	 "{\"timestamp\": {\"seconds\": 1}, \"event\": \"RESUME\"}\r\n"
#define FINE	 "{\"return\": {}}\r\n"
#define VCPU(index, thread)                                                                        \
	"{\"cpu-index\": " #index ", \"thread-id\": " #thread ", \"target\": \"x86_64\"}"

static char folder[] = "/tmp/fairgv-test-XXXXXX";
static char path[64], beside[80];
static struct fgv_config_vm config;
static struct fgv_vm vm, *listed = &vm;
static const struct fgv_vms vms = {.list = &listed, .count = 1};
static struct fgv_qmp qmp;
static int loop;

static void start_with(bool asks)
{
	char why[256];

	strcpy(folder, "/tmp/fairgv-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(beside, sizeof(beside), "%s.qmp", path);
	config = (struct fgv_config_vm){.name = "a", .ivshmem = path, .ivshmem_user = geteuid()};
	vm = (struct fgv_vm){.config = &config};
	loop = fgv_loop_create();
	ck_assert_int_ge(loop, 0);
	fgv_qmp_init(&qmp, loop, asks, &vms);
	ck_assert_int_eq(fgv_qmp_open(&qmp, path, geteuid(), why, sizeof(why)), 0);
	fgv_qmp_settle(&qmp);
}

static void start(void)
{
	start_with(true);
}

static void stop(void)
{
	fgv_qmp_fini(&qmp);
	close(loop);
	ck_assert_int_ne(access(beside, F_OK), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* All that there is to do. */
static void turn(void)
{
	struct pollfd pending = {.fd = loop, .events = POLLIN};

	while (poll(&pending, 1, 0) > 0)
		fgv_loop_turn(loop, 0);
	fgv_qmp_tick(&qmp, fgv_now_ns());
}

static int connect_qemu(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	strcpy(address.sun_path, beside);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	turn();
	return fd;
}

static void say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	turn();
}

static void expect_question(int fd, const char *command)
{
	char text[256] = "", expected[256];

	ck_assert_int_gt(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 0);
	snprintf(expected, sizeof(expected), "{\"execute\": \"%s\"}\n", command);
	ck_assert_str_eq(text, expected);
}

static void expect_silence(int fd)
{
	char byte;

	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

/* The daemon has hung up, perhaps with something unread. */
static void expect_left(int fd)
{
	char text[256];
	ssize_t got;

	do
		got = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	while (got > 0);
	ck_assert(got == 0 || errno == ECONNRESET);
	close(fd);
	ck_assert_uint_eq(fgv_qmp_deadline_ns(&qmp), 0);
}

/* Up to the question for the vCPUs. */
static int begin(void)
{
	int fd = connect_qemu();

	say(fd, GREETING);
	expect_question(fd, "qmp_capabilities");
	say(fd, FINE);
	expect_question(fd, "query-cpus-fast");
	return fd;
}

START_TEST(tells)
{
	int fd = connect_qemu();

	ck_assert_uint_gt(fgv_qmp_deadline_ns(&qmp), fgv_now_ns());
	expect_silence(fd);
	say(fd, GREETING EVENT);
	expect_question(fd, "qmp_capabilities");
	say(fd, EVENT FINE EVENT);
	expect_question(fd, "query-cpus-fast");
	say(fd, EVENT "{\"return\": [" VCPU(1, 77) ", " VCPU(0, 4000000) "]}\r\n" EVENT);
	expect_left(fd);
	ck_assert_int_eq(vm.vcpus.pid, getpid());
	ck_assert_uint_eq(vm.vcpus.count, 2);
	ck_assert_int_eq(vm.vcpus.threads[0], 4000000);
	ck_assert_int_eq(vm.vcpus.threads[1], 77);
}
END_TEST

START_TEST(tells_byte_by_byte)
{
	static const char all[] = GREETING FINE "{\"return\": [" VCPU(0, 5) "]}\n";
	int fd = connect_qemu();

	for (size_t i = 0; i + 1 < sizeof(all); i++) {
		ck_assert_int_eq(vm.vcpus.pid, 0);
		say(fd, (char[]){all[i], '\0'});
	}
	expect_left(fd);
	ck_assert_int_eq(vm.vcpus.threads[0], 5);
}
END_TEST

/* What can't be is left out, and the rest is taken. */
START_TEST(tells_nonsense)
{
	int fd = begin();

	say(fd, "{\"return\": [" VCPU(-1, 1) ", " VCPU(1024, 1) ", " VCPU(9223372036854775807, 1) ", " VCPU(
			3,
			0) ", " VCPU(3,
				     -7) ", " VCPU(3,
						   2147483648) ", 7, null, {}, {\"cpu-index\": "
							       "3}, " VCPU("3",
									   9) ", " VCPU(2,
											8) "]}\n");
	expect_left(fd);
	ck_assert_uint_eq(vm.vcpus.count, 3);
	ck_assert_int_eq(vm.vcpus.threads[2], 8);
	for (int i = 0; i < FGV_VCPUS_MAX; i++)
		ck_assert(i == 2 || vm.vcpus.threads[i] == 0);
}
END_TEST

/* At a first line; after the greeting; and in the place of the vCPUs. */
static const char *const nonsense[] = {
	"SSH-2.0-OpenSSH\r\n",
	"\n",
	"[]\n",
	"7\n",
	"{}\n",
	"{\"return\": 7\n",
	"{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}}\n",
};

START_TEST(talks_nonsense)
{
	for (int when = 0; when < 3; when++) {
		int fd = connect_qemu();

		if (when > 0)
			say(fd, GREETING);
		if (when > 1)
			say(fd, FINE);
		say(fd, nonsense[_i]);
		expect_left(fd);
		ck_assert_int_eq(vm.vcpus.pid, 0);
	}
}
END_TEST

START_TEST(talks_without_end)
{
	static char much[64 * 1024 + 1];
	int fd;

	for (int events = 0; events < 2; events++) {
		memset(much, ' ', sizeof(much) - 1);
		if (events)
			for (size_t i = 0; i + sizeof(EVENT) < sizeof(much); i += sizeof(EVENT) - 1)
				memcpy(much + i, EVENT, sizeof(EVENT) - 1);
		fd = events ? begin() : connect_qemu();
		for (int i = 0; i < 9; i++)
			say(fd, much);
		expect_left(fd);
	}
}
END_TEST

START_TEST(hangs)
{
	int fd = begin();

	/* As if the time were over. */
	ck_assert_uint_gt(fgv_qmp_deadline_ns(&qmp), fgv_now_ns() + FGV_NS_PER_SEC);
	fgv_qmp_tick(&qmp, fgv_qmp_deadline_ns(&qmp));
	expect_left(fd);
	ck_assert_int_eq(vm.vcpus.pid, 0);
}
END_TEST

START_TEST(ends_early)
{
	int fd = begin();

	close(fd);
	turn();
	ck_assert_uint_eq(fgv_qmp_deadline_ns(&qmp), 0);
	ck_assert_int_eq(vm.vcpus.pid, 0);
}
END_TEST

/* The next one is asked, whether the one before has told or hangs. */
START_TEST(comes_again)
{
	int fd = begin(), next;

	say(fd, "{\"return\": [" VCPU(0, 5) ", " VCPU(1, 6) "]}\n");
	expect_left(fd);
	fd = begin();
	next = begin();
	say(next, "{\"return\": [" VCPU(0, 7) "]}\n");
	expect_left(next);
	expect_left(fd);
	ck_assert_uint_eq(vm.vcpus.count, 1);
	ck_assert_int_eq(vm.vcpus.threads[0], 7);
	ck_assert_int_eq(vm.vcpus.threads[1], 0);
}
END_TEST

START_TEST(is_not_asked_if_off)
{
	int fd;

	stop();
	start_with(false);
	fd = connect_qemu();
	expect_left(fd);
}
END_TEST

START_TEST(place_is_taken)
{
	struct fgv_qmp other;
	char why[256];

	fgv_qmp_init(&other, loop, true, &vms);
	ck_assert_int_eq(fgv_qmp_open(&other, path, geteuid(), why, sizeof(why)), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(why, "socket.qmp: a daemon answers there already"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("qmp");
	TCase *tcase = tcase_create("qmp");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, start, stop);
	tcase_add_test(tcase, tells);
	tcase_add_test(tcase, tells_byte_by_byte);
	tcase_add_test(tcase, tells_nonsense);
	tcase_add_loop_test(tcase, talks_nonsense, 0, FGV_ARRAY_LEN(nonsense));
	tcase_add_test(tcase, talks_without_end);
	tcase_add_test(tcase, hangs);
	tcase_add_test(tcase, ends_early);
	tcase_add_test(tcase, comes_again);
	tcase_add_test(tcase, is_not_asked_if_off);
	tcase_add_test(tcase, place_is_taken);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
