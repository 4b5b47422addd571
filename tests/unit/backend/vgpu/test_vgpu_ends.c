/*
 * A vGPU process at its beginning and its end: its sandbox, beginnings that fail, and the ends
 * that are nobody's fault.
 */
#include <check.h>
#include <cuda.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shmring/park.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

static const char wild_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry wild()\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<2>;\n"
	"mov.u64 %d1, 4096;\nmov.u32 %r1, 1;\nst.global.u32 [%d1], %r1;\nret;\n}\n";

static struct vgpu vgpu;

/* The value in the line of @task's status that begins with @key. */
static uint64_t status_of(const char *task, const char *key, int base)
{
	char path[300], line[256];
	uint64_t value = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)vgpu.pid, task);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, base);
	}
	fclose(file);
	return value;
}

/* What root needs to become the user of a VM, by the kernel's numbers. */
#define CAPS_OF_USERS (UINT64_C(1) << 6 | UINT64_C(1) << 7)

/*
 * In all its threads, those of the soft GPU too. @serves: it is a VM's; before that it can still
 * change its user, and there is no filter of system calls.
 */
static void expect_sandbox(bool serves)
{
	char path[64];
	struct dirent *task;
	unsigned tasks = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)vgpu.pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((task = readdir(dir))) {
		if (task->d_name[0] == '.')
			continue;
		tasks++;
		ck_assert_uint_eq(status_of(task->d_name, "NoNewPrivs:", 10), 1);
		ck_assert_uint_eq(status_of(task->d_name, "Seccomp:", 10), serves ? 2 : 0);
		if (!serves || status_of(task->d_name, "Uid:", 10) == 0)
			ck_assert_uint_eq(status_of(task->d_name, "CapPrm:", 16) & ~CAPS_OF_USERS,
					  0);
		else
			ck_assert_uint_eq(status_of(task->d_name, "CapPrm:", 16), 0);
	}
	closedir(dir);
	ck_assert_uint_ge(tasks, 2);
}

START_TEST(gives_up_privileges)
{
	vgpu_start(&vgpu);
	expect_sandbox(true);
	vgpu_leave(&vgpu);
}
END_TEST

static void expect_title(const char *expected)
{
	char path[64], title[256];
	size_t got;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)vgpu.pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	got = fread(title, 1, sizeof(title) - 1, file);
	title[got] = '\0';
	fclose(file);
	ck_assert_str_eq(title, expected);
}

/* For ps. */
START_TEST(says_whose_it_is)
{
	struct fgv_prepared report;
	struct fgv_setup setup;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_read_report(&vgpu, &report);
	expect_title("fairgv-vgpu: ready");
	vgpu_right_setup(&vgpu, &setup);
	strcpy(setup.program, "a\nname");
	vgpu_send_setup(&vgpu, &setup);
	vgpu_read_welcome(&vgpu);
	expect_title("fairgv-vgpu: vm1 a?name, session 7");
	vgpu_leave(&vgpu);
}
END_TEST

START_TEST(ends_without_a_setup)
{
	struct fgv_prepared report;
	unsigned lines;

	vgpu_spawn(&vgpu);
	if (_i > 0) {
		vgpu_send_prepare(&vgpu, _i > 1 ? VGPU_MEMORY : 0);
		vgpu_read_report(&vgpu, &report);
	}
	close(vgpu.control_fd);
	vgpu.control_fd = -1;
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

/* All that it can do without a guest, it has done. */
START_TEST(waits_in_its_sandbox)
{
	struct fgv_prepared report;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_read_report(&vgpu, &report);
	ck_assert_uint_eq(report.status, CUDA_SUCCESS);
	expect_sandbox(false);
	vgpu_send_setup(&vgpu, NULL);
	vgpu_read_welcome(&vgpu);
	ck_assert_uint_eq(vgpu.welcome.status, CUDA_SUCCESS);
	expect_sandbox(true);
	vgpu_leave(&vgpu);
}
END_TEST

START_TEST(says_why_it_has_no_gpu)
{
	struct fgv_prepared report;
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, 0);
	vgpu_read_report(&vgpu, &report);
	ck_assert_uint_eq(report.status, CUDA_ERROR_INVALID_VALUE);
	ck_assert_str_eq(report.reason, "soft device 0 can't be opened: CUDA error 1");
	vgpu_send_setup(&vgpu, NULL);
	vgpu_read_welcome(&vgpu);
	ck_assert_uint_eq(vgpu.welcome.status, CUDA_ERROR_INVALID_VALUE);
	ck_assert_str_eq(vgpu.welcome.text, report.reason);
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

START_TEST(attaches_lanes_with_care)
{
	int doorbell = fgv_doorbell_create(), pipe_fds[2];

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_send_setup(&vgpu, NULL);
	vgpu_read_welcome(&vgpu);
	ck_assert_int_eq(pipe(pipe_fds), 0);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, VGPU_LANES, doorbell), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, -1), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, pipe_fds[1]), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, doorbell), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, doorbell), CUDA_ERROR_INVALID_VALUE);
	close(doorbell);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	vgpu_leave(&vgpu);
}
END_TEST

START_TEST(ends_with_the_daemon)
{
	unsigned lines;

	vgpu_start(&vgpu);
	close(vgpu.control_fd);
	vgpu.control_fd = -1;
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

START_TEST(ends_over_a_kernel_without_end)
{
	vgpu_start(&vgpu);
	vgpu_launch(&vgpu, vgpu_must_get(&vgpu, vgpu_forever_ptx, "forever"), 1, NULL, 0);
	if (_i == 1)
		vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
	vgpu_leave(&vgpu);
}
END_TEST

/* A fault stays, for all operations; what the GPU says of it is one log line. */
START_TEST(keeps_a_fault)
{
	uint64_t address;
	unsigned lines;

	vgpu_start(&vgpu);
	vgpu_launch(&vgpu, vgpu_must_get(&vgpu, wild_ptx, "wild"), 1, NULL, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_uint_eq(vgpu_alloc(&vgpu, 4096, &address), CUDA_ERROR_ILLEGAL_ADDRESS);
	vgpu_fill(&vgpu, 0, 1, 1, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), FGV_EXIT_FAULT);
	ck_assert_uint_le(lines, 1);
}
END_TEST

/* Alone in its context it does not look for faults any more when its program has gone. */
START_TEST(leaves_at_once)
{
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu.leaves_at_once = true;
	vgpu_begin(&vgpu);
	vgpu_launch(&vgpu, vgpu_must_get(&vgpu, wild_ptx, "wild"), 1, NULL, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_le(lines, 1);
}
END_TEST

/* More calls than there is room for replies, none of which can be given yet. */
START_TEST(ends_over_too_many_calls)
{
	unsigned lines;

	vgpu_start(&vgpu);
	vgpu_launch(&vgpu, vgpu_must_get(&vgpu, vgpu_forever_ptx, "forever"), 1, NULL, 0);
	for (int i = 0; i <= FGV_REPLY_SLOTS; i++)
		vgpu_must_post(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0);
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

START_TEST(says_why_it_cannot_begin)
{
	struct fgv_setup wrong;
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_right_setup(&vgpu, &wrong);
	switch (_i) {
	case 0:
		wrong.window_len *= 2;
		break;
	case 1:
		wrong.account = FGV_SESSIONS_MAX;
		break;
	case 2:
		wrong.lanes = FGV_LANES_MAX + 1;
		break;
	}
	vgpu_send_setup(&vgpu, &wrong);
	vgpu_read_welcome(&vgpu);
	ck_assert_uint_ne(vgpu.welcome.status, CUDA_SUCCESS);
	ck_assert_uint_gt(strlen(vgpu.welcome.text), 0);
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_ends");
	TCase *tests = tcase_create("vgpu_ends");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, gives_up_privileges);
	tcase_add_test(tests, says_whose_it_is);
	tcase_add_loop_test(tests, ends_without_a_setup, 0, 3);
	tcase_add_test(tests, waits_in_its_sandbox);
	tcase_add_test(tests, says_why_it_has_no_gpu);
	tcase_add_test(tests, attaches_lanes_with_care);
	tcase_add_test(tests, ends_with_the_daemon);
	tcase_add_loop_test(tests, ends_over_a_kernel_without_end, 0, 2);
	tcase_add_test(tests, keeps_a_fault);
	tcase_add_test(tests, leaves_at_once);
	tcase_add_test(tests, ends_over_too_many_calls);
	tcase_add_loop_test(tests, says_why_it_cannot_begin, 0, 3);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
