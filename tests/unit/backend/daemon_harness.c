/*
 * See daemon_harness.h.
 */
#define _GNU_SOURCE
#include "tests/unit/backend/daemon_harness.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

void daemon_prepare(struct daemon *daemon, const char *config)
{
	FILE *file;

	*daemon = (struct daemon){0};
	strcpy(daemon->folder, "/tmp/fairgv-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(daemon->folder));
	ck_assert_int_eq(chmod(daemon->folder, 0755), 0); /* tests connect as other users */
	snprintf(daemon->config, sizeof(daemon->config), "%s/conf", daemon->folder);
	snprintf(daemon->socket, sizeof(daemon->socket), "%s/socket", daemon->folder);
	snprintf(daemon->control, sizeof(daemon->control), "%s.control", daemon->socket);
	snprintf(daemon->log, sizeof(daemon->log), "%s/log", daemon->folder);
	file = fopen(daemon->config, "w");
	ck_assert_ptr_nonnull(file);
	fputs(config, file);
	if (!strstr(config, "warm = "))
		fputs("warm = 0;\n", file);
	fclose(file);
}

static void become_daemon(const struct daemon *daemon, int ready_fd)
{
	int log_fd = open(daemon->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	char ready[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (log_fd < 0 || dup2(log_fd, STDERR_FILENO) < 0)
		_exit(100);
	close(log_fd);
	snprintf(ready, sizeof(ready), "%d", ready_fd);
	setenv("FAIRGV_VGPU", daemon->vgpu ? daemon->vgpu : FGV_TEST_SESSION, 1);
	setenv("FAIRGV_LOG", "debug", 1);
	execl(FGV_TEST_BACKEND, "fairgv-backend", "--config", daemon->config, "--socket",
	      daemon->socket, "--ready-fd", ready, NULL);
	_exit(101);
}

void daemon_launch(struct daemon *daemon)
{
	int pipe_fds[2];
	FILE *ready;

	/* The test looks into it, root or not. */
	setenv("FAIRGV_DUMPABLE", "1", 1);
	ck_assert_int_eq(pipe(pipe_fds), 0);
	daemon->pid = fork();
	ck_assert_int_ge(daemon->pid, 0);
	if (daemon->pid == 0) {
		close(pipe_fds[0]);
		become_daemon(daemon, pipe_fds[1]);
	}
	close(pipe_fds[1]);
	ready = fdopen(pipe_fds[0], "r");
	if (!fgets(daemon->ready, sizeof(daemon->ready), ready))
		daemon->ready[0] = '\0';
	while (fgetc(ready) != EOF) /* until the daemon has closed its end */
		continue;
	fclose(ready);
}

void daemon_start(struct daemon *daemon, const char *config)
{
	daemon_prepare(daemon, config);
	daemon_launch(daemon);
	ck_assert_msg(daemon->ready[0], "the daemon did not start; see %s", daemon->log);
}

int daemon_wait(struct daemon *daemon)
{
	int status;

	ck_assert_int_eq(waitpid(daemon->pid, &status, 0), daemon->pid);
	daemon->pid = 0;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* One that was killed leaves its journal behind. */
static void remove_journal(const struct daemon *daemon)
{
	char path[sizeof(daemon->socket) + 16];

	snprintf(path, sizeof(path), "%s.sessions", daemon->socket);
	unlink(path);
}

void daemon_remove(struct daemon *daemon)
{
	remove_journal(daemon);
	unlink(daemon->config);
	unlink(daemon->socket);
	unlink(daemon->control);
	unlink(daemon->log);
	ck_assert_int_eq(rmdir(daemon->folder), 0);
}

void daemon_stop(struct daemon *daemon)
{
	ck_assert_int_eq(kill(daemon->pid, SIGTERM), 0);
	ck_assert_int_eq(daemon_wait(daemon), 0);
	ck_assert_int_ne(access(daemon->socket, F_OK), 0);
	ck_assert_int_ne(access(daemon->control, F_OK), 0);
	daemon_remove(daemon);
}

unsigned daemon_descriptors(const struct daemon *daemon)
{
	char path[64];
	struct dirent *entry;
	unsigned count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)daemon->pid);
	folder = opendir(path);
	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static pid_t parent_of(const char *pid)
{
	char path[300], line[512];
	const char *name_end;
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fgets(line, sizeof(line), file) && (name_end = strrchr(line, ')')))
		sscanf(name_end + 1, " %*c %d", &parent);
	fclose(file);
	return parent;
}

unsigned daemon_children(const struct daemon *daemon)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder))) {
		if (atoi(entry->d_name) > 0)
			count += parent_of(entry->d_name) == daemon->pid;
	}
	closedir(folder);
	return count;
}

bool process_is_running(pid_t pid)
{
	char path[64], line[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return line[0] && !strstr(line, ") Z ");
}

void daemon_await_idle(const struct daemon *daemon, unsigned descriptors)
{
	AWAIT(daemon_children(daemon) == 0);
	AWAIT(daemon_descriptors(daemon) == descriptors);
}

const char *daemon_await_log(const struct daemon *daemon, const char *text)
{
	static char line[1100];

	for (int tries = 0;; tries++) {
		FILE *file = fopen(daemon->log, "r");

		while (file && fgets(line, sizeof(line), file)) {
			if (strstr(line, text) && strchr(line, '\n')) {
				fclose(file);
				return line;
			}
		}
		if (file)
			fclose(file);
		ck_assert_msg(tries < HANG_LIMIT_SEC * 100, "not in the log: %s", text);
		usleep(10000);
	}
}

pid_t daemon_session_pid(const struct daemon *daemon, unsigned number)
{
	char text[32];
	const char *at;

	snprintf(text, sizeof(text), "session %u: vm a, program", number);
	at = strstr(daemon_await_log(daemon, text), "served by process ");
	ck_assert_ptr_nonnull(at);
	return atoi(at + strlen("served by process "));
}

unsigned daemon_count_log(const struct daemon *daemon, const char *text)
{
	char line[1100];
	unsigned count = 0;
	FILE *file = fopen(daemon->log, "r");

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, text) != NULL;
	fclose(file);
	return count;
}

int guest_connect(const struct daemon *daemon)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = HANG_LIMIT_SEC};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon->socket);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	ck_assert_msg(!connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect: %s",
		      strerror(errno));
	return fd;
}

void guest_send_hello(int fd, const char *vm, const char *program)
{
	struct fgv_msg_hello hello = {
		.type = FGV_MSG_HELLO,
		.version = FGV_WIRE_VERSION,
		.hash = FGV_API_HASH,
	};

	snprintf(hello.vm, sizeof(hello.vm), "%s", vm);
	snprintf(hello.program, sizeof(hello.program), "%s", program);
	ck_assert_int_eq(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
}

void guest_receive(int fd, struct guest_answer *answer)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(answer->fds))];
	} control;
	struct iovec iov = {&answer->welcome, sizeof(answer->welcome)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t len;

	*answer = (struct guest_answer){0};
	len = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	ck_assert_msg(len >= 0 || errno == ECONNRESET, "no answer: %s", strerror(errno));
	answer->closed = len <= 0 || answer->welcome.type == FGV_MSG_END;
	if (answer->closed)
		return;
	ck_assert_int_eq(len, sizeof(answer->welcome));
	ck_assert_uint_eq(answer->welcome.type, FGV_MSG_WELCOME);
	ck_assert_uint_eq(answer->welcome.version, FGV_WIRE_VERSION);
	header = CMSG_FIRSTHDR(&message);
	if (!header)
		return;
	answer->fd_count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(answer->fds, CMSG_DATA(header), (size_t)answer->fd_count * sizeof(int));
}

void guest_close(int fd, struct guest_answer *answer)
{
	for (int i = 0; answer && i < answer->fd_count; i++)
		close(answer->fds[i]);
	close(fd);
}

int guest_open(const struct daemon *daemon, const char *vm, const char *program,
	       struct guest_answer *answer)
{
	struct guest_answer own;
	int fd = guest_connect(daemon);

	guest_send_hello(fd, vm, program);
	guest_receive(fd, &own);
	ck_assert(!own.closed);
	ck_assert_msg(own.welcome.status == 0, "refused: %s", own.welcome.text);
	ck_assert_int_eq(own.fd_count, 2);
	if (answer) {
		*answer = own;
	} else {
		close(own.fds[0]);
		close(own.fds[1]);
	}
	return fd;
}

/* The reason is left empty where none comes. */
static void await_end(int fd, struct fgv_msg_end *end)
{
	ssize_t len = recv(fd, end, sizeof(*end), 0);

	if (len == (ssize_t)sizeof(*end) && end->type == FGV_MSG_END) {
		struct fgv_msg_end more;

		do {
			len = recv(fd, &more, sizeof(more), 0);
		} while (len == (ssize_t)sizeof(more) && more.type == FGV_MSG_END);
	} else {
		end->text[0] = '\0';
	}
	ck_assert_msg(len == 0 || (len < 0 && errno == ECONNRESET), "the connection goes on");
}

void guest_await_end(int fd)
{
	struct fgv_msg_end end;

	await_end(fd, &end);
}

void guest_await_reason(int fd, const char *text)
{
	struct fgv_msg_end end;

	await_end(fd, &end);
	ck_assert_msg(strstr(end.text, text) != NULL, "%s", end.text);
}

void guest_expect_refusal(const struct daemon *daemon, const char *vm, uint32_t status,
			  const char *text)
{
	struct guest_answer answer;
	int fd = guest_connect(daemon);

	guest_send_hello(fd, vm, "refused");
	guest_receive(fd, &answer);
	ck_assert(!answer.closed);
	ck_assert_uint_eq(answer.welcome.status, status);
	ck_assert_msg(strstr(answer.welcome.text, text) != NULL, "%s", answer.welcome.text);
	ck_assert_int_eq(answer.fd_count, 0);
	guest_await_end(fd);
	close(fd);
}
