/*
 * Asking QEMU; see qmp.h. The conversation: QEMU greets, is told to begin (qmp_capabilities),
 * and is asked for its vCPUs (query-cpus-fast). Each message is a line of JSON; events may
 * come at any time, and say nothing here.
 */
#define _GNU_SOURCE
#include "qemu-device/qmp.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "backend/listener.h"
#include "backend/loop.h"
#include "backend/vms.h"
#include "common/log.h"
#include "common/util.h"

/* All that a QEMU may say: some 250 bytes for each vCPU, and a few events. */
#define SAYS_MAX   (512u * 1024)
#define SAYS_FIRST 4096u /* room for it, at first */

/* A guest's firmware may hold QEMU up. */
#define PATIENCE_NS (30 * FGV_NS_PER_SEC)

/* Descriptors may be freed by somebody else: look again after this time. */
#define ACCEPT_PAUSE_NS FGV_NS_PER_SEC

#define PATH_LEN 128

enum phase { GREETING, CAPABILITIES, VCPUS };

/* A QEMU that is asked. */
struct talk {
	struct fgv_watch watch; /* first, so that its address is ours */
	struct fgv_qmp_server *server;
	struct ucred peer;
	enum phase phase;
	uint64_t deadline_ns;
	char *says;
	size_t room;  /* for it */
	size_t len;   /* of what it has said */
	size_t taken; /* of that: lines that have been taken */
};

struct fgv_qmp_server {
	struct fgv_watch watch; /* the listening socket; first */
	LIST_ENTRY(fgv_qmp_server) link;
	struct fgv_qmp *qmp;
	struct fgv_vm *vm; /* NULL: not settled */
	uid_t uid;	   /* whose the file is */
	char path[PATH_LEN];
	struct stat socket_file;
	struct talk *talk; /* NULL: nobody is asked */
	uint64_t accept_again_ns;
	struct fgv_log_limit complaints;
};

static const char *vm_name(const struct fgv_qmp_server *server)
{
	return server->vm->config->name;
}

/* --- The conversation -------------------------------------------------------- */

static void leave(struct talk *talk)
{
	struct fgv_qmp_server *server = talk->server;

	fgv_loop_remove(server->qmp->loop, &talk->watch);
	close(talk->watch.fd);
	server->talk = NULL;
	free(talk->says);
	free(talk);
}

static void give_up(struct talk *talk, const char *why)
{
	struct fgv_qmp_server *server = talk->server;
	char more[2 * FGV_NAME_MAX];

	snprintf(more, sizeof(more), "vm %s: QEMU's vCPUs can't be favoured:", vm_name(server));
	if (fgv_log_may(&server->complaints, more))
		fgv_warning("%s %s (process %d)", more, why, (int)talk->peer.pid);
	leave(talk);
}

static int say(struct talk *talk, const char *command)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "{\"execute\": \"%s\"}\n", command);

	if (send(talk->watch.fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len)
		return -EIO;
	return 0;
}

/* What does not make sense is left out; whose threads they are is checked when one is used. */
static void take_vcpus(struct talk *talk, const json_t *list)
{
	struct fgv_vcpus *vcpus = &talk->server->vm->vcpus;
	uint32_t known = 0;
	json_t *vcpu;
	size_t i;

	*vcpus = (struct fgv_vcpus){.pid = talk->peer.pid};
	json_array_foreach(list, i, vcpu)
	{
		json_int_t index, thread;

		if (json_unpack(vcpu, "{s:I, s:I}", "cpu-index", &index, "thread-id", &thread) ||
		    index < 0 || index >= FGV_VCPUS_MAX || thread <= 0 || thread > INT32_MAX)
			continue;
		vcpus->threads[index] = (pid_t)thread;
		vcpus->count = (uint32_t)fgv_max_u64(vcpus->count, (uint64_t)index + 1);
		known++;
	}
	fgv_info_of(FGV_LOG_VM(vm_name(talk->server)),
		    "QEMU (process %d) has told its vCPUs' threads: %u", (int)talk->peer.pid,
		    known);
}

/* The next step, after an answer. NULL, or what is wrong with it. */
static const char *go_on(struct talk *talk, const json_t *message)
{
	const json_t *answer = json_object_get(message, "return");

	switch (talk->phase) {
	case GREETING:
		if (!json_object_get(message, "QMP"))
			return "it does not speak QMP";
		talk->phase = CAPABILITIES;
		return say(talk, "qmp_capabilities") ? "it does not listen" : NULL;
	case CAPABILITIES:
		if (!answer)
			return "it refuses to be asked";
		talk->phase = VCPUS;
		return say(talk, "query-cpus-fast") ? "it does not listen" : NULL;
	case VCPUS:
		break;
	}
	if (!json_is_array(answer))
		return "it does not tell their threads";
	take_vcpus(talk, answer);
	return NULL;
}

/* True: all is said, and @talk is gone. */
static bool take_line(struct talk *talk, const char *line, size_t len)
{
	json_t *message = json_loadb(line, len, 0, NULL);
	const char *why = "it does not speak QMP";
	bool was_asked = talk->phase == VCPUS;

	if (json_is_object(message)) {
		if (json_object_get(message, "event")) {
			json_decref(message);
			return false;
		}
		why = go_on(talk, message);
	}
	json_decref(message);
	if (why)
		give_up(talk, why);
	else if (was_asked)
		leave(talk);
	return why || was_asked;
}

/* The lines that have come to their end. @from: what came before has none but those taken. */
static void take_lines(struct talk *talk, size_t from)
{
	const char *end;

	while ((end = memchr(talk->says + from, '\n', talk->len - from))) {
		const char *line = talk->says + talk->taken;

		from = (size_t)(end + 1 - talk->says);
		talk->taken = from;
		if (take_line(talk, line, (size_t)(end - line)))
			return;
	}
	if (talk->len == SAYS_MAX)
		give_up(talk, "it says too much");
}

static bool has_room(struct talk *talk)
{
	size_t wanted = talk->room ? 2 * talk->room : SAYS_FIRST;
	char *larger;

	if (talk->len < talk->room)
		return true;
	larger = realloc(talk->says, wanted);
	if (larger) {
		talk->says = larger;
		talk->room = wanted;
	}
	return larger;
}

static void talk_ready(struct fgv_watch *watch, uint32_t events)
{
	struct talk *talk = (struct talk *)watch;
	ssize_t got;

	(void)events;
	if (!has_room(talk)) {
		give_up(talk, "memory is short");
		return;
	}
	got = recv(watch->fd, talk->says + talk->len, talk->room - talk->len, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		give_up(talk, "it has gone");
		return;
	}
	talk->len += (size_t)got;
	take_lines(talk, talk->len - (size_t)got);
}

/* --- The socket -------------------------------------------------------------- */

/* The newest one counts: an older one that still hangs there is of no use any more. */
static int begin(struct fgv_qmp_server *server, int fd, const struct ucred *peer)
{
	struct talk *talk;
	int ret;

	if (server->talk)
		give_up(server->talk, "another one has come");
	talk = malloc(sizeof(*talk));
	if (!talk)
		return -ENOMEM;
	talk->watch = (struct fgv_watch){.fd = fd, .ready = talk_ready};
	talk->server = server;
	talk->peer = *peer;
	talk->phase = GREETING;
	talk->deadline_ns = fgv_now_ns() + PATIENCE_NS;
	talk->says = NULL;
	talk->room = 0;
	talk->len = 0;
	talk->taken = 0;
	ret = fgv_loop_add(server->qmp->loop, &talk->watch, EPOLLIN);
	if (ret)
		free(talk);
	else
		server->talk = talk;
	return ret;
}

static bool admits(const struct fgv_qmp_server *server, const struct ucred *peer)
{
	return peer->uid == geteuid() || peer->uid == server->vm->config->ivshmem_user;
}

/* Where descriptors or memory are short; ivshmem's server says so in the log. */
static void pause_accepting(struct fgv_qmp_server *server, int error)
{
	if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS)
		return;
	server->accept_again_ns = fgv_now_ns() + ACCEPT_PAUSE_NS;
	fgv_loop_change(server->qmp->loop, &server->watch, 0);
}

static void connection_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_qmp_server *server = (struct fgv_qmp_server *)watch;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	(void)events;
	if (fd < 0) {
		pause_accepting(server, errno);
		return;
	}
	if (!server->qmp->asks || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
	    !admits(server, &peer) || begin(server, fd, &peer))
		close(fd);
}

/* The file's owner, and nobody else, may connect; -EPERM where the daemon is not root. */
static int give_to(struct fgv_qmp_server *server, uid_t uid, char *why, size_t why_len)
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

static void take_away(struct fgv_qmp_server *server)
{
	if (server->talk)
		leave(server->talk);
	fgv_loop_remove(server->qmp->loop, &server->watch);
	fgv_listener_close(server->watch.fd, server->path, &server->socket_file);
	LIST_REMOVE(server, link);
	free(server);
}

/* --- All of them ------------------------------------------------------------- */

void fgv_qmp_init(struct fgv_qmp *qmp, int loop, bool asks, const struct fgv_vms *vms)
{
	*qmp = (struct fgv_qmp){.loop = loop, .asks = asks, .vms = vms};
	LIST_INIT(&qmp->servers);
}

static bool is_beside(const struct fgv_qmp_server *server, const char *ivshmem)
{
	size_t len = strlen(ivshmem);

	return !strncmp(server->path, ivshmem, len) && !strcmp(server->path + len, FGV_QMP_SUFFIX);
}

int fgv_qmp_open(struct fgv_qmp *qmp, const char *ivshmem, uid_t uid, char *why, size_t why_len)
{
	struct fgv_qmp_server *server;
	int ret;

	LIST_FOREACH(server, &qmp->servers, link) {
		if (is_beside(server, ivshmem))
			return give_to(server, uid, why, why_len);
	}
	server = calloc(1, sizeof(*server));
	if (!server) {
		snprintf(why, why_len, "can't ask QEMU: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	server->watch.ready = connection_ready;
	server->qmp = qmp;
	snprintf(server->path, sizeof(server->path), "%s" FGV_QMP_SUFFIX, ivshmem);
	server->uid = geteuid();
	ret = fgv_listener_watch(qmp->loop, &server->watch, server->path, &server->socket_file, why,
				 why_len);
	if (ret) {
		free(server);
		return ret;
	}
	LIST_INSERT_HEAD(&qmp->servers, server, link);
	ret = give_to(server, uid, why, why_len);
	if (ret)
		take_away(server);
	return ret;
}

static struct fgv_vm *owner_of(const struct fgv_qmp_server *server)
{
	const struct fgv_vms *vms = server->qmp->vms;

	for (size_t i = 0; i < vms->count; i++) {
		const char *path = vms->list[i]->config->ivshmem;

		if (path && is_beside(server, path))
			return vms->list[i];
	}
	return NULL;
}

/* A QEMU that is asked is its VM's, by the socket. */
static void settle(struct fgv_qmp_server *server)
{
	struct fgv_vm *owner = owner_of(server);
	char why[256];

	if (server->talk && owner != server->vm)
		leave(server->talk);
	server->vm = owner;
	if (!owner)
		take_away(server);
	else if (give_to(server, owner->config->ivshmem_user, why, sizeof(why)))
		fgv_error("%s", why);
}

void fgv_qmp_settle(struct fgv_qmp *qmp)
{
	struct fgv_qmp_server *server, *after;

	for (server = LIST_FIRST(&qmp->servers); server; server = after) {
		after = LIST_NEXT(server, link);
		settle(server);
	}
}

void fgv_qmp_fini(struct fgv_qmp *qmp)
{
	struct fgv_qmp_server *server;

	while ((server = LIST_FIRST(&qmp->servers)))
		take_away(server);
}

uint64_t fgv_qmp_deadline_ns(const struct fgv_qmp *qmp)
{
	const struct fgv_qmp_server *server;
	uint64_t earliest_ns = 0;

	LIST_FOREACH(server, &qmp->servers, link) {
		uint64_t talk_ns = server->talk ? server->talk->deadline_ns : 0;

		earliest_ns = fgv_earlier_ns(earliest_ns, talk_ns);
		earliest_ns = fgv_earlier_ns(earliest_ns, server->accept_again_ns);
	}
	return earliest_ns;
}

static void tick(struct fgv_qmp_server *server, uint64_t now_ns)
{
	if (server->talk && now_ns >= server->talk->deadline_ns)
		give_up(server->talk, "it does not answer");
	if (server->accept_again_ns && now_ns >= server->accept_again_ns) {
		server->accept_again_ns = 0;
		fgv_loop_change(server->qmp->loop, &server->watch, EPOLLIN);
	}
}

void fgv_qmp_tick(struct fgv_qmp *qmp, uint64_t now_ns)
{
	struct fgv_qmp_server *server;

	LIST_FOREACH(server, &qmp->servers, link)
		tick(server, now_ns);
}
