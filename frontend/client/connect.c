/*
 * Chooses the transport, and makes a session of the welcome that it brings: checked, the
 * window mapped, its arena made.
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
#include <unistd.h>

#include "common/log.h"
#include "frontend/client/transport.h"

CUresult fgv_connect_fail(const struct fgv_failure *failure, CUresult code, const char *format, ...)
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

CUresult fgv_connect_priority(const struct fgv_failure *failure, uint32_t *priority)
{
	const char *text = getenv("FAIRGV_PRIORITY");

	*priority = 0;
	if (!text || !*text)
		return CUDA_SUCCESS;
	if (text[0] < '0' || text[0] > '0' + FGV_PRIORITY_LAST || text[1])
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"FAIRGV_PRIORITY is \"%s\": a priority is a number from 0 to %d",
					text, FGV_PRIORITY_LAST);
	*priority = (uint32_t)(text[0] - '0');
	return CUDA_SUCCESS;
}

CUresult fgv_connect_status(uint64_t status)
{
	return status <= CUDA_ERROR_UNKNOWN ? (CUresult)status : CUDA_ERROR_UNKNOWN;
}

CUresult fgv_connect_code(int err)
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

static CUresult check_welcome(const struct fgv_failure *failure, size_t len,
			      struct fgv_msg_welcome *welcome)
{
	if (len < offsetof(struct fgv_msg_welcome, status) || welcome->type != FGV_MSG_WELCOME)
		return fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
					"the backend's answer is odd");
	if (welcome->version != FGV_WIRE_VERSION || len != sizeof(*welcome))
		return fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
					"the backend speaks version %u, this libcudart version %u",
					welcome->version, FGV_WIRE_VERSION);
	welcome->text[sizeof(welcome->text) - 1] = '\0';
	welcome->vm[sizeof(welcome->vm) - 1] = '\0';
	if (welcome->status)
		return fgv_connect_fail(failure, fgv_connect_status(welcome->status), "refused: %s",
					welcome->text);
	return CUDA_SUCCESS;
}

/* The arena behind its staging part, which staging.c manages. */
static struct fgv_arena *make_arena(const struct fgv_window *window)
{
	return fgv_arena_create(window->arena_off + window->staging_len,
				window->arena_len - window->staging_len);
}

static CUresult map_window(const struct fgv_failure *failure, struct fgv_client *client,
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
		return fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
					"the backend's window has no valid layout");
	err = client->transport->map(window, fd);
	if (err)
		return fgv_connect_fail(failure, CUDA_ERROR_OUT_OF_MEMORY,
					"cannot map the window: %s", strerror(-err));
	/* A forked child gets no mapping, so that the memory goes when this process does. */
	madvise(window->base, window->len, MADV_DONTFORK);
	client->arena = make_arena(window);
	if (!client->arena) {
		fgv_window_unmap(window);
		return fgv_connect_fail(failure, CUDA_ERROR_OUT_OF_MEMORY, "no memory");
	}
	memcpy(client->vm, welcome->vm, sizeof(client->vm));
	return CUDA_SUCCESS;
}

static CUresult accept_welcome(const struct fgv_failure *failure, struct fgv_client *client,
			       struct fgv_greeting *greeting)
{
	CUresult res = check_welcome(failure, greeting->welcome_len, &greeting->welcome);

	if (res)
		return res;
	if (greeting->window < 0 || greeting->doorbell < 0)
		return fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
					"the welcome came without its descriptors");
	return map_window(failure, client, &greeting->welcome, greeting->window);
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

const struct fgv_transport *fgv_connect_transport(void)
{
	if (is_set("FAIRGV_SOCKET"))
		return &fgv_transport_socket;
	if (is_set("FAIRGV_DEVICE") || !access(FGV_DEVICE_NAME, F_OK))
		return &fgv_transport_device;
	return &fgv_transport_socket;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_all(const struct fgv_greeting *greeting)
{
	close_if_open(greeting->window);
	close_if_open(greeting->doorbell);
	close_if_open(greeting->connection);
}

static void keep(struct fgv_client *client, const struct fgv_greeting *greeting)
{
	client->connection = greeting->connection;
	client->doorbell = greeting->doorbell;
	client->window_fd = greeting->window;
	if (greeting->welcome.is_substitute)
		fgv_warning(
			"the host has no GPU: this program uses the %s, on the host's processors",
			greeting->welcome.text);
}

/* How many GPUs there are is the host's word: no more than this library has room for. */
static CUresult check_parts(const struct fgv_failure *failure, const struct fgv_client *client,
			    const struct fgv_msg_welcome *welcome)
{
	if (welcome->parts < FGV_DEVICES_MAX && (!welcome->parts || client->transport->greet_part))
		return CUDA_SUCCESS;
	return fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
				"the backend offers %u GPUs, which this way has no room for",
				welcome->parts + 1);
}

CUresult fgv_connect(struct fgv_client *client, uint32_t *parts, char *why, size_t why_len)
{
	const struct fgv_failure failure = {why, why_len};
	struct fgv_greeting greeting = {.connection = -1, .doorbell = -1, .window = -1};
	CUresult res;

	client->transport = fgv_connect_transport();
	res = client->transport->greet(&greeting, &failure);
	if (!res)
		res = accept_welcome(&failure, client, &greeting);
	if (!res)
		res = check_parts(&failure, client, &greeting.welcome);
	if (res) {
		close_all(&greeting);
		return res;
	}
	*parts = greeting.welcome.parts;
	keep(client, &greeting);
	return CUDA_SUCCESS;
}

CUresult fgv_connect_part(const struct fgv_client *first, struct fgv_client *client, char *why,
			  size_t why_len)
{
	const struct fgv_failure failure = {why, why_len};
	struct fgv_greeting greeting = {.connection = -1, .doorbell = -1, .window = -1};
	CUresult res;

	client->transport = first->transport;
	res = first->transport->greet_part(first, &greeting, &failure);
	if (!res)
		res = accept_welcome(&failure, client, &greeting);
	if (res)
		close_all(&greeting);
	else
		keep(client, &greeting);
	return res;
}
