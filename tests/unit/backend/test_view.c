/*
 * Views: what a VM's programs see of it without a session, that strangers see nothing, and that
 * neither garbage nor a flood of looks leaves anything behind.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/backend/daemon_harness.h"

#define VMS                                                                                        \
	"gpu = \"soft:2\"; window = \"8M\"; lanes = 4; soft_memory = \"16G\";\n"                   \
	"vms = ( { name = \"a\"; memory = \"8G\"; users = [\"0\"]; },\n"                           \
	"        { name = \"b\"; users = [\"65534\"]; },\n"                                        \
	"        { name = \"both\"; devices = [1, 0]; memory = \"4G\"; users = [\"0\"]; },\n"      \
	"        { name = \"placed\"; devices = [0, 1]; place = \"least\"; users = [\"0\"]; } );\n"

#define STRANGER 54321

static struct daemon server;
static unsigned descriptors;

static void start_server(void)
{
	daemon_start(&server, VMS);
	descriptors = daemon_descriptors(&server);
}

static void stop_server(void)
{
	daemon_await_idle(&server, descriptors);
	daemon_stop(&server);
}

/* Sends @len bytes of a look, and takes the answer, after which the connection has ended. */
static size_t look(const struct fgv_msg_hello *hello, size_t len, struct fgv_msg_view *view)
{
	int fd = guest_connect(&server);
	ssize_t got;

	ck_assert_int_eq(send(fd, hello, len, MSG_NOSIGNAL), (ssize_t)len);
	got = recv(fd, view, sizeof(*view), MSG_TRUNC);
	ck_assert_int_gt(got, 0);
	guest_await_end(fd);
	close(fd);
	return (size_t)got;
}

static void look_at_gpu(const char *vm, uint32_t device, struct fgv_msg_view *view)
{
	struct fgv_msg_hello hello = {
		.type = FGV_MSG_LOOK,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
		.device = device,
	};

	snprintf(hello.vm, sizeof(hello.vm), "%s", vm);
	ck_assert_uint_eq(look(&hello, sizeof(hello), view), sizeof(*view));
	ck_assert_uint_eq(view->type, FGV_MSG_VIEW);
	ck_assert_uint_eq(view->version, FGV_WIRE_VERSION);
}

static void look_at(const char *vm, struct fgv_msg_view *view)
{
	look_at_gpu(vm, 0, view);
}

START_TEST(empty_vm)
{
	struct fgv_msg_view view;

	look_at("", &view);
	ck_assert_uint_eq(view.status, CUDA_SUCCESS);
	ck_assert_str_eq(view.vm, "a");
	ck_assert_uint_eq(view.memory_bytes, 8ull << 30);
	ck_assert_uint_eq(view.device.memory_bytes, 8ull << 30);
	ck_assert_uint_eq(view.device.devices, 1);
	ck_assert_str_eq(view.device.name, "FairGV Soft GPU");
	ck_assert_uint_eq(view.used_bytes, 0);
	ck_assert_uint_eq(view.busy_ns, 0);
	ck_assert_uint_eq(view.processes, 0);
	ck_assert_uint_eq(view.figures[FGV_FIGURE_TEMPERATURE], FGV_FIGURE_UNKNOWN);
	look_at("b", &view);
	ck_assert_uint_eq(view.memory_bytes, 16ull << 30);
	ck_assert_uint_eq(daemon_children(&server), 0); /* no session, no process */
}
END_TEST

static int open_with_pid(const char *vm, uint32_t pid)
{
	struct fgv_msg_hello hello = {
		.type = FGV_MSG_HELLO,
		.version = FGV_WIRE_VERSION,
		.program = "program",
		.pid = pid,
		.hash = FGV_API_HASH,
	};
	struct guest_answer answer;
	int fd = guest_connect(&server);

	snprintf(hello.vm, sizeof(hello.vm), "%s", vm);
	ck_assert_int_eq(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	guest_receive(fd, &answer);
	ck_assert_uint_eq(answer.welcome.status, 0);
	for (int i = 0; i < answer.fd_count; i++)
		close(answer.fds[i]);
	return fd;
}

/* daemon_session says in its account that it uses 4096 bytes. */
START_TEST(own_processes_only)
{
	int first = open_with_pid("a", 11), second = open_with_pid("a", 4000000000u);
	int other = open_with_pid("b", 33);
	struct fgv_msg_view view;

	look_at("a", &view);
	ck_assert_uint_eq(view.processes, 2);
	ck_assert_uint_eq(view.process[0].pid + (uint64_t)view.process[1].pid, 4000000011ull);
	ck_assert_str_eq(view.process[0].program, "program");
	AWAIT((look_at("a", &view), view.used_bytes == 8192));
	ck_assert_uint_eq(view.process[1].memory_bytes, 4096);
	AWAIT((look_at("b", &view), view.used_bytes == 4096));
	ck_assert_uint_eq(view.processes, 1);
	ck_assert_uint_eq(view.process[0].pid, 33);
	close(first);
	AWAIT((look_at("a", &view), view.processes == 1));
	close(second);
	close(other);
}
END_TEST

/* Each of a VM's GPUs, in the order of its list. */
START_TEST(each_gpu)
{
	struct fgv_msg_view view;

	for (uint32_t i = 0; i < 2; i++) {
		look_at_gpu("both", i, &view);
		ck_assert_uint_eq(view.status, CUDA_SUCCESS);
		ck_assert_uint_eq(view.device.devices, 2);
		ck_assert_uint_eq(view.device.uuid[15], 1 - i); /* as soft GPUs have them */
		ck_assert_uint_eq(view.memory_bytes, 4ull << 30);
	}
}
END_TEST

/* As many as its programs see, and no other VM's. */
START_TEST(no_other_gpu)
{
	static const struct {
		const char *vm;
		uint32_t device;
	} beyond[] = {{"a", 1},
		      {"both", 2},
		      {"both", FGV_DEVICES_MAX},
		      {"both", UINT32_MAX},
		      {"placed", 1}};
	struct fgv_msg_view view;

	look_at("placed", &view);
	ck_assert_uint_eq(view.device.devices, 1);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		look_at_gpu(beyond[i].vm, beyond[i].device, &view);
		ck_assert_uint_eq(view.status, CUDA_ERROR_INVALID_DEVICE);
		ck_assert_str_eq(view.text, "the VM's programs do not see so many GPUs");
		ck_assert_uint_eq(view.memory_bytes, 0);
		ck_assert_uint_eq(view.device.memory_bytes, 0);
	}
}
END_TEST

static void be_stranger(void)
{
	struct fgv_msg_view view;

	look_at("a", &view);
	ck_assert_uint_eq(view.status, CUDA_ERROR_NOT_PERMITTED);
	ck_assert_str_eq(view.text, "user 54321 may not use a VM called \"a\"");
	ck_assert_uint_eq(view.memory_bytes, 0);
	ck_assert_uint_eq(view.device.memory_bytes, 0);
	look_at("", &view);
	ck_assert_uint_eq(view.status, CUDA_ERROR_NOT_PERMITTED);
}

START_TEST(strangers_see_nothing)
{
	struct fgv_msg_view view;
	int status;
	pid_t pid;

	look_at("c", &view);
	ck_assert_uint_eq(view.status, CUDA_ERROR_NOT_PERMITTED);
	if (geteuid())
		return; /* only root can be somebody else */
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (setresuid(STRANGER, STRANGER, STRANGER))
			_exit(99);
		be_stranger();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Kinds of garbage: a length, a version, a name without an end. */
static size_t make_garbage(int kind, struct fgv_msg_hello *hello)
{
	*hello = (struct fgv_msg_hello){
		.type = FGV_MSG_LOOK,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};
	switch (kind) {
	case 0:
		return sizeof(uint32_t);
	case 1:
		return sizeof(*hello) - 1;
	case 2:
		hello->version++;
		return sizeof(*hello);
	case 3:
		hello->hash++;
		return sizeof(*hello);
	case 4:
		memset(hello->vm, 'a', sizeof(hello->vm));
		return sizeof(*hello);
	case 5:
		hello->priority = FGV_PRIORITY_LAST + 1;
		return sizeof(*hello);
	case 6:
		hello->reserved = 1;
		return sizeof(*hello);
	default:
		memset(hello->program, 'a', sizeof(hello->program));
		return sizeof(*hello);
	}
}

START_TEST(garbage_is_refused)
{
	struct fgv_msg_hello hello;
	struct fgv_msg_view view;

	ck_assert_uint_eq(look(&hello, make_garbage(_i, &hello), &view), sizeof(view));
	ck_assert_uint_eq(view.type, FGV_MSG_VIEW);
	ck_assert_uint_eq(view.status, _i >= 1 && _i <= 3 ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
							  : CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(view.memory_bytes, 0);
}
END_TEST

/* Nobody reads what the daemon has to say: it goes on, and keeps nothing. */
START_TEST(flood)
{
	struct fgv_msg_hello hello = {
		.type = FGV_MSG_LOOK,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};
	struct fgv_msg_view view;
	int session = open_with_pid("a", 1);

	for (int i = 0; i < 2000; i++) {
		int fd = guest_connect(&server);

		ck_assert_int_eq(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
		close(fd);
	}
	look_at("a", &view);
	ck_assert_uint_eq(view.processes, 1);
	close(session);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("view");
	TCase *tcase = tcase_create("view");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, start_server, stop_server);
	tcase_set_timeout(tcase, 2 * HANG_LIMIT_SEC);
	tcase_add_test(tcase, empty_vm);
	tcase_add_test(tcase, own_processes_only);
	tcase_add_test(tcase, each_gpu);
	tcase_add_test(tcase, no_other_gpu);
	tcase_add_test(tcase, strangers_see_nothing);
	tcase_add_loop_test(tcase, garbage_is_refused, 0, 8);
	tcase_add_test(tcase, flood);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
