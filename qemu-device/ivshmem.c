/*
 * Servers and their one connection each; see ivshmem.h.
 */
#define _GNU_SOURCE
#include "qemu-device/ivshmem.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/listener.h"
#include "common/log.h"
#include "common/util.h"
#include "qemu-device/herald.h"
#include "qemu-device/region.h"
#include "qemu-device/slots.h"

#define PROTOCOL_VERSION 0
#define MEMORY		 (-1)

/*
 * A version that no QEMU knows: it says so and ends. At a mere hang-up QEMU 7.2 reads on and
 * on, without an end.
 */
#define REFUSAL (-1)

/* Descriptors may be freed by somebody else: look again after this time. */
#define ACCEPT_PAUSE_NS FGV_NS_PER_SEC

/* A QEMU that is connected, with what is its alone. */
struct qemu {
	struct fgv_watch watch; /* first, so that its address is ours */
	struct fgv_ivshmem_server *server;
	struct ucred peer;
	unsigned sent; /* messages of the greeting */
	struct fgv_region region;
	struct fgv_slots slots;
	struct fgv_herald herald;
};

struct fgv_ivshmem_server {
	struct fgv_watch watch; /* the listening socket; first */
	LIST_ENTRY(fgv_ivshmem_server) link;
	struct fgv_ivshmem *ivshmem;
	struct fgv_vm *vm; /* NULL: not settled */
	uid_t uid;	   /* whose the file is */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct stat socket_file;
	struct qemu *qemu; /* NULL: none */
	uint64_t accept_again_ns;
	struct fgv_log_limit refusals;
};

/* --- The connection ---------------------------------------------------------- */

static const char *vm_name(const struct fgv_ivshmem_server *server)
{
	return server->vm->config->name;
}

static void drop(struct qemu *qemu, const char *why)
{
	struct fgv_ivshmem_server *server = qemu->server;

	fgv_info_of(FGV_LOG_VM(vm_name(server)), "QEMU (process %d) %s", (int)qemu->peer.pid, why);
	fgv_slots_fini(&qemu->slots);
	fgv_loop_remove(server->ivshmem->loop, &qemu->watch);
	close(qemu->watch.fd);
	fgv_herald_end(&qemu->herald);
	fgv_region_fini(&qemu->region);
	server->qemu = NULL;
	server->vm->qemu_pid = 0;
	free(qemu);
}

/* Message number @i of the greeting: its number and its descriptor, -1 for none. */
static int64_t greeting(const struct qemu *qemu, unsigned i, int *fd)
{
	uint32_t vectors = fgv_region_vectors(&qemu->region);
	unsigned peer;

	*fd = -1;
	if (i == 0)
		return PROTOCOL_VERSION;
	if (i == 1)
		return FGV_REGION_GUEST;
	if (i == 2) {
		*fd = qemu->region.fd;
		return MEMORY;
	}
	peer = i - 3 < vectors ? FGV_REGION_HOST : FGV_REGION_GUEST;
	*fd = qemu->region.bells[peer][(i - 3) % vectors];
	return peer;
}

/* Goes on with the greeting: 0 when all of it is sent, else a negative errno. */
static int greet(struct qemu *qemu)
{
	unsigned count = 3 + FGV_REGION_PEERS * fgv_region_vectors(&qemu->region);

	for (; qemu->sent < count; qemu->sent++) {
		int fd, ret;
		int64_t message = (int64_t)htole64((uint64_t)greeting(qemu, qemu->sent, &fd));

		ret = fgv_fds_send(qemu->watch.fd, &message, sizeof(message), &fd, fd >= 0);
		if (ret)
			return ret;
	}
	return 0;
}

static void greet_on(struct qemu *qemu)
{
	struct fgv_ivshmem_server *server = qemu->server;
	char why[128];
	int ret = greet(qemu);

	if (ret == -EAGAIN)
		return;
	if (ret) {
		snprintf(why, sizeof(why), "can't be given its region: %s", strerror(-ret));
		drop(qemu, why);
		return;
	}
	fgv_loop_change(server->ivshmem->loop, &qemu->watch, EPOLLIN | EPOLLRDHUP);
	fgv_info_of(FGV_LOG_VM(vm_name(server)),
		    "QEMU (process %d of user %u) has a region of %llu MiB: windows: %u",
		    (int)qemu->peer.pid, (unsigned)qemu->peer.uid,
		    (unsigned long long)qemu->region.len >> 20, qemu->region.windows);
}

static void qemu_ready(struct fgv_watch *watch, uint32_t events)
{
	struct qemu *qemu = (struct qemu *)watch;

	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		drop(qemu, "has gone");
	else if (events & EPOLLIN)
		drop(qemu, "says something, which no QEMU does, and is left");
	else
		greet_on(qemu);
}

static int begin(struct qemu *qemu, int fd)
{
	struct fgv_ivshmem_server *server = qemu->server;
	struct fgv_ivshmem *ivshmem = server->ivshmem;
	struct fgv_slots_scope scope = {
		.loop = ivshmem->loop,
		.sessions = ivshmem->sessions,
		.vm = server->vm,
		.region = &qemu->region,
		.bell = &ivshmem->bell,
		.qemu_fd = fd,
		.uid = qemu->peer.uid,
		.pid = qemu->peer.pid,
	};
	int ret = fgv_region_init(&qemu->region, (uint32_t)server->vm->config->windows,
				  &ivshmem->sessions->layout);

	if (ret)
		return ret;
	ret = fgv_herald_start(&qemu->herald, &qemu->region, vm_name(server));
	if (ret)
		goto fini_region;
	ret = fgv_slots_init(&qemu->slots, &scope);
	if (ret)
		goto end_herald;
	qemu->watch = (struct fgv_watch){.fd = fd, .ready = qemu_ready};
	ret = fgv_loop_add(ivshmem->loop, &qemu->watch, EPOLLOUT | EPOLLRDHUP);
	if (ret)
		goto fini_slots;
	return 0;
fini_slots:
	fgv_slots_fini(&qemu->slots);
end_herald:
	fgv_herald_end(&qemu->herald);
fini_region:
	fgv_region_fini(&qemu->region);
	return ret;
}

static int begin_qemu(struct fgv_ivshmem_server *server, int fd, const struct ucred *peer)
{
	struct qemu *qemu = calloc(1, sizeof(*qemu));
	int ret;

	if (!qemu)
		return -ENOMEM;
	qemu->server = server;
	qemu->peer = *peer;
	ret = begin(qemu, fd);
	if (ret) {
		free(qemu);
		return ret;
	}
	server->qemu = qemu;
	server->vm->qemu_pid = peer->pid;
	return 0;
}

/* --- The socket -------------------------------------------------------------- */

static bool admits(const struct fgv_ivshmem_server *server, const struct ucred *peer)
{
	return peer->uid == geteuid() || peer->uid == server->vm->config->ivshmem_user;
}

/* Whether the QEMU that is connected lives: its end and the next one may come at once. */
static bool has_qemu(struct fgv_ivshmem_server *server)
{
	struct pollfd hangup = {.events = POLLRDHUP};

	if (!server->qemu)
		return false;
	hangup.fd = server->qemu->watch.fd;
	if (poll(&hangup, 1, 0) > 0)
		drop(server->qemu, "has gone");
	return server->qemu;
}

static void refuse(int fd)
{
	int64_t message = (int64_t)htole64((uint64_t)REFUSAL);

	fgv_fds_send(fd, &message, sizeof(message), NULL, 0);
	close(fd);
}

/* Lets a peer in, or says in the log why not; @fd is taken over if so. */
static bool judge(struct fgv_ivshmem_server *server, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	const char *why;
	char more[2 * FGV_NAME_MAX];
	int ret;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	if (!admits(server, &peer)) {
		why = "that user may not run it";
	} else if (has_qemu(server)) {
		why = "there is one already";
	} else {
		ret = begin_qemu(server, fd, &peer);
		if (!ret)
			return true;
		why = strerror(-ret);
	}
	snprintf(more, sizeof(more), "vm %s: refused QEMU", vm_name(server));
	if (fgv_log_may(&server->refusals, more))
		fgv_warning("%s (process %d of user %u): %s", more, (int)peer.pid,
			    (unsigned)peer.uid, why);
	return false;
}

static void pause_accepting(struct fgv_ivshmem_server *server, int error)
{
	fgv_error_of(FGV_LOG_VM(vm_name(server)), "can't accept connections for now: %s",
		     strerror(error));
	server->accept_again_ns = fgv_now_ns() + ACCEPT_PAUSE_NS;
	fgv_loop_change(server->ivshmem->loop, &server->watch, 0);
}

static void connection_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_ivshmem_server *server = (struct fgv_ivshmem_server *)watch;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0) {
		if (!judge(server, fd))
			refuse(fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		pause_accepting(server, errno);
	}
}

/* The file's owner, and nobody else, may connect; -EPERM where the daemon is not root. */
static int give_to(struct fgv_ivshmem_server *server, uid_t uid, char *why, size_t why_len)
{
	int ret;

	if (server->uid == uid)
		return 0;
	ret = chown(server->path, uid, (gid_t)-1) ? -errno : 0;
	if (ret)
		snprintf(why, why_len, "%s: can't be user %u's: %s", server->path, (unsigned)uid,
			 strerror(-ret));
	else
		server->uid = uid;
	return ret;
}

static void take_away(struct fgv_ivshmem_server *server, const char *why)
{
	if (server->qemu)
		drop(server->qemu, why);
	fgv_loop_remove(server->ivshmem->loop, &server->watch);
	fgv_listener_close(server->watch.fd, server->path, &server->socket_file);
	LIST_REMOVE(server, link);
	free(server);
}

/* --- All of them ------------------------------------------------------------- */

int fgv_ivshmem_init(struct fgv_ivshmem *ivshmem, int loop, struct fgv_sessions *sessions,
		     const struct fgv_vms *vms, char *why, size_t why_len)
{
	int ret;

	*ivshmem = (struct fgv_ivshmem){.loop = loop, .sessions = sessions, .vms = vms};
	LIST_INIT(&ivshmem->servers);
	ret = fgv_bell_init(&ivshmem->bell);
	if (ret)
		snprintf(why, why_len, "can't serve QEMU guests: %s", strerror(-ret));
	return ret;
}

int fgv_ivshmem_open(struct fgv_ivshmem *ivshmem, const char *path, uid_t uid, char *why,
		     size_t why_len)
{
	struct fgv_ivshmem_server *server;
	int ret;

	LIST_FOREACH(server, &ivshmem->servers, link) {
		if (!strcmp(server->path, path))
			return give_to(server, uid, why, why_len);
	}
	server = calloc(1, sizeof(*server));
	if (!server) {
		snprintf(why, why_len, "can't serve QEMU guests: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	server->watch.ready = connection_ready;
	server->ivshmem = ivshmem;
	snprintf(server->path, sizeof(server->path), "%s", path);
	server->uid = geteuid();
	ret = fgv_listener_watch(ivshmem->loop, &server->watch, server->path, &server->socket_file,
				 why, why_len);
	if (ret) {
		free(server);
		return ret;
	}
	LIST_INSERT_HEAD(&ivshmem->servers, server, link);
	ret = give_to(server, uid, why, why_len);
	if (ret)
		take_away(server, "");
	return ret;
}

static struct fgv_vm *owner_of(const struct fgv_ivshmem_server *server)
{
	const struct fgv_vms *vms = server->ivshmem->vms;

	for (size_t i = 0; i < vms->count; i++) {
		const char *path = vms->list[i]->config->ivshmem;

		if (path && !strcmp(path, server->path))
			return vms->list[i];
	}
	return NULL;
}

static void settle(struct fgv_ivshmem_server *server)
{
	static const char gone[] = "loses its region: the configuration has its VM no more";
	struct fgv_vm *owner = owner_of(server);
	char why[256];

	if (!owner) {
		take_away(server, gone);
		return;
	}
	if (server->qemu && owner != server->vm)
		drop(server->qemu, gone);
	server->vm = owner;
	if (give_to(server, owner->config->ivshmem_user, why, sizeof(why)))
		fgv_error("%s", why);
}

void fgv_ivshmem_settle(struct fgv_ivshmem *ivshmem)
{
	struct fgv_ivshmem_server *server, *after;

	for (server = LIST_FIRST(&ivshmem->servers); server; server = after) {
		after = LIST_NEXT(server, link);
		settle(server);
	}
}

void fgv_ivshmem_fini(struct fgv_ivshmem *ivshmem)
{
	struct fgv_ivshmem_server *server;

	while ((server = LIST_FIRST(&ivshmem->servers)))
		take_away(server, "loses its region: the daemon ends");
	fgv_bell_fini(&ivshmem->bell);
}

static void processes_ended(struct fgv_ivshmem_server *server)
{
	struct qemu *qemu = server->qemu;

	if (!qemu)
		return;
	fgv_slots_reaped(&qemu->slots);
	if (fgv_herald_has_died(&qemu->herald))
		fgv_warning_of(FGV_LOG_VM(vm_name(server)),
			       "its herald was killed: if this daemon is killed, nobody tells the "
			       "guest");
}

void fgv_ivshmem_reaped(struct fgv_ivshmem *ivshmem)
{
	struct fgv_ivshmem_server *server;

	LIST_FOREACH(server, &ivshmem->servers, link)
		processes_ended(server);
}

static uint64_t deadline_ns(const struct fgv_ivshmem_server *server)
{
	uint64_t slots_ns = server->qemu ? fgv_slots_deadline_ns(&server->qemu->slots) : 0;

	return fgv_earlier_ns(server->accept_again_ns, slots_ns);
}

uint64_t fgv_ivshmem_deadline_ns(const struct fgv_ivshmem *ivshmem)
{
	const struct fgv_ivshmem_server *server;
	uint64_t earliest_ns = 0;

	LIST_FOREACH(server, &ivshmem->servers, link)
		earliest_ns = fgv_earlier_ns(earliest_ns, deadline_ns(server));
	return earliest_ns;
}

static void tick(struct fgv_ivshmem_server *server)
{
	if (server->accept_again_ns && fgv_now_ns() >= server->accept_again_ns) {
		server->accept_again_ns = 0;
		fgv_loop_change(server->ivshmem->loop, &server->watch, EPOLLIN);
	}
	if (server->qemu)
		fgv_slots_tick(&server->qemu->slots);
}

void fgv_ivshmem_tick(struct fgv_ivshmem *ivshmem)
{
	struct fgv_ivshmem_server *server;

	LIST_FOREACH(server, &ivshmem->servers, link)
		tick(server);
}
