/*
 * Heralds; see herald.h. A herald outlives the daemon by the time it takes to tell: SIGTERM
 * and SIGINT, which a service's or a terminal's end sends to all, are not for it.
 */
#define _GNU_SOURCE
#include "qemu-device/herald.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/bell.h"
#include "backend/spawn.h"
#include "common/log.h"
#include "common/util.h"

/* Behind its name; the descriptors have the daemon's numbers. */
enum herald_argument { CHANNEL = 1, REGION, BELL, VM, ARGUMENTS };

/* --- The daemon's side ------------------------------------------------------- */

static int spawn(struct fgv_herald *herald, const struct fgv_region *region, int channel_fd,
		 const char *vm)
{
	const struct fgv_spawn_fd fds[] = {
		{channel_fd, channel_fd},
		{region->fd, region->fd},
		{region->bells[FGV_REGION_GUEST][0], region->bells[FGV_REGION_GUEST][0]},
	};
	char numbers[FGV_ARRAY_LEN(fds)][16];
	char *argv[ARGUMENTS + 1] = {
		FGV_HERALD,	     [CHANNEL] = numbers[0], [REGION] = numbers[1],
		[BELL] = numbers[2], [VM] = (char *)vm,
	};

	for (size_t i = 0; i < FGV_ARRAY_LEN(fds); i++)
		snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i].its);
	return fgv_spawn("/proc/self/exe", argv, fds, FGV_ARRAY_LEN(fds), true, &herald->pid);
}

int fgv_herald_start(struct fgv_herald *herald, const struct fgv_region *region, const char *vm)
{
	int pair[2];
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	herald->channel_fd = pair[0];
	ret = spawn(herald, region, pair[1], vm);
	close(pair[1]);
	if (ret) {
		close(pair[0]);
		herald->pid = 0;
	}
	return ret;
}

/* Killed, so that to wait for it takes no longer than that. */
void fgv_herald_end(struct fgv_herald *herald)
{
	if (!herald->pid)
		return;
	kill(herald->pid, SIGKILL);
	while (waitpid(herald->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	close(herald->channel_fd);
	herald->pid = 0;
}

bool fgv_herald_has_died(struct fgv_herald *herald)
{
	if (!herald->pid || waitpid(herald->pid, NULL, WNOHANG) != herald->pid)
		return false;
	close(herald->channel_fd);
	herald->pid = 0;
	return true;
}

/* --- The herald's ------------------------------------------------------------ */

bool fgv_herald_asked(int argc, char **argv)
{
	return argc == ARGUMENTS && !strcmp(argv[0], FGV_HERALD);
}

/* Returns when the daemon has gone: it sends nothing. */
static void await_end(int channel_fd)
{
	char byte;

	while (recv(channel_fd, &byte, sizeof(byte), 0) < 0 && errno == EINTR)
		continue;
}

int fgv_herald_run(char **argv)
{
	int region_fd = atoi(argv[REGION]);
	struct fgv_region_head *head;
	struct fgv_bell bell;
	int ret;

	fgv_log_init("fairgv-backend");
	fgv_log_be_service();
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, FGV_HERALD);
	head = mmap(NULL, sizeof(*head), PROT_WRITE, MAP_SHARED, region_fd, 0);
	ret = head == MAP_FAILED ? -errno : fgv_bell_init(&bell);
	if (ret) {
		fgv_error_of(FGV_LOG_VM(argv[VM]), "its herald can't begin: %s", strerror(-ret));
		return EXIT_FAILURE;
	}
	close(region_fd);
	await_end(atoi(argv[CHANNEL]));
	fgv_region_leave(head);
	fgv_bell_ring(&bell, atoi(argv[BELL]));
	fgv_warning_of(FGV_LOG_VM(argv[VM]), "the daemon has gone, and its guest has been told");
	return EXIT_SUCCESS;
}
