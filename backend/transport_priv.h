/* What the files of the transport share: transport.c, and transport_wait.c for those that wait. */
#ifndef FGV_BACKEND_TRANSPORT_PRIV_H
#define FGV_BACKEND_TRANSPORT_PRIV_H

#include "backend/guard/peer.h"
#include "backend/transport.h"

struct fgv_connection {
	struct fgv_watch watch; /* first, so that its address is ours */
	TAILQ_ENTRY(fgv_connection) link;
	struct fgv_transport *transport;
	uint64_t deadline_ns;
	uint64_t tell_ns; /* when it is told again that it waits; 0: it waits for no place */
	struct fgv_peer peer;
	bool looks; /* it wants no session */
	/* What it wants, while it waits for another session's end, or for a place. */
	struct fgv_vm *vm; /* NULL: its hello has not come */
	struct fgv_msg_hello hello;
};

/* Takes it off its list, of the unfinished or of those that wait. */
void fgv_connection_take_off(struct fgv_connection *connection);

/* Its session starts, or is refused, and it goes. */
void fgv_connection_start(struct fgv_connection *connection, struct fgv_vm *vm,
			  const struct fgv_msg_hello *hello);
/* The same, or it waits for what it lacks. */
void fgv_connection_admit(struct fgv_connection *connection, struct fgv_vm *vm,
			  const struct fgv_msg_hello *hello);

/* Whether any waits for a place: memory may be given back by programs that go on. */
bool fgv_transport_waits_for_place(const struct fgv_transport *transport);
/* Tries those again, and tells them that they wait. */
void fgv_transport_look_again(struct fgv_transport *transport, uint64_t now_ns);

#endif
