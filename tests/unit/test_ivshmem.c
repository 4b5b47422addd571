/*
 * QEMU guests as the daemon meets them: what QEMU is given, how windows get sessions and lose
 * them, however either side ends, and that a hostile guest hurts nobody but itself.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "common/util.h"
#include "shmring/park.h"
#include "tests/unit/daemon_harness.h"
#include "tests/unit/qemu_guest.h"

#define CONFIG                                                                                     \
	"gpu = \"soft\"; window = \"8M\"; lanes = 20;\n"                                           \
	"vms = ( { name = \"a\"; ivshmem = \"%s/a\"; windows = 3; sessions = 2; },\n"              \
	"        { name = \"b\"; ivshmem = \"%s/b\"; ivshmem_user = 65534; windows = 1; },\n"      \
	"        { name = \"c\"; } );\n"

#define WINDOWS	   3u
#define WINDOW_LEN (8ull << 20)
#define NOBODY	   65534
#define STRANGER   54321

static char folder[] = "/tmp/fairgv-qemu-XXXXXX";
static char path_a[64], path_b[64];
static struct daemon server;
static unsigned descriptors;
static struct qemu_guest guest;

static void launch(const char *vgpu)
{
	char config[sizeof(CONFIG) + 2 * sizeof(folder)];

	snprintf(config, sizeof(config), CONFIG, folder, folder);
	daemon_prepare(&server, config);
	server.vgpu = vgpu;
	daemon_launch(&server);
	ck_assert_msg(server.ready[0], "the daemon did not start; see %s", server.log);
	descriptors = daemon_descriptors(&server);
}

static void start_server(void)
{
	launch(NULL);
	qemu_guest_attach(&guest, path_a);
}

static void start_real_server(void)
{
	launch(FGV_TEST_VGPU);
	qemu_guest_attach(&guest, path_a);
}

static void stop_daemon(void)
{
	daemon_await_idle(&server, descriptors);
	daemon_stop(&server);
	ck_assert_int_ne(access(path_a, F_OK), 0);
	ck_assert_int_ne(access(path_b, F_OK), 0);
}

/* Whatever a test did: QEMU can come back, a session can be had, and nothing stays behind. */
static void stop_server(void)
{
	if (guest.fd >= 0)
		qemu_guest_detach(&guest);
	AWAIT(daemon_children(&server) == 0);
	qemu_guest_attach(&guest, path_a);
	qemu_guest_open(&guest, 0, "last");
	qemu_guest_close(&guest, 0);
	qemu_guest_detach(&guest);
	stop_daemon();
}

/* The process that serves the session whose program is called @name. */
static pid_t session_process(const char *name)
{
	char text[64];
	const char *line, *at;

	snprintf(text, sizeof(text), "program \"%s\" (process", name);
	line = daemon_await_log(&server, text);
	at = strstr(line, "served by process ");
	ck_assert_ptr_nonnull(at);
	return atoi(at + strlen("served by process "));
}

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

/* A QEMU that connects, reads nothing or says something, and goes. */
START_TEST(qemu_that_is_none)
{
	char byte = 0;
	int fd;

	qemu_guest_detach(&guest);
	guest.fd = -1;
	for (unsigned i = 0; i < 20; i++) {
		AWAIT(daemon_count_log(&server, ") has gone") +
			      daemon_count_log(&server, ") says something, which no QEMU does") ==
		      1 + i);
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

static uint32_t *arena(uint32_t window)
{
	const struct fgv_msg_welcome *welcome = &qemu_guest_slot(&guest, window)->welcome;

	return (uint32_t *)(qemu_guest_window(&guest, window) + welcome->arena_off);
}

/* Rings the window's dispatcher: it counts, in the window, and rings back. */
static void check_window(uint32_t window)
{
	uint32_t before = __atomic_load_n(arena(window), __ATOMIC_SEQ_CST);

	fgv_doorbell_ring(guest.bells[FGV_REGION_HOST][1 + window]);
	qemu_guest_await_bell(&guest, 1 + window);
	ck_assert_uint_gt(__atomic_load_n(arena(window), __ATOMIC_SEQ_CST), before);
}

static void check_is_clean(uint32_t window)
{
	const uint8_t *at = qemu_guest_window(&guest, window);

	ck_assert(!at[0] && !memcmp(at, at + 1, WINDOW_LEN - 1));
}

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
	daemon_await_log(&server, "session 1: vm a, program \"matmul\" (process ");
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
	int ends; /* its program's name */
	uint32_t status;
	const char *text;
} hellos[] = {
	{FGV_MSG_LANE, FGV_WIRE_VERSION, 1, CUDA_ERROR_INVALID_VALUE, "that was no hello"},
	{FGV_MSG_HELLO, FGV_WIRE_VERSION + 1, 1, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
	 "the program's FairGV speaks version"},
	{FGV_MSG_HELLO, FGV_WIRE_VERSION, 0, CUDA_ERROR_INVALID_VALUE, "the hello is malformed"},
};

START_TEST(hello_is_refused)
{
	struct fgv_region_slot *slot = qemu_guest_slot(&guest, 0);

	memset(&slot->hello, 'x', sizeof(slot->hello));
	slot->hello.type = hellos[_i].type;
	slot->hello.version = hellos[_i].version;
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

	slot->hello = (struct fgv_msg_hello){.type = FGV_MSG_HELLO, .version = FGV_WIRE_VERSION};
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
	const struct fgv_msg_welcome *welcome;

	welcome = qemu_guest_open_refused(&guest, 0, names[_i], CUDA_ERROR_OPERATING_SYSTEM);
	ck_assert_str_eq(welcome->text,
			 "the session has ended before it began; the host's log says why");
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
	qemu_guest_await_bell(&guest, 1); /* who waits in the window is woken */
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

/* --- Ends ---------------------------------------------------------------------- */

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

START_TEST(daemon_ends)
{
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_ask(&guest, 1, "deaf");
	session_process("deaf");
	ck_assert_int_eq(kill(server.pid, SIGTERM), 0);
	qemu_guest_await_state(&guest, 0, FGV_SLOT_GONE);
	qemu_guest_await_bell(&guest, 1);
	qemu_guest_await(&guest, 1, FGV_SLOT_REFUSED);
	ck_assert_int_eq(daemon_wait(&server), 0);
	ck_assert_int_ne(access(path_a, F_OK), 0);
	qemu_guest_detach(&guest);
	daemon_remove(&server);
}
END_TEST

/* Nobody can tell the guest; a daemon that comes after finds its way past what was left. */
START_TEST(daemon_is_killed)
{
	pid_t vgpu;
	char byte;

	qemu_guest_open(&guest, 0, "orphan");
	vgpu = session_process("orphan");
	ck_assert_int_eq(kill(server.pid, SIGKILL), 0);
	ck_assert_int_eq(daemon_wait(&server), -SIGKILL);
	ck_assert_int_eq(recv(guest.fd, &byte, 1, 0), 0);
	(void)vgpu; /* daemon_session asks for no signal when its parent dies, and ends anyway */
	ck_assert_uint_eq(qemu_guest_slot(&guest, 0)->state, FGV_SLOT_READY);
	qemu_guest_detach(&guest);
	daemon_launch(&server);
	ck_assert_msg(server.ready[0], "the daemon did not start; see %s", server.log);
	qemu_guest_attach(&guest, path_a);
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_detach(&guest);
	stop_daemon();
}
END_TEST

/* --- Hostile guests ------------------------------------------------------------ */

/* Writes all over the region, with and without rings. */
static void scribble(unsigned seed, unsigned rounds)
{
	uint64_t slots_end = guest.head.windows_off;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t end = i % 8 ? slots_end : guest.len;

		for (uint64_t at = 0; at + sizeof(int) <= end; at += sizeof(int))
			*(volatile int *)(guest.base + at) = rand_r(&seed);
		for (uint32_t v = 0; v < guest.vectors; v++)
			fgv_doorbell_ring(guest.bells[FGV_REGION_HOST][v]);
	}
}

/* ... with requests among it that make sense. */
static void scribble_requests(unsigned seed, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		struct fgv_region_slot *slot = qemu_guest_slot(&guest, i % WINDOWS);

		slot->state = (uint32_t)rand_r(&seed);
		slot->answer = (uint32_t)rand_r(&seed);
		slot->hello.type = FGV_MSG_HELLO;
		slot->hello.version = FGV_WIRE_VERSION;
		slot->hello.program[FGV_NAME_MAX - 1] = '\0';
		slot->request = (uint32_t)rand_r(&seed) % 4;
		slot->serial = (uint32_t)rand_r(&seed);
		fgv_doorbell_ring(guest.bells[FGV_REGION_HOST][0]);
		usleep(rand_r(&seed) % 300);
	}
}

/* Another VM's guest, and a program of a third VM, whom it must not touch. */
struct bystander {
	struct qemu_guest guest;
	int local;
};

static void bystander_start(struct bystander *bystander)
{
	qemu_guest_attach(&bystander->guest, path_b);
	qemu_guest_open(&bystander->guest, 0, "bystander");
	bystander->local = guest_open(&server, "c", "local bystander", NULL);
}

static void bystander_check(const struct bystander *bystander)
{
	char byte;

	ck_assert_uint_eq(qemu_guest_slot(&bystander->guest, 0)->state, FGV_SLOT_READY);
	fgv_doorbell_ring(bystander->guest.bells[FGV_REGION_HOST][1]);
	qemu_guest_await_bell(&bystander->guest, 1);
	ck_assert_int_eq(recv(bystander->local, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close(guest_open(&server, "c", "newcomer", NULL));
}

static void bystander_stop(struct bystander *bystander)
{
	bystander_check(bystander);
	qemu_guest_close(&bystander->guest, 0);
	qemu_guest_detach(&bystander->guest);
	close(bystander->local);
}

START_TEST(scribbling)
{
	struct bystander bystander;

	bystander_start(&bystander);
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_open(&guest, 1, "p");
	scribble(1, 20);
	bystander_check(&bystander);
	scribble_requests(2, 500);
	bystander_check(&bystander);
	scribble(3, 5);
	bystander_stop(&bystander);
}
END_TEST

/* Serial after serial: few lines in the log, and the others are served meanwhile. */
START_TEST(serial_storm)
{
	struct bystander bystander;
	time_t before = time(NULL);
	unsigned seconds;

	bystander_start(&bystander);
	for (unsigned i = 0; i < 200000; i++)
		qemu_guest_request(&guest, i % WINDOWS, 3 + i);
	bystander_check(&bystander);
	for (unsigned i = 0; i < 200000; i++)
		qemu_guest_request(&guest, i % WINDOWS, FGV_SLOT_CLOSE);
	bystander_check(&bystander);
	qemu_guest_await(&guest, 0, FGV_SLOT_FREE);
	seconds = (unsigned)(time(NULL) - before);
	ck_assert_uint_le(daemon_count_log(&server, "ignored a request"), 5 * (seconds + 2));
	bystander_stop(&bystander);
}
END_TEST

/* Who has an eventfd can make writing to it block, and reading race with it. */
START_TEST(doorbell_that_blocks)
{
	struct bystander bystander;
	int bell = guest.bells[FGV_REGION_GUEST][0];
	uint64_t full = UINT64_MAX - 1;
	char byte;

	bystander_start(&bystander);
	qemu_guest_open(&guest, 0, "p");
	fgv_doorbell_clear(bell);
	ck_assert_int_eq(write(bell, &full, sizeof(full)), sizeof(full));
	ck_assert_int_eq(fcntl(bell, F_SETFL, 0), 0);
	qemu_guest_request(&guest, 0, FGV_SLOT_CLOSE);
	ck_assert_int_eq(recv(guest.fd, &byte, 1, 0), 0);
	daemon_await_log(&server, "vm a: QEMU has made a doorbell block; it loses its region");
	bystander_stop(&bystander);
}
END_TEST

/* A hostile QEMU takes memory out from under the daemon's mapping. */
START_TEST(memory_is_punched)
{
	uint32_t serial;

	qemu_guest_open(&guest, 0, "p");
	serial = qemu_guest_slot(&guest, 0)->serial;
	ck_assert_int_eq(ftruncate(guest.region_fd, 0), -1);
	ck_assert_int_eq(fallocate(guest.region_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)guest.len),
			 0);
	qemu_guest_slot(&guest, 0)->serial = serial;
	qemu_guest_request(&guest, 0, FGV_SLOT_CLOSE);
	qemu_guest_await(&guest, 0, FGV_SLOT_FREE);
	qemu_guest_open(&guest, 0, "p");
	check_window(0);
}
END_TEST

/* --- The real process ---------------------------------------------------------- */

static void check_calls(struct qemu_guest_lane *lane)
{
	struct fgv_mem_info_reply info = {0};

	for (int i = 0; i < 2 * FGV_REQUEST_SLOTS; i++) {
		ck_assert_uint_eq(qemu_guest_call(lane, FGV_OP_MEM_INFO, NULL, 0, &info),
				  CUDA_SUCCESS);
		ck_assert_uint_gt(info.total, 0);
		ck_assert_uint_le(info.free, info.total);
	}
}

START_TEST(real_session_answers)
{
	const struct fgv_msg_welcome *welcome = qemu_guest_open(&guest, 1, "real");
	struct qemu_guest_lane first, last;
	struct fgv_device_info info;
	struct fgv_device_info_request request = {0};
	uint64_t ticket = 0;

	ck_assert_str_eq(welcome->text, "FairGV Soft GPU");
	qemu_guest_lane_init(&first, &guest, 1, 0, &ticket);
	qemu_guest_lane_init(&last, &guest, 1, welcome->lanes - 1, &ticket);
	check_calls(&first);
	check_calls(&last);
	request.info_off = welcome->arena_off;
	request.info_len = sizeof(info);
	ck_assert_uint_eq(
		qemu_guest_call(&first, FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
		CUDA_SUCCESS);
	memcpy(&info, qemu_guest_window(&guest, 1) + welcome->arena_off, sizeof(info));
	ck_assert_str_eq(info.name, welcome->text);
	qemu_guest_close(&guest, 1);
	check_is_clean(1);
	daemon_await_log(&server, "program \"real\": ended with status 0");
}
END_TEST

START_TEST(real_sessions_at_once)
{
	struct qemu_guest_lane lanes[2];
	uint64_t tickets[2] = {0};

	qemu_guest_ask(&guest, 0, "first");
	qemu_guest_ask(&guest, 2, "second");
	for (int i = 0; i < 2; i++) {
		qemu_guest_await(&guest, 2 * (uint32_t)i, FGV_SLOT_READY);
		qemu_guest_lane_init(&lanes[i], &guest, 2 * (uint32_t)i, 0, &tickets[i]);
	}
	for (int i = 0; i < 4; i++)
		check_calls(&lanes[i % 2]);
	ck_assert_int_eq(kill(session_process("first"), SIGKILL), 0);
	qemu_guest_await_state(&guest, 0, FGV_SLOT_GONE);
	check_calls(&lanes[1]);
	qemu_guest_close(&guest, 0);
	qemu_guest_open(&guest, 0, "third");
	tickets[0] = 0;
	qemu_guest_lane_init(&lanes[0], &guest, 0, 0, &tickets[0]);
	check_calls(&lanes[0]);
	check_calls(&lanes[1]);
}
END_TEST

/* The process keeps no descriptor of the region: with one it could map its VM's other windows. */
START_TEST(real_session_keeps_its_window_only)
{
	char path[64], name[64];
	unsigned links = 0;
	ssize_t len;

	qemu_guest_open(&guest, 0, "modest");
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)session_process("modest"), fd);
		len = readlink(path, name, sizeof(name) - 1);
		if (len < 0)
			continue;
		links++;
		name[len] = '\0';
		ck_assert_msg(!strstr(name, "fairgv-region"), "%s is %s", path, name);
	}
	ck_assert(links > 0 || geteuid());
}
END_TEST

START_TEST(real_session_is_scribbled_over)
{
	struct qemu_guest other;
	struct qemu_guest_lane lane;
	uint64_t ticket = 0;

	qemu_guest_attach(&other, path_b);
	qemu_guest_open(&other, 0, "bystander");
	qemu_guest_lane_init(&lane, &other, 0, 0, &ticket);
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_open(&guest, 1, "p");
	scribble(4, 3);
	check_calls(&lane);
	qemu_guest_close(&other, 0);
	qemu_guest_detach(&other);
}
END_TEST

/* --- ----------------------------------------------------------------------------- */

static TCase *served_tests(void)
{
	TCase *tcase = tcase_create("served");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_server, stop_server);
	tcase_add_test(tcase, region_is_as_it_says);
	tcase_add_test(tcase, one_qemu_at_a_time);
	tcase_add_test(tcase, comes_back_at_once);
	tcase_add_test(tcase, users_are_told_apart);
	tcase_add_test(tcase, qemu_that_is_none);
	tcase_add_test(tcase, open_use_close);
	tcase_add_test(tcase, two_windows);
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
	tcase_add_test(tcase, hang_up_ends_all);
	tcase_add_test(tcase, qemu_is_killed);
	tcase_add_test(tcase, scribbling);
	tcase_add_test(tcase, serial_storm);
	tcase_add_test(tcase, doorbell_that_blocks);
	tcase_add_test(tcase, memory_is_punched);
	return tcase;
}

static TCase *end_tests(void)
{
	TCase *tcase = tcase_create("ends");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_server, NULL);
	tcase_add_test(tcase, daemon_ends);
	tcase_add_test(tcase, daemon_is_killed);
	return tcase;
}

static TCase *real_tests(void)
{
	TCase *tcase = tcase_create("real");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_real_server, stop_server);
	tcase_add_test(tcase, real_session_answers);
	tcase_add_test(tcase, real_sessions_at_once);
	tcase_add_test(tcase, real_session_keeps_its_window_only);
	tcase_add_test(tcase, real_session_is_scribbled_over);
	return tcase;
}

int main(void)
{
	SRunner *runner;
	Suite *suite = suite_create("ivshmem");
	int failed;

	if (!mkdtemp(folder) || chmod(folder, 0755))
		return EXIT_FAILURE;
	snprintf(path_a, sizeof(path_a), "%s/a", folder);
	snprintf(path_b, sizeof(path_b), "%s/b", folder);
	suite_add_tcase(suite, served_tests());
	suite_add_tcase(suite, end_tests());
	suite_add_tcase(suite, real_tests());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	rmdir(folder);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
