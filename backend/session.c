/*
 * Sessions; see session.h. A session lives from the start of its process until that
 * has been reaped: while there is a struct fgv_session its process id is not reused.
 */
#define _GNU_SOURCE
#include "backend/session_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/guard/refusals.h"
#include "backend/hello.h"
#include "backend/holding.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"

int fgv_sessions_init(struct fgv_sessions *sessions, const struct fgv_config *config,
		      struct fgv_warm *warm, int loop, char *why, size_t why_len)
{
	int ret;

	*sessions = (struct fgv_sessions){.config = config, .warm = warm, .loop = loop};
	LIST_INIT(&sessions->list);
	ret = fgv_window_layout(&sessions->layout, config->window_bytes, (uint32_t)config->lanes);
	if (ret) {
		snprintf(why, why_len, "a window of this size can't be laid out");
		return ret;
	}
	ret = fgv_sessions_open_place(sessions);
	if (ret)
		snprintf(why, why_len, "the books of the GPUs: %s", strerror(-ret));
	return ret;
}

/* --- The connection ---------------------------------------------------------- */

void fgv_session_drop_connection(struct fgv_session *session)
{
	if (session->connection.fd < 0)
		return;
	fgv_loop_remove(session->sessions->loop, &session->connection);
	close(session->connection.fd);
	session->connection.fd = -1;
}

void fgv_session_mark_ending(struct fgv_session *session)
{
	if (session->ending_ns)
		return;
	session->ending_ns = fgv_now_ns();
	fgv_vm_set_ending(session->vm, session->account);
	fgv_session_release_parts(session);
}

static void connection_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_session *session = (struct fgv_session *)watch;

	(void)events;
	fgv_session_mark_ending(session);
	fgv_session_drop_connection(session);
}

/*
 * A copy of the connection is kept, whose end says that the program has gone, and by which the
 * program is told why its session ends. Nothing is read from it.
 */
int fgv_session_watch_connection(struct fgv_session *session, int fd)
{
	int loop = session->sessions->loop;
	int ret;

	session->connection.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (session->connection.fd < 0)
		return -errno;
	session->connection.ready = connection_ready;
	ret = fgv_loop_add(loop, &session->connection, EPOLLRDHUP);
	if (!ret)
		return 0;
	close(session->connection.fd);
	session->connection.fd = -1;
	return ret;
}

/* A program that is gone by now, but whose connection's end has not had its turn in the loop. */
static void look_at_connection(struct fgv_session *session)
{
	struct pollfd fd = {.fd = session->connection.fd, .events = POLLRDHUP};

	if (fd.fd >= 0 && poll(&fd, 1, 0) > 0)
		connection_ready(&session->connection, 0);
}

void fgv_sessions_look_at_connections(struct fgv_sessions *sessions, const struct fgv_vm *vm)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->vm == vm)
			look_at_connection(session);
	}
}

bool fgv_sessions_must_wait(struct fgv_sessions *sessions, struct fgv_vm *vm)
{
	fgv_sessions_look_at_connections(sessions, vm);
	return fgv_vm_is_full(vm) && fgv_vm_has_ending(vm);
}

unsigned fgv_sessions_programs(struct fgv_sessions *sessions, const struct fgv_vm *vm)
{
	fgv_sessions_look_at_connections(sessions, vm);
	return (unsigned)__builtin_popcountll(vm->taken & ~vm->ending);
}

/* --- What its process says ------------------------------------------------- */

void fgv_session_unwatch_control(struct fgv_session *session)
{
	if (session->is_watched)
		fgv_loop_remove(session->sessions->warm->loop, &session->control);
	session->is_watched = false;
}

/* Says once what the sandbox lacks here, whichever session it is that shows it. */
static void tell_lacks(struct fgv_sessions *sessions, uint32_t lacks)
{
	static const char *const texts[] = {
		"a user of their VM's own (key uids; the daemon must be root)",
		"Landlock, a list of the files that they may open",
		"a network and shared memory of their own",
		"that refused system calls are told",
		"the GPU's device files once more, which are root's alone (docs/host.md)",
	};
	uint32_t news = lacks & ~sessions->lacks;
	char text[400] = "";

	for (size_t i = 0; i < FGV_ARRAY_LEN(texts); i++) {
		size_t len = strlen(text);

		if (news & UINT32_C(1) << i)
			snprintf(text + len, sizeof(text) - len, "%s%s", len ? "; " : "", texts[i]);
	}
	sessions->lacks |= lacks;
	if (*text)
		fgv_warning("vGPU processes can't have, here: %s", text);
}

static void take_confined(struct fgv_session *session, const struct fgv_confined *confined,
			  int listener)
{
	struct fgv_sessions *sessions = session->sessions;

	tell_lacks(sessions, confined->lacks);
	if (listener >= 0)
		fgv_refusals_listen(&session->refusals, sessions->warm->loop, listener,
				    &session->subject, sessions->config->record);
}

/*
 * The channels that a process names are those of all its GPUs, of which a CUDA device could not be
 * held by itself: sessions with several of them give their grants back when they are done.
 */
static bool may_hold(const struct fgv_session *session, const struct fgv_part *part)
{
	return session->part_count == 1 || part->share->device->soft;
}

static void take_serving(struct fgv_session *session)
{
	struct fgv_sessions *sessions = session->sessions;
	bool is_held_well = true;

	fgv_session_unwatch_control(session);
	for (unsigned i = 0; i < session->part_count && !session->ending_ns; i++) {
		struct fgv_part *part = &session->parts[i];

		if (may_hold(session, part))
			is_held_well &= fgv_holding_begin(
				&session->holding, sessions->config, part->share->device,
				part->sched, session->pid, &session->subject, &sessions->hold_told);
	}
	fgv_holding_fini(&session->holding);
	if (!is_held_well)
		fgv_sessions_kill(sessions, session->number, "its kernels can't be let go");
}

/*
 * How opening its GPU went, if it had not been kept ready, which its welcome says; by what it can
 * be held; that it is confined; and that it serves. There is no more.
 */
static void control_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_session *session =
		(struct fgv_session *)((char *)watch - offsetof(struct fgv_session, control));
	union {
		struct fgv_prepared prepared;
		struct fgv_confined confined;
		struct fgv_channels channels;
		struct fgv_serving serving;
	} message;
	int fd;
	ssize_t len = fgv_fds_receive(watch->fd, &message, sizeof(message), &fd);

	(void)events;
	if (len == sizeof(message.prepared) && fd < 0)
		return;
	if (len == sizeof(message.channels)) {
		fgv_holding_learn(&session->holding, &message.channels, fd);
		return;
	}
	if (len == sizeof(message.confined)) {
		take_confined(session, &message.confined, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (len == sizeof(message.serving))
		take_serving(session);
	else
		fgv_session_unwatch_control(session);
}

void fgv_session_watch_control(struct fgv_session *session)
{
	session->control.ready = control_ready;
	session->control.fd = session->control_fd;
	session->is_watched =
		fgv_loop_add(session->sessions->warm->loop, &session->control, EPOLLIN) == 0;
}

void fgv_sessions_limit_threads(struct fgv_sessions *sessions, const struct fgv_vm *vm)
{
	uint64_t threads = fgv_vm_threads(vm->config);
	const struct rlimit limit = {.rlim_cur = threads, .rlim_max = threads};
	const struct fgv_session *session;

	/* The user's threads are counted together; without a user of its own there is no limit. */
	LIST_FOREACH(session, &sessions->list, link) {
		if (session->vm == vm && vm->config->uid && !geteuid() &&
		    prlimit(session->pid, RLIMIT_NPROC, &limit, NULL))
			fgv_warning_of(&session->subject, "can't be given more threads: %s",
				       strerror(errno));
	}
}

void fgv_sessions_find_vcpus(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		fgv_gpusched_find_vcpu(session->parts[0].sched);
}

struct fgv_session *fgv_sessions_find(const struct fgv_sessions *sessions, uint32_t number)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->number == number)
			return session;
	}
	return NULL;
}

bool fgv_sessions_has(const struct fgv_sessions *sessions, uint32_t number)
{
	return fgv_sessions_find(sessions, number);
}

void fgv_session_look(const struct fgv_session *session, struct fgv_session_view *view)
{
	*view = (struct fgv_session_view){
		.number = session->number,
		.program = session->program,
		.pid = session->client_pid,
		.guest_pid = session->guest_pid,
		.vgpu_pid = session->pid,
		.uid = session->uid,
	};
	fgv_vm_account(session->vm, session->account, &view->account);
	fgv_session_parts_stats(session, &view->stats);
}

struct fgv_vm *fgv_session_vm(const struct fgv_session *session)
{
	return session->vm;
}

const struct fgv_session *fgv_sessions_next(const struct fgv_sessions *sessions,
					    const struct fgv_session *session)
{
	return session ? LIST_NEXT(session, link) : LIST_FIRST(&sessions->list);
}
