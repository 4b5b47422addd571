/*
 * The socket's file; see listener.h. Between looking for another daemon and listening,
 * the folder is locked, so that of two daemons that start at once one sees the other.
 */
#include "backend/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCK_TRIES    20
#define LOCK_PAUSE_US 100000

/* Makes @folder and what is missing above it, as a fresh prefix may have no run folder. */
static int make_folders(char *folder)
{
	for (char *end = strchr(folder + 1, '/');; end = strchr(end + 1, '/')) {
		if (end)
			*end = '\0';
		if (mkdir(folder, 0755) && errno != EEXIST)
			return -errno;
		if (!end)
			return 0;
		*end = '/';
	}
}

/* The folder of @path, locked: a descriptor or a negative errno. */
static int lock_folder(const char *path)
{
	struct sockaddr_un address;
	char copy[sizeof(address.sun_path)];
	char *folder;
	int fd, ret;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	ret = make_folders(folder);
	if (ret)
		return ret;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (i == LOCK_TRIES || (errno != EWOULDBLOCK && errno != EINTR)) {
			close(fd);
			return -EBUSY;
		}
		usleep(LOCK_PAUSE_US);
	}
	return fd;
}

/* 0 where nobody listens; -EADDRINUSE where somebody does. A stale socket is removed. */
static int make_room(const struct sockaddr_un *address, int type)
{
	struct stat file;
	int error = 0;
	int fd;

	if (lstat(address->sun_path, &file))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(file.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		error = errno;
	close(fd);
	if (error != ECONNREFUSED) /* EAGAIN: it is there, and busy */
		return -EADDRINUSE;
	return unlink(address->sun_path) && errno != ENOENT ? -errno : 0;
}

static int listen_at(int fd, const struct sockaddr_un *address, mode_t mode, struct stat *made)
{
	/* The file is made with the mode of the descriptor, less the umask. */
	if (fchmod(fd, mode) || bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return -errno;
	/* Who may do what is decided by the credentials of the peer. */
	if (chmod(address->sun_path, mode) || lstat(address->sun_path, made) ||
	    listen(fd, SOMAXCONN)) {
		int ret = -errno;

		unlink(address->sun_path);
		return ret;
	}
	return 0;
}

static const char *explain(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return "a daemon answers there already";
	case -EEXIST:
		return "there is a file that is not a socket";
	case -EBUSY:
		return "another process holds the folder's lock";
	default:
		return strerror(-error);
	}
}

int fgv_listener_open(const char *path, int type, mode_t mode, struct stat *made, char *why,
		      size_t why_len)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int folder_fd = -1, fd = -1;
	int ret = -ENAMETOOLONG;

	if (strlen(path) >= sizeof(address.sun_path))
		goto explain;
	strcpy(address.sun_path, path);
	folder_fd = lock_folder(path);
	ret = folder_fd;
	if (folder_fd < 0)
		goto explain;
	ret = make_room(&address, type);
	if (ret)
		goto unlock;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = fd < 0 ? -errno : listen_at(fd, &address, mode, made);
	if (ret && fd >= 0)
		close(fd);
unlock:
	close(folder_fd);
explain:
	if (ret)
		snprintf(why, why_len, "%s: %s", path, explain(ret));
	return ret ? ret : fd;
}

int fgv_listener_watch(int loop, struct fgv_watch *watch, const char *path, struct stat *made,
		       char *why, size_t why_len)
{
	int ret = fgv_listener_open(path, SOCK_STREAM, 0600, made, why, why_len);

	if (ret < 0)
		return ret;
	watch->fd = ret;
	ret = fgv_loop_add(loop, watch, EPOLLIN);
	if (ret) {
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
		fgv_listener_close(watch->fd, path, made);
	}
	return ret;
}

void fgv_listener_close(int fd, const char *path, const struct stat *made)
{
	struct stat file;

	if (!lstat(path, &file) && file.st_dev == made->st_dev && file.st_ino == made->st_ino)
		unlink(path);
	close(fd);
}
