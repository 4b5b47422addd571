/*
 * Sending descriptors to another process.
 *
 * Threads: any.
 */
#ifndef FGV_BACKEND_FDS_H
#define FGV_BACKEND_FDS_H

#include <stddef.h>

/* In one message; FGV_FDS_MAX is the most. */
#define FGV_FDS_MAX 16

/*
 * Sends @len bytes on @socket, with copies of the @count descriptors; never waits. 0, or a
 * negative errno: -EAGAIN where the socket is full, -ETOOMANYREFS where this user has too many
 * descriptors on their way.
 */
int fgv_fds_send(int socket, const void *data, size_t len, const int *fds, size_t count);

#endif
