/*
 * The sandbox, from inside: what a process that has closed it can no longer do, and what it can.
 * The attacks are those of a guest that has taken its vGPU process over; the victim is another
 * process, of the same user and open to being traced, which is the worst case: what keeps it
 * whole here is not the user's number.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "backend/shared.h"
#include "backend/vgpu/sandbox/sandbox.h"
#include "common/util.h"

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks needs a process of its own, which the sandbox denies it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* Users of two VMs, if the test is root. */
#define UID_A 1900000001
#define UID_B 1900000002

#define PAGE   (size_t) FGV_PAGE_BYTES
#define WINDOW (4 * PAGE)

/* If nothing is there: the window's addresses differ in more than 32 bits. */
#ifdef __SANITIZE_THREAD__
#define ACROSS NULL
#else
#define ACROSS (void *)(UINT64_C(0x100100000000) - 6 * PAGE)
#endif

static const struct fgv_prepare for_soft = {.soft = 1};
static const struct fgv_prepare for_cuda = {.soft = 0};

/*
 * Runs @body in a process that does not get out of its sandbox again. Its assertions are this
 * test's, whose own clock needs more than the sandbox allows.
 */
static void in_a_process(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		body();
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
		exit(EXIT_FAILURE);
}

static struct {
	pid_t pid;
	int pipe[2];   /* the attacker's */
	char file[40]; /* anybody may write it */
	char word[32]; /* a path for the attacker to make */
	void *page;    /* of several that a file has */
	void *window;  /* several of them, and its own file's pages before and behind */
} victim;

static uint32_t close_sandbox(const struct fgv_prepare *prepare, uint32_t uid)
{
	const struct fgv_sandbox_terms terms = {
		.uid = uid, .window = victim.window, .window_len = WINDOW};
	struct fgv_sandbox sandbox;

	ck_assert_int_eq(fgv_sandbox_begin(), 0);
	ck_assert_int_eq(fgv_sandbox_enter(&sandbox, prepare), 0);
	ck_assert_int_eq(fgv_sandbox_close(&sandbox, &terms), 0);
	return sandbox.lacks;
}

/* --- The victim ------------------------------------------------------------ */

static void be_a_victim(uid_t uid)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (geteuid() == 0 && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	if (write(victim.pipe[1], "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void map_victims(int fd)
{
	uint8_t *all;

	ck_assert_int_eq(ftruncate(fd, 16 * PAGE), 0);
	all = mmap(ACROSS, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(all, MAP_FAILED);
	victim.window = all + 4 * PAGE;
	victim.page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(victim.page, MAP_FAILED);
}

static void make_victim(uid_t uid)
{
	char ready;
	int fd;

	strcpy(victim.file, "/tmp/fairgv-sandbox-XXXXXX");
	fd = mkstemp(victim.file);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, 0666), 0);
	close(fd);
	snprintf(victim.word, sizeof(victim.word), "/tmp/fairgv-made-%d", getpid());
	fd = memfd_create("several", MFD_CLOEXEC);
	map_victims(fd);
	close(fd);
	ck_assert_int_eq(pipe(victim.pipe), 0);
	victim.pid = fork();
	ck_assert_int_ge(victim.pid, 0);
	if (victim.pid == 0)
		be_a_victim(uid);
	ck_assert_int_eq(read(victim.pipe[0], &ready, 1), 1);
}

/* --- The attacks: each is true where it got through ------------------------ */

static bool can_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid > 0;
}

static bool can_exec(void)
{
	char *argv[] = {"false", NULL};

	/* Where it gets through, this process ends with a status that is not 0. */
	return execv("/bin/false", argv) == 0;
}

static bool can_vfork(void)
{
	return syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0L) > 0;
}

static bool can_clone3(void)
{
	struct {
		uint64_t words[8];
	} arguments = {{CLONE_NEWUSER}};

	return syscall(SYS_clone3, &arguments, sizeof(arguments)) >= 0;
}

static bool can_clone_user(void)
{
	return syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, NULL, NULL, NULL, 0L) >= 0;
}

static bool can_kill(void)
{
	return kill(victim.pid, 0) == 0 || kill(0, 0) == 0 || kill(-1, 0) == 0;
}

static bool can_tgkill(void)
{
	return syscall(SYS_tgkill, victim.pid, victim.pid, 0) == 0 ||
	       syscall(SYS_tkill, victim.pid, 0) == 0;
}

static bool can_queue_signal(void)
{
	union sigval value = {0};

	return sigqueue(victim.pid, 0, value) == 0;
}

static bool can_set_owner(void)
{
	return fcntl(victim.pipe[0], F_SETOWN, victim.pid) == 0;
}

static bool can_set_owner_ex(void)
{
	struct f_owner_ex owner = {F_OWNER_PID, victim.pid};

	return fcntl(victim.pipe[0], F_SETOWN_EX, &owner) == 0;
}

static bool can_set_signal(void)
{
	return fcntl(victim.pipe[0], F_SETSIG, SIGKILL) == 0;
}

static bool can_be_asynchronous(void)
{
	int on = 1;

	return fcntl(victim.pipe[0], F_SETFL, O_ASYNC) == 0 ||
	       ioctl(victim.pipe[0], FIOASYNC, &on) == 0;
}

static bool can_lease(void)
{
	return fcntl(victim.pipe[0], F_SETLEASE, F_RDLCK) == 0 ||
	       fcntl(victim.pipe[0], F_NOTIFY, DN_MODIFY) == 0;
}

static bool can_push_input(void)
{
	return ioctl(STDERR_FILENO, TIOCSTI, "x") == 0 || errno != ENOSYS;
}

static bool can_schedule(void)
{
	struct sched_param param = {0};

	return sched_setscheduler(victim.pid, SCHED_IDLE, &param) == 0;
}

static bool can_set_attributes(void)
{
	struct {
		uint32_t size, policy;
		uint64_t words[5];
	} attributes = {sizeof(attributes), SCHED_IDLE, {0}};

	return syscall(SYS_sched_setattr, victim.pid, &attributes, 0) == 0;
}

static bool can_place(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       sched_setaffinity(victim.pid, sizeof(set), &set) == 0;
}

static bool can_be_unkind(void)
{
	return setpriority(PRIO_PROCESS, (id_t)victim.pid, 19) == 0 ||
	       setpriority(PRIO_USER, 0, 19) == 0;
}

static bool can_slow_disks(void)
{
	return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, victim.pid,
		       IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)) == 0;
}

static bool can_limit(void)
{
	struct rlimit limit = {1, 1};

	return prlimit(victim.pid, RLIMIT_NOFILE, NULL, &limit) == 0 ||
	       prlimit(0, RLIMIT_MEMLOCK, &limit, NULL) == 0;
}

static bool can_trace(void)
{
	return ptrace(PTRACE_ATTACH, victim.pid, NULL, NULL) == 0 ||
	       ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool can_read_memory(void)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {&victim, 1};

	return process_vm_readv(victim.pid, &here, 1, &there, 1, 0) == 1 ||
	       process_vm_writev(victim.pid, &here, 1, &there, 1, 0) == 1;
}

static bool can_open_memory(void)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mem", victim.pid);
	return open(path, O_RDWR) >= 0;
}

static bool can_open_process(void)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/maps", victim.pid);
	return open(path, O_RDONLY) >= 0;
}

static bool can_name_process(void)
{
	return syscall(SYS_pidfd_open, victim.pid, 0) >= 0 ||
	       syscall(SYS_kcmp, victim.pid, getpid(), 0, 0, 0) >= 0;
}

static bool can_share_memory(void)
{
	return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666) >= 0;
}

static bool can_make_semaphores(void)
{
	return semget(IPC_PRIVATE, 1, IPC_CREAT | 0666) >= 0 ||
	       msgget(IPC_PRIVATE, IPC_CREAT | 0666) >= 0;
}

static bool can_make_queues(void)
{
	return syscall(SYS_mq_open, "fairgv-test", O_CREAT | O_RDWR, 0600, NULL) >= 0;
}

static bool can_make_files(void)
{
	return open(victim.word, O_CREAT | O_RDWR, 0600) >= 0 ||
	       open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 ||
	       open("/dev/shm/fairgv-test", O_CREAT | O_RDWR, 0600) >= 0;
}

static bool can_write_files(void)
{
	return open(victim.file, O_WRONLY) >= 0;
}

static bool can_read_files(void)
{
	return open(victim.file, O_RDONLY) >= 0;
}

static bool can_change_folders(void)
{
	return mkdir(victim.word, 0700) == 0 || symlink("/", victim.word) == 0 ||
	       link(victim.file, victim.word) == 0 || rename(victim.file, victim.word) == 0 ||
	       mknod(victim.word, S_IFIFO | 0600, 0) == 0 || unlink(victim.file) == 0;
}

static bool can_change_files(void)
{
	return chmod(victim.file, 0777) == 0 || truncate(victim.file, 1) == 0;
}

static bool can_make_sockets(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ||
	       socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
}

static bool can_change_view(void)
{
	return unshare(CLONE_NEWUSER) == 0 || mount("none", "/", "tmpfs", 0, NULL) == 0 ||
	       chroot("/tmp") == 0;
}

static bool can_change_user(void)
{
	return syscall(SYS_setuid, 0) == 0 || syscall(SYS_setresuid, 0, 0, 0) == 0 ||
	       syscall(SYS_setfsuid, 0) == 0;
}

static bool can_reach_kernel(void)
{
	return syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != ENOSYS ||
	       syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0L) >= 0 || errno != ENOSYS ||
	       syscall(SYS_keyctl, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS ||
	       syscall(SYS_userfaultfd, 1) >= 0 || errno != ENOSYS ||
	       syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != ENOSYS ||
	       inotify_init1(0) >= 0;
}

static bool can_be_someone_else(void)
{
	return personality(0) >= 0;
}

static bool can_use_timers(void)
{
	struct itimerval never = {0};

	return setitimer(ITIMER_REAL, &never, NULL) == 0;
}

static bool can_map(const void *from, size_t from_len, size_t len, int flags)
{
	void *to = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mremap((void *)from, from_len, len, flags, to) != MAP_FAILED;
}

/*
 * From a page, or a window of several, to more of the file that they are of, whose descriptor is
 * closed: the VM's accounts, or the windows of a region.
 */
static bool can_extend_mappings(void)
{
	const int both = MREMAP_MAYMOVE | MREMAP_FIXED;
	const uint8_t *window = victim.window;

	return can_map(victim.page, PAGE, 2 * PAGE, MREMAP_MAYMOVE) ||
	       can_map(victim.page, 0, 2 * PAGE, MREMAP_MAYMOVE) ||
	       can_map(victim.page, 0, PAGE, both) || can_map(victim.page, 0, 2 * PAGE, both) ||
	       can_map(window, WINDOW, WINDOW + PAGE, MREMAP_MAYMOVE) ||
	       can_map(window, 0, WINDOW + PAGE, both) || can_map(window + PAGE, 0, WINDOW, both) ||
	       can_map(window + WINDOW - PAGE, 0, 2 * PAGE, both) ||
	       can_map(window - PAGE, 0, PAGE, both) || can_map(window + WINDOW, 0, PAGE, both) ||
	       can_map(window, 0, SIZE_MAX - (uintptr_t)window + PAGE, both);
}

static const struct attack {
	const char *name;
	bool (*got_through)(void);
} attacks[] = {
	{"fork", can_fork},
	{"exec", can_exec},
	{"vfork", can_vfork},
	{"clone3", can_clone3},
	{"clone with a user namespace", can_clone_user},
	{"kill", can_kill},
	{"tgkill", can_tgkill},
	{"sigqueue", can_queue_signal},
	{"F_SETOWN", can_set_owner},
	{"F_SETOWN_EX", can_set_owner_ex},
	{"F_SETSIG", can_set_signal},
	{"O_ASYNC", can_be_asynchronous},
	{"leases", can_lease},
	{"TIOCSTI", can_push_input},
	{"sched_setscheduler", can_schedule},
	{"sched_setattr", can_set_attributes},
	{"sched_setaffinity", can_place},
	{"setpriority", can_be_unkind},
	{"ioprio_set", can_slow_disks},
	{"prlimit", can_limit},
	{"ptrace", can_trace},
	{"process_vm_readv", can_read_memory},
	{"/proc/PID/mem", can_open_memory},
	{"/proc/PID/maps", can_open_process},
	{"pidfd_open", can_name_process},
	{"shmget", can_share_memory},
	{"semget", can_make_semaphores},
	{"mq_open", can_make_queues},
	{"O_CREAT", can_make_files},
	{"O_WRONLY", can_write_files},
	{"O_RDONLY", can_read_files},
	{"folders", can_change_folders},
	{"chmod", can_change_files},
	{"socket", can_make_sockets},
	{"unshare", can_change_view},
	{"setuid", can_change_user},
	{"the kernel", can_reach_kernel},
	{"personality", can_be_someone_else},
	{"setitimer", can_use_timers},
	{"mremap", can_extend_mappings},
};

/* Of those that depend on the file system, where the kernel has no list of files. */
static bool needs_landlock(const struct attack *attack)
{
	return attack->got_through == can_make_files || attack->got_through == can_write_files ||
	       attack->got_through == can_read_files || attack->got_through == can_open_memory ||
	       attack->got_through == can_open_process;
}

/* All attacks at once, so that a failure names all that got through. */
static void attack_all(const struct fgv_prepare *prepare)
{
	char through[512] = "";
	uint32_t lacks;

	make_victim(UID_A);
	lacks = close_sandbox(prepare, UID_A);
	for (size_t i = 0; i < FGV_ARRAY_LEN(attacks); i++) {
		if (!prepare->soft && needs_landlock(&attacks[i]) && lacks & FGV_LACKS_LANDLOCK)
			continue;
		if (attacks[i].got_through()) {
			strcat(through, attacks[i].name);
			strcat(through, "; ");
		}
	}
	ck_assert_msg(!*through, "got through: %s", through);
}

static void refuses_attacks_with_the_soft_gpu(void)
{
	attack_all(&for_soft);
}

static void refuses_attacks_with_cuda(void)
{
	attack_all(&for_cuda);
}

static void tear_down(void)
{
	if (victim.pid > 0) {
		unlink(victim.file);
		unlink(victim.word);
	}
}

/* --- What is only the soft GPU's ------------------------------------------- */

static void makes_no_code(void)
{
	void *memory;

	close_sandbox(&for_soft, UID_A);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	ck_assert_ptr_eq(memory, MAP_FAILED);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(memory, 4096, PROT_READ | PROT_EXEC), -1);
}

/* --- Users ----------------------------------------------------------------- */

/* What a process of VM A finds: an exit status. */
static int attack_other_vm(pid_t other)
{
	char path[40];
	struct stat file;

	snprintf(path, sizeof(path), "/proc/%d", other);
	if (getuid() != UID_A || geteuid() != UID_A || getgid() != UID_A)
		return 2;
	/* By the kernel's own rules; the filter would say so of all. */
	if (stat(path, &file) == 0 && file.st_uid == UID_A)
		return 3;
	return 0;
}

static int in_sandbox(uint32_t uid, int (*body)(pid_t), pid_t arg)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		close_sandbox(&for_cuda, uid);
		_exit(body(arg));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int is_nobody(pid_t unused)
{
	(void)unused;
	return getuid() != 65534 || getgid() != 65534;
}

static bool can_choose_users(void)
{
	FILE *map = fopen("/proc/self/uid_map", "r");
	unsigned long first, outside, count = 0;

	if (!map || fscanf(map, "%lu %lu %lu", &first, &outside, &count) != 3)
		count = 0;
	if (map)
		fclose(map);
	return geteuid() == 0 && first == 0 && count > UID_B;
}

START_TEST(each_vm_is_a_user_of_its_own)
{
	if (!can_choose_users()) {
		printf("not root of all users: processes of all VMs are this one's\n");
		return;
	}
	make_victim(UID_B);
	ck_assert_int_eq(in_sandbox(UID_A, attack_other_vm, victim.pid), 0);
	ck_assert_int_eq(in_sandbox(FGV_NO_UID, is_nobody, 0), 0);
}
END_TEST

static void tells_what_it_lacks(void)
{
	uint32_t lacks = close_sandbox(&for_soft, UID_A);

	ck_assert_int_eq(!(lacks & FGV_LACKS_UID), getuid() == UID_A);
}

/* --- Limits ---------------------------------------------------------------- */

static void has_limits(void)
{
	const struct fgv_sandbox_terms terms = {
		.uid = UID_A,
		.limits = {.data_bytes = 256 << 20, .file_bytes = 1 << 20, .threads = 64},
	};
	struct fgv_sandbox sandbox;
	struct rlimit limit;
	void *memory;

	ck_assert_int_eq(fgv_sandbox_begin(), 0);
	ck_assert_int_eq(fgv_sandbox_enter(&sandbox, &for_soft), 0);
	ck_assert_int_eq(fgv_sandbox_close(&sandbox, &terms), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_CORE, &limit), 0);
	ck_assert_uint_eq(limit.rlim_max, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_uint_eq(limit.rlim_max, 1 << 20);
	if (!(sandbox.lacks & FGV_LACKS_UID)) {
		ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &limit), 0);
		ck_assert_uint_eq(limit.rlim_max, 64);
	}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	memory = mmap(NULL, 512 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_eq(memory, MAP_FAILED);
#else
	(void)memory;
#endif
}

static void goes_first_where_memory_is_short(void)
{
	char text[16] = "";
	int fd;

	ck_assert_int_eq(fgv_sandbox_begin(), 0);
	fd = open("/proc/self/oom_score_adj", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	ck_assert_int_ge(atoi(text), 500);
}

/* --- What it may ------------------------------------------------------------ */

static void *say_yes(void *arg)
{
	*(int *)arg = 1;
	return NULL;
}

/* Blocks that the C library would rather move by mremap(). */
static void grow_memory(void)
{
	char *memory = malloc(1 << 20);

	ck_assert_ptr_nonnull(memory);
	memory[(1 << 20) - 1] = 'x';
	for (size_t len = 2 << 20; len <= 64 << 20; len *= 2) {
		memory = realloc(memory, len);
		ck_assert_ptr_nonnull(memory);
		memory[len - 1] = 'x';
	}
	ck_assert_int_eq(memory[(1 << 20) - 1], 'x');
	free(memory);
}

static void use_threads_and_memory(void)
{
	pthread_t thread;
	int yes = 0;
	void *memory;

	grow_memory();
	ck_assert_int_eq(pthread_create(&thread, NULL, say_yes, &yes), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(yes, 1);
	memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(kill(getpid(), 0), 0);
}

/* Host memory, where the program has it. */
static void map_window_again(void)
{
	char *to = mmap(NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	strcpy(victim.window, "the window");
	ck_assert_ptr_eq(mremap(victim.window, 0, WINDOW, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	ck_assert_str_eq(to, "the window");
	ck_assert_ptr_eq(mremap((char *)victim.window + 3 * PAGE, 0, PAGE,
				MREMAP_MAYMOVE | MREMAP_FIXED, to + PAGE),
			 to + PAGE);
}

static void allows_what_sessions_do(void)
{
	int bell = eventfd(0, EFD_CLOEXEC), fd = memfd_create("window", MFD_CLOEXEC);
	char name[32], target[64];

	map_victims(fd);
	close_sandbox(&for_soft, UID_A);
	map_window_again();
	use_threads_and_memory();
	ck_assert_int_eq(fcntl(bell, F_SETFL, O_NONBLOCK), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", bell);
	ck_assert_int_gt(readlink(name, target, sizeof(target)), 0);
	ck_assert_int_eq(sched_yield(), 0);
}

/* What NVIDIA's driver goes on doing. */
static void allows_what_drivers_do(void)
{
	close_sandbox(&for_cuda, UID_A);
	use_threads_and_memory();
	ck_assert_int_ge(eventfd(0, EFD_CLOEXEC), 0);
	ck_assert_int_ge(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
	ck_assert_int_ge(open("/proc/self/maps", O_RDONLY | O_CLOEXEC), 0);
	ck_assert_int_ge(open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC), 0);
	ck_assert_int_eq(ioctl(STDERR_FILENO, 0x46ff, NULL), -1);
	ck_assert_int_ne(errno, ENOSYS);
}

static void (*const bodies[])(void) = {
	refuses_attacks_with_the_soft_gpu,
	refuses_attacks_with_cuda,
	makes_no_code,
	tells_what_it_lacks,
	has_limits,
	goes_first_where_memory_is_short,
	allows_what_sessions_do,
	allows_what_drivers_do,
};

START_TEST(holds)
{
	in_a_process(bodies[_i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sandbox");
	TCase *tcase = tcase_create("sandbox");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, NULL, tear_down);
	tcase_add_loop_test(tcase, holds, 0, FGV_ARRAY_LEN(bodies));
	tcase_add_test(tcase, each_vm_is_a_user_of_its_own);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
