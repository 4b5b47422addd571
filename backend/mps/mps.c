/*
 * The daemon's side of MPS; see mps.h.
 */
#define _GNU_SOURCE
#include "backend/mps/mps.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/mps/keeper.h"
#include "backend/spawn.h"
#include "common/log.h"
#include "common/util.h"

extern char **environ;

#define STOP_MS 10000

/* The driver looks for an MPS control daemon's socket in this folder, and goes on without
 * MPS where there is none. Nobody can make one below a file that is no folder. */
#define NO_PIPES "/dev/null"

#define ENVIRONMENT_PIPES   "CUDA_MPS_PIPE_DIRECTORY"
#define ENVIRONMENT_LOGS    "CUDA_MPS_LOG_DIRECTORY"
#define ENVIRONMENT_DEVICES "CUDA_VISIBLE_DEVICES"
#define ENVIRONMENT_MEMORY  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
#define ENVIRONMENT_ALL	    "CUDA_MPS_"

/* What MPS may count for a client beyond its VM's quota: the context, and padding. */
#define MEMORY_SLACK_MIB 1024

/* Takes every setting of MPS out of the environment: they are for somebody else's. */
static void forget_environment(void)
{
	char name[256];

	for (char **entry = environ; entry && *entry;) {
		size_t len = strcspn(*entry, "=");

		if (strncmp(*entry, ENVIRONMENT_ALL, strlen(ENVIRONMENT_ALL)) != 0 ||
		    len >= sizeof(name)) {
			entry++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)len, *entry);
		unsetenv(name);
		entry = environ; /* it has moved */
	}
}

void fgv_mps_hide(void)
{
	forget_environment();
	setenv(ENVIRONMENT_PIPES, NO_PIPES, 1);
}

static bool program_is_there(void)
{
	const char *path = getenv("PATH");
	char program[PATH_MAX];
	struct stat file;

	while (path && *path) {
		size_t len = strcspn(path, ":");

		snprintf(program, sizeof(program), "%.*s/%s", (int)len, path, FGV_MPS_PROGRAM);
		if (!stat(program, &file) && S_ISREG(file.st_mode) && !access(program, X_OK))
			return true;
		path += len;
		path += *path == ':';
	}
	return false;
}

int fgv_mps_check(const struct fgv_config *config, const struct fgv_devices *devices,
		  const char *choice, char *why, size_t why_len)
{
	char text[512];

	if (config->context != FGV_CONTEXT_MPS)
		return 0;
	if (devices->list[0].soft)
		snprintf(text, sizeof(text), "\"mps\" needs an NVIDIA GPU; %s", choice);
	else if (!program_is_there())
		snprintf(text, sizeof(text),
			 "\"mps\" needs " FGV_MPS_PROGRAM ", which is not on PATH "
			 "(package nvidia-cuda-mps in Debian, nvidia-compute-utils in Ubuntu)");
	else
		return 0;
	fgv_config_refuse(config, "context", why, why_len, text);
	return -ENODEV;
}

/* The longest path of the folder that leaves room for the names of MPS's sockets in it. */
#define FOLDER_MAX                                                                                 \
	(sizeof(((struct sockaddr_un *)NULL)->sun_path) -                                          \
	 sizeof("/" FGV_MPS_PIPES "/" FGV_MPS_SOCKET_MAX))

/* An absolute path, as clients of MPS may run in another folder. */
static int name_folder(const char *socket, char *folder, size_t len)
{
	char here[PATH_MAX] = "";
	int written;

	if (socket[0] != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	written = snprintf(folder, len, "%s%s%s.mps", here, *here ? "/" : "", socket);
	return written < 0 || (size_t)written >= len ? -ENAMETOOLONG : 0;
}

/* What @ordinal stands for in a list of CUDA_VISIBLE_DEVICES; without one, for itself. */
static int append_device(const char *list, unsigned ordinal, char *text, size_t len)
{
	size_t used = strlen(text);
	const char *separator = used ? "," : "";
	int added;

	for (unsigned i = 0; list && i < ordinal; i++) {
		list = strchr(list, ',');
		if (list)
			list++;
	}
	if (list)
		added = snprintf(text + used, len - used, "%s%.*s", separator,
				 (int)strcspn(list, ","), list);
	else
		added = snprintf(text + used, len - used, "%s%u", separator, ordinal);
	return (size_t)added < len - used ? 0 : -ENAMETOOLONG;
}

/* The devices as MPS is told them. Its clients see those alone, counted in this order. */
static int name_devices(const struct fgv_devices *devices, char *text, size_t len)
{
	int ret = 0;

	text[0] = '\0';
	for (size_t i = 0; i < devices->count && !ret; i++)
		ret = append_device(getenv(ENVIRONMENT_DEVICES), devices->list[i].ordinal, text,
				    len);
	return ret;
}

static int start_keeper(struct fgv_mps *mps, const char *folder, const char *devices,
			unsigned ready_ms)
{
	char ready[16];
	char *argv[FGV_MPS_KEEPER_ARGUMENTS + 1] = {
		FGV_MPS_KEEPER,
		[FGV_MPS_KEEPER_FOLDER] = (char *)folder,
		[FGV_MPS_KEEPER_DEVICES] = (char *)devices,
		[FGV_MPS_KEEPER_READY_MS] = ready,
	};
	struct fgv_spawn_fd channel = {.its = FGV_MPS_KEEPER_FD};
	int pair[2];
	int ret;

	snprintf(ready, sizeof(ready), "%u", ready_ms);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	channel.ours = pair[1];
	ret = fgv_spawn("/proc/self/exe", argv, &channel, 1, true, &mps->keeper);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	mps->watch.fd = pair[0];
	return ret;
}

/* 1: a message, 0: the keeper has ended, -ETIMEDOUT. */
static int receive(const struct fgv_mps *mps, struct fgv_mps_message *message, uint64_t timeout_ms)
{
	struct pollfd poll_fd = {.fd = mps->watch.fd, .events = POLLIN};
	uint64_t deadline_ns = fgv_now_ns() + timeout_ms * FGV_NS_PER_MS;
	uint64_t now_ns;
	int ready;

	do {
		now_ns = fgv_now_ns();
		ready = poll(&poll_fd, 1,
			     now_ns < deadline_ns
				     ? (int)((deadline_ns - now_ns) / FGV_NS_PER_MS) + 1
				     : 0);
	} while (ready < 0 && errno == EINTR);
	if (ready < 1)
		return -ETIMEDOUT;
	if (recv(mps->watch.fd, message, sizeof(*message), 0) != sizeof(*message))
		return 0;
	message->text[sizeof(message->text) - 1] = '\0';
	return 1;
}

static int await_ready(const struct fgv_mps *mps, unsigned ready_ms, char *why, size_t why_len)
{
	struct fgv_mps_message message = {0};
	/* It has the time twice (mps.h), and takes down what did not get ready. */
	int got = receive(mps, &message, 2ull * ready_ms + STOP_MS);

	if (got == 1 && message.news == FGV_MPS_READY)
		return 0;
	if (got == 1)
		snprintf(why, why_len, "%s", message.text);
	else
		snprintf(why, why_len, "the process that keeps NVIDIA's MPS %s",
			 got ? "does not answer" : "has ended");
	return -ECHILD;
}

static void channel_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_mps *mps = (struct fgv_mps *)watch;
	struct fgv_mps_message message = {0};

	(void)events;
	if (receive(mps, &message, 0) == 1) {
		mps->ready = message.news == FGV_MPS_READY;
		if (mps->ready)
			fgv_info("NVIDIA's MPS is ready again");
		return;
	}
	mps->ready = false;
	mps->watched = false;
	fgv_loop_remove(mps->loop, watch);
	fgv_error("the process that keeps NVIDIA's MPS (%d) has ended: no session can begin "
		  "until this daemon is started again",
		  (int)mps->keeper);
}

/* The largest quota of the VMs on @device, in MiB; 0 where one of them has none. */
static uint64_t largest_quota_mib(const struct fgv_config *config, size_t device)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (!fgv_config_uses(vm, device))
			continue;
		if (vm->memory_bytes == FGV_CONFIG_NO_LIMIT)
			return 0;
		largest = fgv_max_u64(largest, (vm->memory_bytes >> 20) + 1);
	}
	return largest;
}

/*
 * MPS has a limit of its own for each client, which is set when that starts, and so before it is
 * known for which VM: no client needs more than the largest of them may have.
 */
bool fgv_mps_limit_clients(const struct fgv_config *config, const struct fgv_devices *devices)
{
	const char *before = getenv(ENVIRONMENT_MEMORY);
	char text[FGV_GPU_DEVICES_MAX * 32] = "";
	size_t len = 0;

	if (config->context != FGV_CONTEXT_MPS)
		return false;

	for (size_t i = 0; i < devices->count; i++) {
		uint64_t quota_mib = largest_quota_mib(config, i);

		if (quota_mib)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%zu=%lluM",
						len ? "," : "", i,
						(unsigned long long)quota_mib + MEMORY_SLACK_MIB);
	}
	if (!strcmp(before ? before : "", text))
		return false;
	if (len)
		setenv(ENVIRONMENT_MEMORY, text, 1);
	else
		unsetenv(ENVIRONMENT_MEMORY);
	return true;
}

/* What starts from now on leads to the MPS in @folder. */
static void show_clients(const char *folder, struct fgv_devices *devices)
{
	char path[FOLDER_MAX + sizeof("/" FGV_MPS_PIPES "/" FGV_MPS_LOGS)];

	snprintf(path, sizeof(path), "%s/" FGV_MPS_PIPES, folder);
	setenv(ENVIRONMENT_PIPES, path, 1);
	snprintf(path, sizeof(path), "%s/" FGV_MPS_LOGS, folder);
	setenv(ENVIRONMENT_LOGS, path, 1);
	/* It would be applied once more, to what is left. */
	unsetenv(ENVIRONMENT_DEVICES);
	for (size_t i = 0; i < devices->count; i++)
		devices->list[i].ordinal = (unsigned)i;
}

/* Starts the keeper, and MPS with it. @devices: as MPS is told them. */
static int start(struct fgv_mps *mps, const char *folder, const char *devices, unsigned ready_ms,
		 char *why, size_t why_len)
{
	int ret = start_keeper(mps, folder, devices, ready_ms);

	if (ret) {
		mps->keeper = 0;
		snprintf(why, why_len, "NVIDIA's MPS can't be started: %s", strerror(-ret));
		return ret;
	}
	ret = await_ready(mps, ready_ms, why, why_len);
	if (!ret) {
		ret = fgv_loop_add(mps->loop, &mps->watch, EPOLLIN);
		if (ret)
			snprintf(why, why_len, "NVIDIA's MPS can't be watched: %s", strerror(-ret));
	}
	mps->watched = !ret;
	if (ret)
		fgv_mps_stop(mps);
	return ret;
}

int fgv_mps_start(struct fgv_mps *mps, const struct fgv_config *config, int loop,
		  const char *socket, struct fgv_devices *devices, unsigned ready_ms, char *why,
		  size_t why_len)
{
	char folder[FOLDER_MAX + 1], visible[FGV_GPU_DEVICES_MAX * 64], text[512];
	int ret;

	*mps = (struct fgv_mps){.loop = loop, .watch.ready = channel_ready};
	mps->ready = config->context != FGV_CONTEXT_MPS;
	if (mps->ready)
		return 0;
	ret = name_folder(socket, folder, sizeof(folder));
	if (!ret)
		ret = name_devices(devices, visible, sizeof(visible));
	if (ret)
		snprintf(text, sizeof(text), "NVIDIA's MPS can't be started in %s.mps: %s", socket,
			 strerror(-ret));
	else
		ret = start(mps, folder, visible, ready_ms, text, sizeof(text));
	if (ret) {
		fgv_config_refuse(config, "context", why, why_len, text);
		return ret;
	}
	mps->ready = true;
	show_clients(folder, devices);
	fgv_mps_limit_clients(config, devices);
	fgv_info("NVIDIA's MPS is ready, in %s, for CUDA devices %s", folder, visible);
	return 0;
}

void fgv_mps_stop(struct fgv_mps *mps)
{
	struct fgv_mps_message message;
	int got;

	if (!mps->keeper)
		return;
	if (mps->watched)
		fgv_loop_remove(mps->loop, &mps->watch);
	shutdown(mps->watch.fd, SHUT_WR);
	do
		got = receive(mps, &message, STOP_MS);
	while (got == 1);
	if (got == -ETIMEDOUT) {
		/* It holds its end of the channel, so the process id is still its own. */
		fgv_error("NVIDIA's MPS does not end in %d s", STOP_MS / 1000);
		kill(mps->keeper, SIGKILL);
	}
	close(mps->watch.fd);
	while (waitpid(mps->keeper, NULL, 0) < 0 && errno == EINTR)
		continue;
	*mps = (struct fgv_mps){0};
}
