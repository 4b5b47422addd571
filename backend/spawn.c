/*
 * Starting processes; see spawn.h. What else we have open is closed by being executed.
 */
#define _GNU_SOURCE /* POSIX_SPAWN_SETSID */
#include "backend/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

static int add_fds(posix_spawn_file_actions_t *actions, const struct fgv_spawn_fd *fds,
		   size_t count)
{
	int ret = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	for (size_t i = 0; i < count && !ret; i++)
		ret = posix_spawn_file_actions_adddup2(actions, fds[i].ours, fds[i].its);
	return ret;
}

static int set_attributes(posix_spawnattr_t *attributes, bool own_session)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int ret;

	sigemptyset(&none);
	sigfillset(&all);
	ret = posix_spawnattr_setsigmask(attributes, &none);
	if (!ret)
		ret = posix_spawnattr_setsigdefault(attributes, &all);
	if (own_session)
		flags |= POSIX_SPAWN_SETSID;
	return ret ? ret : posix_spawnattr_setflags(attributes, flags);
}

int fgv_spawn(const char *path, char *const *argv, const struct fgv_spawn_fd *fds, size_t count,
	      bool own_session, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int ret;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	ret = add_fds(&actions, fds, count);
	if (!ret)
		ret = set_attributes(&attributes, own_session);
	if (!ret)
		ret = posix_spawn(pid, path, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -ret;
}
