/*
 * Programs that wait, with nothing but their connection: for a session of their VM to end, or for
 * a GPU with room for them (session_place.c).
 */
#include "backend/transport_priv.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include "common/util.h"

/* Programs that wait for a place are tried again, and told that they wait, after these times. */
#define LOOK_AGAIN_NS (100 * FGV_NS_PER_MS)
#define TELL_WAIT_NS  (10 * FGV_NS_PER_SEC)

/* How many of @vm's programs wait: it has so many places to wait, whatever the others do. */
static unsigned count_waiting(const struct fgv_transport *transport, const struct fgv_vm *vm)
{
	const struct fgv_connection *connection;
	unsigned count = 0;

	TAILQ_FOREACH(connection, &transport->waiting, link)
		count += connection->vm == vm;
	return count;
}

/* By deadlines, and among equal ones in the order in which they came. */
static void insert_waiting(struct fgv_transport *transport, struct fgv_connection *connection)
{
	struct fgv_connection *before = TAILQ_LAST(&transport->waiting, fgv_connections);

	while (before && before->deadline_ns > connection->deadline_ns)
		before = TAILQ_PREV(before, fgv_connections, link);
	if (before)
		TAILQ_INSERT_AFTER(&transport->waiting, before, connection, link);
	else
		TAILQ_INSERT_HEAD(&transport->waiting, connection, link);
	transport->waiting_count++;
}

static void wait_until(struct fgv_connection *connection, struct fgv_vm *vm,
		       const struct fgv_msg_hello *hello, uint64_t deadline_ns)
{
	fgv_connection_take_off(connection);
	connection->vm = vm;
	connection->hello = *hello;
	connection->deadline_ns = deadline_ns;
	insert_waiting(connection->transport, connection);
	fgv_loop_change(connection->transport->loop, &connection->watch, EPOLLRDHUP);
}

/* It would give up if it heard nothing. */
static void tell_wait(struct fgv_connection *connection, uint64_t now_ns)
{
	static const struct fgv_msg_wait message = {.type = FGV_MSG_WAIT};

	if (!connection->tell_ns || now_ns < connection->tell_ns)
		return;
	connection->tell_ns = now_ns + TELL_WAIT_NS;
	send(connection->watch.fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* No GPU has room for it. The time that it may wait begins when that is first found. */
static void wait_for_place(struct fgv_connection *connection, struct fgv_vm *vm,
			   const struct fgv_msg_hello *hello)
{
	uint64_t now_ns = fgv_now_ns();

	if (connection->tell_ns)
		return;
	connection->tell_ns = now_ns;
	wait_until(connection, vm, hello, now_ns + vm->config->place_wait_ns);
	tell_wait(connection, now_ns);
}

void fgv_connection_admit(struct fgv_connection *connection, struct fgv_vm *vm,
			  const struct fgv_msg_hello *hello)
{
	struct fgv_transport *transport = connection->transport;
	bool may_wait = connection->vm || count_waiting(transport, vm) < FGV_WAITING_VM_MAX;

	if (may_wait && fgv_sessions_must_wait(transport->sessions, vm)) {
		/* The VM is full only because a session of it is ending, which is not long. */
		if (!connection->vm)
			wait_until(connection, vm, hello,
				   fgv_now_ns() + FGV_ENDING_WAIT_MS * FGV_NS_PER_MS);
	} else if (may_wait && vm->config->place_wait_ns &&
		   fgv_sessions_lack_place(transport->sessions, vm, &hello->need)) {
		wait_for_place(connection, vm, hello);
	} else {
		fgv_connection_start(connection, vm, hello);
	}
}

void fgv_transport_reaped(struct fgv_transport *transport)
{
	struct fgv_connection *connection, *after;

	for (connection = TAILQ_FIRST(&transport->waiting); connection; connection = after) {
		const struct fgv_msg_hello hello = connection->hello;

		after = TAILQ_NEXT(connection, link);
		fgv_connection_admit(connection, connection->vm, &hello);
	}
}

bool fgv_transport_waits_for_place(const struct fgv_transport *transport)
{
	const struct fgv_connection *connection;

	TAILQ_FOREACH(connection, &transport->waiting, link) {
		if (connection->tell_ns)
			return true;
	}
	return false;
}

void fgv_transport_look_again(struct fgv_transport *transport, uint64_t now_ns)
{
	struct fgv_connection *connection;

	transport->look_again_ns = now_ns + LOOK_AGAIN_NS;
	fgv_transport_reaped(transport);
	TAILQ_FOREACH(connection, &transport->waiting, link)
		tell_wait(connection, now_ns);
}
