/*
 * Sending descriptors; see fds.h.
 */
#define _GNU_SOURCE
#include "backend/fds.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int fgv_fds_send(int socket, const void *data, size_t len, const int *fds, size_t count)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FGV_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)data, len};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (count > FGV_FDS_MAX)
		return -EINVAL;
	if (count > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == len ? 0 : -EMSGSIZE;
}

static ssize_t receive(int socket, void *data, size_t len, int *fd, int flags)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {data, len};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		/* Not CMSG_SPACE(), whose padding has room for a second descriptor. */
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	ssize_t got;

	*fd = -1;
	do
		got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    control.head.cmsg_level == SOL_SOCKET && control.head.cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(&control.head), sizeof(int));
	return got;
}

ssize_t fgv_fds_receive(int socket, void *data, size_t len, int *fd)
{
	return receive(socket, data, len, fd, MSG_TRUNC);
}

ssize_t fgv_fds_read(int socket, void *data, size_t len, int *fd)
{
	return receive(socket, data, len, fd, 0);
}
