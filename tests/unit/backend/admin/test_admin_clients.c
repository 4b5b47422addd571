/*
 * The clients of the administrator's socket: slow, silent, too many, too large, not allowed.
 * None holds the daemon up or leaves anything behind.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/admin/admin.h"
#include "tests/unit/backend/admin/admin_client.h"

#define GLOBAL	 "gpu = \"soft\"; window = \"8M\"; lanes = 4;\n"
#define TWO_VMS	 GLOBAL "vms = ( { name = \"a\"; }, { name = \"b\"; } );\n"
#define MANY_VMS 900 /* a reply larger than a socket holds, fewer descriptors than 1024 */
#define NOBODY	 65534

static struct daemon server;
static unsigned descriptors;

static void start_server(void)
{
	daemon_start(&server, TWO_VMS);
	descriptors = daemon_descriptors(&server);
}

/* Whatever a test did: the daemon answers, and nothing stays behind. */
static void stop_server(void)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"list\"}");

	ck_assert_ptr_null(json_object_get(reply, "error"));
	json_decref(reply);
	daemon_await_idle(&server, descriptors);
	daemon_stop(&server);
}

/* Sends until the daemon has had enough. */
static void send_much(int fd, size_t len)
{
	char bytes[4096];

	memset(bytes, ' ', sizeof(bytes));
	for (size_t sent = 0; sent < len; sent += sizeof(bytes)) {
		if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0) {
			ck_assert(errno == EPIPE || errno == ECONNRESET);
			return;
		}
	}
}

START_TEST(huge_request)
{
	static const size_t lengths[] = {FGV_ADMIN_REQUEST_MAX, FGV_ADMIN_REQUEST_MAX + 4096,
					 16 << 20};
	int fd = admin_connect(&server);

	send_much(fd, lengths[_i]);
	admin_expect_refusal(admin_receive(fd), "fewer than 16384 bytes");
}
END_TEST

START_TEST(largest_request)
{
	char request[FGV_ADMIN_REQUEST_MAX - 1];

	memset(request, ' ', sizeof(request));
	memcpy(request, "{\"request\": \"list\"}", 19);
	json_decref(admin_ask_bytes(&server, request, sizeof(request)));
}
END_TEST

START_TEST(two_requests)
{
	static const char two[] = "{\"request\": \"list\"}\n{\"request\": \"list\"}\n";
	int fd = admin_connect(&server);

	admin_send(fd, two, strlen(two));
	admin_expect_refusal(admin_receive(fd), "for one request only");
}
END_TEST

/* --- Slow and many ----------------------------------------------------------------- */

START_TEST(request_in_pieces)
{
	static const char request[] = "{\"request\": \"list\"}\n";
	int fd = admin_connect(&server);
	json_t *reply;

	for (size_t i = 0; i < strlen(request); i++) {
		admin_send(fd, request + i, 1);
		json_decref(admin_ask(&server,
				      "{\"request\": \"list\"}")); /* so the daemon has seen it */
	}
	reply = admin_receive(fd);
	ck_assert_uint_eq(report_length(reply, "vms"), 2);
	json_decref(reply);
}
END_TEST

START_TEST(request_without_a_newline)
{
	static const char request[] = "{\"request\": \"list\"}";
	int fd = admin_connect(&server);
	json_t *reply;

	admin_send(fd, request, strlen(request));
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
	reply = admin_receive(fd);
	ck_assert_uint_eq(report_length(reply, "vms"), 2);
	json_decref(reply);
}
END_TEST

START_TEST(half_a_request)
{
	int fd = admin_connect(&server);

	admin_send(fd, "{\"request\"", 10);
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
	admin_expect_refusal(admin_receive(fd), "not JSON");
	fd = admin_connect(&server);
	admin_send(fd, "{\"request\"", 10);
	close(fd); /* the fixture sees to it that nothing is left of it */
	close(admin_connect(&server));
}
END_TEST

START_TEST(silent_client)
{
	int fd = admin_connect(&server);
	int half = admin_connect(&server);

	admin_send(half, "{", 1);
	json_decref(admin_ask(&server, "{\"request\": \"list\"}")); /* others are not held up */
	close(guest_open(&server, "a", "p", NULL));
	admin_expect_refusal(admin_receive(fd), "no request came");
	admin_expect_refusal(admin_receive(half), "no request came");
}
END_TEST

/* More than are served at once: the others wait for their turn. */
START_TEST(many_clients)
{
	enum { COUNT = 3 * FGV_ADMIN_CLIENTS_MAX };
	static const char request[] = "{\"request\": \"stat\"}\n";
	int fds[COUNT];

	for (int i = 0; i < COUNT; i++)
		fds[i] = admin_connect(&server);
	close(guest_open(&server, "a", "p", NULL)); /* programs are not held up */
	AWAIT(daemon_children(&server) == 0);
	AWAIT(daemon_descriptors(&server) == descriptors + FGV_ADMIN_CLIENTS_MAX);
	for (int i = 0; i < COUNT; i++) {
		json_t *reply;

		admin_send(fds[i], request, strlen(request));
		reply = admin_receive(fds[i]);
		ck_assert_uint_eq(report_length(reply, "vms"), 2);
		json_decref(reply);
	}
}
END_TEST

START_TEST(out_of_descriptors)
{
	enum { COUNT = 10 };
	static const char request[] = "{\"request\": \"list\"}\n";
	struct rlimit before, few;
	int fds[COUNT];

	ck_assert_int_eq(prlimit(server.pid, RLIMIT_NOFILE, NULL, &before), 0);
	few = before;
	few.rlim_cur = descriptors;
	ck_assert_int_eq(prlimit(server.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (int i = 0; i < COUNT; i++)
		fds[i] = admin_connect(&server);
	daemon_await_log(&server, "can't accept the administrator's connections for now");
	ck_assert_int_eq(prlimit(server.pid, RLIMIT_NOFILE, &before, NULL), 0);
	for (int i = 0; i < COUNT; i++) {
		json_t *reply;

		admin_send(fds[i], request, strlen(request));
		reply = admin_receive(fds[i]);
		ck_assert_uint_eq(report_length(reply, "vms"), 2);
		json_decref(reply);
	}
}
END_TEST

/* --- Users ------------------------------------------------------------------- */

/* Runs @body as a user who is neither root nor the daemon's. */
static void as_nobody(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (setresuid(NOBODY, NOBODY, NOBODY))
			_exit(99);
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void be_kept_out(void)
{
	struct sockaddr_un address = admin_address(&server);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
	ck_assert_int_eq(errno, EACCES);
	close(fd);
}

static void be_refused(void)
{
	static const char set[] = "{\"request\": \"set\", \"vm\": \"a\", \"weight\": 9}\n";
	int fd = admin_connect(&server);

	admin_expect_refusal(admin_receive(fd), "only root and user 0");
	fd = admin_connect(&server);
	send(fd, set, strlen(set), MSG_NOSIGNAL);
	admin_expect_refusal(admin_receive(fd), "only root and user 0");
}

START_TEST(socket_is_its_owners)
{
	struct stat file;

	ck_assert_int_eq(stat(server.control, &file), 0);
	ck_assert_uint_eq(file.st_mode, S_IFSOCK | 0600);
	ck_assert_uint_eq(file.st_uid, geteuid());
}
END_TEST

START_TEST(others_are_refused)
{
	if (geteuid())
		return; /* only root can be somebody else */
	as_nobody(be_kept_out);
	/* The kernel's word counts, whatever became of the file's mode. */
	ck_assert_int_eq(chmod(server.control, 0666), 0);
	as_nobody(be_refused);
	ck_assert_uint_eq(daemon_count_log(&server, "weight"), 0);
	daemon_await_log(&server, "of user 65534");
}
END_TEST

/* --- A reply larger than a socket holds -------------------------------------- */

static void start_large_server(void)
{
	char *config;
	size_t len;
	FILE *text = open_memstream(&config, &len);

	fputs(GLOBAL "vms = (", text);
	for (int i = 0; i < MANY_VMS; i++)
		fprintf(text, "%s { name = \"vm%0*d\"; }", i ? "," : "", FGV_NAME_MAX - 3, i);
	fputs(" );\n", text);
	fclose(text);
	daemon_start(&server, config);
	free(config);
	descriptors = daemon_descriptors(&server);
}

START_TEST(large_reply)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"stat\"}");

	ck_assert_uint_eq(report_length(reply, "vms"), MANY_VMS);
	json_decref(reply);
}
END_TEST

/* One that asks and never takes its reply loses its connection; the others get theirs. */
START_TEST(reply_not_taken)
{
	int fd = admin_connect(&server);
	char byte;

	admin_send(fd, "{\"request\": \"stat\"}\n", 20);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK), 1);
	ck_assert_uint_eq(daemon_descriptors(&server), descriptors + 1); /* it has more to send */
	json_decref(admin_ask(&server, "{\"request\": \"list\"}"));
	daemon_await_idle(&server, descriptors);
	close(fd);
}
END_TEST

/* --- The socket's file ------------------------------------------------------- */

START_TEST(socket_of_a_dead_daemon_is_replaced)
{
	daemon_start(&server, TWO_VMS);
	kill(server.pid, SIGKILL);
	ck_assert_int_eq(daemon_wait(&server), -SIGKILL);
	ck_assert_int_eq(access(server.control, F_OK), 0);
	daemon_launch(&server);
	ck_assert(server.ready[0]);
	json_decref(admin_ask(&server, "{\"request\": \"list\"}"));
	daemon_stop(&server);
}
END_TEST

START_TEST(file_in_the_way)
{
	FILE *file;

	daemon_prepare(&server, TWO_VMS);
	file = fopen(server.control, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	daemon_launch(&server);
	ck_assert_str_eq(server.ready, "");
	ck_assert_int_eq(daemon_wait(&server), 1);
	daemon_await_log(&server, "socket.control: there is a file that is not a socket");
	ck_assert_int_eq(access(server.control, F_OK), 0);
	ck_assert_int_ne(access(server.socket, F_OK), 0);
	daemon_remove(&server);
}
END_TEST

static TCase *clients_tests(void)
{
	TCase *tcase = tcase_create("clients");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_server, stop_server);
	tcase_add_loop_test(tcase, huge_request, 0, 3);
	tcase_add_test(tcase, largest_request);
	tcase_add_test(tcase, two_requests);
	tcase_add_test(tcase, request_in_pieces);
	tcase_add_test(tcase, request_without_a_newline);
	tcase_add_test(tcase, half_a_request);
	tcase_add_test(tcase, silent_client);
	tcase_add_test(tcase, many_clients);
	tcase_add_test(tcase, out_of_descriptors);
	tcase_add_test(tcase, socket_is_its_owners);
	tcase_add_test(tcase, others_are_refused);
	return tcase;
}

static TCase *large_tests(void)
{
	TCase *tcase = tcase_create("large");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_large_server, stop_server);
	tcase_add_test(tcase, large_reply);
	tcase_add_test(tcase, reply_not_taken);
	return tcase;
}

static TCase *file_tests(void)
{
	TCase *tcase = tcase_create("file");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_test(tcase, socket_of_a_dead_daemon_is_replaced);
	tcase_add_test(tcase, file_in_the_way);
	return tcase;
}

int main(void)
{
	SRunner *runner;
	Suite *suite = suite_create("admin clients");
	int failed;

	suite_add_tcase(suite, clients_tests());
	suite_add_tcase(suite, large_tests());
	suite_add_tcase(suite, file_tests());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
