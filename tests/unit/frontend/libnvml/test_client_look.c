/*
 * A look as the client takes it: what it believes of an answer, and whom it does not ask.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "frontend/client/look.h"

static char folder[] = "/tmp/fairgv-look-XXXXXX";
static char path[64];

static void make_folder(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	setenv("FAIRGV_SOCKET", path, 1);
}

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static int listen_there(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(address.sun_path, path);
	unlink(path); /* an earlier one */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

/* A host that answers one look with @len bytes of @view; 0: it hangs up. */
static pid_t start_host(const struct fgv_msg_view *view, size_t len)
{
	struct fgv_msg_hello hello;
	int ready[2], fd, connection;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		fd = listen_there();
		close(ready[1]);
		connection = accept(fd, NULL, NULL);
		if (recv(connection, &hello, sizeof(hello), 0) != sizeof(hello) ||
		    hello.type != FGV_MSG_LOOK || hello.hash != FGV_API_HASH ||
		    hello.pid != (uint32_t)getppid())
			_exit(1);
		if (len)
			send(connection, view, len, 0);
		_exit(0);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 0); /* it listens */
	close(ready[0]);
	return pid;
}

static CUresult look_at(const struct fgv_msg_view *answer, size_t len, struct fgv_msg_view *view)
{
	pid_t host = start_host(answer, len);
	char why[256] = "";
	CUresult res = fgv_look(0, view, why, sizeof(why));
	int status;

	ck_assert_int_eq(waitpid(host, &status, 0), host);
	ck_assert_int_eq(status, 0);
	ck_assert_msg(!res == !*why, "%d: %s", (int)res, why);
	return res;
}

static const struct fgv_msg_view good = {
	.type = FGV_MSG_VIEW,
	.version = FGV_WIRE_VERSION,
	.processes = FGV_VIEW_PROCESSES,
	.vm = "vm1",
};

START_TEST(good_answer)
{
	struct fgv_msg_view view;

	ck_assert_int_eq(look_at(&good, sizeof(good), &view), CUDA_SUCCESS);
	ck_assert_str_eq(view.vm, "vm1");
	ck_assert_uint_eq(view.processes, FGV_VIEW_PROCESSES);
}
END_TEST

START_TEST(strings_end)
{
	struct fgv_msg_view answer, view;

	memset(&answer, 'x', sizeof(answer));
	answer.type = FGV_MSG_VIEW;
	answer.version = FGV_WIRE_VERSION;
	answer.status = 0;
	answer.processes = FGV_VIEW_PROCESSES;
	ck_assert_int_eq(look_at(&answer, sizeof(answer), &view), CUDA_SUCCESS);
	ck_assert_uint_eq(strlen(view.vm), sizeof(view.vm) - 1);
	ck_assert_uint_eq(strlen(view.driver), sizeof(view.driver) - 1);
	ck_assert_uint_eq(strlen(view.device.name), sizeof(view.device.name) - 1);
	ck_assert_uint_eq(strlen(view.device.pci_bus_id), sizeof(view.device.pci_bus_id) - 1);
	ck_assert_uint_eq(strlen(view.process[FGV_VIEW_PROCESSES - 1].program),
			  sizeof(view.process[0].program) - 1);
}
END_TEST

START_TEST(odd_answers)
{
	struct fgv_msg_view answer = good, view;

	ck_assert_int_eq(look_at(&answer, 0, &view), CUDA_ERROR_DEVICE_UNAVAILABLE);
	ck_assert_int_eq(look_at(&answer, 4, &view), CUDA_ERROR_NOT_INITIALIZED);
	ck_assert_int_eq(look_at(&answer, sizeof(answer) - 1, &view),
			 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
	answer.processes++;
	ck_assert_int_eq(look_at(&answer, sizeof(answer), &view),
			 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
	answer = good;
	answer.version++;
	ck_assert_int_eq(look_at(&answer, sizeof(answer), &view),
			 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
	answer = good;
	answer.type = FGV_MSG_WELCOME;
	ck_assert_int_eq(look_at(&answer, sizeof(answer), &view), CUDA_ERROR_NOT_INITIALIZED);
	answer = good;
	answer.status = CUDA_ERROR_NOT_PERMITTED;
	ck_assert_int_eq(look_at(&answer, sizeof(answer), &view), CUDA_ERROR_NOT_PERMITTED);
	answer.status = UINT32_MAX;
	ck_assert_int_eq(look_at(&answer, sizeof(answer), &view), CUDA_ERROR_UNKNOWN);
}
END_TEST

/* A daemon for whom our library has taken the place of NVIDIA's. */
START_TEST(not_oneself)
{
	struct fgv_msg_view view;
	char why[256];
	int fd = listen_there();

	ck_assert_int_eq(fgv_look(0, &view, why, sizeof(why)), CUDA_ERROR_NO_DEVICE);
	ck_assert_str_eq(why, "the backend is this process itself");
	close(fd);
}
END_TEST

START_TEST(nobody_there)
{
	struct fgv_msg_view view;
	char why[256];

	ck_assert_int_eq(fgv_look(0, &view, why, sizeof(why)), CUDA_ERROR_NO_DEVICE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client: looks");
	TCase *tcase = tcase_create("looks");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, good_answer);
	tcase_add_test(tcase, strings_end);
	tcase_add_test(tcase, odd_answers);
	tcase_add_test(tcase, not_oneself);
	tcase_add_test(tcase, nobody_there);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
