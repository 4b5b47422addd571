/*
 * The administrator's connections; see admin.h. A client first sends its request, then
 * takes its reply; each has its own deadline, of one length, so that a list in the order of
 * arrival, to whose end a client moves when its reply begins, is in the order of deadlines.
 */
#define _GNU_SOURCE
#include "backend/admin/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/listener.h"
#include "common/log.h"
#include "common/util.h"

/* Descriptors may be freed by somebody else: look again after this time. */
#define ACCEPT_PAUSE_NS FGV_NS_PER_SEC

struct fgv_admin_client {
	struct fgv_watch watch; /* first, so that its address is ours */
	TAILQ_ENTRY(fgv_admin_client) link;
	struct fgv_admin *admin;
	struct ucred peer;
	uint64_t deadline_ns;
	char *reply; /* NULL: the request is still to come */
	size_t reply_len, sent;
	int fd; /* that came with the request; -1: none */
	size_t got;
	char request[FGV_ADMIN_REQUEST_MAX];
};

static void choose_accepting(struct fgv_admin *admin)
{
	bool accepting = !admin->accept_again_ns && admin->client_count < FGV_ADMIN_CLIENTS_MAX;

	fgv_loop_change(admin->loop, &admin->watch, accepting ? EPOLLIN : 0);
}

static void enqueue(struct fgv_admin_client *client)
{
	client->deadline_ns = fgv_now_ns() + FGV_ADMIN_TIMEOUT_MS * FGV_NS_PER_MS;
	TAILQ_INSERT_TAIL(&client->admin->clients, client, link);
}

static void drop(struct fgv_admin_client *client)
{
	struct fgv_admin *admin = client->admin;

	fgv_loop_remove(admin->loop, &client->watch);
	close(client->watch.fd);
	TAILQ_REMOVE(&admin->clients, client, link);
	admin->client_count--;
	if (client->fd >= 0)
		close(client->fd);
	free(client->reply);
	free(client);
	if (admin->starved)
		admin->accept_again_ns = 0;
	choose_accepting(admin);
}

/* As much of the reply as the client takes; all of it ends the connection. */
static void send_reply(struct fgv_admin_client *client)
{
	ssize_t len = send(client->watch.fd, client->reply + client->sent,
			   client->reply_len - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len > 0)
		client->sent += (size_t)len;
	if (len < 0 || client->sent == client->reply_len)
		drop(client);
}

/* Takes @reply over; NULL where memory was short for it. */
static void begin_reply(struct fgv_admin_client *client, char *reply)
{
	if (!reply) {
		fgv_error("no memory for a reply to process %d", (int)client->peer.pid);
		drop(client);
		return;
	}
	client->reply = reply;
	client->reply_len = strlen(reply);
	TAILQ_REMOVE(&client->admin->clients, client, link);
	enqueue(client);
	fgv_loop_change(client->admin->loop, &client->watch, EPOLLOUT);
	send_reply(client);
}

static void answer(struct fgv_admin_client *client, size_t len)
{
	const struct fgv_admin_asker asker = {.peer = &client->peer, .fd = client->fd};

	begin_reply(client, fgv_admin_reply(&client->admin->scope, client->request, len, &asker));
}

/* More of the request, as recv(); -EBADMSG: a second descriptor, which a request has no use for. */
static ssize_t receive(struct fgv_admin_client *client, size_t room)
{
	int fd;
	ssize_t len = fgv_fds_read(client->watch.fd, client->request + client->got, room, &fd);

	if (fd < 0)
		return len;
	if (client->fd >= 0) {
		close(fd);
		return -EBADMSG;
	}
	client->fd = fd;
	return len;
}

static void read_request(struct fgv_admin_client *client)
{
	size_t room = sizeof(client->request) - client->got;
	ssize_t len = receive(client, room);
	const char *end;

	if (len == -EAGAIN)
		return;
	if (len < 0 || (len == 0 && client->got == 0)) {
		drop(client);
		return;
	}
	end = memchr(client->request + client->got, '\n', (size_t)len);
	client->got += (size_t)len;
	if (end && end + 1 != client->request + client->got)
		begin_reply(client, fgv_admin_refusal("a connection is for one request only"));
	else if (end || len == 0)
		answer(client, client->got);
	else if (client->got == sizeof(client->request))
		begin_reply(client, fgv_admin_refusal("a request has fewer than %d bytes",
						      FGV_ADMIN_REQUEST_MAX));
}

static void client_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_admin_client *client = (struct fgv_admin_client *)watch;

	(void)events;
	if (client->reply)
		send_reply(client);
	else
		read_request(client);
}

/* NULL, and @fd closed, if it can't be. */
static struct fgv_admin_client *add_client(struct fgv_admin *admin, int fd)
{
	struct fgv_admin_client *client = calloc(1, sizeof(*client));
	socklen_t len = sizeof(client->peer);

	if (!client)
		goto close_fd;
	client->watch = (struct fgv_watch){.fd = fd, .ready = client_ready};
	client->admin = admin;
	client->fd = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &client->peer, &len))
		goto free_client;
	if (fgv_loop_add(admin->loop, &client->watch, EPOLLIN))
		goto free_client;
	enqueue(client);
	admin->client_count++;
	choose_accepting(admin);
	return client;
free_client:
	free(client);
close_fd:
	close(fd);
	return NULL;
}

static void pause_accepting(struct fgv_admin *admin)
{
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return;
	if (!admin->starved)
		fgv_error("can't accept the administrator's connections for now: %s",
			  strerror(errno));
	admin->starved = true;
	admin->accept_again_ns = fgv_now_ns() + ACCEPT_PAUSE_NS;
	choose_accepting(admin);
}

/* Observers ask in a program's loop; the daemon has other things to do. */
static void slow_down(struct fgv_admin *admin)
{
	if (!admin->scope.questions_only)
		return;
	admin->accept_again_ns = fgv_now_ns() + FGV_NS_PER_SEC / FGV_ADMIN_OBSERVERS_PER_SECOND;
	choose_accepting(admin);
}

static bool may_ask(const struct fgv_admin *admin, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == admin->user;
}

/* The file's mode keeps other users out already, but the file may be given another. */
static void connection_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_admin *admin = (struct fgv_admin *)watch;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct fgv_admin_client *client;

	(void)events;
	if (fd < 0) {
		pause_accepting(admin);
		return;
	}
	admin->starved = false;
	client = add_client(admin, fd);
	slow_down(admin);
	if (!client || may_ask(admin, client->peer.uid))
		return;
	fgv_warning("refused process %d of user %u at %s", (int)client->peer.pid,
		    (unsigned)client->peer.uid, admin->path);
	begin_reply(client, fgv_admin_refusal("only root and user %u may ask this daemon",
					      (unsigned)admin->user));
}

static int listen_at(struct fgv_admin *admin, char *why, size_t why_len)
{
	int fd = fgv_listener_open(admin->path, SOCK_STREAM, 0600, &admin->socket_file, why,
				   why_len);
	int ret = 0;

	if (fd < 0)
		return fd;
	admin->watch.fd = fd;
	if (admin->user != geteuid() && chown(admin->path, admin->user, (gid_t)-1))
		ret = -errno;
	if (!ret)
		ret = fgv_loop_add(admin->loop, &admin->watch, EPOLLIN);
	if (ret) {
		snprintf(why, why_len, "%s: %s", admin->path, strerror(-ret));
		fgv_listener_close(fd, admin->path, &admin->socket_file);
	}
	return ret;
}

int fgv_admin_init(struct fgv_admin *admin, int loop, const char *path,
		   const struct fgv_admin_scope *scope, char *why, size_t why_len)
{
	*admin = (struct fgv_admin){
		.watch = {.ready = connection_ready},
		.loop = loop,
		.scope = *scope,
		.path = path,
		.user = geteuid(),
	};
	TAILQ_INIT(&admin->clients);
	return listen_at(admin, why, why_len);
}

int fgv_admin_init_observers(struct fgv_admin *admin, int loop, const char *path, uid_t user,
			     const struct fgv_admin_scope *scope, char *why, size_t why_len)
{
	*admin = (struct fgv_admin){
		.watch = {.ready = connection_ready},
		.loop = loop,
		.scope = *scope,
		.path = path,
		.user = user,
	};
	admin->scope.questions_only = true;
	TAILQ_INIT(&admin->clients);
	return path ? listen_at(admin, why, why_len) : 0;
}

void fgv_admin_fini(struct fgv_admin *admin)
{
	struct fgv_admin_client *client;

	if (!admin->path)
		return;
	while ((client = TAILQ_FIRST(&admin->clients)))
		drop(client);
	fgv_loop_remove(admin->loop, &admin->watch);
	fgv_listener_close(admin->watch.fd, admin->path, &admin->socket_file);
	admin->accept_again_ns = 0;
}

uint64_t fgv_admin_deadline_ns(const struct fgv_admin *admin)
{
	const struct fgv_admin_client *first = TAILQ_FIRST(&admin->clients);
	uint64_t deadline_ns = admin->accept_again_ns;

	if (first && (!deadline_ns || first->deadline_ns < deadline_ns))
		deadline_ns = first->deadline_ns;
	return deadline_ns;
}

/* A peer that sent no request is told so; one that does not take its reply is dropped. */
static void end_late(struct fgv_admin_client *client)
{
	if (client->reply)
		drop(client);
	else
		begin_reply(client, fgv_admin_refusal("no request came in %d s",
						      FGV_ADMIN_TIMEOUT_MS / 1000));
}

void fgv_admin_tick(struct fgv_admin *admin)
{
	uint64_t now_ns = fgv_now_ns();
	struct fgv_admin_client *first;

	if (admin->accept_again_ns && now_ns >= admin->accept_again_ns) {
		admin->accept_again_ns = 0;
		choose_accepting(admin);
	}
	while ((first = TAILQ_FIRST(&admin->clients)) && now_ns >= first->deadline_ns)
		end_late(first);
}
