/*
 * Who is at the other end of a Unix socket, and what its user's number is worth. The kernel
 * says the number as it is in our user namespace, but who may choose numbers differs: root of a
 * container that shares our user namespace may take any, so that there it says nothing.
 *
 * Threads: any.
 */
#ifndef FGV_BACKEND_GUARD_PEER_H
#define FGV_BACKEND_GUARD_PEER_H

#include <stdbool.h>
#include <sys/types.h>

enum fgv_peer_place {
	FGV_PEER_HERE,	    /* in the daemon's own user and pid namespaces */
	FGV_PEER_CONTAINER, /* same user namespace, other processes: its number says nothing */
	FGV_PEER_MAPPED,    /* other user namespace: its number is whom it is mapped to */
	FGV_PEER_UNKNOWN,   /* the daemon may not look, as where it is not root */
};

struct fgv_peer {
	pid_t pid;
	uid_t uid;
	enum fgv_peer_place place;
};

/* Of the connected socket @fd. 0 or a negative errno. */
int fgv_peer_look(int fd, struct fgv_peer *peer);

/* Whether it is to be believed that it is user peer->uid at all. */
bool fgv_peer_is_user(const struct fgv_peer *peer);

/* Whether it is the user that the daemon runs as, here or as far as can be known. */
bool fgv_peer_is_own(const struct fgv_peer *peer);

#endif
