/*
 * The daemon's own process; see process.h.
 */
#define _GNU_SOURCE
#include "backend/process.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/log.h"

/*
 * Processes of this user can't write this one's memory, by /proc: where the daemon is not root,
 * the vGPU processes are of its user. Its children are of their own.
 */
void fgv_process_close_memory(void)
{
	if (!getenv("FAIRGV_DUMPABLE") && prctl(PR_SET_DUMPABLE, 0) < 0)
		exit(EXIT_FAILURE);
}

/* What the starter left open stays here: no vGPU process inherits it. */
void fgv_process_seal_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			exit(EXIT_FAILURE);
	}
	close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* A VM takes some, each session a dozen; as many as the starter allows. */
void fgv_process_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		fgv_debug("no more descriptors can be had: %s", strerror(errno));
}

/* The program that started a private daemon may have been killed: its folder is removed here. */
void fgv_process_remove_folder(const char *socket)
{
	char *copy = strdup(socket);

	if (copy)
		rmdir(dirname(copy));
	free(copy);
}
