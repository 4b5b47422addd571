/* The sandbox, from inside: what a process that has closed it can no longer do, and what it can. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/vgpu/sandbox.h"

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks needs a process of its own, which the sandbox denies it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* Each test runs in a process of its own, which does not get out again. */
static void close_sandbox(void)
{
	ck_assert_int_eq(fgv_sandbox_begin(), 0);
	ck_assert_int_eq(fgv_sandbox_close(), 0);
}

#define ck_assert_denied(call)                                                                     \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq((call), -1);                                                      \
		ck_assert_int_eq(errno, EPERM);                                                    \
	} while (0)

START_TEST(denies_other_programs)
{
	char *argv[] = {"true", NULL};

	close_sandbox();
	ck_assert_denied(execv("/bin/true", argv));
	ck_assert_denied(fork());
	ck_assert_denied(syscall(SYS_vfork));
	ck_assert_denied(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	ck_assert_denied(kill(getppid(), 0));
	ck_assert_denied(kill(0, 0));
	ck_assert_denied(kill(-1, 0));
	ck_assert_denied(syscall(SYS_tgkill, getppid(), getppid(), 0));
	ck_assert_denied(syscall(SYS_process_vm_readv, getppid(), NULL, 0L, NULL, 0L, 0L));
}
END_TEST

START_TEST(denies_other_views)
{
	close_sandbox();
	ck_assert_denied(socket(AF_INET, SOCK_STREAM, 0));
	ck_assert_denied(socket(AF_UNIX, SOCK_STREAM, 0));
	ck_assert_denied(unshare(CLONE_NEWUSER));
	ck_assert_denied(mount("none", "/", "tmpfs", 0, NULL));
	ck_assert_denied(syscall(SYS_setuid, 0));
	ck_assert_denied(syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, NULL, NULL, NULL, 0L));
	ck_assert_denied(syscall(SYS_bpf, 0, NULL, 0));
	ck_assert_denied(syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0L));
	ck_assert_denied(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
}
END_TEST

/* Whether a process in the sandbox can read @path, which is root's alone; 2: it stayed root. */
static int reads_in_sandbox(const char *path)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (fgv_sandbox_begin() < 0 || fgv_sandbox_close() < 0)
			_exit(3);
		_exit(geteuid() == 0 ? 2 : open(path, O_RDONLY | O_CLOEXEC) >= 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A process that was root owns root's files no longer, unless it knows nobody else. */
START_TEST(is_nobody)
{
	char path[] = "/tmp/fairgv-sandbox-XXXXXX";
	int fd = mkstemp(path), got;

	ck_assert_int_ge(fd, 0);
	close(fd);
	got = reads_in_sandbox(path);
	unlink(path);
	if (geteuid() == 0)
		ck_assert(got == 0 || got == 2);
	else
		ck_assert_int_eq(got, 1);
}
END_TEST

static void *say_yes(void *arg)
{
	*(int *)arg = 1;
	return NULL;
}

/* What a GPU driver goes on doing. */
START_TEST(allows_what_drivers_do)
{
	pthread_t thread;
	int yes = 0, fds[2];
	void *memory;

	close_sandbox();
	ck_assert_int_eq(pthread_create(&thread, NULL, say_yes, &yes), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(yes, 1);
	ck_assert_int_ge(eventfd(0, EFD_CLOEXEC), 0);
	ck_assert_int_ge(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
	ck_assert_int_ge(open("/proc/self/maps", O_RDONLY | O_CLOEXEC), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(kill(getpid(), 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sandbox");
	TCase *tcase = tcase_create("sandbox");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, denies_other_programs);
	tcase_add_test(tcase, denies_other_views);
	tcase_add_test(tcase, is_nobody);
	tcase_add_test(tcase, allows_what_drivers_do);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
