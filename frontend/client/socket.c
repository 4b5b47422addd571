/*
 * The transport of a local program: the daemon's Unix socket (wire.h). Every descriptor is
 * closed on exec and lies above the standard streams. The time-out is for a daemon that
 * hangs; a busy one, which first has to make a context on the GPU, takes tenths of a second.
 */
#define _GNU_SOURCE
#include "frontend/client/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/gpu_wire.h"
#include "frontend/client/connect.h"
#include "frontend/client/need.h"
#include "shmring/park.h"

#define SOCKET_NAME FGV_RUNSTATEDIR "/fairgv/backend.sock"

enum { FD_WINDOW, FD_DOORBELL, FD_CONNECTION, FD_COUNT };

static CUresult open_socket(const struct fgv_failure *failure, int *out)
{
	const char *name = getenv("FAIRGV_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = FGV_HANDSHAKE_SEC};
	int fd, err;

	if (!name || !*name)
		name = SOCKET_NAME;
	if (strlen(name) >= sizeof(address.sun_path))
		return fgv_connect_fail(failure, CUDA_ERROR_NO_DEVICE,
					"the socket's name is too long: %s", name);
	strcpy(address.sun_path, name);
	fd = fgv_connect_raise(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return fgv_connect_fail(failure, fgv_connect_code(errno), "no socket: %s",
					strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		err = errno;
		close(fd);
		return fgv_connect_fail(failure, fgv_connect_code(err), "no backend at %s: %s",
					name, strerror(err));
	}
	*out = fd;
	return CUDA_SUCCESS;
}

static CUresult send_hello(const struct fgv_failure *failure, int fd, enum fgv_message_type type,
			   uint32_t device)
{
	struct fgv_msg_hello hello = {
		.type = type,
		.version = FGV_WIRE_VERSION,
		.pid = (uint32_t)getpid(),
		.hash = FGV_API_HASH,
		.device = device,
	};
	const char *vm = getenv("FAIRGV_VM");
	CUresult res = fgv_connect_priority(failure, &hello.priority);

	if (!res && type == FGV_MSG_HELLO)
		res = fgv_need_read(failure, &hello.need);
	if (res)
		return res;
	if (vm && strlen(vm) >= sizeof(hello.vm))
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"FAIRGV_VM is longer than any VM's name");
	if (vm)
		strcpy(hello.vm, vm);
	snprintf(hello.program, sizeof(hello.program), "%s", program_invocation_short_name);
	/* Where the daemon has refused without reading, its answer is what counts. */
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"cannot say hello: %s", strerror(errno));
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

/* @end: of which @len bytes came, or another message. */
static bool is_end(struct fgv_msg_end *end, ssize_t len)
{
	if (len != (ssize_t)sizeof(*end) || end->type != FGV_MSG_END)
		return false;
	end->text[sizeof(end->text) - 1] = '\0';
	return true;
}

/* What came was nothing (0) or an error. */
static CUresult explain_silence(const struct fgv_failure *failure, ssize_t got)
{
	if (!got)
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"the backend has closed the connection");
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"the backend has not answered for %d s", FGV_HANDSHAKE_SEC);
	return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE, "no answer: %s",
				strerror(errno));
}

/* Says that the host is there, and goes on looking for a place. */
static bool is_wait(const struct fgv_msg_welcome *message, ssize_t len)
{
	return len == (ssize_t)sizeof(struct fgv_msg_wait) && message->type == FGV_MSG_WAIT;
}

/* Those of a message that needs none. */
static void drop_descriptors(int fds[FD_COUNT])
{
	for (int i = 0; i < FD_COUNT; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* From @connection; a third descriptor, of a further GPU's connection, is greeting->connection. */
static CUresult take_welcome(const struct fgv_failure *failure, int connection,
			     struct fgv_greeting *greeting)
{
	int fds[FD_COUNT] = {-1, -1, -1};
	ssize_t got;

	do {
		drop_descriptors(fds);
		got = receive_welcome(connection, &greeting->welcome, fds);
	} while (is_wait(&greeting->welcome, got));
	greeting->window = fds[FD_WINDOW];
	greeting->doorbell = fds[FD_DOORBELL];
	if (fds[FD_CONNECTION] >= 0 && greeting->connection < 0)
		greeting->connection = fds[FD_CONNECTION];
	else if (fds[FD_CONNECTION] >= 0)
		close(fds[FD_CONNECTION]);
	if (got <= 0)
		return explain_silence(failure, got);
	if (is_end((struct fgv_msg_end *)&greeting->welcome, got))
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE, "%s",
					((struct fgv_msg_end *)&greeting->welcome)->text);
	greeting->welcome_len = (size_t)got;
	return CUDA_SUCCESS;
}

static CUresult greet(struct fgv_greeting *greeting, const struct fgv_failure *failure)
{
	CUresult res = open_socket(failure, &greeting->connection);

	if (!res)
		res = send_hello(failure, greeting->connection, FGV_MSG_HELLO, 0);
	if (!res)
		res = take_welcome(failure, greeting->connection, greeting);
	return res;
}

static CUresult greet_part(const struct fgv_client *first, struct fgv_greeting *greeting,
			   const struct fgv_failure *failure)
{
	CUresult res = take_welcome(failure, first->connection, greeting);

	if (!res && greeting->connection < 0 && !greeting->welcome.status)
		res = fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
				       "the welcome of a further GPU came without its connection");
	return res;
}

static bool send_lane(struct fgv_client *client, uint32_t lane, int doorbell)
{
	struct fgv_msg_lane message = {.type = FGV_MSG_LANE, .lane = lane};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {.room = {0}};
	struct iovec iov = {.iov_base = &message, .iov_len = sizeof(message)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct fgv_window_head *head = fgv_window_head(&client->window);
	ssize_t sent;

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &doorbell, sizeof(int));
	do {
		sent = sendmsg(client->connection, &msg, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent != (ssize_t)sizeof(message))
		return false;
	/* Like a slot: announced first, then the dispatcher woken if it sleeps (park.h). */
	fgv_store_ordered(&head->control_seq, head->control_seq + 1);
	if (fgv_park_is_announced(&head->host_parked))
		fgv_doorbell_ring(client->doorbell);
	return true;
}

/*
 * The host's answer to the message for @lane; CUDA_ERROR_UNKNOWN if it is none. It
 * may be a long time in coming, behind a module that is being compiled, say: what
 * ends the waiting is the end of the connection, not the handshake's time-out.
 */
static CUresult receive_answer(struct fgv_client *client, uint32_t lane)
{
	struct fgv_msg_lane answer;
	ssize_t got;

	/* Where the session has ended instead, the message that says why stays where it is. */
	do {
		got = recv(client->connection, &answer, sizeof(answer), MSG_PEEK | MSG_TRUNC);
	} while (got < 0 && (errno == EINTR || errno == EAGAIN));
	if (got == (ssize_t)sizeof(answer))
		got = recv(client->connection, &answer, sizeof(answer), 0);
	if (got != (ssize_t)sizeof(answer) || answer.type != FGV_MSG_LANE || answer.lane != lane)
		return CUDA_ERROR_UNKNOWN;
	return (CUresult)answer.status;
}

static CUresult attach(struct fgv_client *client, uint32_t lane, int doorbell)
{
	return send_lane(client, lane, doorbell) ? receive_answer(client, lane)
						 : CUDA_ERROR_UNKNOWN;
}

/* What else the host has sent comes before it; an error of the socket, once, too. */
static bool why(struct fgv_client *client, char text[FGV_END_TEXT_MAX])
{
	struct fgv_msg_end end;
	bool is_reset = false;
	ssize_t got;

	for (;;) {
		got = recv(client->connection, &end, sizeof(end), MSG_DONTWAIT | MSG_TRUNC);
		if (got < 0 && errno == ECONNRESET && !is_reset) {
			is_reset = true;
			continue;
		}
		if (got <= 0)
			return false;
		if (is_end(&end, got))
			break;
	}
	memcpy(text, end.text, sizeof(end.text));
	return true;
}

static CUresult receive_view(const struct fgv_failure *failure, int fd, struct fgv_msg_view *view,
			     size_t *len)
{
	ssize_t got;

	do {
		got = recv(fd, view, sizeof(*view), 0);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return explain_silence(failure, got);
	*len = (size_t)got;
	return CUDA_SUCCESS;
}

/* A daemon that finds our libnvidia-ml.so.1 in the place of NVIDIA's would wait for itself. */
static bool is_own(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid == getpid();
}

static CUresult look(uint32_t device, struct fgv_msg_view *view, size_t *len,
		     const struct fgv_failure *failure)
{
	int fd;
	CUresult res = open_socket(failure, &fd);

	if (res)
		return res;
	if (is_own(fd))
		res = fgv_connect_fail(failure, CUDA_ERROR_NO_DEVICE,
				       "the backend is this process itself");
	if (!res)
		res = send_hello(failure, fd, FGV_MSG_LOOK, device);
	if (!res)
		res = receive_view(failure, fd, view, len);
	close(fd);
	return res;
}

const struct fgv_transport fgv_transport_socket = {
	.greet = greet,
	.greet_part = greet_part,
	.map = fgv_window_map,
	.attach = attach,
	.why = why,
	.look = look,
};
