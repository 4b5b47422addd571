/*
 * What the module's test runs in the guest, as an ordinary user, or as GUEST_UID: each word is a
 * program's behaviour. It ends with 0, or says what was not as it should be and ends with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/gpu_wire.h"
#include "guest-kmod/uapi/fairgv.h"

#define NOBODY	   65534
#define PATIENCE_S 120

/* The stand-in's protocol (fake_host.py). */
struct echo {
	uint32_t asked;
	uint8_t reserved0[60];
	uint32_t answered;
	uint8_t reserved1[60];
	uint32_t len;
	uint8_t reserved2[60];
	uint8_t data[4096];
};

struct session {
	struct fairgv_open open;
	struct fgv_msg_welcome welcome;
	int fd;
	int bell;
	struct echo *window;
};

static void check(bool right, const char *what)
{
	if (right)
		return;
	printf("not so: %s (%s)\n", what, strerrorname_np(errno));
	exit(EXIT_FAILURE);
}

#define CHECK(condition) check((condition), #condition)
#define FAILS(call, err) check((call) < 0 && errno == (err), #call " fails with " #err)

static int open_file(void)
{
	int fd = open("/dev/fairgv", O_RDWR | O_CLOEXEC);

	check(fd >= 0, "/dev/fairgv opens");
	return fd;
}

/* 0 or a negative errno of the ioctl. */
static int ask(struct session *session, const char *program, uint32_t version, uint32_t timeout_ms)
{
	struct fairgv_open open = {
		.wire_version = version,
		.timeout_ms = timeout_ms,
		.wire_hash = FGV_API_HASH,
	};

	strcpy(open.program, program);
	if (ioctl(session->fd, FAIRGV_IOC_OPEN, &open))
		return -errno;
	session->open = open;
	memcpy(&session->welcome, session->open.welcome, sizeof(session->welcome));
	return 0;
}

static void add_bell(struct session *session)
{
	struct fairgv_lane lane = {.lane = 0, .eventfd = eventfd(0, EFD_CLOEXEC)};

	session->bell = lane.eventfd;
	CHECK(ioctl(session->fd, FAIRGV_IOC_LANE, &lane) == 0);
}

/* While all windows are in use: again and again, or not. */
static void start_when(bool patient, struct session *session, const char *program)
{
	int err;

	session->fd = open_file();
	do {
		err = ask(session, program, FGV_WIRE_VERSION, PATIENCE_S * 1000);
	} while (patient && err == -EBUSY && !usleep(1000));
	if (err) {
		printf("open: %s\n", strerrorname_np(-err));
		exit(EXIT_FAILURE);
	}
	CHECK(session->welcome.status == 0);
	CHECK(session->open.window_len == session->welcome.window_len);
	session->window = mmap(NULL, session->open.window_len, PROT_READ | PROT_WRITE, MAP_SHARED,
			       session->fd, 0);
	CHECK(session->window != MAP_FAILED);
	add_bell(session);
}

static void start(struct session *session, const char *program)
{
	start_when(false, session, program);
}

static void ring(const struct session *session)
{
	uint64_t one = 1;

	CHECK(write(session->fd, &one, sizeof(one)) == sizeof(one));
}

/* Sleeps until the host rings. */
static void park(const struct session *session)
{
	struct pollfd fds[] = {{.fd = session->bell, .events = POLLIN}, {.fd = session->fd}};
	uint64_t count;

	CHECK(poll(fds, 2, PATIENCE_S * 1000) > 0);
	CHECK(!fds[1].revents);
	CHECK(read(session->bell, &count, sizeof(count)) == sizeof(count));
}

static void echo_once(const struct session *session, uint32_t turn)
{
	struct echo *window = session->window;
	uint32_t len = 1 + turn * 7 % sizeof(window->data);

	for (uint32_t i = 0; i < len; i++)
		window->data[i] = (uint8_t)(turn + i);
	window->len = len;
	__atomic_store_n(&window->asked, turn, __ATOMIC_SEQ_CST);
	ring(session);
	while (__atomic_load_n(&window->answered, __ATOMIC_ACQUIRE) != turn)
		park(session);
	for (uint32_t i = 0; i < len; i++)
		check(window->data[i] == (uint8_t)(turn + len - 1 - i), "the host's answer");
}

/* echo TURNS: messages over the shared memory, parked in between. */
static void do_echo(char **args)
{
	uint32_t turns = (uint32_t)atoi(args[0]);
	struct fairgv_counts before, after;
	struct session session;

	start(&session, "echo");
	CHECK(ioctl(session.fd, FAIRGV_IOC_COUNTS, &before) == 0);
	for (uint32_t turn = 1; turn <= turns; turn++)
		echo_once(&session, turn);
	CHECK(ioctl(session.fd, FAIRGV_IOC_COUNTS, &after) == 0);
	printf("window=%u doorbells=%llu interrupts=%llu writeback=%llu\n", session.open.window,
	       after.doorbells - before.doorbells, after.interrupts - before.interrupts,
	       after.writeback);
}

static const char *result_of(int ret)
{
	return ret < 0 ? strerrorname_np(errno) : "fine";
}

/* hold NAME: has a session until it ends; then says what everything does. */
static void do_hold(char **args)
{
	uint64_t one = 1;
	struct session session;
	struct pollfd pfd;
	int other_bell = eventfd(0, EFD_CLOEXEC);
	struct fairgv_lane lane = {.lane = 1, .eventfd = other_bell};
	struct fairgv_counts counts;
	uint64_t count;

	start(&session, args[0]);
	memset(session.window, 0x5a, session.open.window_len);
	printf("window=%u\n", session.open.window);
	fflush(stdout);
	pfd = (struct pollfd){.fd = session.fd, .events = POLLIN};
	CHECK(poll(&pfd, 1, -1) == 1);
	printf("poll=%s", pfd.revents == POLLHUP ? "HUP" : "odd");
	printf(" bell=%s", read(session.bell, &count, sizeof(count)) > 0 ? "rung" : "silent");
	printf(" write=%s", result_of((int)write(session.fd, &one, sizeof(one))));
	printf(" lane=%s", result_of(ioctl(session.fd, FAIRGV_IOC_LANE, &lane)));
	printf(" open=%s", result_of(ask(&session, "again", FGV_WIRE_VERSION, 0) ? -1 : 0));
	printf(" counts=%s", result_of(ioctl(session.fd, FAIRGV_IOC_COUNTS, &counts)));
	memset(session.window, 1, session.open.window_len);
	printf(" first=%u\n", session.window->asked);
}

/* scribble NAME: as fast as it can, until something ends it. */
static void do_scribble(char **args)
{
	struct session session;

	start(&session, args[0]);
	printf("window=%u\n", session.open.window);
	fflush(stdout);
	for (;;)
		memset(session.window, 0xa5, session.open.window_len);
}

/* open VERSION-OFFSET TIMEOUT_MS: what the host and the module say. */
static void do_open(char **args)
{
	struct session session = {.fd = open_file()};
	int err = ask(&session, "open", FGV_WIRE_VERSION + (uint32_t)atoi(args[0]),
		      (uint32_t)atoi(args[1]));

	if (err)
		printf("open=%s\n", strerrorname_np(-err));
	else
		printf("status=%u version=%u len=%llu text=%s\n", session.welcome.status,
		       session.welcome.version, session.open.window_len, session.welcome.text);
}

static void use_before_open(void)
{
	struct fairgv_lane lane = {.eventfd = eventfd(0, EFD_CLOEXEC)};
	struct session session = {.fd = open_file()};
	struct pollfd pfd = {.fd = session.fd, .events = POLLIN | POLLOUT};
	uint64_t one = 1;

	FAILS(write(session.fd, &one, sizeof(one)), ENXIO);
	FAILS(ioctl(session.fd, FAIRGV_IOC_LANE, &lane), ENXIO);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, session.fd, 0) == MAP_FAILED);
	CHECK(errno == ENXIO);
	CHECK(poll(&pfd, 1, 0) == 0);
	session.open.flags = FAIRGV_OPEN_LOOK << 1;
	FAILS(ioctl(session.fd, FAIRGV_IOC_OPEN, &session.open), EINVAL);
	FAILS(ioctl(session.fd, FAIRGV_IOC_OPEN, (void *)8), EFAULT);
	FAILS(ioctl(session.fd, FAIRGV_IOC_COUNTS, NULL), EFAULT);
	FAILS(ioctl(session.fd, _IO('G', 99), 0), ENOTTY);
	FAILS(read(session.fd, &one, sizeof(one)), EINVAL);
	FAILS(lseek(session.fd, 0, SEEK_SET), ESPIPE);
	close(session.fd);
}

static void expect_no_mapping(const struct session *session, size_t len, int flags, off_t off)
{
	CHECK(mmap(NULL, len, PROT_READ | PROT_WRITE, flags, session->fd, off) == MAP_FAILED);
	CHECK(errno == EINVAL);
}

static void misuse_lanes(struct session *session)
{
	struct fairgv_lane lane = {.lane = session->welcome.lanes, .eventfd = session->bell};

	FAILS(ioctl(session->fd, FAIRGV_IOC_LANE, &lane), EINVAL);
	lane.lane = UINT32_MAX;
	FAILS(ioctl(session->fd, FAIRGV_IOC_LANE, &lane), EINVAL);
	lane.lane = 0;
	FAILS(ioctl(session->fd, FAIRGV_IOC_LANE, &lane), EBUSY);
	lane = (struct fairgv_lane){.lane = 1, .eventfd = session->fd};
	FAILS(ioctl(session->fd, FAIRGV_IOC_LANE, &lane), EINVAL);
	lane.eventfd = -1;
	FAILS(ioctl(session->fd, FAIRGV_IOC_LANE, &lane), EBADF);
}

/* Parts of the mapping go, move and are protected, as programs and their libraries do. */
static void tear_mapping(struct session *session)
{
	size_t len = session->open.window_len, page = 4096;
	char *base = (char *)session->window, *moved;
	volatile char *part;

	base[len - 1] = 7;
	CHECK(munmap(base + page, page) == 0);
	moved = mremap(base + len - page, page, page, MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED && moved[page - 1] == 7);
	CHECK(mremap(base, page, 2 * len, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(mprotect(base, page, PROT_READ) == 0);
	CHECK(munmap(base, len) == 0);
	part = mmap(NULL, page, PROT_READ, MAP_SHARED, session->fd, (off_t)(len - page));
	CHECK(part != MAP_FAILED && part[page - 1] == 7);
}

/* misuse: each mistake has its error, and changes nothing. */
static void do_misuse(char **args)
{
	struct session session;
	size_t len;
	char byte = 0;

	(void)args;
	use_before_open();
	start(&session, "misuse");
	len = session.open.window_len;
	check(ask(&session, "again", FGV_WIRE_VERSION, 0) == -EBUSY, "a second OPEN is EBUSY");
	FAILS(write(session.fd, &byte, 1), EINVAL);
	expect_no_mapping(&session, len + 1, MAP_SHARED, 0);
	expect_no_mapping(&session, len, MAP_SHARED, 4096);
	expect_no_mapping(&session, 4096, MAP_SHARED, (off_t)len);
	expect_no_mapping(&session, 4096, MAP_SHARED, 1ll << 50);
	expect_no_mapping(&session, len, MAP_PRIVATE, 0);
	misuse_lanes(&session);
	echo_once(&session, 1);
	tear_mapping(&session);
	puts("all as it should be");
}

static int child_reads_window(const struct session *session)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid)
		_exit(session->window->data[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* fork SECONDS: the parent ends, and a child keeps the descriptor for a while. */
static void do_fork(char **args)
{
	struct session session;

	start(&session, "fork");
	session.window->data[0] = 0;
	CHECK(WIFSIGNALED(child_reads_window(&session)));
	if (fork())
		_exit(EXIT_SUCCESS);
	ring(&session);
	puts("child");
	fflush(stdout);
	sleep((unsigned)atoi(args[0]));
}

/* churn TURNS: sessions that come and go, some with a bang. */
static void do_churn(char **args)
{
	int turns = atoi(args[0]);

	for (int turn = 1; turn <= turns; turn++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (!pid) {
			struct session session;

			start_when(true, &session, "churn");
			echo_once(&session, (uint32_t)turn);
			if (turn % 3 == 0)
				raise(SIGKILL);
			exit(EXIT_SUCCESS);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(turn % 3 ? status == 0 : WIFSIGNALED(status));
	}
}

static const struct {
	const char *word;
	int args;
	void (*run)(char **args);
} words[] = {
	{"echo", 1, do_echo},	{"hold", 1, do_hold},	  {"scribble", 1, do_scribble},
	{"open", 2, do_open},	{"misuse", 0, do_misuse}, {"fork", 1, do_fork},
	{"churn", 1, do_churn},
};

int main(int argc, char **argv)
{
	const char *chosen = getenv("GUEST_UID");
	uid_t uid = chosen ? (uid_t)atoi(chosen) : NOBODY;

	CHECK(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (argc == 2 + words[i].args && !strcmp(argv[1], words[i].word)) {
			words[i].run(argv + 2);
			return EXIT_SUCCESS;
		}
	}
	fputs("guest_test: no such word\n", stderr);
	return EXIT_FAILURE;
}
