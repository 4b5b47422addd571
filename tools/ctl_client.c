/*
 * One exchange with the daemon; see ctl.h and backend/admin/admin.h.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/fds.h"
#include "common/log.h"

#define PATIENCE_S	10
#define REPLY_BYTES_MAX (64u << 20)

static const char *explain(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "no daemon listens there";
	case -EACCES:
		return "only root and the daemon's user may ask it";
	case -EAGAIN:
		return "the daemon does not answer";
	case -ECONNRESET:
	case -ENODATA:
		return "the daemon gave no reply";
	case -EPROTOTYPE:
		return "that is where programs connect, not the control socket";
	default:
		return strerror(-error);
	}
}

/* A connected socket, or a negative errno. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd, ret;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int fgv_ctl_probe(const char *socket)
{
	int fd = connect_to(socket);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/*
 * With @given, unless that is -1, which goes with the first byte. EPIPE: the daemon has refused
 * without waiting for the request; its reply says why.
 */
static int send_request(int fd, const json_t *request, int given)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0, at = 0;
	ssize_t sent = 0;

	if (!text)
		return -ENOMEM;
	if (given >= 0 && !fgv_fds_send(fd, text, 1, &given, 1))
		at = 1;
	for (; at < len && sent >= 0; at += (size_t)sent)
		sent = send(fd, text + at, len - at, MSG_NOSIGNAL);
	if (sent >= 0)
		sent = send(fd, "\n", 1, MSG_NOSIGNAL);
	free(text);
	return sent < 0 && errno != EPIPE ? -errno : 0;
}

static bool is_whole(const char *text, size_t len)
{
	return len && text[len - 1] == '\n';
}

/* A line, for free() even where it fails. */
static int receive_reply(int fd, char **text, size_t *len)
{
	size_t room = 0;
	ssize_t got;

	while (!is_whole(*text, *len)) {
		if (*len == room) {
			char *bigger;

			room = room ? 2 * room : 4096;
			if (room > REPLY_BYTES_MAX)
				return -EFBIG;
			bigger = realloc(*text, room);
			if (!bigger)
				return -ENOMEM;
			*text = bigger;
		}
		got = recv(fd, *text + *len, room - *len, 0);
		if (got <= 0)
			return got ? -errno : -ENODATA;
		*len += (size_t)got;
	}
	return 0;
}

/* The reply as it came, for free(), or NULL and @why. */
static char *exchange(const char *socket, const json_t *request, int given, size_t *len, char *why,
		      size_t why_len)
{
	int fd = connect_to(socket);
	char *text = NULL;
	int ret = fd;

	*len = 0;
	if (fd >= 0) {
		ret = send_request(fd, request, given);
		if (!ret)
			ret = receive_reply(fd, &text, len);
		close(fd);
	}
	if (!ret)
		return text;
	snprintf(why, why_len, "%s: %s", socket, explain(ret));
	free(text);
	return NULL;
}

static const char bad_reply[] = "the daemon's reply is not understood; is it of another version?";

int fgv_ctl_bad_reply(void)
{
	fgv_error("%s", bad_reply);
	return -EPROTO;
}

json_t *fgv_ctl_try_with(const char *socket, json_t *request, int fd, char *why, size_t why_len)
{
	size_t len;
	char *text = exchange(socket, request, fd, &len, why, why_len);
	json_t *reply = text ? json_loadb(text, len, 0, NULL) : NULL;
	const char *error = json_string_value(json_object_get(reply, "error"));

	json_decref(request);
	free(text);
	if (text && !json_is_object(reply))
		snprintf(why, why_len, "%s", bad_reply);
	else if (error)
		snprintf(why, why_len, "%s", error);
	else
		return reply;
	json_decref(reply);
	return NULL;
}

json_t *fgv_ctl_try(const char *socket, json_t *request, char *why, size_t why_len)
{
	return fgv_ctl_try_with(socket, request, -1, why, why_len);
}

json_t *fgv_ctl_ask(const char *socket, json_t *request)
{
	char why[FGV_CTL_WHY_LEN];
	json_t *reply = fgv_ctl_try(socket, request, why, sizeof(why));

	if (!reply)
		fgv_error("%s", why);
	return reply;
}
