/*
 * The local transport: the Unix socket, and its connections until their hello has
 * been read and judged. What comes after that is between the guest program and its
 * vGPU process.
 *
 * Anybody may connect. A connection that has not sent its hello costs a descriptor,
 * so there are few of them, fewer of one user, and none for long; where there are
 * too many the oldest goes.
 *
 * Threads: the daemon's only one.
 */
#ifndef FGV_BACKEND_TRANSPORT_H
#define FGV_BACKEND_TRANSPORT_H

#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "backend/loop.h"
#include "backend/session.h"
#include "backend/vms.h"
#include "common/log.h"

#define FGV_HELLO_TIMEOUT_MS	5000
#define FGV_UNFINISHED_MAX	256
#define FGV_UNFINISHED_USER_MAX 64
#define FGV_WAITING_VM_MAX	64

struct fgv_connection;
TAILQ_HEAD(fgv_connections, fgv_connection);

struct fgv_transport {
	struct fgv_watch watch; /* the listening socket; first, so that its address is ours */
	int loop;
	bool is_own;	     /* a VM's, else everybody's */
	struct fgv_vm *only; /* which VM's; NULL: none's yet */
	struct fgv_sessions *sessions;
	const struct fgv_vms *vms;

	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct stat socket_file; /* as it was made, to remove that one only */

	struct fgv_connections unfinished; /* oldest first */
	unsigned unfinished_count;
	/* For a session of their VM to end, or for a place; the first to give up first. */
	struct fgv_connections waiting;
	unsigned waiting_count;
	uint64_t look_again_ns; /* whether there are places, while any waits for one */
	uint64_t accept_again_ns; /* not 0: out of descriptors, accepting nothing until then */
	bool starved;		  /* that is in the log */

	struct fgv_log_limit refusals;
};

/*
 * Listens at @path for sessions of @vms; or if it is a VM's own, for those of the one that it is
 * told to lead to: whoever gets to connect there is in that VM. A stale
 * socket file is replaced; -EADDRINUSE where a daemon answers there. On failure a
 * negative errno, and @why says what is wrong.
 */
int fgv_transport_init(struct fgv_transport *transport, int loop, const char *path, bool is_own,
		       struct fgv_sessions *sessions, const struct fgv_vms *vms, char *why,
		       size_t why_len);

/*
 * The configuration has changed. One that is a VM's own is @owner's; what waits for a VM that is no
 * more is refused.
 */
void fgv_transport_lead(struct fgv_transport *transport, struct fgv_vm *owner);

/* Ends what is unfinished, closes the socket and removes its file. */
void fgv_transport_fini(struct fgv_transport *transport);

/* After processes have been reaped: there may be room for the connections that wait for it. */
void fgv_transport_reaped(struct fgv_transport *transport);

/* When fgv_transport_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_transport_deadline_ns(const struct fgv_transport *transport);
/* Ends connections that took too long, and accepts again where that was stopped. */
void fgv_transport_tick(struct fgv_transport *transport);

#endif
