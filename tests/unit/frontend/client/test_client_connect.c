/*
 * Connecting to a host that says more than it should: descriptors where none belong, and statuses
 * that are none of CUDA's codes.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "frontend/client/connect.h"
#include "frontend/client/session.h"

#define WAITS 3
#define FDS   3

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(address.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

/* With so many descriptors. */
static void say(int connection, const void *data, size_t len, size_t count)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FDS * sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(count * sizeof(int))}};
	struct iovec part = {(void *)data, len};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int fds[FDS] = {0, 0, 0};

	memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	if (count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	if (sendmsg(connection, &message, MSG_NOSIGNAL) != (ssize_t)len)
		_exit(1);
}

/* Says that it looks for a place, with descriptors, and then that there is none. */
static pid_t start_host(int listener, uint32_t status)
{
	struct fgv_msg_wait wait = {.type = FGV_MSG_WAIT};
	struct fgv_msg_welcome welcome = {
		.type = FGV_MSG_WELCOME, .version = FGV_WIRE_VERSION, .status = status};
	struct fgv_msg_hello hello;
	pid_t pid = fork();
	int connection;

	if (pid)
		return pid;
	connection = accept(listener, NULL, NULL);
	if (recv(connection, &hello, sizeof(hello), 0) != sizeof(hello))
		_exit(1);
	for (unsigned i = 0; i < WAITS; i++)
		say(connection, &wait, sizeof(wait), FDS - i);
	say(connection, &welcome, sizeof(welcome), 0);
	_exit(0);
}

static unsigned open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	ck_assert_ptr_nonnull(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static CUresult connect_to(uint32_t status)
{
	char path[] = "/tmp/fairgv-connect-XXXXXX", socket_path[sizeof(path) + 8];
	struct fgv_client client = {0};
	char why[256] = "";
	uint32_t parts;
	int listener, ended;
	CUresult res;
	pid_t host;

	ck_assert_ptr_nonnull(mkdtemp(path));
	snprintf(socket_path, sizeof(socket_path), "%s/socket", path);
	setenv("FAIRGV_SOCKET", socket_path, 1);
	listener = listen_at(socket_path);
	host = start_host(listener, status);
	close(listener);
	res = fgv_connect(&client, &parts, why, sizeof(why));
	ck_assert_str_eq(why, "refused: ");
	ck_assert_int_eq(waitpid(host, &ended, 0), host);
	ck_assert_int_eq(ended, 0);
	unlink(socket_path);
	rmdir(path);
	return res;
}

START_TEST(descriptors_of_a_wait_are_closed)
{
	unsigned before = open_descriptors();

	ck_assert_int_eq(connect_to(CUDA_ERROR_NOT_PERMITTED), CUDA_ERROR_NOT_PERMITTED);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(odd_status)
{
	ck_assert_int_eq(connect_to(UINT32_MAX), CUDA_ERROR_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client: connecting");
	TCase *tcase = tcase_create("connecting");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, descriptors_of_a_wait_are_closed);
	tcase_add_test(tcase, odd_status);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
