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
#include "backend/share.h"
#include "backend/spawn.h"
#include "common/log.h"
#include "common/util.h"

/* Its order and its setup are there before it is. */
static int send_orders(const struct fgv_keeper_line *line, int control_fd)
{
	const struct fgv_prepare prepare = {.soft = 1, .keeps_images = 1};
	const struct fgv_keeper_setup *setup = &line->keeper->setup;
	const uint8_t byte = 0;
	int ret = fgv_fds_send(control_fd, &prepare, sizeof(prepare), NULL, 0);

	if (!ret)
		ret = fgv_fds_send(control_fd, setup, sizeof(*setup), &line->cgroup_fd, 1);
	for (uint32_t i = 0; i < setup->gpus && !ret; i++)
		ret = fgv_fds_send(control_fd, &byte, sizeof(byte),
				   &line->keeper->shares[i].accounts_fd, 1);
	return ret;
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

static uint64_t bit_of(const struct fgv_keeper_session *who)
{
	return UINT64_C(1) << who->account;
}

/* Where it does not get through, this session goes without. */
static void add_session(const struct fgv_keeper_line *line)
{
	struct fgv_keeper *keeper = line->keeper;
	int ret = keeper->pid ? 0 : start(line);

	if (!ret)
		ret = fgv_fds_send(keeper->control_fd, &line->who, sizeof(line->who),
				   &line->watch.fd, 1);
	if (ret)
		fgv_warning_of(FGV_LOG_VM(keeper->setup.vm), "nothing is kept for it: %s",
			       strerror(-ret));
	else
		keeper->known |= bit_of(&line->who);
}

static void line_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_keeper_line *line = (struct fgv_keeper_line *)watch;

	/* Of what another keeper had, something is left until its sessions have ended. */
	if (!(events & EPOLLHUP) && !line->keeper->lost)
		add_session(line);
	fgv_keeper_hang_up(line);
}

int fgv_keeper_connect(struct fgv_keeper_line *line, struct fgv_keeper *keeper,
		       const struct fgv_keeper_session *who, const char *vgpu_path, int cgroup_fd,
		       struct fgv_relays *relays)
{
	bool is_wanted = keeper->setup.bytes || keeper->setup.sharing;
	int pair[2];
	int ret = 0;

	*line = (struct fgv_keeper_line){
		.watch = {.fd = -1, .ready = line_ready},
		.keeper = keeper,
		.who = *who,
		.vgpu_path = vgpu_path,
		.cgroup_fd = cgroup_fd,
		.relays = relays,
	};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	line->watch.fd = pair[0];
	if (is_wanted)
		ret = fgv_loop_add(relays->loop, &line->watch, EPOLLIN);
	if (!is_wanted || ret) {
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

bool fgv_keeper_has_memory(const struct fgv_keeper *keeper)
{
	for (uint32_t i = 0; i < keeper->setup.gpus; i++) {
		if (fgv_share_shared(&keeper->shares[i]))
			return true;
	}
	return false;
}

/* What it charged is gone with the last session that may have had it. */
static void clear_if_gone(struct fgv_keeper *keeper)
{
	for (uint32_t i = 0; i < keeper->setup.gpus && !keeper->lost; i++)
		fgv_share_clear_shared(&keeper->shares[i]);
}

/* There is no such process any more. */
static void forget_process(struct fgv_keeper *keeper)
{
	close(keeper->control_fd);
	fgv_relay_close(keeper->relay);
	keeper->pid = 0;
	if (fgv_keeper_has_memory(keeper))
		keeper->lost |= keeper->known;
	keeper->known = 0;
	clear_if_gone(keeper);
}

void fgv_keeper_end(struct fgv_keeper *keeper)
{
	if (!keeper->pid)
		return;
	kill(keeper->pid, SIGKILL);
	waitpid(keeper->pid, NULL, 0);
	forget_process(keeper);
}

void fgv_keeper_forget(struct fgv_keeper *keeper, const struct fgv_keeper_session *who)
{
	uint64_t bit = bit_of(who);

	if (keeper->lost & bit) {
		keeper->lost &= ~bit;
		clear_if_gone(keeper);
	}
	if (!(keeper->known & bit))
		return;
	keeper->known &= ~bit;
	/* One that does not listen has memory that nobody has any more. */
	if (fgv_fds_send(keeper->control_fd, who, sizeof(*who), NULL, 0))
		kill(keeper->pid, SIGKILL);
}

void fgv_keeper_reap(struct fgv_keeper *keeper)
{
	int status;

	if (!keeper->pid || waitpid(keeper->pid, &status, WNOHANG) != keeper->pid)
		return;
	if (WIFSIGNALED(status))
		fgv_warning_of(FGV_LOG_VM(keeper->setup.vm),
			       "process %d, its keeper, was killed by signal %d (%s)",
			       (int)keeper->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fgv_warning_of(FGV_LOG_VM(keeper->setup.vm),
			       "process %d, its keeper, ended with status %d", (int)keeper->pid,
			       WEXITSTATUS(status));
	forget_process(keeper);
}
