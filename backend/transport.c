/*
 * Connections until their hello; see transport.h.
 */
#define _GNU_SOURCE
#include "backend/transport_priv.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/hello.h"
#include "backend/listener.h"
#include "backend/view.h"
#include "common/log.h"
#include "common/util.h"

/* Descriptors may be freed by somebody else: look again after this time. */
#define ACCEPT_PAUSE_NS FGV_NS_PER_SEC

static void accept_again(struct fgv_transport *transport)
{
	if (!transport->accept_again_ns)
		return;
	transport->accept_again_ns = 0;
	fgv_loop_change(transport->loop, &transport->watch, EPOLLIN);
}

void fgv_connection_take_off(struct fgv_connection *connection)
{
	struct fgv_transport *transport = connection->transport;

	if (connection->vm) {
		TAILQ_REMOVE(&transport->waiting, connection, link);
		transport->waiting_count--;
	} else {
		TAILQ_REMOVE(&transport->unfinished, connection, link);
		transport->unfinished_count--;
	}
}

static void drop(struct fgv_connection *connection)
{
	struct fgv_transport *transport = connection->transport;

	fgv_loop_remove(transport->loop, &connection->watch);
	close(connection->watch.fd);
	fgv_connection_take_off(connection);
	free(connection);
	accept_again(transport);
}

static void send_refusal(struct fgv_connection *connection, CUresult status, const char *text)
{
	struct fgv_msg_welcome welcome;
	struct fgv_msg_view view;

	if (connection->looks) {
		fgv_view_refuse(&view, status, text);
		send(connection->watch.fd, &view, sizeof(view), MSG_NOSIGNAL | MSG_DONTWAIT);
	} else {
		fgv_hello_refuse(&welcome, status, text);
		send(connection->watch.fd, &welcome, sizeof(welcome), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

/* Says why, logs it, and ends the connection. */
__attribute__((format(printf, 3, 4))) static void refuse(struct fgv_connection *connection,
							 CUresult status, const char *format, ...)
{
	char text[sizeof(((struct fgv_msg_welcome *)0)->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_refusal(connection, status, text);
	if (fgv_log_may(&connection->transport->refusals, "refused"))
		fgv_warning("refused process %d of user %u: %s", (int)connection->peer.pid,
			    (unsigned)connection->peer.uid, text);
	drop(connection);
}

/* At a VM's own socket: whoever got there is in that VM, and in no other. */
static struct fgv_vm *find_own_vm(const struct fgv_transport *transport, const char *name)
{
	struct fgv_vm *only = transport->only;

	return only && (!*name || !strcmp(only->config->name, name)) ? only : NULL;
}

/* The VM called @name, or with no name the first one, that @peer may use; NULL: there is none. */
static struct fgv_vm *find_vm(const struct fgv_transport *transport, const char *name,
			      const struct fgv_peer *peer)
{
	if (transport->is_own)
		return find_own_vm(transport, name);
	for (size_t i = 0; i < transport->vms->count; i++) {
		struct fgv_vm *vm = transport->vms->list[i];

		if ((!*name || !strcmp(vm->config->name, name)) && fgv_vm_admits(vm, peer))
			return vm;
	}
	return NULL;
}

void fgv_connection_start(struct fgv_connection *connection, struct fgv_vm *vm,
			  const struct fgv_msg_hello *hello)
{
	struct fgv_client client = {
		.fd = connection->watch.fd,
		.uid = connection->peer.uid,
		.pid = connection->peer.pid,
		.is_user = !connection->transport->is_own,
		.guest_pid = hello->pid,
		.priority = hello->priority,
		.need = hello->need,
	};
	char text[256];
	CUresult status;

	memcpy(client.program, hello->program, sizeof(client.program));
	status = fgv_sessions_start(connection->transport->sessions, vm, &client, text,
				    sizeof(text));
	if (status)
		refuse(connection, status, "%s", text);
	else
		drop(connection);
}

/* The same for a VM that there is and for one that there is not: names are nobody's business. */
static void refuse_user(struct fgv_connection *connection, const char *name)
{
	const struct fgv_peer *peer = &connection->peer;
	const char *why = fgv_peer_is_user(peer)
				  ? ""
				  : ": as which user it runs in its container says nothing here; "
				    "a container is let in by its VM's own socket";

	if (connection->transport->is_own)
		refuse(connection, CUDA_ERROR_NOT_PERMITTED,
		       "this socket leads to one VM, which is not called \"%s\"", name);
	else if (*name)
		refuse(connection, CUDA_ERROR_NOT_PERMITTED,
		       "user %u may not use a VM called \"%s\"%s", (unsigned)peer->uid, name, why);
	else
		refuse(connection, CUDA_ERROR_NOT_PERMITTED, "user %u may use no VM%s",
		       (unsigned)peer->uid, why);
}

/* A program that does not read loses its view: nothing waits for it. */
static void show(struct fgv_connection *connection, const struct fgv_vm *vm, uint32_t device)
{
	struct fgv_msg_view view;

	fgv_view_take(&view, vm, connection->transport->sessions, device);
	send(connection->watch.fd, &view, sizeof(view), MSG_NOSIGNAL | MSG_DONTWAIT);
	drop(connection);
}

/* @len: of what came, which may be longer than a hello. */
static void judge_hello(struct fgv_connection *connection, const struct fgv_msg_hello *hello,
			size_t len)
{
	const struct fgv_peer *peer = &connection->peer;
	struct fgv_vm *vm;
	char text[256];
	CUresult status = fgv_hello_check(hello, len, text, sizeof(text));

	connection->looks = len >= sizeof(hello->type) && hello->type == FGV_MSG_LOOK;
	if (status) {
		refuse(connection, status, "%s", text);
		return;
	}
	vm = find_vm(connection->transport, hello->vm, peer);
	if (!vm)
		refuse_user(connection, hello->vm);
	else if (connection->looks)
		show(connection, vm, hello->device);
	else
		fgv_connection_admit(connection, vm, hello);
}

/* Takes the hello if it is there. True: it is not, and the connection waits for it. */
static bool read_hello(struct fgv_connection *connection)
{
	struct fgv_msg_hello hello = {0};
	ssize_t len = recv(connection->watch.fd, &hello, sizeof(hello), MSG_DONTWAIT | MSG_TRUNC);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (len > 0) {
		judge_hello(connection, &hello, (size_t)len);
	} else {
		fgv_debug("process %d of user %u left without a hello", (int)connection->peer.pid,
			  (unsigned)connection->peer.uid);
		drop(connection);
	}
	return false;
}

static void hello_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_connection *connection = (struct fgv_connection *)watch;

	(void)events;
	/* One that waits and has something to say has left. */
	if (connection->vm)
		drop(connection);
	else
		read_hello(connection);
}

/* The oldest connection of user @uid where the user has too many, else NULL. */
static struct fgv_connection *too_many_of_user(const struct fgv_transport *transport, uid_t uid)
{
	struct fgv_connection *connection, *oldest = NULL;
	unsigned count = 0;

	TAILQ_FOREACH(connection, &transport->unfinished, link) {
		if (connection->peer.uid != uid)
			continue;
		if (!oldest)
			oldest = connection;
		count++;
	}
	return count > FGV_UNFINISHED_USER_MAX ? oldest : NULL;
}

/* Makes room for the newest connection, which user @uid made. */
static void limit_unfinished(struct fgv_transport *transport, uid_t uid)
{
	struct fgv_connection *victim = too_many_of_user(transport, uid);

	if (victim && read_hello(victim))
		refuse(victim, CUDA_ERROR_DEVICE_UNAVAILABLE,
		       "user %u has too many connections without a hello", (unsigned)uid);
	if (transport->unfinished_count <= FGV_UNFINISHED_MAX)
		return;
	victim = TAILQ_FIRST(&transport->unfinished);
	if (read_hello(victim))
		refuse(victim, CUDA_ERROR_DEVICE_UNAVAILABLE,
		       "there are too many connections without a hello");
}

/* A new connection, on the list of the unfinished; NULL, and @fd closed, if it can't be. */
static struct fgv_connection *add_connection(struct fgv_transport *transport, int fd)
{
	struct fgv_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		goto close_fd;
	connection->watch = (struct fgv_watch){.fd = fd, .ready = hello_ready};
	connection->transport = transport;
	connection->deadline_ns = fgv_now_ns() + FGV_HELLO_TIMEOUT_MS * FGV_NS_PER_MS;
	if (fgv_peer_look(fd, &connection->peer))
		goto free_connection;
	if (fgv_loop_add(transport->loop, &connection->watch, EPOLLIN))
		goto free_connection;
	TAILQ_INSERT_TAIL(&transport->unfinished, connection, link);
	transport->unfinished_count++;
	return connection;
free_connection:
	free(connection);
close_fd:
	close(fd);
	return NULL;
}

/* The most likely case, that the hello is there by now, needs no second turn. */
static void connection_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_transport *transport = (struct fgv_transport *)watch;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct fgv_connection *connection;

	(void)events;
	if (fd < 0) {
		if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
			return;
		if (!transport->starved)
			fgv_error("can't accept connections for now: %s", strerror(errno));
		transport->starved = true;
		transport->accept_again_ns = fgv_now_ns() + ACCEPT_PAUSE_NS;
		fgv_loop_change(transport->loop, watch, 0);
		return;
	}
	transport->starved = false;
	connection = add_connection(transport, fd);
	if (!connection)
		return;
	limit_unfinished(transport, connection->peer.uid);
	read_hello(connection);
}

/* A line in the log where anybody on this host may be in the VM. */
static void check_folder(const struct fgv_transport *transport)
{
	char *copy = strdup(transport->path);
	struct stat folder;

	if (copy && !stat(dirname(copy), &folder) && folder.st_mode & S_IXOTH)
		fgv_warning_of(FGV_LOG_VM(transport->only->config->name),
			       "every user of this host that gets to %s is in it, and its folder "
			       "is open to all",
			       transport->path);
	free(copy);
}

/* The way to a VM's own socket is closed to users of the host, unless somebody has opened it. */
static void make_folder(const char *path)
{
	char *copy = strdup(path);

	/* What fails here does so again, with a reason, where the socket is made. */
	if (copy && mkdir(dirname(copy), 0700) < 0)
		errno = 0;
	free(copy);
}

int fgv_transport_init(struct fgv_transport *transport, int loop, const char *path, bool is_own,
		       struct fgv_sessions *sessions, const struct fgv_vms *vms, char *why,
		       size_t why_len)
{
	int fd, ret;

	*transport = (struct fgv_transport){
		.watch = {.ready = connection_ready},
		.loop = loop,
		.is_own = is_own,
		.sessions = sessions,
		.vms = vms,
	};
	snprintf(transport->path, sizeof(transport->path), "%s", path);
	if (is_own)
		make_folder(path);
	TAILQ_INIT(&transport->unfinished);
	TAILQ_INIT(&transport->waiting);
	fd = fgv_listener_open(path, SOCK_SEQPACKET, 0666, &transport->socket_file, why, why_len);
	if (fd < 0)
		return fd;
	transport->watch.fd = fd;
	ret = fgv_loop_add(loop, &transport->watch, EPOLLIN);
	if (ret) {
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
		fgv_listener_close(fd, path, &transport->socket_file);
	}
	return ret;
}

void fgv_transport_lead(struct fgv_transport *transport, struct fgv_vm *owner)
{
	struct fgv_connection *connection, *after;

	if (owner && owner != transport->only) {
		transport->only = owner;
		check_folder(transport);
	}
	for (connection = TAILQ_FIRST(&transport->waiting); connection; connection = after) {
		after = TAILQ_NEXT(connection, link);
		if (!fgv_vms_has(transport->vms, connection->vm))
			refuse(connection, CUDA_ERROR_DEVICE_UNAVAILABLE,
			       "the host's administrator has removed VM %s",
			       connection->vm->config->name);
	}
}

void fgv_transport_fini(struct fgv_transport *transport)
{
	struct fgv_connection *connection;

	fgv_loop_remove(transport->loop, &transport->watch);
	fgv_listener_close(transport->watch.fd, transport->path, &transport->socket_file);
	transport->accept_again_ns = 0;
	while ((connection = TAILQ_FIRST(&transport->unfinished)))
		drop(connection);
	while ((connection = TAILQ_FIRST(&transport->waiting)))
		drop(connection);
}

uint64_t fgv_transport_deadline_ns(const struct fgv_transport *transport)
{
	const struct fgv_connection *oldest = TAILQ_FIRST(&transport->unfinished);
	const struct fgv_connection *waiting = TAILQ_FIRST(&transport->waiting);
	uint64_t deadline_ns = transport->accept_again_ns;

	if (oldest)
		deadline_ns = fgv_earlier_ns(deadline_ns, oldest->deadline_ns);
	if (waiting)
		deadline_ns = fgv_earlier_ns(deadline_ns, waiting->deadline_ns);
	if (fgv_transport_waits_for_place(transport))
		deadline_ns = fgv_earlier_ns(deadline_ns, transport->look_again_ns);
	return deadline_ns;
}

void fgv_transport_tick(struct fgv_transport *transport)
{
	uint64_t now_ns = fgv_now_ns();
	struct fgv_connection *oldest;

	if (transport->accept_again_ns && now_ns >= transport->accept_again_ns)
		accept_again(transport);
	while ((oldest = TAILQ_FIRST(&transport->unfinished)) && now_ns >= oldest->deadline_ns)
		refuse(oldest, CUDA_ERROR_TIMEOUT, "no hello came in %d s",
		       FGV_HELLO_TIMEOUT_MS / 1000);
	/* The start refuses, and says why. */
	while ((oldest = TAILQ_FIRST(&transport->waiting)) && now_ns >= oldest->deadline_ns)
		fgv_connection_start(oldest, oldest->vm, &oldest->hello);
	if (fgv_transport_waits_for_place(transport) && now_ns >= transport->look_again_ns)
		fgv_transport_look_again(transport, now_ns);
}
