/*
 * The connection's messages. A lane message brings the eventfd that wakes the lane's
 * thread; whatever else comes ends the session.
 */
#include "backend/vgpu/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/barrier.h"
#include "shmring/park.h"

/* Messages read at a time; more of them wait for the next turn. */
#define BATCH 16

static int violation(struct fgv_session *session, const char *why)
{
	snprintf(session->reason, sizeof(session->reason), "connection: %s", why);
	return -EPROTO;
}

static void fill_welcome(struct fgv_msg_welcome *msg, const struct fgv_setup *setup,
			 CUresult status, const char *text)
{
	*msg = (struct fgv_msg_welcome){
		.type = FGV_MSG_WELCOME,
		.version = FGV_WIRE_VERSION,
		.status = status,
		.lanes = setup->lanes,
		.window_len = setup->window_len,
		.lanes_off = setup->lanes_off,
		.arena_off = setup->arena_off,
		.arena_len = setup->arena_len,
		.staging_len = setup->staging_len,
		.is_substitute = setup->is_substitute,
		.parts = setup->parts,
	};
	memcpy(msg->vm, setup->vm, sizeof(msg->vm));
	snprintf(msg->text, sizeof(msg->text), "%s", text);
}

int fgv_control_welcome(struct fgv_session *session, CUresult status, const char *text)
{
	int fds[] = {session->fds[FGV_SETUP_WINDOW], session->fds[FGV_SETUP_DOORBELL]};
	bool hands_over = status == CUDA_SUCCESS && fds[0] >= 0;
	struct fgv_msg_welcome msg;

	fill_welcome(&msg, &session->setup, status, text);
	return fgv_fds_send(session->fds[FGV_SETUP_CONNECTION], &msg, sizeof(msg), fds,
			    hands_over ? 2 : 0);
}

int fgv_control_welcome_part(const struct fgv_session *first, const struct fgv_session *part,
			     int peer_fd, const char *text)
{
	int fds[] = {part->fds[FGV_SETUP_WINDOW], part->fds[FGV_SETUP_DOORBELL], peer_fd};
	struct fgv_msg_welcome msg;

	fill_welcome(&msg, &part->setup, CUDA_SUCCESS, text);
	return fgv_fds_send(first->fds[FGV_SETUP_CONNECTION], &msg, sizeof(msg), fds,
			    FGV_ARRAY_LEN(fds));
}

void fgv_control_end(struct fgv_session *session, const char *text)
{
	struct fgv_msg_end msg = {.type = FGV_MSG_END};

	snprintf(msg.text, sizeof(msg.text), "%s", text);
	fgv_fds_send(session->fds[FGV_SETUP_CONNECTION], &msg, sizeof(msg), NULL, 0);
}

/* As fgv_fds_receive(), but -EAGAIN or -ECONNRESET is all that goes wrong. */
static ssize_t receive(int socket, void *data, size_t len, int *fd)
{
	ssize_t got = fgv_fds_receive(socket, data, len, fd);

	return got > 0 || got == -EAGAIN ? got : -ECONNRESET;
}

static CUresult attach(struct fgv_session *session, uint32_t lane, int fd)
{
	if (fd < 0 || fgv_doorbell_check(fd) < 0 || fgv_lanes_attach(session->lanes, lane, fd) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Reads and answers one message: 0, -EAGAIN where there is none, or as fgv_control_read(). */
static int read_one(struct fgv_session *session)
{
	int socket = session->fds[FGV_SETUP_CONNECTION], fd;
	struct fgv_msg_lane msg;
	ssize_t got = receive(socket, &msg, sizeof(msg), &fd);

	if (got < 0)
		return (int)got;
	if (got != sizeof(msg) || msg.type != FGV_MSG_LANE || msg.status || msg.reserved) {
		if (fd >= 0)
			close(fd);
		return violation(session, "not a lane message");
	}
	msg.status = attach(session, msg.lane, fd);
	if (msg.status != CUDA_SUCCESS && fd >= 0)
		close(fd);
	if (fgv_fds_send(socket, &msg, sizeof(msg), NULL, 0) == -EAGAIN)
		return violation(session, "acknowledgements are not read");
	return 0;
}

int fgv_control_read(struct fgv_session *session)
{
	int err = 0;

	for (int i = 0; i < BATCH && err == 0; i++)
		err = read_one(session);
	return err == -EAGAIN ? 0 : err;
}

int fgv_control_look(struct fgv_session *session)
{
	/* Pairs with the guest's store after its message was sent. */
	uint32_t seq = fgv_load_acquire(&fgv_window_head(&session->window)->control_seq);

	if (seq == session->control_seq)
		return 0;
	session->control_seq = seq;
	return fgv_control_read(session);
}
