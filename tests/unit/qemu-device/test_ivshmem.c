/*
 * QEMU guests as the daemon meets them: what QEMU is given, and how windows get sessions and
 * lose them.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/util.h"
#include "shmring/park.h"
#include "tests/unit/qemu-device/ivshmem_world.h"

#define STRANGER 54321

/* --- What QEMU is given -------------------------------------------------------- */

START_TEST(region_is_as_it_says)
{
	const struct fgv_region_head *head = &guest.head;

	ck_assert_uint_eq(guest.len, 32u << 20);
	ck_assert_int_eq(fcntl(guest.region_fd, F_GET_SEALS),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	ck_assert_uint_eq(head->magic, FGV_REGION_MAGIC);
	ck_assert_uint_eq(head->version, FGV_REGION_VERSION);
	ck_assert_uint_eq(head->wire_version, FGV_WIRE_VERSION);
	ck_assert_uint_eq(head->windows, WINDOWS);
	ck_assert_uint_eq(head->window_len, WINDOW_LEN);
	ck_assert_uint_eq(head->windows_off % FGV_PAGE_BYTES, 0);
	ck_assert_uint_ge(head->windows_off,
			  FGV_REGION_SLOTS_OFF + WINDOWS * sizeof(struct fgv_region_slot));
	ck_assert_uint_le(head->windows_off + WINDOWS * WINDOW_LEN, guest.len);
	for (uint32_t w = 0; w < WINDOWS; w++) {
		ck_assert_uint_eq(qemu_guest_slot(&guest, w)->state, FGV_SLOT_FREE);
		ck_assert_uint_eq(qemu_guest_slot(&guest, w)->answer, 0);
		ck_assert_uint_eq(qemu_guest_slot(&guest, w)->serial, 0);
	}
	daemon_await_log(&server, "vm a: QEMU (process ");
	daemon_await_log(&server, "has a region of 32 MiB: windows: 3");
}
END_TEST

START_TEST(one_qemu_at_a_time)
{
	qemu_guest_expect_refusal(qemu_guest_connect(path_a));
	daemon_await_log(&server, "vm a: refused QEMU");
	daemon_await_log(&server, "there is one already");
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

/* Whoever comes when the one before has gone is let in, however soon that is. */
START_TEST(comes_back_at_once)
{
	for (int i = 0; i < 50; i++) {
		qemu_guest_detach(&guest);
		qemu_guest_attach(&guest, path_a);
	}
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

static void be_stranger(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path_b);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
	ck_assert_int_eq(errno, EACCES);
	close(fd);
}

static void be_nobody(void)
{
	struct qemu_guest other;

	qemu_guest_attach(&other, path_b);
	qemu_guest_open(&other, 0, "nobody's");
	qemu_guest_detach(&other);
}

/* Runs @body as user @uid in a process of its own. */
static void as_user(uid_t uid, void (*body)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(99);
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(users_are_told_apart)
{
	struct stat file;
	int fd;

	if (geteuid())
		return; /* only root can be somebody else */
	ck_assert_int_eq(stat(path_b, &file), 0);
	ck_assert_uint_eq(file.st_uid, NOBODY);
	ck_assert_uint_eq(file.st_mode & 0777, 0600);
	as_user(STRANGER, be_stranger);
	as_user(NOBODY, be_nobody);
	daemon_await_log(&server, "vm b, program \"nobody's\": ended with status 0");
	/* The file's mode is not all that keeps strangers out. */
	ck_assert_int_eq(chmod(path_b, 0666), 0);
	ck_assert_int_eq(seteuid(STRANGER), 0);
	fd = qemu_guest_connect(path_b);
	ck_assert_int_eq(seteuid(0), 0);
	qemu_guest_expect_refusal(fd);
	daemon_await_log(&server, "user 54321): that user may not run it");
}
END_TEST

/* How many QEMUs are connected no more. One may have gone in the middle of its greeting. */
static unsigned count_gone(void)
{
	return daemon_count_log(&server, ") has gone") +
	       daemon_count_log(&server, ") says something, which no QEMU does") +
	       daemon_count_log(&server, ") can't be given its region");
}

/* A QEMU that connects, reads nothing or says something, and goes. */
START_TEST(qemu_that_is_none)
{
	char byte = 0;
	int fd;

	qemu_guest_detach(&guest);
	guest.fd = -1;
	for (unsigned i = 0; i < 20; i++) {
		AWAIT(count_gone() == 1 + i);
		fd = qemu_guest_connect(path_a);
		if (i % 2) {
			ck_assert_int_eq(send(fd, &byte, 1, MSG_NOSIGNAL), 1);
			while (recv(fd, &byte, 1, 0) > 0)
				continue;
		}
		close(fd);
	}
}
END_TEST

/* --- Windows and sessions ------------------------------------------------------ */

START_TEST(open_use_close)
{
	const struct fgv_msg_welcome *welcome = qemu_guest_open(&guest, 1, "matmul");
	struct fgv_ring ring;
	struct qemu_guest_lane lane;
	uint64_t ticket = 0;

	ck_assert_str_eq(welcome->vm, "a");
	ck_assert_uint_eq(welcome->lanes, 20);
	ck_assert_str_eq(welcome->text, " 0 1 2 3");
	ck_assert_uint_eq(arena(1)[1], 1); /* session number 1 has this window */
	ck_assert_uint_eq(*(uint32_t *)qemu_guest_window(&guest, 1), FGV_WINDOW_MAGIC);
	qemu_guest_lane_init(&lane, &guest, 1, 19, &ticket);
	ring = lane.requests;
	ck_assert_ptr_nonnull(fgv_ring_reserve(&ring));
	check_window(1);
	check_is_clean(0);
	check_is_clean(2);
	memset(qemu_guest_window(&guest, 1), 0x55, WINDOW_LEN);
	qemu_guest_close(&guest, 1);
	check_is_clean(1);
	daemon_await_log(&server, "session 1: vm a, program \"matmul\": begins (process ");
	daemon_await_log(&server, "program \"matmul\": ended with status 0");
	/* The same window again: daemon_session sees to it that it is clean. */
	qemu_guest_open(&guest, 1, "p");
	check_window(1);
}
END_TEST

START_TEST(two_windows)
{
	qemu_guest_ask(&guest, 2, "first");
	qemu_guest_ask(&guest, 0, "second");
	qemu_guest_await(&guest, 0, FGV_SLOT_READY);
	qemu_guest_await(&guest, 2, FGV_SLOT_READY);
	ck_assert_uint_ne(arena(0)[1], arena(2)[1]);
	check_window(0);
	check_window(2);
	qemu_guest_close(&guest, 0);
	check_window(2);
	ck_assert_uint_eq(qemu_guest_slot(&guest, 2)->state, FGV_SLOT_READY);
}
END_TEST

START_TEST(many_in_a_row)
{
	for (uint32_t i = 0; i < 30; i++) {
		qemu_guest_open(&guest, i % WINDOWS, "p");
		qemu_guest_close(&guest, i % WINDOWS);
	}
}
END_TEST

static void ask_to_look(uint32_t window)
{
	qemu_guest_slot(&guest, window)->hello = (struct fgv_msg_hello){
		.type = FGV_MSG_LOOK,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};
	qemu_guest_request(&guest, window, FGV_SLOT_OPEN);
	qemu_guest_await(&guest, window, FGV_SLOT_READY);
}

/* The view is in the window; there is no session, and the next one finds the window clean. */
START_TEST(look_at_the_vm)
{
	const struct fgv_msg_view *view = (const void *)qemu_guest_window(&guest, 2);

	qemu_guest_ask(&guest, 0, "matmul");
	qemu_guest_await(&guest, 0, FGV_SLOT_READY);
	for (int i = 0; i < 20; i++) {
		ask_to_look(2);
		ck_assert_uint_eq(view->type, FGV_MSG_VIEW);
		ck_assert_uint_eq(view->status, CUDA_SUCCESS);
		ck_assert_str_eq(view->vm, "a");
		ck_assert_uint_eq(view->processes, 1);
		ck_assert_str_eq(view->process[0].program, "matmul");
		ck_assert_uint_eq(view->process[0].pid, QEMU_GUEST_PID);
		ck_assert_uint_eq(qemu_guest_slot(&guest, 2)->welcome.lanes, 0);
		ck_assert_uint_eq(daemon_children(&server), 2); /* a session and a herald */
		qemu_guest_close(&guest, 2);
		check_is_clean(2);
	}
	check_window(0);
	qemu_guest_open(&guest, 2, "p");
	check_window(2);
}
END_TEST

/* Programs of the host and of the guest share what their VM may have. */
START_TEST(sessions_are_limited)
{
	const struct fgv_msg_welcome *welcome;
	int local = guest_open(&server, "a", "local", NULL);

	qemu_guest_open(&guest, 0, "p");
	welcome = qemu_guest_open_refused(&guest, 1, "p", CUDA_ERROR_DEVICE_UNAVAILABLE);
	ck_assert_str_eq(welcome->text, "VM a has 2 sessions, as many as it may have");
	qemu_guest_close(&guest, 1);
	guest_expect_refusal(&server, "a", CUDA_ERROR_DEVICE_UNAVAILABLE, "VM a has 2 sessions");
	qemu_guest_close(&guest, 0);
	qemu_guest_open(&guest, 1, "p");
	close(local);
}
END_TEST

static const struct {
	uint32_t type, version;
	uint64_t hash;
	int ends; /* its program's name */
	uint32_t status;
	const char *text;
} hellos[] = {
	{FGV_MSG_LANE, FGV_WIRE_VERSION, FGV_API_HASH, 1, CUDA_ERROR_INVALID_VALUE,
	 "that was no hello"},
	{FGV_MSG_HELLO, FGV_WIRE_VERSION + 1, FGV_API_HASH, 1, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
	 "the program's FairGV speaks version"},
	{FGV_MSG_HELLO, FGV_WIRE_VERSION, FGV_API_HASH ^ 1, 1, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
	 "the program's FairGV and the daemon's are of different builds"},
	{FGV_MSG_HELLO, FGV_WIRE_VERSION, FGV_API_HASH, 0, CUDA_ERROR_INVALID_VALUE,
	 "the hello is malformed"},
};

START_TEST(hello_is_refused)
{
	struct fgv_region_slot *slot = qemu_guest_slot(&guest, 0);

	memset(&slot->hello, 'x', sizeof(slot->hello));
	slot->hello.type = hellos[_i].type;
	slot->hello.version = hellos[_i].version;
	slot->hello.hash = hellos[_i].hash;
	if (hellos[_i].ends)
		strcpy(slot->hello.program, "p");
	qemu_guest_request(&guest, 0, FGV_SLOT_OPEN);
	qemu_guest_await(&guest, 0, FGV_SLOT_REFUSED);
	ck_assert_uint_eq(slot->welcome.status, hellos[_i].status);
	ck_assert_ptr_eq(strstr(slot->welcome.text, hellos[_i].text), slot->welcome.text);
	daemon_await_log(&server, "vm a: refused a program of its guest, window 0: ");
	qemu_guest_close(&guest, 0);
}
END_TEST

/* A hello's vm is not looked at. */
START_TEST(vm_in_the_hello)
{
	struct fgv_region_slot *slot = qemu_guest_slot(&guest, 0);

	slot->hello = (struct fgv_msg_hello){
		.type = FGV_MSG_HELLO,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};
	memset(slot->hello.vm, 'b', sizeof(slot->hello.vm));
	strcpy(slot->hello.program, "a\nb");
	qemu_guest_request(&guest, 0, FGV_SLOT_OPEN);
	qemu_guest_await(&guest, 0, FGV_SLOT_READY);
	ck_assert_str_eq(slot->welcome.vm, "a");
	daemon_await_log(&server, "vm a, program \"a?b\"");
}
END_TEST

START_TEST(session_that_does_not_begin)
{
	static const char *const names[] = {"fail", "crash", "liar"};
	static const char *const reasons[] = {
		"its process on the host has ended",
		"its process on the host was killed by signal 9 (Killed)",
		"the session has ended before it began; the host's log says why",
	};
	const struct fgv_msg_welcome *welcome;

	welcome = qemu_guest_open_refused(&guest, 0, names[_i], CUDA_ERROR_OPERATING_SYSTEM);
	ck_assert_str_eq(welcome->text, reasons[_i]);
	qemu_guest_close(&guest, 0);
	check_is_clean(0);
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

START_TEST(session_that_can_not_begin)
{
	const struct fgv_msg_welcome *welcome;

	welcome = qemu_guest_open_refused(&guest, 0, "unable", CUDA_ERROR_NO_DEVICE);
	ck_assert_str_eq(welcome->text, " 0 1 2 3");
	daemon_await_log(&server, "program \"unable\": ended with status 4");
	qemu_guest_close(&guest, 0);
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

START_TEST(killed_session_is_gone)
{
	qemu_guest_open(&guest, 0, "victim");
	qemu_guest_open(&guest, 1, "bystander");
	ck_assert_int_eq(kill(session_process("victim"), SIGKILL), 0);
	qemu_guest_await_state(&guest, 0, FGV_SLOT_GONE);
	ck_assert_str_eq(qemu_guest_slot(&guest, 0)->welcome.text,
			 "its process on the host was killed by signal 9 (Killed)");
	qemu_guest_await_bell(&guest, 1); /* a waiter in the window is woken */
	daemon_await_log(&server, "program \"victim\": killed by signal 9");
	check_window(1);
	qemu_guest_close(&guest, 0);
	check_is_clean(0);
	qemu_guest_open(&guest, 0, "p");
	check_window(0);
}
END_TEST

/* What is not of the protocol ends a session, the more so as its process may be the guest's. */
START_TEST(session_that_babbles_is_gone)
{
	qemu_guest_ask(&guest, 0, "babbler");
	qemu_guest_await_state(&guest, 0, FGV_SLOT_GONE);
	qemu_guest_close(&guest, 0);
}
END_TEST

START_TEST(closed_before_it_is_ready)
{
	qemu_guest_ask(&guest, 0, "deaf");
	session_process("deaf");
	qemu_guest_close(&guest, 0);
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

/* A guest that begins anew closes what it finds, free or not. */
START_TEST(closing_what_is_free)
{
	qemu_guest_close(&guest, 0);
	qemu_guest_close(&guest, 0);
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_close(&guest, 0);
}
END_TEST

START_TEST(opening_what_is_not_free)
{
	qemu_guest_open(&guest, 0, "first");
	qemu_guest_ask(&guest, 0, "second");
	daemon_await_log(&server, "vm a: ignored a request of its guest, window 0: open, but it is "
				  "not free");
	check_window(0);
	qemu_guest_close(&guest, 0);
	ck_assert_uint_eq(daemon_count_log(&server, "program \"second\""), 0);
	qemu_guest_open(&guest, 0, "p");
}
END_TEST

START_TEST(unknown_request)
{
	qemu_guest_request(&guest, 0, FGV_SLOT_CLOSE + 1);
	daemon_await_log(&server, "vm a: ignored a request of its guest, window 0: there is none "
				  "such");
	qemu_guest_open(&guest, 0, "p");
}
END_TEST
/* --- ----------------------------------------------------------------------------- */

static TCase *served_tests(void)
{
	TCase *tcase = served_case();

	tcase_add_test(tcase, region_is_as_it_says);
	tcase_add_test(tcase, one_qemu_at_a_time);
	tcase_add_test(tcase, comes_back_at_once);
	tcase_add_test(tcase, users_are_told_apart);
	tcase_add_test(tcase, qemu_that_is_none);
	tcase_add_test(tcase, open_use_close);
	tcase_add_test(tcase, two_windows);
	tcase_add_test(tcase, look_at_the_vm);
	tcase_add_test(tcase, many_in_a_row);
	tcase_add_test(tcase, sessions_are_limited);
	tcase_add_loop_test(tcase, hello_is_refused, 0, FGV_ARRAY_LEN(hellos));
	tcase_add_test(tcase, vm_in_the_hello);
	tcase_add_loop_test(tcase, session_that_does_not_begin, 0, 3);
	tcase_add_test(tcase, session_that_can_not_begin);
	tcase_add_test(tcase, killed_session_is_gone);
	tcase_add_test(tcase, session_that_babbles_is_gone);
	tcase_add_test(tcase, closed_before_it_is_ready);
	tcase_add_test(tcase, closing_what_is_free);
	tcase_add_test(tcase, opening_what_is_not_free);
	tcase_add_test(tcase, unknown_request);
	return tcase;
}

int main(void)
{
	return run_suite("ivshmem", served_tests(), NULL);
}
