/*
 * Sessions; see session.h. A session lives from the start of its process until that
 * has been reaped: while there is a struct fgv_session its process id is not reused.
 */
#define _GNU_SOURCE
#include "backend/session.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

extern char **environ;

struct fgv_session {
	LIST_ENTRY(fgv_session) link;
	struct fgv_vm *vm;
	pid_t pid;
	int control_fd; /* its end ends the process; -1: told already */
	uint32_t number;
	unsigned account;
	uid_t uid;
	uint64_t started_ns;
	char program[FGV_NAME_MAX];
};

/* Where the daemon runs from its build tree, the vGPU program lies beside it there. */
static int find_vgpu(char *path, size_t len)
{
	const char *chosen = getenv("FAIRGV_VGPU");
	char self[PATH_MAX];
	ssize_t self_len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (chosen) {
		snprintf(path, len, "%s", chosen);
		return access(path, X_OK) ? -errno : 0;
	}
	if (self_len > 0) {
		self[self_len] = '\0';
		snprintf(path, len, "%s/vgpu/fairgv-vgpu", dirname(self));
		if (!access(path, X_OK))
			return 0;
	}
	snprintf(path, len, "%s", FGV_PKGLIBEXECDIR "/fairgv-vgpu");
	return access(path, X_OK) ? -errno : 0;
}

int fgv_sessions_init(struct fgv_sessions *sessions, const struct fgv_config *config, char *why,
		      size_t why_len)
{
	int ret;

	*sessions = (struct fgv_sessions){.config = config};
	LIST_INIT(&sessions->list);
	ret = fgv_window_layout(&sessions->layout, config->window_bytes, (uint32_t)config->lanes);
	if (ret) {
		snprintf(why, why_len, "a window of this size can't be laid out");
		return ret;
	}
	ret = find_vgpu(sessions->vgpu_path, sizeof(sessions->vgpu_path));
	if (ret)
		snprintf(why, why_len, "%s: %s", sessions->vgpu_path, strerror(-ret));
	return ret;
}

/* The child gets nothing of ours but stdout, stderr and its control socket. */
static int prepare_spawn(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
			 int control_fd)
{
	sigset_t none, all;
	int ret;

	sigemptyset(&none);
	sigfillset(&all);
	ret = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(actions, control_fd, FGV_CONTROL_FD);
	if (!ret)
		ret = posix_spawnattr_setsigmask(attributes, &none);
	if (!ret)
		ret = posix_spawnattr_setsigdefault(attributes, &all);
	if (!ret)
		ret = posix_spawnattr_setflags(attributes,
					       POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -ret;
}

static int spawn_vgpu(const char *path, int control_fd, pid_t *pid)
{
	char *argv[] = {"fairgv-vgpu", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int ret;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	ret = prepare_spawn(&actions, &attributes, control_fd);
	if (!ret)
		ret = -posix_spawn(pid, path, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return ret;
}

static int send_setup(int control_fd, const struct fgv_setup *setup, const int *fds, unsigned count)
{
	char control[CMSG_SPACE(FGV_SETUP_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)setup, .iov_len = sizeof(*setup)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	do
		sent = sendmsg(control_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void fill_setup(const struct fgv_sessions *sessions, const struct fgv_session *session,
		       struct fgv_setup *setup)
{
	const struct fgv_window *layout = &sessions->layout;

	*setup = (struct fgv_setup){
		.session = session->number,
		.account = session->account,
		.soft = session->vm->device->soft,
		.ordinal = session->vm->device->ordinal,
		.soft_memory_bytes = sessions->config->soft_memory_bytes,
		.window_len = layout->len,
		.lanes_off = layout->lanes_off,
		.arena_off = layout->arena_off,
		.arena_len = layout->arena_len,
		.staging_len = layout->staging_len,
		.lanes = layout->lanes,
	};
	snprintf(setup->vm, sizeof(setup->vm), "%s", session->vm->config->name);
	snprintf(setup->program, sizeof(setup->program), "%s", session->program);
}

/* Makes the window and the doorbell, sends all, and keeps neither. */
static int hand_over(const struct fgv_sessions *sessions, const struct fgv_session *session,
		     int connection_fd)
{
	const struct fgv_device *device = session->vm->device;
	int fds[FGV_SETUP_FDS] = {
		[FGV_SETUP_CONNECTION] = connection_fd,
		[FGV_SETUP_ACCOUNTS] = session->vm->accounts_fd,
		[FGV_SETUP_SOFT_DEVICE] = device->shared_fd,
	};
	unsigned count = device->soft ? FGV_SETUP_FDS : FGV_SETUP_SOFT_DEVICE;
	struct fgv_setup setup;
	int window_fd, doorbell_fd, ret;

	window_fd = fgv_window_create(&sessions->layout);
	if (window_fd < 0)
		return window_fd;
	doorbell_fd = fgv_doorbell_create();
	ret = doorbell_fd;
	if (doorbell_fd < 0)
		goto close_window;
	fds[FGV_SETUP_WINDOW] = window_fd;
	fds[FGV_SETUP_DOORBELL] = doorbell_fd;
	fill_setup(sessions, session, &setup);
	ret = send_setup(session->control_fd, &setup, fds, count);
	close(doorbell_fd);
close_window:
	close(window_fd);
	return ret;
}

/*
 * The setup is sent before the process is there to take it: so whatever fails, there
 * is no process to get rid of.
 */
static int start_process(const struct fgv_sessions *sessions, struct fgv_session *session,
			 int connection_fd)
{
	int pair[2];
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	session->control_fd = pair[0];
	ret = hand_over(sessions, session, connection_fd);
	if (!ret)
		ret = spawn_vgpu(sessions->vgpu_path, pair[1], &session->pid);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	return ret;
}

static CUresult refuse_start(struct fgv_session *session, int error, char *text, size_t text_len)
{
	struct fgv_account last;

	fgv_error("vm %s: can't start a session: %s", session->vm->config->name, strerror(-error));
	snprintf(text, text_len, "the session can't be started: %s", strerror(-error));
	fgv_vm_put_account(session->vm, session->account, &last);
	free(session);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult fgv_sessions_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
			    const struct fgv_client *client, char *text, size_t text_len)
{
	struct fgv_session *session;
	int account = fgv_vm_take_account(vm);
	int ret;

	if (account < 0) {
		snprintf(text, text_len, "VM %s has %llu sessions, as many as it may have",
			 vm->config->name, (unsigned long long)vm->config->sessions);
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	session = calloc(1, sizeof(*session));
	if (!session) {
		struct fgv_account last;

		fgv_vm_put_account(vm, (unsigned)account, &last);
		snprintf(text, text_len, "the daemon is out of memory");
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	session->vm = vm;
	session->account = (unsigned)account;
	session->number = ++sessions->last_number;
	session->uid = client->uid;
	session->started_ns = fgv_now_ns();
	snprintf(session->program, sizeof(session->program), "%s", client->program);
	ret = start_process(sessions, session, client->fd);
	if (ret)
		return refuse_start(session, ret, text, text_len);
	LIST_INSERT_HEAD(&sessions->list, session, link);
	sessions->count++;
	fgv_info("session %u: vm %s, program \"%s\" (process %d of user %u), served by process %d",
		 session->number, vm->config->name, session->program, (int)client->pid,
		 (unsigned)client->uid, (int)session->pid);
	return CUDA_SUCCESS;
}

/* The one line that closes a session's story. A vGPU process says itself why it exits. */
static void log_end(const struct fgv_session *session, int status, const struct fgv_account *last)
{
	enum fgv_log_level level = FGV_LOG_INFO;
	char how[64];

	if (WIFSIGNALED(status)) {
		level = session->control_fd < 0 ? FGV_LOG_INFO : FGV_LOG_WARNING;
		snprintf(how, sizeof(how), "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	} else {
		snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(status));
	}
	fgv_log(level,
		"session %u: vm %s, program \"%s\": %s after %.3f s, %llu requests, "
		"%llu round trips, %llu launches, %llu bytes in use",
		session->number, session->vm->config->name, session->program, how,
		(double)(fgv_now_ns() - session->started_ns) / FGV_NS_PER_SEC,
		(unsigned long long)last->requests, (unsigned long long)last->round_trips,
		(unsigned long long)last->launches, (unsigned long long)last->memory_bytes);
}

static void end_session(struct fgv_sessions *sessions, struct fgv_session *session, int status)
{
	struct fgv_account last;

	fgv_device_forget(session->vm->device, session->pid);
	fgv_vm_put_account(session->vm, session->account, &last);
	log_end(session, status, &last);
	if (session->control_fd >= 0)
		close(session->control_fd);
	LIST_REMOVE(session, link);
	sessions->count--;
	free(session);
}

void fgv_sessions_reap(struct fgv_sessions *sessions)
{
	struct fgv_session *session;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		LIST_FOREACH(session, &sessions->list, link) {
			if (session->pid == pid)
				break;
		}
		if (session)
			end_session(sessions, session, status);
	}
}

void fgv_sessions_end(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		close(session->control_fd);
		session->control_fd = -1;
	}
}

void fgv_sessions_signal(struct fgv_sessions *sessions, int signal)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		kill(session->pid, signal);
}
