/*
 * The administrator's socket, which fairgvctl(1) asks: what the VMs and their sessions
 * have used, and changes of a VM's weight.
 *
 * A connection is one exchange: a JSON object and a newline (or the end of what the client
 * sends), a JSON object and a newline back, and it is closed. A descriptor may come with the
 * request. The requests and replies are those of reply.h. Only root and the daemon's own user are served; they, too, may be
 * slow, so nothing here waits for a client, and none keeps its connection for long.
 *
 * Observers have a socket of their own, which serves one more user, answers questions only, and
 * takes FGV_ADMIN_OBSERVERS_PER_SECOND of them at the most.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_ADMIN_ADMIN_H
#define FGV_BACKEND_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include "backend/admin/reply.h"
#include "backend/loop.h"

#define FGV_ADMIN_TIMEOUT_MS  5000 /* for the request, and again for taking the reply */
#define FGV_ADMIN_REQUEST_MAX 16384
#define FGV_ADMIN_CLIENTS_MAX 32 /* more wait to be accepted */

#define FGV_ADMIN_OBSERVERS_PER_SECOND 100

struct fgv_admin_client;
TAILQ_HEAD(fgv_admin_clients, fgv_admin_client);

struct fgv_admin {
	struct fgv_watch watch; /* the listening socket; first, so that its address is ours */
	int loop;
	struct fgv_admin_scope scope;

	const char *path;	 /* NULL: there is no socket */
	uid_t user;		 /* served beside root and the daemon's own */
	struct stat socket_file; /* as it was made, to remove that one only */

	struct fgv_admin_clients clients; /* the one whose time ends first is first */
	unsigned client_count;
	uint64_t accept_again_ns; /* not 0: accepting nothing until then */
	bool starved;		  /* that is in the log */
};

/*
 * Listens at @path, which lives as long as @admin, as what @scope points to does. On failure
 * a negative errno, and @why says what is wrong.
 */
int fgv_admin_init(struct fgv_admin *admin, int loop, const char *path,
		   const struct fgv_admin_scope *scope, char *why, size_t why_len);

/* The same for observers, of whom @user is one. Where @path is NULL there is no socket. */
int fgv_admin_init_observers(struct fgv_admin *admin, int loop, const char *path, uid_t user,
			     const struct fgv_admin_scope *scope, char *why, size_t why_len);

/* Drops the clients, closes the socket and removes its file, if there is one. */
void fgv_admin_fini(struct fgv_admin *admin);

/* When fgv_admin_tick() is next due (fgv_now_ns()); 0: not at all. */
uint64_t fgv_admin_deadline_ns(const struct fgv_admin *admin);
/* Ends connections that took too long, and accepts again where that was stopped. */
void fgv_admin_tick(struct fgv_admin *admin);

#endif
