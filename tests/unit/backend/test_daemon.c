/*
 * The daemon as programs meet it: which are let in, what a session gets, and that
 * nothing stays behind, however a session or a guest program ends.
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/util.h"
#include "tests/unit/backend/daemon_harness.h"

#define TWO_VMS                                                                                    \
	"gpu = \"soft\"; window = \"8M\"; lanes = 4;\n"                                            \
	"vms = ( { name = \"a\"; users = [\"0\"]; sessions = 2; },\n"                              \
	"        { name = \"b\"; users = [\"65534\"]; },\n"                                        \
	"        { name = \"single\"; users = [\"0\"]; sessions = 1; } );\n"

#define NOBODY	 65534
#define STRANGER 54321

static struct daemon server;
static unsigned descriptors;

static void start_server(void)
{
	daemon_start(&server, TWO_VMS);
	descriptors = daemon_descriptors(&server);
}

/* Whatever a test did: a session can be had, and nothing stays behind. */
static void stop_server(void)
{
	int fd = guest_open(&server, "a", "last", NULL);

	close(fd);
	daemon_await_idle(&server, descriptors);
	daemon_stop(&server);
}

START_TEST(ready_line_names_the_device)
{
	ck_assert_str_eq(server.ready, "soft GPU 0 (runs on the processor)\n");
	daemon_await_log(&server, "using the soft GPU: configured");
}
END_TEST

START_TEST(session_gets_what_it_needs)
{
	struct guest_answer answer;
	uint64_t rings = 1;
	struct stat window;
	int fd = guest_open(&server, "a", "matmul", &answer);

	ck_assert_str_eq(answer.welcome.vm, "a");
	ck_assert_str_eq(answer.welcome.text, " 0 1 2 3"); /* its descriptors at the start */
	ck_assert_uint_eq(answer.welcome.lanes, 4);
	ck_assert_uint_eq(answer.welcome.window_len, 8u << 20);
	ck_assert_int_eq(fstat(answer.fds[0], &window), 0);
	ck_assert_int_eq(window.st_size, 8 << 20);
	ck_assert_int_eq(fcntl(answer.fds[0], F_GET_SEALS),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	ck_assert_int_eq(write(answer.fds[1], &rings, sizeof(rings)), sizeof(rings));
	guest_close(fd, &answer);
	daemon_await_log(&server, "vm a, program \"matmul\": ended with status 0");
	daemon_await_log(&server, "7 requests, 5 round trips, 3 launches; "
				  "GPU 0.000 s in 0 grants, 0.000 ms overrun, waits p50 0.000 ms "
				  "p99 0.000 ms, 0 stalls");
}
END_TEST

START_TEST(no_name_means_the_first_vm)
{
	struct guest_answer answer;
	int fd = guest_open(&server, "", "p", &answer);

	ck_assert_str_eq(answer.welcome.vm, "a");
	guest_close(fd, &answer);
}
END_TEST

START_TEST(unknown_vm)
{
	guest_expect_refusal(&server, "c", CUDA_ERROR_NOT_PERMITTED,
			     "user 0 may not use a VM called \"c\"");
	daemon_await_log(&server, "may not use a VM called");
}
END_TEST

START_TEST(other_version)
{
	struct fgv_msg_hello hello = {.type = FGV_MSG_HELLO, .version = FGV_WIRE_VERSION + 1};
	struct guest_answer answer;
	int fd = guest_connect(&server);

	/* What comes after the version is another version's business. */
	ck_assert_int_eq(send(fd, &hello, 16, MSG_NOSIGNAL), 16);
	guest_receive(fd, &answer);
	ck_assert_uint_eq(answer.welcome.status, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
	close(fd);
}
END_TEST

/*
 * Of the same version, and yet another build: by its hash; from before there was one; with more
 * than this one knows.
 */
START_TEST(other_build)
{
	struct {
		struct fgv_msg_hello hello;
		uint32_t more;
	} message = {.hello = {.type = FGV_MSG_HELLO, .version = FGV_WIRE_VERSION}};
	const size_t lens[] = {sizeof(message.hello), offsetof(struct fgv_msg_hello, hash),
			       sizeof(message)};
	struct guest_answer answer;
	int fd = guest_connect(&server);

	message.hello.hash = _i ? FGV_API_HASH : FGV_API_HASH ^ 1;
	ck_assert_int_eq(send(fd, &message, lens[_i], MSG_NOSIGNAL), (ssize_t)lens[_i]);
	guest_receive(fd, &answer);
	ck_assert_uint_eq(answer.welcome.status, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
	ck_assert_ptr_nonnull(strstr(answer.welcome.text, "different builds"));
	ck_assert_ptr_nonnull(strstr(answer.welcome.text, "install the same release on both sides"));
	daemon_await_log(&server, "different builds");
	close(fd);
}
END_TEST

/* Kinds of garbage: by length, and by what the hello lacks. */
static size_t make_garbage(int kind, struct fgv_msg_hello *hello)
{
	*hello = (struct fgv_msg_hello){
		.type = FGV_MSG_HELLO,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};
	switch (kind) {
	case 0:
		return 1;
	case 1:
		return 7;
	case 2:
		hello->type = FGV_MSG_WELCOME;
		break;
	case 3:
		hello->type = FGV_MSG_WELCOME;
		return sizeof(*hello) + 60000;
	case 4:
		memset(hello->vm, 'a', sizeof(hello->vm));
		break;
	case 5:
		memset(hello->program, 'a', sizeof(hello->program));
		break;
	case 6:
		hello->priority = FGV_PRIORITY_LAST + 1;
		break;
	case 7:
		hello->need.reserved = 1;
		break;
	default:
		memset(hello, 0xff, sizeof(*hello));
		hello->version = FGV_WIRE_VERSION;
		break;
	}
	return sizeof(*hello);
}

START_TEST(garbage_is_refused)
{
	struct fgv_msg_hello *hello = calloc(1, sizeof(*hello) + 65536);
	size_t len = make_garbage(_i, hello);
	struct guest_answer answer;
	int fd = guest_connect(&server);

	ck_assert_int_eq(send(fd, hello, len, MSG_NOSIGNAL), (ssize_t)len);
	guest_receive(fd, &answer);
	ck_assert(!answer.closed);
	ck_assert_uint_eq(answer.welcome.status, CUDA_ERROR_INVALID_VALUE);
	guest_await_end(fd);
	close(fd);
	free(hello);
}
END_TEST

/* Descriptors that a guest sends along must not stay in the daemon. */
START_TEST(descriptors_with_the_hello)
{
	struct fgv_msg_hello hello = {
		.type = FGV_MSG_HELLO,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(10 * sizeof(int))];
	} control = {0};
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct guest_answer answer;
	int fd = guest_connect(&server);

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(10 * sizeof(int));
	for (int i = 0; i < 10; i++)
		memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(fd, &message, MSG_NOSIGNAL), sizeof(hello));
	guest_receive(fd, &answer);
	ck_assert_uint_eq(answer.welcome.status, 0);
	/*
	 * Thirteen more than before: the connection, the session's control socket, the pipe of its
	 * process's log lines, its line to the keeper of images, the two bells of each engine's
	 * grant and of its seat at the soft GPU's engine, and the folder of the program's threads.
	 */
	AWAIT(daemon_descriptors(&server) == descriptors + 13);
	guest_close(fd, &answer);
}
END_TEST

/* Runs @body as user @uid in a process of its own. */
static void as_user(uid_t uid, void (*body)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (setresuid(uid, uid, uid))
			_exit(99);
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void be_nobody(void)
{
	struct guest_answer answer;
	int fd = guest_open(&server, "", "p", &answer);

	ck_assert_str_eq(answer.welcome.vm, "b");
	guest_close(fd, &answer);
	close(guest_open(&server, "b", "p", NULL));
	guest_expect_refusal(&server, "a", CUDA_ERROR_NOT_PERMITTED,
			     "user 65534 may not use a VM called \"a\"");
}

static void be_stranger(void)
{
	guest_expect_refusal(&server, "", CUDA_ERROR_NOT_PERMITTED, "user 54321 may use no VM");
	guest_expect_refusal(&server, "b", CUDA_ERROR_NOT_PERMITTED,
			     "user 54321 may not use a VM called \"b\"");
}

START_TEST(users_are_told_apart)
{
	if (geteuid())
		return; /* only root can be somebody else */
	as_user(NOBODY, be_nobody);
	as_user(STRANGER, be_stranger);
	/* Not listed, but the daemon's own user. */
	close(guest_open(&server, "b", "p", NULL));
}
END_TEST

START_TEST(sessions_are_limited)
{
	int first = guest_open(&server, "a", "p", NULL);
	int second = guest_open(&server, "a", "p", NULL);

	guest_expect_refusal(&server, "a", CUDA_ERROR_DEVICE_UNAVAILABLE, "VM a has 2 sessions");
	close(guest_open(&server, "b", "p", NULL)); /* another VM's limit is its own */
	close(first);
	AWAIT(daemon_children(&server) == 1);
	first = guest_open(&server, "a", "p", NULL);
	close(first);
	close(second);
	AWAIT(daemon_children(&server) == 0);
}
END_TEST

/* A session whose program has gone counts until it is over, and is waited for. */
START_TEST(ending_session_is_waited_for)
{
	int fd, left;

	close(guest_open(&server, "single", "stubborn", NULL));
	left = guest_connect(&server);
	guest_send_hello(left, "single", "impatient");
	close(left);
	fd = guest_open(&server, "single", "p", NULL);
	daemon_await_log(&server,
			 "program \"stubborn\": killed by signal 9 (Killed), as it did not "
			 "end after its program, after ");
	guest_expect_refusal(&server, "single", CUDA_ERROR_DEVICE_UNAVAILABLE, "as many as it may");
	ck_assert_uint_eq(daemon_count_log(&server, "impatient"), 0);
	close(fd);
}
END_TEST

/* The process that serves the session whose program is called @name. */
static pid_t session_process(const char *name)
{
	char text[64];
	const char *line, *at;

	snprintf(text, sizeof(text), "program \"%s\": begins (process", name);
	line = daemon_await_log(&server, text);
	at = strstr(line, "served by process ");
	ck_assert_ptr_nonnull(at);
	return atoi(at + strlen("served by process "));
}

START_TEST(killed_session_ends_the_connection)
{
	int other = guest_open(&server, "b", "bystander", NULL);
	int fd = guest_open(&server, "a", "victim", NULL);

	ck_assert_int_eq(kill(session_process("victim"), SIGKILL), 0);
	guest_await_reason(fd, "its process on the host was killed by signal 9 (Killed)");
	close(fd);
	daemon_await_log(&server, "program \"victim\": killed by signal 9");
	ck_assert_int_eq(kill(session_process("bystander"), 0), 0);
	/* The same account again: daemon_session sees to it that it is clear. */
	close(guest_open(&server, "a", "p", NULL));
	close(other);
}
END_TEST

START_TEST(session_that_fails_at_once)
{
	static const char *const names[] = {"fail", "crash"};
	static const char *const lines[] = {"program \"fail\": ended with status 3",
					    "program \"crash\": killed by signal 9"};
	struct guest_answer answer;
	int fd = guest_connect(&server);

	guest_send_hello(fd, "a", names[_i]);
	guest_receive(fd, &answer);
	ck_assert(answer.closed);
	close(fd);
	daemon_await_log(&server, lines[_i]);
}
END_TEST

/* A guest program that dies after @stage steps of the handshake. */
static void die_at(int stage)
{
	struct guest_answer answer;
	int fd;

	if (stage == 0)
		raise(SIGKILL);
	fd = guest_connect(&server);
	if (stage == 1)
		raise(SIGKILL);
	guest_send_hello(fd, "a", "dies");
	if (stage == 2)
		raise(SIGKILL);
	guest_receive(fd, &answer);
	raise(SIGKILL);
}

START_TEST(guest_dies_at_each_stage)
{
	for (int round = 0; round < 20; round++) {
		pid_t pid = fork();
		int status;

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			die_at(round % 4);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		if (round % 4 >= 2) /* the VM takes two sessions only */
			AWAIT(daemon_children(&server) == 0);
	}
	daemon_await_idle(&server, descriptors);
}
END_TEST

START_TEST(slow_hello)
{
	struct guest_answer answer;
	int fd = guest_connect(&server);

	guest_receive(fd, &answer);
	ck_assert(!answer.closed);
	ck_assert_uint_eq(answer.welcome.status, CUDA_ERROR_TIMEOUT);
	guest_await_end(fd);
	close(fd);
}
END_TEST

START_TEST(too_many_without_a_hello)
{
	enum { LIMIT = 64 };
	struct guest_answer answer;
	int fds[LIMIT + 1];

	for (int i = 0; i <= LIMIT; i++)
		fds[i] = guest_connect(&server);
	guest_receive(fds[0], &answer); /* the oldest goes */
	ck_assert(!answer.closed);
	ck_assert_uint_eq(answer.welcome.status, CUDA_ERROR_DEVICE_UNAVAILABLE);
	AWAIT(daemon_descriptors(&server) == descriptors + LIMIT);
	guest_send_hello(fds[LIMIT], "a", "p");
	guest_receive(fds[LIMIT], &answer);
	ck_assert_uint_eq(answer.welcome.status, 0);
	guest_close(fds[LIMIT], &answer);
	for (int i = 0; i < LIMIT; i++)
		close(fds[i]);
}
END_TEST

START_TEST(out_of_descriptors)
{
	enum { CONNECTIONS = 10 };
	struct rlimit before, few;
	int fds[CONNECTIONS];

	ck_assert_int_eq(prlimit(server.pid, RLIMIT_NOFILE, NULL, &before), 0);
	few = before;
	few.rlim_cur = descriptors + 2;
	ck_assert_int_eq(prlimit(server.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = guest_connect(&server);
	daemon_await_log(&server, "can't accept connections for now: Too many open files");
	/* One of those that it did accept: there is nothing to start a session with. */
	guest_send_hello(fds[0], "a", "p");
	daemon_await_log(&server, "can't start a session: Too many open files");
	for (int i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
	ck_assert_int_eq(prlimit(server.pid, RLIMIT_NOFILE, &before, NULL), 0);
	close(guest_open(&server, "a", "p", NULL));
	/* At most once for each that went, however often it tried again. */
	ck_assert_uint_le(daemon_count_log(&server, "can't accept"), CONNECTIONS + 1);
}
END_TEST

START_TEST(hangup_signal_is_not_the_end)
{
	ck_assert_int_eq(kill(server.pid, SIGHUP), 0);
	daemon_await_log(&server, "is read again, by SIGHUP: changes: 0");
}
END_TEST

static TCase *served_tests(void)
{
	TCase *tcase = tcase_create("served");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_server, stop_server);
	tcase_add_test(tcase, ready_line_names_the_device);
	tcase_add_test(tcase, session_gets_what_it_needs);
	tcase_add_test(tcase, no_name_means_the_first_vm);
	tcase_add_test(tcase, unknown_vm);
	tcase_add_test(tcase, other_version);
	tcase_add_loop_test(tcase, garbage_is_refused, 0, 9);
	tcase_add_loop_test(tcase, other_build, 0, 3);
	tcase_add_test(tcase, descriptors_with_the_hello);
	tcase_add_test(tcase, users_are_told_apart);
	tcase_add_test(tcase, sessions_are_limited);
	tcase_add_test(tcase, ending_session_is_waited_for);
	tcase_add_test(tcase, killed_session_ends_the_connection);
	tcase_add_loop_test(tcase, session_that_fails_at_once, 0, 2);
	tcase_add_test(tcase, guest_dies_at_each_stage);
	tcase_add_test(tcase, slow_hello);
	tcase_add_test(tcase, too_many_without_a_hello);
	tcase_add_test(tcase, out_of_descriptors);
	tcase_add_test(tcase, hangup_signal_is_not_the_end);
	return tcase;
}

int main(void)
{
	SRunner *runner;
	Suite *suite = suite_create("daemon");
	int failed;

	suite_add_tcase(suite, served_tests());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
