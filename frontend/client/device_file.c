/*
 * The transport of a program in a virtual machine: a file of the guest's kernel module
 * (guest-kmod/uapi/fairgv.h), which is the window, its doorbell and the connection at once.
 * A forked child closes its copies; the session ends when the last is gone.
 */
#define _GNU_SOURCE
#include "frontend/client/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/gpu_wire.h"
#include "frontend/client/connect.h"
#include "guest-kmod/uapi/fairgv.h"

_Static_assert(sizeof(struct fgv_msg_welcome) == FAIRGV_WELCOME_LEN, "uapi");
_Static_assert(sizeof(((struct fairgv_end *)NULL)->text) == FGV_END_TEXT_MAX, "uapi");

static const char *device_name(void)
{
	const char *name = getenv("FAIRGV_DEVICE");

	return name && *name ? name : FGV_DEVICE_NAME;
}

static CUresult cannot_open(const struct fgv_failure *failure)
{
	return fgv_connect_fail(failure, fgv_connect_code(errno), "cannot open %s: %s",
				device_name(), strerror(errno));
}

static CUresult open_device(struct fgv_greeting *greeting, const struct fgv_failure *failure)
{
	greeting->connection = fgv_connect_raise(open(device_name(), O_RDWR | O_CLOEXEC));
	if (greeting->connection < 0)
		return cannot_open(failure);
	greeting->doorbell = fcntl(greeting->connection, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	greeting->window = fcntl(greeting->connection, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (greeting->doorbell < 0 || greeting->window < 0)
		return fgv_connect_fail(failure, fgv_connect_code(errno), "no descriptor: %s",
					strerror(errno));
	return CUDA_SUCCESS;
}

static CUresult explain(const struct fgv_failure *failure, int err)
{
	switch (err) {
	case EBUSY:
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"all sessions of this virtual machine are in use");
	case EDQUOT:
		return fgv_connect_fail(
			failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
			"this user has as many sessions as one user of this virtual "
			"machine may have (parameter user_windows of module fairgv)");
	case ENODEV:
		return fgv_connect_fail(failure, CUDA_ERROR_NO_DEVICE,
					"the virtual GPU has been removed");
	case EHOSTDOWN:
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"the backend has ended, and %s with it: the host must "
					"replace the device, or restart this virtual machine",
					device_name());
	case ENOTTY:
		return fgv_connect_fail(failure, CUDA_ERROR_NO_DEVICE,
					"%s is not a FairGV device, or its kernel module is of "
					"another release: install this release's module and load it",
					device_name());
	case EPIPE:
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"the backend has ended the session");
	case ETIMEDOUT:
		return fgv_connect_fail(failure, CUDA_ERROR_DEVICE_UNAVAILABLE,
					"the backend has not answered for %d s", FGV_HANDSHAKE_SEC);
	default:
		return fgv_connect_fail(failure, fgv_connect_code(err), "no session from %s: %s",
					device_name(), strerror(err));
	}
}

/* With the flags in *ask. */
static CUresult open_window(const struct fgv_failure *failure, int fd, struct fairgv_open *ask)
{
	ask->wire_version = FGV_WIRE_VERSION;
	ask->wire_hash = FGV_API_HASH;
	ask->timeout_ms = FGV_HANDSHAKE_SEC * 1000;
	snprintf(ask->program, sizeof(ask->program), "%s", program_invocation_short_name);
	return ioctl(fd, FAIRGV_IOC_OPEN, ask) ? explain(failure, errno) : CUDA_SUCCESS;
}

static CUresult greet(struct fgv_greeting *greeting, const struct fgv_failure *failure)
{
	struct fairgv_open ask = {0};
	uint32_t priority;
	CUresult res = fgv_connect_priority(failure, &priority);

	if (res)
		return res;
	ask.flags = priority << FAIRGV_OPEN_PRIORITY_SHIFT;
	res = open_device(greeting, failure);
	if (!res)
		res = open_window(failure, greeting->connection, &ask);
	if (res)
		return res;
	memcpy(&greeting->welcome, ask.welcome, sizeof(greeting->welcome));
	greeting->welcome_len = sizeof(greeting->welcome);
	return CUDA_SUCCESS;
}

static int map(struct fgv_window *window, int fd)
{
	void *base = mmap(NULL, window->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	window->base = base;
	return 0;
}

static CUresult attach(struct fgv_client *client, uint32_t lane, int doorbell)
{
	struct fairgv_lane message = {.lane = lane, .eventfd = doorbell};

	if (!ioctl(client->connection, FAIRGV_IOC_LANE, &message))
		return CUDA_SUCCESS;
	return CUDA_ERROR_UNKNOWN;
}

/* A module that is older than this library does not know the question. */
static bool why(struct fgv_client *client, char text[FGV_END_TEXT_MAX])
{
	struct fairgv_end end;

	if (ioctl(client->connection, FAIRGV_IOC_END, &end))
		return false;
	memcpy(text, end.text, sizeof(end.text));
	text[sizeof(end.text) - 1] = '\0';
	return true;
}

/* The view lies in the window, unless the host has refused. */
static CUresult copy_view(const struct fgv_failure *failure, int fd, const struct fairgv_open *ask,
			  struct fgv_msg_view *view)
{
	size_t len = (sizeof(*view) + FGV_PAGE_BYTES - 1) & ~((size_t)FGV_PAGE_BYTES - 1);
	struct fgv_msg_welcome refusal;
	void *window;

	if (!ask->window_len) {
		memcpy(&refusal, ask->welcome, sizeof(refusal));
		refusal.text[sizeof(refusal.text) - 1] = '\0';
		return fgv_connect_fail(failure,
					refusal.status ? fgv_connect_status(refusal.status)
						       : CUDA_ERROR_NOT_INITIALIZED,
					"refused: %s", refusal.text);
	}
	window = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (window == MAP_FAILED)
		return fgv_connect_fail(failure, CUDA_ERROR_OUT_OF_MEMORY,
					"cannot map the window: %s", strerror(errno));
	memcpy(view, window, sizeof(*view));
	munmap(window, len);
	return CUDA_SUCCESS;
}

/* A QEMU guest has one GPU. */
static CUresult look(uint32_t device, struct fgv_msg_view *view, size_t *len,
		     const struct fgv_failure *failure)
{
	struct fairgv_open ask = {.flags = FAIRGV_OPEN_LOOK};
	CUresult res;
	int fd;

	if (device)
		return fgv_connect_fail(failure, CUDA_ERROR_INVALID_DEVICE,
					"a virtual machine has one GPU");
	fd = open(device_name(), O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return cannot_open(failure);
	res = open_window(failure, fd, &ask);
	if (!res)
		res = copy_view(failure, fd, &ask, view);
	close(fd);
	*len = sizeof(*view);
	return res;
}

const struct fgv_transport fgv_transport_device = {
	.greet = greet,
	.map = map,
	.attach = attach,
	.why = why,
	.look = look,
};
