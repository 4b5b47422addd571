/*
 * The guest's end of the local transport's handshake. Every descriptor is closed on
 * exec and lies above the standard streams. The time-out is for a daemon that hangs; a
 * busy one, which first has to make a context on the GPU, takes tenths of a second.
 */
#define _GNU_SOURCE
#include "frontend/client/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/util.h"

#define HANDSHAKE_SEC 60
#define SOCKET_NAME   FGV_RUNSTATEDIR "/fairgv/backend.sock"

enum { FD_WINDOW, FD_DOORBELL, FD_COUNT };

struct failure {
	char *text;
	size_t len;
};

static CUresult fail(const struct failure *failure, CUresult code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static CUresult fail(const struct failure *failure, CUresult code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(failure->text, failure->len, format, args);
	va_end(args);
	return code;
}

int fgv_connect_raise(int fd)
{
	int copy;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return copy;
}

static CUresult code_of(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED:
		return CUDA_ERROR_NO_DEVICE;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
}

static CUresult open_socket(const struct failure *failure, int *out)
{
	const char *name = getenv("FAIRGV_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = HANDSHAKE_SEC};
	int fd, err;

	if (!name || !*name)
		name = SOCKET_NAME;
	if (strlen(name) >= sizeof(address.sun_path))
		return fail(failure, CUDA_ERROR_NO_DEVICE, "the socket's name is too long: %s",
			    name);
	strcpy(address.sun_path, name);
	fd = fgv_connect_raise(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return fail(failure, code_of(errno), "no socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		err = errno;
		close(fd);
		return fail(failure, code_of(err), "no backend at %s: %s", name, strerror(err));
	}
	*out = fd;
	return CUDA_SUCCESS;
}

static CUresult send_hello(const struct failure *failure, int fd)
{
	struct fgv_msg_hello hello = {.type = FGV_MSG_HELLO, .version = FGV_WIRE_VERSION};
	const char *vm = getenv("FAIRGV_VM");

	if (vm && strlen(vm) >= sizeof(hello.vm))
		return fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
			    "FAIRGV_VM is longer than any VM's name");
	if (vm)
		strcpy(hello.vm, vm);
	snprintf(hello.program, sizeof(hello.program), "%s", program_invocation_short_name);
	/* Where the daemon has refused without reading, its answer is what counts. */
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		return fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE, "cannot say hello: %s",
			    strerror(errno));
	return CUDA_SUCCESS;
}

/* The descriptors that came with a message; those beyond @count are closed. */
static int take_descriptors(struct msghdr *msg, int *fds, int count)
{
	struct cmsghdr *cmsg;
	int taken = 0;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t bytes = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + at, sizeof(fd));
			if (taken < count)
				fds[taken++] = fgv_connect_raise(fd);
			else
				close(fd);
		}
	}
	return taken;
}

static ssize_t receive_welcome(int fd, struct fgv_msg_welcome *welcome, int fds[FD_COUNT])
{
	union {
		char room[CMSG_SPACE(sizeof(int) * 8)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = welcome, .iov_len = sizeof(*welcome)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;

	do {
		got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got >= 0)
		take_descriptors(&msg, fds, FD_COUNT);
	return got;
}

static CUresult check_welcome(const struct failure *failure, ssize_t got,
			      struct fgv_msg_welcome *welcome)
{
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
			    "the backend has not answered for %d s", HANDSHAKE_SEC);
	if (got < 0)
		return fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE, "no answer: %s",
			    strerror(errno));
	if (!got)
		return fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
			    "the backend has closed the connection");
	if (got < (ssize_t)offsetof(struct fgv_msg_welcome, status) ||
	    welcome->type != FGV_MSG_WELCOME)
		return fail(failure, CUDA_ERROR_NOT_INITIALIZED, "the backend's answer is odd");
	if (welcome->version != FGV_WIRE_VERSION || got != (ssize_t)sizeof(*welcome))
		return fail(failure, CUDA_ERROR_NOT_INITIALIZED,
			    "the backend speaks version %u, this libcudart version %u",
			    welcome->version, FGV_WIRE_VERSION);
	welcome->text[sizeof(welcome->text) - 1] = '\0';
	welcome->vm[sizeof(welcome->vm) - 1] = '\0';
	if (welcome->status)
		return fail(failure, (CUresult)welcome->status, "refused: %s", welcome->text);
	return CUDA_SUCCESS;
}

/* The arena behind its staging part, which staging.c manages. */
static struct fgv_arena *make_arena(const struct fgv_window *window)
{
	return fgv_arena_create(window->arena_off + window->staging_len,
				window->arena_len - window->staging_len);
}

static CUresult map_window(const struct failure *failure, struct fgv_client *client,
			   const struct fgv_msg_welcome *welcome, int fd)
{
	struct fgv_window *window = &client->window;
	int err;

	*window = (struct fgv_window){
		.len = welcome->window_len,
		.lanes_off = welcome->lanes_off,
		.lanes = welcome->lanes,
		.arena_off = welcome->arena_off,
		.arena_len = welcome->arena_len,
		.staging_len = welcome->staging_len,
	};
	if (fgv_window_check(window) || !window->staging_len ||
	    window->staging_len == window->arena_len)
		return fail(failure, CUDA_ERROR_NOT_INITIALIZED,
			    "the backend's window has no valid layout");
	err = fgv_window_map(window, fd);
	if (err)
		return fail(failure, CUDA_ERROR_OUT_OF_MEMORY, "cannot map the window: %s",
			    strerror(-err));
	/* A forked child gets no mapping, so that the memory goes when this process does. */
	madvise(window->base, window->len, MADV_DONTFORK);
	client->arena = make_arena(window);
	if (!client->arena) {
		fgv_window_unmap(window);
		return fail(failure, CUDA_ERROR_OUT_OF_MEMORY, "no memory");
	}
	memcpy(client->vm, welcome->vm, sizeof(client->vm));
	return CUDA_SUCCESS;
}

static CUresult accept_welcome(const struct failure *failure, struct fgv_client *client, int fd,
			       int fds[FD_COUNT])
{
	struct fgv_msg_welcome welcome;
	ssize_t got = receive_welcome(fd, &welcome, fds);
	CUresult res = check_welcome(failure, got, &welcome);

	if (res)
		return res;
	if (fds[FD_WINDOW] < 0 || fds[FD_DOORBELL] < 0)
		return fail(failure, CUDA_ERROR_NOT_INITIALIZED,
			    "the welcome came without its descriptors");
	return map_window(failure, client, &welcome, fds[FD_WINDOW]);
}

CUresult fgv_connect(struct fgv_client *client, char *why, size_t why_len)
{
	const struct failure failure = {why, why_len};
	int fds[FD_COUNT] = {-1, -1};
	int fd = -1;
	CUresult res;

	res = open_socket(&failure, &fd);
	if (res)
		return res;
	res = send_hello(&failure, fd);
	if (!res)
		res = accept_welcome(&failure, client, fd, fds);
	/* The mapping keeps the window; the descriptor has done its work. */
	if (fds[FD_WINDOW] >= 0)
		close(fds[FD_WINDOW]);
	if (res) {
		if (fds[FD_DOORBELL] >= 0)
			close(fds[FD_DOORBELL]);
		close(fd);
		return res;
	}
	client->connection = fd;
	client->doorbell = fds[FD_DOORBELL];
	return CUDA_SUCCESS;
}
