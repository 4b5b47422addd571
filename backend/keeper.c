/*
 * Keepers; see keeper.h.
 */
#define _GNU_SOURCE
#include "backend/keeper.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/spawn.h"
#include "common/log.h"
#include "common/util.h"

/* Its order and its setup are there before it is. */
static int send_orders(const struct fgv_keeper_line *line, int control_fd)
{
	const struct fgv_prepare prepare = {.soft = 1, .keeps_images = 1};
	const struct fgv_keeper_setup *setup = &line->keeper->setup;
	int ret = fgv_fds_send(control_fd, &prepare, sizeof(prepare), NULL, 0);

	return ret ? ret : fgv_fds_send(control_fd, setup, sizeof(*setup), &line->cgroup_fd, 1);
}

static int start_with(const struct fgv_keeper_line *line, int log_fd)
{
	char *argv[] = {"fairgv-vgpu", NULL};
	struct fgv_spawn_fd fds[] = {
		{log_fd, STDOUT_FILENO},
		{log_fd, STDERR_FILENO},
		{.its = FGV_CONTROL_FD},
	};
	int pair[2];
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fds[2].ours = pair[1];
	ret = send_orders(line, pair[0]);
	if (!ret)
		ret = fgv_spawn(line->vgpu_path, argv, fds, FGV_ARRAY_LEN(fds), false,
				&line->keeper->pid);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	else
		line->keeper->control_fd = pair[0];
	return ret;
}

static int start(const struct fgv_keeper_line *line)
{
	struct fgv_keeper *keeper = line->keeper;
	int log_fd;
	int ret = fgv_relay_open(line->relays, keeper->lines, &keeper->relay, &log_fd);

	if (ret)
		return ret;
	ret = start_with(line, log_fd);
	close(log_fd);
	if (ret) {
		fgv_relay_close(keeper->relay);
		return ret;
	}
	fgv_relay_started(keeper->relay, keeper->pid);
	fgv_relay_about(keeper->relay, keeper->lines, FGV_LOG_VM(keeper->setup.vm));
	return 0;
}

/* Where it does not get through, this session goes without. */
static void add_session(const struct fgv_keeper_line *line)
{
	struct fgv_keeper *keeper = line->keeper;
	const uint8_t byte = 0;
	int ret = keeper->pid ? 0 : start(line);

	if (!ret)
		ret = fgv_fds_send(keeper->control_fd, &byte, sizeof(byte), &line->watch.fd, 1);
	if (ret)
		fgv_warning_of(FGV_LOG_VM(keeper->setup.vm), "its images can't be kept: %s",
			       strerror(-ret));
}

static void line_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_keeper_line *line = (struct fgv_keeper_line *)watch;

	if (!(events & EPOLLHUP))
		add_session(line);
	fgv_keeper_hang_up(line);
}

int fgv_keeper_connect(struct fgv_keeper_line *line, struct fgv_keeper *keeper,
		       const char *vgpu_path, int cgroup_fd, struct fgv_relays *relays)
{
	int pair[2];
	int ret = 0;

	*line = (struct fgv_keeper_line){
		.watch = {.fd = -1, .ready = line_ready},
		.keeper = keeper,
		.vgpu_path = vgpu_path,
		.cgroup_fd = cgroup_fd,
		.relays = relays,
	};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	line->watch.fd = pair[0];
	if (keeper->setup.bytes)
		ret = fgv_loop_add(relays->loop, &line->watch, EPOLLIN);
	if (!keeper->setup.bytes || ret) {
		close(pair[0]);
		line->watch.fd = -1;
	}
	if (!ret)
		return pair[1];
	close(pair[1]);
	return ret;
}

void fgv_keeper_hang_up(struct fgv_keeper_line *line)
{
	if (line->watch.fd < 0)
		return;
	fgv_loop_remove(line->relays->loop, &line->watch);
	close(line->watch.fd);
	line->watch.fd = -1;
}

void fgv_keeper_end(struct fgv_keeper *keeper)
{
	if (!keeper->pid)
		return;
	close(keeper->control_fd);
	kill(keeper->pid, SIGKILL);
	waitpid(keeper->pid, NULL, 0);
	fgv_relay_close(keeper->relay);
	keeper->pid = 0;
}

void fgv_keeper_reap(struct fgv_keeper *keeper)
{
	int status;

	if (!keeper->pid || waitpid(keeper->pid, &status, WNOHANG) != keeper->pid)
		return;
	close(keeper->control_fd);
	fgv_relay_close(keeper->relay);
	if (WIFSIGNALED(status))
		fgv_warning_of(FGV_LOG_VM(keeper->setup.vm),
			       "process %d, which kept its images, was killed by signal %d (%s)",
			       (int)keeper->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fgv_warning_of(FGV_LOG_VM(keeper->setup.vm),
			       "process %d, which kept its images, ended with status %d",
			       (int)keeper->pid, WEXITSTATUS(status));
	keeper->pid = 0;
}
