/*
 * The daemon's two messages, and what it is told; see daemon.h.
 */
#define _GNU_SOURCE
#include "backend/vgpu/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/vgpu/channels.h"
#include "backend/vgpu/session.h"

/* Takes the @count descriptors out of a message, in their order. */
static int take_fds(struct msghdr *msg, int *fds, size_t count)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(msg);

	if (!head)
		return count ? -EBADMSG : 0;
	if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
	    head->cmsg_len != CMSG_LEN(count * sizeof(int)))
		return -EBADMSG;
	memcpy(fds, CMSG_DATA(head), count * sizeof(int));
	return 0;
}

/* Waits for @len bytes at @data; @msg is left with the descriptors that came with them. */
static int receive(void *data, size_t len, struct msghdr *msg)
{
	struct iovec part = {data, len};
	ssize_t got;

	msg->msg_iov = &part;
	msg->msg_iovlen = 1;
	do {
		got = recvmsg(FGV_CONTROL_FD, msg, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	msg->msg_iov = NULL;
	msg->msg_iovlen = 0;
	if (got <= 0)
		return got < 0 ? -errno : -ECONNRESET;
	return (size_t)got != len || (msg->msg_flags & (MSG_CTRUNC | MSG_TRUNC)) ? -EBADMSG : 0;
}

int fgv_daemon_await_prepare(struct fgv_session *session)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FGV_SEAT_FDS * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_control = &control, .msg_controllen = sizeof(control)};
	const struct fgv_prepare *prepare = &session->prepare;
	int err = receive(&session->prepare, sizeof(session->prepare), &msg);

	if (err)
		return err;
	return take_fds(&msg, session->seat_fds,
			prepare->soft && !prepare->keeps_images ? FGV_SEAT_FDS : 0);
}

int fgv_daemon_await_setup(struct fgv_session *session)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FGV_SETUP_FDS * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_control = &control, .msg_controllen = sizeof(control)};
	int err = receive(&session->setup, sizeof(session->setup), &msg);

	session->setup.vm[FGV_NAME_MAX - 1] = '\0';
	session->setup.program[FGV_NAME_MAX - 1] = '\0';
	return err ? err : take_fds(&msg, session->fds, FGV_SETUP_FDS);
}

int fgv_daemon_await_part(struct fgv_session *part, int *peer_fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FGV_SETUP_PART_FDS * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_control = &control, .msg_controllen = sizeof(control)};
	struct fgv_setup_part message;
	int fds[FGV_SETUP_PART_FDS];
	int err = receive(&message, sizeof(message), &msg);

	if (!err)
		err = take_fds(&msg, fds,
			       message.prepare.soft ? FGV_SETUP_PART_FDS : FGV_SETUP_SEAT);
	if (err)
		return err;
	part->prepare = message.prepare;
	part->setup = message.setup;
	part->setup.vm[FGV_NAME_MAX - 1] = '\0';
	part->setup.program[FGV_NAME_MAX - 1] = '\0';
	memcpy(part->fds, fds, sizeof(part->fds));
	for (unsigned i = 0; i < FGV_SEAT_FDS; i++)
		part->seat_fds[i] = message.prepare.soft ? fds[FGV_SETUP_SEAT + i] : -1;
	*peer_fd = fds[FGV_SETUP_PEER];
	/* The first part's alone. */
	close(part->fds[FGV_SETUP_CGROUP]);
	close(part->fds[FGV_SETUP_IMAGES]);
	part->fds[FGV_SETUP_CGROUP] = part->fds[FGV_SETUP_IMAGES] = -1;
	return 0;
}

void fgv_daemon_report(const struct fgv_session *session, CUresult status)
{
	struct fgv_prepared report = {.status = status};

	snprintf(report.reason, sizeof(report.reason), "%s", session->reason);
	/* Fails where the daemon has gone; the waiting that follows notices. */
	send(FGV_CONTROL_FD, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void fgv_daemon_confined(struct fgv_session *session)
{
	struct fgv_sandbox *sandbox = &session->sandbox;
	const struct fgv_confined message = {
		.lacks = sandbox->lacks,
		.has_listener = sandbox->listener >= 0,
	};

	fgv_fds_send(FGV_CONTROL_FD, &message, sizeof(message), &sandbox->listener,
		     message.has_listener);
	/* Where it did not get through, refused calls return at once, as with a deaf filter. */
	if (sandbox->listener >= 0)
		close(sandbox->listener);
	sandbox->listener = -1;
}

/* Where it does not get through, kernels are not held. */
void fgv_daemon_channels(void)
{
	struct fgv_channels channels;
	int fd = fgv_channels_learnt(&channels);

	fgv_fds_send(FGV_CONTROL_FD, &channels, sizeof(channels), &fd, fd >= 0);
}

void fgv_daemon_serving(void)
{
	const struct fgv_serving message = {0};

	fgv_fds_send(FGV_CONTROL_FD, &message, sizeof(message), NULL, 0);
}
