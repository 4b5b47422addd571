/*
 * How a session is got and its lanes attached: over the daemon's socket (socket.c), or
 * through /dev/fairgv in a virtual machine (device_file.c). connect.c chooses; from then on
 * all else goes through the window.
 *
 * Threads: one at a time connects, and one at a time attaches.
 */
#ifndef FGV_CLIENT_TRANSPORT_H
#define FGV_CLIENT_TRANSPORT_H

#include "frontend/client/client.h"

#define FGV_HANDSHAKE_SEC 60

/* Where to say in words why there is no session. */
struct fgv_failure {
	char *text;
	size_t len;
};

/* What greeting the host has brought; descriptors that did not come are -1. */
struct fgv_greeting {
	int connection; /* hangs up when the session ends */
	int doorbell;	/* wakes the dispatcher */
	int window;	/* what maps the window */
	size_t welcome_len;
	struct fgv_msg_welcome welcome; /* as it came */
};

struct fgv_transport {
	/* Says hello and takes the welcome. The descriptors are the caller's, on failure too. */
	CUresult (*greet)(struct fgv_greeting *greeting, const struct fgv_failure *failure);
	/*
	 * Takes the welcome of a further GPU, behind the one of @first; NULL: there are none by
	 * this way. The descriptors are the caller's, on failure too.
	 */
	CUresult (*greet_part)(const struct fgv_client *first, struct fgv_greeting *greeting,
			       const struct fgv_failure *failure);
	/* Sets window->base; 0 or a negative errno. */
	int (*map)(struct fgv_window *window, int fd);
	/*
	 * Gives the host the eventfd that wakes @lane's thread. CUDA_ERROR_UNKNOWN where the
	 * session is gone; any other failure leaves it as it was.
	 */
	CUresult (*attach)(struct fgv_client *client, uint32_t lane, int doorbell);
	/* Why the host has ended the session, if it has said so. Without waiting. */
	bool (*why)(struct fgv_client *client, char text[FGV_END_TEXT_MAX]);
	/*
	 * Takes a look at the VM and GPU number @device: *len bytes of *view as they came.
	 * Nothing stays open.
	 */
	CUresult (*look)(uint32_t device, struct fgv_msg_view *view, size_t *len,
			 const struct fgv_failure *failure);
};

extern const struct fgv_transport fgv_transport_socket;
extern const struct fgv_transport fgv_transport_device;

/* The one that the environment and the machine call for. */
const struct fgv_transport *fgv_connect_transport(void);

/* Writes why, and returns @code. */
CUresult fgv_connect_fail(const struct fgv_failure *failure, CUresult code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* FAIRGV_PRIORITY of the environment; 0 where it is not set. It is a digit, or there is no session. */
CUresult fgv_connect_priority(const struct fgv_failure *failure, uint32_t *priority);

/*
 * What a host says that something came to. What is none of CUDA's codes would be taken for one of
 * this library's own somewhere, so that is CUDA_ERROR_UNKNOWN.
 */
CUresult fgv_connect_status(uint64_t status);

/* What an errno of opening or connecting means to CUDA. */
CUresult fgv_connect_code(int err);

#endif
