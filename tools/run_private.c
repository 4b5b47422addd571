/*
 * A private daemon for one run: started in a fresh folder, waited for, the program
 * run beside it, and taken down.
 *
 * The daemon holds the read end of a pipe whose only write end is here, and ends when
 * that is closed: so it never outlives this process, however that ends. It has a
 * session of its own, so that a ^C reaches the program and not the daemon.
 */
#define _GNU_SOURCE
#include "tools/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/shared.h"
#include "common/log.h"

extern char **environ;

struct private_daemon {
	char folder[PATH_MAX];
	char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char control[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* fairgvctl's */
	pid_t pid; /* 0: it has ended and was waited for */
	int lifetime_fd;
	int signal_fd;
	sigset_t caller_mask;
};

static int create_folder(struct private_daemon *daemon)
{
	const char *parents[] = {getenv("XDG_RUNTIME_DIR"), "/tmp"};

	for (size_t i = 0; i < 2; i++) {
		if (!parents[i] || parents[i][0] != '/')
			continue;
		snprintf(daemon->folder, sizeof(daemon->folder), "%s/fairgv-run-XXXXXX",
			 parents[i]);
		if (strlen(daemon->folder) + sizeof("/socket.control") > sizeof(daemon->control))
			continue;
		if (!mkdtemp(daemon->folder))
			continue;
		strcpy(stpcpy(daemon->socket, daemon->folder), "/socket");
		strcpy(stpcpy(daemon->control, daemon->socket), ".control");
		return 0;
	}
	fgv_error("can't make a folder in /tmp: %s", strerror(errno));
	return -ENOENT;
}

/* The daemon does this itself where it ended in order. */
static void remove_folder(const struct private_daemon *daemon)
{
	unlink(daemon->socket);
	unlink(daemon->control);
	rmdir(daemon->folder);
}

static int take_signals(struct private_daemon *daemon)
{
	sigset_t set;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &daemon->caller_mask);
	daemon->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->signal_fd >= 0)
		return 0;
	fgv_error("signalfd: %s", strerror(errno));
	return -errno;
}

/* The arguments of the daemon. The numbers of its descriptors stay what they are. */
static int spawn_with(const struct fgv_run *run, struct private_daemon *daemon, int ready_fd,
		      int lifetime_fd, posix_spawn_file_actions_t *actions,
		      posix_spawnattr_t *attributes)
{
	char ready[16], lifetime[16];
	char *config = (char *)run->config_path;
	char *argv[] = {"fairgv-backend",
			"--private",
			lifetime,
			"--ready-fd",
			ready,
			"--socket",
			daemon->socket,
			config ? "--config" : NULL,
			config,
			NULL};
	sigset_t none;

	snprintf(ready, sizeof(ready), "%d", ready_fd);
	snprintf(lifetime, sizeof(lifetime), "%d", lifetime_fd);
	sigemptyset(&none);
	/* Onto itself: that takes its close-on-exec flag away, in the child alone. */
	if (posix_spawn_file_actions_adddup2(actions, ready_fd, ready_fd) ||
	    posix_spawn_file_actions_adddup2(actions, lifetime_fd, lifetime_fd) ||
	    posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ||
	    posix_spawnattr_setsigmask(attributes, &none) ||
	    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID))
		return -ENOMEM;
	return -posix_spawn(&daemon->pid, run->backend_path, actions, attributes, argv, environ);
}

static int spawn_daemon(const struct fgv_run *run, struct private_daemon *daemon, int ready_fd,
			int lifetime_fd)
{
	bool quiet = !getenv("FAIRGV_LOG");
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int ret;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	if (quiet)
		setenv("FAIRGV_LOG", "warning", 1);
	ret = spawn_with(run, daemon, ready_fd, lifetime_fd, &actions, &attributes);
	if (quiet)
		unsetenv("FAIRGV_LOG");
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return ret;
}

/* The number of a signal that came, or 0; SIGCHLD is left out. */
static int next_signal(const struct private_daemon *daemon, bool *from_terminal)
{
	struct signalfd_siginfo signal;

	while (read(daemon->signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGCHLD)
			continue;
		*from_terminal = signal.ssi_code == SI_KERNEL;
		return (int)signal.ssi_signo;
	}
	return 0;
}

/* 0 when the daemon's line came, else the exit status. */
static int await_ready(const struct private_daemon *daemon, int ready_fd)
{
	struct pollfd fds[] = {
		{.fd = ready_fd, .events = POLLIN},
		{.fd = daemon->signal_fd, .events = POLLIN},
	};
	bool from_terminal;
	char byte;
	int signal;

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		signal = next_signal(daemon, &from_terminal);
		if (signal)
			return 128 + signal;
		if (!fds[0].revents)
			continue;
		if (read(ready_fd, &byte, 1) == 1)
			return 0;
		fgv_error("the private daemon did not start");
		return FGV_RUN_FAILED;
	}
}

/* 0, or the exit status. After either, end_daemon() clears away. */
static int start_daemon(const struct fgv_run *run, struct private_daemon *daemon)
{
	int lifetime[2], ready[2];
	int ret;

	if (pipe2(lifetime, O_CLOEXEC)) {
		fgv_error("pipe: %s", strerror(errno));
		return FGV_RUN_FAILED;
	}
	daemon->lifetime_fd = lifetime[1];
	if (pipe2(ready, O_CLOEXEC)) {
		fgv_error("pipe: %s", strerror(errno));
		close(lifetime[0]);
		return FGV_RUN_FAILED;
	}
	ret = spawn_daemon(run, daemon, ready[1], lifetime[0]);
	close(lifetime[0]);
	close(ready[1]);
	if (ret)
		fgv_error("%s: %s", run->backend_path, strerror(-ret));
	ret = ret ? FGV_RUN_FAILED : await_ready(daemon, ready[0]);
	close(ready[0]);
	return ret;
}

/* Whether it had nothing to do. */
static bool end_daemon(struct private_daemon *daemon)
{
	int status = 0;

	if (daemon->lifetime_fd >= 0)
		close(daemon->lifetime_fd);
	while (daemon->pid && waitpid(daemon->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return daemon->pid && WIFEXITED(status) && WEXITSTATUS(status) == FGV_EXIT_UNUSED;
}

/* A program that never came, of which nothing was said before. */
static void say_unused(const struct fgv_run *run)
{
	if (!run->hint)
		fgv_warning("%s has not used FairGV: no CUDA call of it has reached FairGV's libraries",
			    run->program[0]);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Whether the program has ended. Says so if the daemon did: it should not. */
static bool program_ended(struct private_daemon *daemon, pid_t program, int *status)
{
	if (daemon->pid && waitpid(daemon->pid, status, WNOHANG) == daemon->pid) {
		fgv_error("the private daemon ended early, with status %d", exit_status(*status));
		daemon->pid = 0;
	}
	return waitpid(program, status, WNOHANG) == program;
}

/* A signal that the terminal sent went to the program, too: it gets no second one. */
static int await_program(struct private_daemon *daemon, pid_t program)
{
	struct pollfd fd = {.fd = daemon->signal_fd, .events = POLLIN};
	bool from_terminal;
	int signal, status;

	while (!program_ended(daemon, program, &status)) {
		poll(&fd, 1, -1);
		signal = next_signal(daemon, &from_terminal);
		if (signal && !from_terminal)
			kill(program, signal);
	}
	return exit_status(status);
}

static int run_program(const struct fgv_run *run, struct private_daemon *daemon)
{
	pid_t pid = fork();

	if (pid < 0) {
		fgv_error("fork: %s", strerror(errno));
		return FGV_RUN_FAILED;
	}
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &daemon->caller_mask, NULL);
		_exit(fgv_run_execute(run));
	}
	return await_program(daemon, pid);
}

int fgv_run_private(struct fgv_run *run)
{
	struct private_daemon daemon = {.lifetime_fd = -1, .signal_fd = -1};
	bool is_ready;
	int ret;

	const char *missed = run->socket;

	if (!run->config_path && run->vm && strcmp(run->vm, "default") != 0) {
		if (missed)
			fgv_error("no daemon answers at %s, and a private one has no VM \"%s\"",
				  missed, run->vm);
		else
			fgv_error("a private daemon has no VM \"%s\": --config describes them",
				  run->vm);
		return FGV_RUN_FAILED;
	}
	if (missed)
		fgv_warning("no daemon answers at %s: this run has a private one", missed);
	if (take_signals(&daemon) || create_folder(&daemon))
		return FGV_RUN_FAILED;
	run->socket = daemon.socket;
	ret = start_daemon(run, &daemon);
	is_ready = !ret;
	if (is_ready)
		ret = run_program(run, &daemon);
	if (end_daemon(&daemon) && is_ready)
		say_unused(run);
	remove_folder(&daemon);
	return ret;
}
