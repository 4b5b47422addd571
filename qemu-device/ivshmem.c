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
	struct fgv_ivshmem *ivshmem;
	struct fgv_vm *vm;
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

	fgv_info("vm %s: QEMU (process %d) %s", vm_name(server), (int)qemu->peer.pid, why);
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
	fgv_info("vm %s: QEMU (process %d of user %u) has a region of %llu MiB: windows: %u",
		 vm_name(server), (int)qemu->peer.pid, (unsigned)qemu->peer.uid,
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
	fgv_error("vm %s: can't accept connections for now: %s", vm_name(server), strerror(error));
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

static int listen_for(struct fgv_ivshmem *ivshmem, struct fgv_vm *vm, char *why, size_t why_len)
{
	struct fgv_ivshmem_server *server = &ivshmem->servers[ivshmem->count];
	const char *path = vm->config->ivshmem;
	int ret;

	*server = (struct fgv_ivshmem_server){
		.watch = {.ready = connection_ready},
		.ivshmem = ivshmem,
		.vm = vm,
	};
	ret = fgv_listener_open(path, SOCK_STREAM, 0600, &server->socket_file, why, why_len);
	if (ret < 0)
		return ret;
	server->watch.fd = ret;
	ret = 0;
	if (vm->config->ivshmem_user != geteuid() &&
	    chown(path, vm->config->ivshmem_user, (gid_t)-1))
		ret = -errno;
	if (!ret)
		ret = fgv_loop_add(ivshmem->loop, &server->watch, EPOLLIN);
	if (ret) {
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
		fgv_listener_close(server->watch.fd, path, &server->socket_file);
		return ret;
	}
	ivshmem->count++;
	return 0;
}

/* --- All of them ------------------------------------------------------------- */

int fgv_ivshmem_init(struct fgv_ivshmem *ivshmem, int loop, struct fgv_sessions *sessions,
		     struct fgv_vm *vms, size_t vm_count, char *why, size_t why_len)
{
	int ret;

	*ivshmem = (struct fgv_ivshmem){
		.loop = loop,
		.sessions = sessions,
		.servers = calloc(vm_count, sizeof(*ivshmem->servers)),
	};
	ret = ivshmem->servers ? fgv_bell_init(&ivshmem->bell) : -ENOMEM;
	if (ret) {
		snprintf(why, why_len, "can't serve QEMU guests: %s", strerror(-ret));
		free(ivshmem->servers);
		return ret;
	}
	for (size_t i = 0; i < vm_count && !ret; i++) {
		if (vms[i].config->ivshmem)
			ret = listen_for(ivshmem, &vms[i], why, why_len);
	}
	if (ret)
		fgv_ivshmem_fini(ivshmem);
	return ret;
}

void fgv_ivshmem_fini(struct fgv_ivshmem *ivshmem)
{
	for (; ivshmem->count; ivshmem->count--) {
		struct fgv_ivshmem_server *server = &ivshmem->servers[ivshmem->count - 1];

		if (server->qemu)
			drop(server->qemu, "loses its region: the daemon ends");
		fgv_loop_remove(ivshmem->loop, &server->watch);
		fgv_listener_close(server->watch.fd, server->vm->config->ivshmem,
				   &server->socket_file);
	}
	free(ivshmem->servers);
	ivshmem->servers = NULL;
	fgv_bell_fini(&ivshmem->bell);
}

static void processes_ended(struct fgv_ivshmem_server *server)
{
	struct qemu *qemu = server->qemu;

	if (!qemu)
		return;
	fgv_slots_reaped(&qemu->slots);
	if (fgv_herald_has_died(&qemu->herald))
		fgv_warning("vm %s: its herald was killed: if this daemon is killed, nobody tells "
			    "the guest",
			    vm_name(server));
}

void fgv_ivshmem_reaped(struct fgv_ivshmem *ivshmem)
{
	for (size_t i = 0; i < ivshmem->count; i++)
		processes_ended(&ivshmem->servers[i]);
}

static uint64_t deadline_ns(const struct fgv_ivshmem_server *server)
{
	uint64_t slots_ns = server->qemu ? fgv_slots_deadline_ns(&server->qemu->slots) : 0;

	return fgv_earlier_ns(server->accept_again_ns, slots_ns);
}

uint64_t fgv_ivshmem_deadline_ns(const struct fgv_ivshmem *ivshmem)
{
	uint64_t earliest_ns = 0;

	for (size_t i = 0; i < ivshmem->count; i++)
		earliest_ns = fgv_earlier_ns(earliest_ns, deadline_ns(&ivshmem->servers[i]));
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
	for (size_t i = 0; i < ivshmem->count; i++)
		tick(&ivshmem->servers[i]);
}
