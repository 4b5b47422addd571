/*
 * The peer's namespaces, from /proc; see peer.h. Between the connection and the look the
 * process may have gone and another have its number: a pidfd of the connection itself (Linux
 * 6.5) shows that. Older kernels have none, and there the time between the two, which is that of
 * one turn of the daemon's loop, would have to see all process numbers go round.
 */
#define _GNU_SOURCE
#include "backend/guard/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* A namespace is a file, and two are one if that is one. False: it can't be looked at. */
static bool look(const char *process, const char *kind, struct stat *space)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, kind);
	return stat(path, space) == 0;
}

static bool are_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static enum fgv_peer_place find_place(pid_t pid)
{
	struct stat user, processes, our_user, our_processes;
	char name[16];

	/* Not in our pid namespace, nor in one below it. */
	if (pid <= 0)
		return FGV_PEER_CONTAINER;
	snprintf(name, sizeof(name), "%d", (int)pid);
	if (!look(name, "user", &user) || !look(name, "pid", &processes) ||
	    !look("self", "user", &our_user) || !look("self", "pid", &our_processes))
		return FGV_PEER_UNKNOWN;
	if (!are_same(&user, &our_user))
		return FGV_PEER_MAPPED;
	return are_same(&processes, &our_processes) ? FGV_PEER_HERE : FGV_PEER_CONTAINER;
}

/* Whether the process that connected has ended; not where the kernel can't tell. */
static bool has_gone(int fd)
{
	struct pollfd process = {.fd = -1, .events = POLLIN};
	socklen_t len = sizeof(process.fd);
	bool gone;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &len) < 0)
		return errno == ESRCH || errno == EINVAL;
	gone = poll(&process, 1, 0) == 1;
	close(process.fd);
	return gone;
}

int fgv_peer_look(int fd, struct fgv_peer *peer)
{
	struct ucred ucred;
	socklen_t len = sizeof(ucred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &len) < 0)
		return -errno;
	*peer = (struct fgv_peer){.pid = ucred.pid, .uid = ucred.uid};
	peer->place = find_place(ucred.pid);
	/* Looked at first, so that what was seen was its own. Nobody is left to vouch for one gone.
	 */
	if (has_gone(fd))
		peer->place = FGV_PEER_CONTAINER;
	return 0;
}

bool fgv_peer_is_user(const struct fgv_peer *peer)
{
	switch (peer->place) {
	case FGV_PEER_HERE:
		return true;
	case FGV_PEER_CONTAINER:
		return false;
	default:
		/* Root is whoever made the namespace. */
		return peer->uid != 0;
	}
}

bool fgv_peer_is_own(const struct fgv_peer *peer)
{
	return peer->place == FGV_PEER_HERE && peer->uid == geteuid();
}
