/*
 * The memory of frozen sessions in files. The daemon only hands the session's process one end of a
 * socket: what is in the file, where it is, and whether it is encrypted, is the business of whoever
 * has the other end, who must be the administrator (backend/admin/freeze.h). So neither the daemon
 * nor a process that its guest may have taken over ever sees a file or a key.
 */
#define _GNU_SOURCE
#include "backend/session_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "backend/fds.h"
#include "common/log.h"
#include "common/util.h"

/* Nothing but a stream between two processes can be handed to a session. */
static bool is_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && domain == AF_UNIX &&
	       type == SOCK_STREAM;
}

static int check(const struct fgv_session *session, int fd, char *why, size_t len)
{
	if (!is_stream(fd)) {
		snprintf(why, len, "a stream to the file is wanted with the request");
		return -EINVAL;
	}
	if (!session->is_movable) {
		snprintf(
			why, len,
			"session %u can't be frozen: key movable of its VM was false when it began",
			session->number);
		return -ENOTSUP;
	}
	if (session->part_count != 1) {
		snprintf(why, len, "session %u has %u GPUs: it can be frozen, but not into a file",
			 session->number, session->part_count);
		return -ENOTSUP;
	}
	if (session->control_fd >= 0)
		return 0;
	snprintf(why, len, "session %u is ending", session->number);
	return -ESRCH;
}

static int order(struct fgv_session *session, const struct fgv_order *order, int fd, char *why,
		 size_t len)
{
	int ret = fgv_fds_send(session->control_fd, order, sizeof(*order), &fd, 1);

	if (!ret)
		fgv_info_of(&session->subject, "its memory is to %s",
			    order->what == FGV_ORDER_SAVE ? "go into a file"
							  : "come back from a file");
	else
		snprintf(why, len, "session %u can't be told: %s", session->number, strerror(-ret));
	return ret;
}

int fgv_session_save(struct fgv_session *session, int fd, uint8_t token[FGV_TOKEN_BYTES], char *why,
		     size_t len)
{
	struct fgv_order save = {.what = FGV_ORDER_SAVE};
	enum fgv_frozen state = fgv_session_frozen(session);
	int ret = check(session, fd, why, len);

	if (ret)
		return ret;
	if (state != FGV_FROZEN) {
		snprintf(why, len, "session %u %s", session->number,
			 state == FGV_FROZEN_SAVED ? "is in a file already" : "is not frozen");
		return -EBUSY;
	}
	if (getrandom(save.token, sizeof(save.token), 0) != (ssize_t)sizeof(save.token)) {
		snprintf(why, len, "no random numbers: %s", strerror(errno));
		return -EIO;
	}
	memcpy(token, save.token, sizeof(save.token));
	session->loads = false;
	return order(session, &save, fd, why, len);
}

int fgv_session_load(struct fgv_session *session, int fd, const uint8_t token[FGV_TOKEN_BYTES],
		     char *why, size_t len)
{
	struct fgv_order load = {.what = FGV_ORDER_LOAD};
	int ret = check(session, fd, why, len);

	if (ret)
		return ret;
	if (fgv_session_frozen(session) != FGV_FROZEN_SAVED) {
		snprintf(why, len, "the memory of session %u is not in a file", session->number);
		return -EBUSY;
	}
	ret = fgv_session_reserve_frozen(session, why, len);
	if (ret)
		return ret;
	memcpy(load.token, token, sizeof(load.token));
	ret = order(session, &load, fd, why, len);
	if (!ret)
		session->loads = true;
	return ret;
}

uint64_t fgv_session_file_bytes(const struct fgv_session *session)
{
	const struct fgv_share *share = session->parts[0].share;

	return fgv_min_u64(fgv_session_memory_on(session, share), share->device->info.memory_bytes);
}
