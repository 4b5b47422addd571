/*
 * Starting a process of ours: with no signal blocked, ignored or handled, and of our
 * descriptors with stdout, stderr and those that it is given alone.
 *
 * Threads: any.
 */
#ifndef FGV_BACKEND_SPAWN_H
#define FGV_BACKEND_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fgv_spawn_fd {
	int ours;
	int its; /* the number that it has there */
};

/*
 * @own_session: no signal of the terminal reaches it. No number in @fds is one of ours that
 * comes behind it. 0 or a negative errno.
 */
int fgv_spawn(const char *path, char *const *argv, const struct fgv_spawn_fd *fds, size_t count,
	      bool own_session, pid_t *pid);

#endif
