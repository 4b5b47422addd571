/*
 * Relays of log lines, with the test in the place of a vGPU process: of one that its guest has
 * taken over, mostly.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/relay.h"
#include "common/util.h"

#define KIB 1024

static const struct fgv_log_subject of_a = {
	.label = "vm a, program p, session 1", .vm = "a", .program = "p", .session = 1};
static const struct fgv_log_subject of_b = {.label = "vm b, program q, session 2", .vm = "b"};

static struct fgv_relays relays;
static struct fgv_relay_limit limit, other_limit;
static struct fgv_relay *relay;
static int loop, log_fd, fd;

static struct fgv_relay *open_relay(struct fgv_relay_limit *of, const struct fgv_log_subject *about,
				    int *end)
{
	struct fgv_relay *made;

	ck_assert_int_eq(fgv_relay_open(&relays, of, &made, end), 0);
	fgv_relay_started(made, 7);
	fgv_relay_about(made, of, about);
	return made;
}

static void setup(void)
{
	unsetenv("FAIRGV_LOG");
	unsetenv("FAIRGV_QUIET");
	signal(SIGPIPE, SIG_IGN);
	log_fd = memfd_create("stderr", MFD_CLOEXEC);
	ck_assert_int_ge(dup2(log_fd, STDERR_FILENO), 0);
	fgv_log_init("daemon");
	loop = fgv_loop_create();
	ck_assert_int_eq(fgv_relays_init(&relays, loop), 0);
	limit = (struct fgv_relay_limit){.vm = "a"};
	other_limit = (struct fgv_relay_limit){.vm = "b"};
	relay = open_relay(&limit, &of_a, &fd);
}

static bool has_work(void)
{
	struct pollfd polled = {.fd = loop, .events = POLLIN};

	return poll(&polled, 1, 0) > 0;
}

static void turn(void)
{
	while (has_work())
		fgv_loop_turn(loop, 1);
}

static void say(const char *bytes, size_t len)
{
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	turn();
}

#define SAY(text) say(text, sizeof(text) - 1)

/* All that is in the log. */
static const char *logged(void)
{
	static char text[1 << 20];
	ssize_t len = pread(log_fd, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(len, 0);
	ck_assert_uint_eq(strnlen(text, (size_t)len), (size_t)len);
	text[len] = '\0';
	return text;
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		found++;
	return found;
}

/* A limit that is not listed any more, and relays that are closed, leave nothing behind. */
static void end(void)
{
	fgv_relay_close(relay);
	close(fd);
	fgv_relay_limit_fini(&limit);
	fgv_relay_limit_fini(&other_limit);
	ck_assert(LIST_EMPTY(&relays.due));
	fgv_relays_fini(&relays);
	close(loop);
}

START_TEST(lines)
{
	SAY("<3>one\n<4>two\n<6>three\n<7>not at this level\n\n<6>\n");
	SAY("four, of a library\n<6>fi");
	ck_assert_ptr_null(strstr(logged(), "fi"));
	SAY("ve\n<3>half");
	end();
	ck_assert_str_eq(logged(),
			 "fairgv-vgpu: error: vm a, program p, session 1: one\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: two\n"
			 "fairgv-vgpu: vm a, program p, session 1: three\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: four, of a library\n"
			 "fairgv-vgpu: vm a, program p, session 1: five\n"
			 "fairgv-vgpu: error: vm a, program p, session 1: half\n");
}
END_TEST

/* What it says about itself is text; so is a priority that is not one of ours. */
START_TEST(forged)
{
	SAY("<3>vm b: is mine\nFAIRGV_VM=b\n<0>to all terminals\n<2>x\n<99>y\n<3\n<\n");
	SAY("<3>a\0FAIRGV_VM=b\rdaemon: \33[2J\x9b\x7f\xc3\xa4\n");
	end();
	ck_assert_str_eq(logged(),
			 "fairgv-vgpu: error: vm a, program p, session 1: vm b: is mine\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: FAIRGV_VM=b\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: <0>to all terminals\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: <2>x\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: <99>y\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: <3\n"
			 "fairgv-vgpu: warning: vm a, program p, session 1: <\n"
			 "fairgv-vgpu: error: vm a, program p, session 1: "
			 "a?FAIRGV_VM=b?daemon: ?[2J????\n");
}
END_TEST

/* What a process has logged before it got its session is not about that. */
START_TEST(before_its_session)
{
	static const struct fgv_log_subject none = {.gpu = "GPU 0"};
	struct fgv_relay_limit early = {.vm = NULL};

	fgv_relay_about(relay, &early, &none);
	SAY("<6>opening\n");
	ck_assert_int_gt(write(fd, "<6>open\n<6>ha", 13), 0);
	fgv_relay_drain(relay);
	ck_assert_int_gt(write(fd, "lf\n", 3), 0);
	fgv_relay_about(relay, &limit, &of_a);
	fgv_relay_limit_fini(&early);
	end();
	ck_assert_str_eq(logged(), "fairgv-vgpu: opening\nfairgv-vgpu: open\nfairgv-vgpu: ha\n"
				   "fairgv-vgpu: warning: vm a, program p, session 1: lf\n");
}
END_TEST

/* A flood is cut, counted and said once; the lines of another VM are not in its way. */
START_TEST(flood)
{
	unsigned kept, lost = 0;
	const char *said;
	int other_fd;
	struct fgv_relay *other = open_relay(&other_limit, &of_b, &other_fd);
	uint64_t begun_ns = fgv_now_ns(), seconds;

	for (unsigned i = 0; i < 5000; i++)
		SAY("<3>flood\n");
	ck_assert_int_gt(write(other_fd, "<3>alone\n", 9), 0);
	fgv_relay_close(other);
	close(other_fd);
	seconds = (fgv_now_ns() - begun_ns) / FGV_NS_PER_SEC + 1;
	end();
	kept = count(logged(), ": flood\n");
	ck_assert_uint_ge(kept, FGV_RELAY_BURST);
	ck_assert_uint_le(kept, FGV_RELAY_BURST + FGV_RELAY_LINES * seconds + 1);
	ck_assert_uint_eq(count(logged(), "error: vm b, program q, session 2: alone\n"), 1);
	for (said = logged(); (said = strstr(said, "left out of what its processes log: ")); said++)
		lost += (unsigned)atoi(strchr(strchr(said, ':'), ' '));
	ck_assert_uint_eq(kept + lost, 5000);
}
END_TEST

static ssize_t write_all_that_fits(void)
{
	static char block[4 * KIB];
	ssize_t sum = 0, len;

	memset(block, 'x', sizeof(block));
	while ((len = write(fd, block, sizeof(block))) > 0)
		sum += len;
	ck_assert_int_eq(errno, EAGAIN);
	return sum;
}

/* Megabytes without an end of a line: little is read in a second, nothing is kept, none blocks. */
START_TEST(no_newline)
{
	uint64_t begun_ns = fgv_now_ns(), seconds;
	size_t sum = 0;

	for (unsigned i = 0; i < 200; i++) {
		sum += (size_t)write_all_that_fits();
		turn();
	}
	ck_assert(!has_work());
	seconds = (fgv_now_ns() - begun_ns) / FGV_NS_PER_SEC + 2;
	ck_assert_uint_le(sum, seconds * (FGV_RELAY_BYTES + 4 * KIB) + 64 * KIB);
	ck_assert_uint_ge(sum, FGV_RELAY_BYTES);
	ck_assert_uint_eq(limit.lost_lines, 0);
	/* It is heard again by and by, and its one line is cut. */
	while (write(fd, "\n<6>after\n", 10) < 0)
		fgv_loop_turn(loop, 0);
	while (!strstr(logged(), ": after\n"))
		fgv_loop_turn(loop, 0);
	end();
	ck_assert_uint_eq(count(logged(), "warning: vm a, program p, session 1: xxx"), 1);
	ck_assert_ptr_nonnull(strstr(logged(), "daemon: warning: vm a: left out of what its "
					       "processes log: 0 lines, "));
}
END_TEST

/* Of what a process says after it has gone over its bytes, the end of the session sees the rest. */
START_TEST(closed_while_paused)
{
	for (unsigned i = 0; i < 200 && !LIST_FIRST(&limit.paused); i++) {
		write_all_that_fits();
		turn();
	}
	ck_assert_ptr_nonnull(LIST_FIRST(&limit.paused));
	end();
	ck_assert_ptr_null(LIST_FIRST(&limit.paused));
	ck_assert_uint_eq(count(logged(), "session 1: xxx"), 1);
}
END_TEST

/* The loop has no work with a pipe that nobody writes to any more, nor with an end that outlives
 * it. */
START_TEST(closed_pipe)
{
	int copy = dup(fd);

	SAY("<6>last\n");
	close(fd);
	turn();
	fgv_relay_close(relay);
	ck_assert_int_eq(write(copy, "x\n", 2), -1);
	ck_assert_int_eq(errno, EPIPE);
	relay = open_relay(&limit, &of_a, &fd);
	close(copy);
	close(fd);
	turn();
	ck_assert(!has_work());
	fd = -1;
	end();
	ck_assert_uint_eq(count(logged(), "\n"), 1);
}
END_TEST

/* Where the daemon's own log takes nothing, what the process says must not block the daemon. */
START_TEST(log_that_is_full)
{
	int pipe_fds[2];

	ck_assert_int_eq(pipe2(pipe_fds, O_NONBLOCK), 0);
	while (write(pipe_fds[1], "x", 1) > 0)
		continue;
	fcntl(pipe_fds[1], F_SETFL, 0);
	ck_assert_int_ge(dup2(pipe_fds[1], STDERR_FILENO), 0);
	SAY("<3>one\n<3>two\n");
	ck_assert_uint_eq(limit.lost_lines, 2);
	ck_assert_int_ge(dup2(log_fd, STDERR_FILENO), 0);
	SAY("<3>three\n");
	end();
	ck_assert_str_eq(logged(), "fairgv-vgpu: error: vm a, program p, session 1: three\n"
				   "daemon: warning: vm a: left out of what its processes log: "
				   "2 lines, 12 bytes\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("relay");
	TCase *tests = tcase_create("relay");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, lines);
	tcase_add_test(tests, forged);
	tcase_add_test(tests, before_its_session);
	tcase_add_test(tests, flood);
	tcase_add_test(tests, no_newline);
	tcase_add_test(tests, closed_while_paused);
	tcase_add_test(tests, closed_pipe);
	tcase_add_test(tests, log_that_is_full);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
