/*
 * Sending descriptors to another process, and taking one from it.
 *
 * Threads: any.
 */
#ifndef FGV_BACKEND_FDS_H
#define FGV_BACKEND_FDS_H

#include <stddef.h>
#include <sys/types.h>

/* In one message; FGV_FDS_MAX is the most. */
#define FGV_FDS_MAX 24

/*
 * Sends @len bytes on @socket, with copies of the @count descriptors; never waits. 0, or a
 * negative errno: -EAGAIN where the socket is full, -ETOOMANYREFS where this user has too many
 * descriptors on their way.
 */
int fgv_fds_send(int socket, const void *data, size_t len, const int *fds, size_t count);

/*
 * One message that is there, of at most @len bytes, and at most one descriptor with it, which
 * goes to *@fd (-1: none). How many bytes it has, which may be more; 0: the peer has closed; or a
 * negative errno, -EAGAIN where there is none.
 */
ssize_t fgv_fds_receive(int socket, void *data, size_t len, int *fd);
/* The same of a stream: what there is of it, as read(). */
ssize_t fgv_fds_read(int socket, void *data, size_t len, int *fd);

#endif
