/*
 * The children of the keeper; see control.h.
 */
#define _GNU_SOURCE
#include "backend/mps/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/loop.h"
#include "backend/mps/keeper.h"
#include "common/log.h"
#include "common/util.h"

#define SIGNAL_AGAIN_MS 50 /* for children that have come since */

static struct {
	int loop;
	const bool *told_to_end;
	struct fgv_watch signals;

	pid_t pid;
	bool runs;
	int status;		 /* how it ended */
	struct fgv_watch output; /* its log and its servers'; fd -1: closed */
	char said[256];

	pid_t command; /* 0: none runs */
	int command_status;
	struct fgv_watch answer; /* the command's output; fd -1: closed */
	char answer_text[1024];
	size_t answer_len;
} control;

static void close_watch(struct fgv_watch *watch)
{
	if (watch->fd < 0)
		return;
	fgv_loop_remove(control.loop, watch);
	close(watch->fd);
	watch->fd = -1;
}

/* Whether there are children left. */
static bool reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (control.runs && pid == control.pid) {
			control.runs = false;
			control.status = status;
		} else if (pid == control.command) {
			control.command = 0;
			control.command_status = status;
		}
	}
	return pid == 0;
}

static void signals_ready(struct fgv_watch *watch, uint32_t events)
{
	struct signalfd_siginfo signal;

	(void)events;
	if (read(watch->fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
		reap();
}

/* Log lines of MPS. Only the last one is kept: it is what an error message is made of. */
static void output_ready(struct fgv_watch *watch, uint32_t events)
{
	char text[1024];
	ssize_t len = read(watch->fd, text, sizeof(text) - 1);
	char *line, *rest;

	(void)events;
	if (len <= 0) {
		close_watch(watch);
		return;
	}
	text[len] = '\0';
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		fgv_debug("MPS: %s", line);
		snprintf(control.said, sizeof(control.said), "%s", line);
	}
}

static void answer_ready(struct fgv_watch *watch, uint32_t events)
{
	size_t room = sizeof(control.answer_text) - 1 - control.answer_len;
	char spill[256];
	ssize_t len = room ? read(watch->fd, control.answer_text + control.answer_len, room)
			   : read(watch->fd, spill, sizeof(spill));

	(void)events;
	if (len <= 0)
		close_watch(watch);
	else if (room)
		control.answer_len += (size_t)len;
}

/* Starts MPS's program. It dies with this process, whatever ends that. */
static pid_t spawn(const char *argument, int input_fd, int output_fd)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid < 0 ? -errno : pid;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(input_fd, STDIN_FILENO) < 0 ||
	    dup2(output_fd, STDOUT_FILENO) < 0 || dup2(output_fd, STDERR_FILENO) < 0)
		_exit(126);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execlp(FGV_MPS_PROGRAM, FGV_MPS_PROGRAM, argument, NULL);
	_exit(127);
}

/* A pipe whose read end is @watch's, and is watched. The write end, or a negative errno. */
static int watch_pipe(struct fgv_watch *watch)
{
	int fds[2];
	int ret;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	watch->fd = fds[0];
	ret = fgv_loop_add(control.loop, watch, EPOLLIN);
	if (!ret)
		return fds[1];
	close(fds[0]);
	close(fds[1]);
	watch->fd = -1;
	return ret;
}

static int start_command(const char *text)
{
	int input[2], output_fd;
	pid_t pid;

	if (pipe2(input, O_CLOEXEC))
		return -errno;
	output_fd = watch_pipe(&control.answer);
	pid = output_fd < 0 ? output_fd : spawn(NULL, input[0], output_fd);
	close(input[0]);
	if (output_fd >= 0)
		close(output_fd);
	/* A pipe takes this much at once. SIGPIPE is blocked. */
	if (pid > 0 && write(input[1], text, strlen(text)) < 0)
		fgv_debug("MPS does not take \"%s\": %s", text, strerror(errno));
	close(input[1]);
	if (pid < 0) {
		close_watch(&control.answer);
		return pid;
	}
	control.command = pid;
	return 0;
}

int fgv_mps_control_command(const char *text, uint64_t deadline_ns, const char **answer)
{
	bool told_before = *control.told_to_end;
	int ret;

	control.answer_len = 0;
	ret = start_command(text);
	if (ret)
		return ret;
	while ((control.command || control.answer.fd >= 0) && fgv_now_ns() < deadline_ns &&
	       *control.told_to_end == told_before)
		fgv_loop_turn(control.loop, deadline_ns);
	close_watch(&control.answer);
	control.answer_text[control.answer_len] = '\0';
	*answer = control.answer_text;
	if (control.command) {
		kill(control.command, SIGKILL);
		control.command = 0; /* reaped all the same */
		return -ETIMEDOUT;
	}
	return WIFEXITED(control.command_status) && WEXITSTATUS(control.command_status) == 0 ? 0
											     : -EIO;
}

/* @text: its /proc/PID/stat. The name in it may hold anything. */
static pid_t parent_in(const char *text)
{
	const char *name_end = strrchr(text, ')');
	int parent = 0;

	if (name_end)
		sscanf(name_end + 1, " %*c %d", &parent);
	return parent;
}

static void signal_children(int signal)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		pid_t pid = atoi(entry->d_name);
		char path[64], text[512] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		file = pid > 0 ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (fgets(text, sizeof(text), file) && parent_in(text) == getpid())
			kill(pid, signal);
		fclose(file);
	}
	if (folder)
		closedir(folder);
}

bool fgv_mps_control_end(int signal, uint64_t deadline_ns)
{
	while (reap()) {
		uint64_t now_ns = fgv_now_ns();

		if (now_ns >= deadline_ns)
			return false;
		if (signal)
			signal_children(signal);
		fgv_loop_turn(control.loop,
			      fgv_min_u64(deadline_ns, now_ns + SIGNAL_AGAIN_MS * FGV_NS_PER_MS));
	}
	return true;
}

int fgv_mps_control_start(void)
{
	int input_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int output_fd, ret;
	pid_t pid;

	if (input_fd < 0)
		return -errno;
	close_watch(&control.output);
	control.said[0] = '\0';
	output_fd = watch_pipe(&control.output);
	ret = output_fd < 0 ? output_fd : 0;
	if (!ret) {
		pid = spawn("-f", input_fd, output_fd);
		close(output_fd);
		control.runs = pid > 0;
		control.pid = pid;
		ret = pid < 0 ? pid : 0;
	}
	close(input_fd);
	return ret;
}

bool fgv_mps_control_runs(void)
{
	return control.runs;
}

const char *fgv_mps_control_said(void)
{
	return control.said;
}

void fgv_mps_control_explain(char *text, size_t len)
{
	int status = control.status;

	if (WIFSIGNALED(status))
		snprintf(text, len, "NVIDIA's MPS (process %d) was killed by signal %d (%s)",
			 (int)control.pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, len, "NVIDIA's MPS (process %d) ended with status %d",
			 (int)control.pid, WEXITSTATUS(status));
}

int fgv_mps_control_init(int loop, const bool *told_to_end)
{
	sigset_t all, child;

	control.loop = loop;
	control.told_to_end = told_to_end;
	control.signals.ready = signals_ready;
	control.output = (struct fgv_watch){.fd = -1, .ready = output_ready};
	control.answer = (struct fgv_watch){.fd = -1, .ready = answer_ready};
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	control.signals.fd = signalfd(-1, &child, SFD_CLOEXEC);
	if (control.signals.fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return -errno;
	return fgv_loop_add(loop, &control.signals, EPOLLIN);
}
