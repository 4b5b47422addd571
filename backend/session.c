/*
 * Sessions; see session.h. A session lives from the start of its process until that
 * has been reaped: while there is a struct fgv_session its process id is not reused.
 */
#define _GNU_SOURCE
#include "backend/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/cosched.h"
#include "backend/fds.h"
#include "backend/guard/refusals.h"
#include "backend/hello.h"
#include "backend/holding.h"
#include "backend/journal.h"
#include "backend/mps.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

/* An MPS client that is killed at work may take others along: it has longer to end by itself. */
#define SHARED_KILL_MS 5000

#define LABEL_LEN (2 * FGV_NAME_MAX + 64)

/* Bytes of a file that a vGPU process writes, the log among them, beside soft device memory. */
#define FILE_MAX (1ull << 30)

struct fgv_session {
	struct fgv_watch connection; /* to the program; first, so that its address is ours */
	struct fgv_watch control;    /* its control socket, until its process serves it */
	bool is_watched;
	struct fgv_keeper_line images;
	struct fgv_refusals refusals;
	struct fgv_holding holding;
	LIST_ENTRY(fgv_session) link;
	struct fgv_sessions *sessions;
	struct fgv_vm *vm;
	struct fgv_gpusched_session *sched;
	struct fgv_gpusched_session *copying[FGV_COPY_ENGINES]; /* or NULL */
	pid_t pid;
	pid_t client_pid;
	uint32_t guest_pid;
	int control_fd; /* its end ends the process; -1: told already */
	bool is_killed;
	uint32_t number;
	unsigned account;
	uid_t uid;
	uint64_t started_ns;
	uint64_t ending_ns; /* not 0: since when its program has gone, or it was told to end */
	bool is_late;	    /* and was killed as it did not end */
	char program[FGV_NAME_MAX];
	char label[LABEL_LEN]; /* begins its log lines */
};

int fgv_sessions_init(struct fgv_sessions *sessions, const struct fgv_config *config,
		      struct fgv_warm *warm, int loop, char *why, size_t why_len)
{
	int ret;

	*sessions = (struct fgv_sessions){.config = config, .warm = warm, .loop = loop};
	LIST_INIT(&sessions->list);
	ret = fgv_window_layout(&sessions->layout, config->window_bytes, (uint32_t)config->lanes);
	if (ret)
		snprintf(why, why_len, "a window of this size can't be laid out");
	return ret;
}

/* --- The connection ---------------------------------------------------------- */

static void drop_connection(struct fgv_session *session)
{
	if (session->connection.fd < 0)
		return;
	fgv_loop_remove(session->sessions->loop, &session->connection);
	close(session->connection.fd);
	session->connection.fd = -1;
}

/* Nothing is charged for it in a moment: the VM's other sessions may wait for that. */
static void mark_ending(struct fgv_session *session)
{
	if (session->ending_ns)
		return;
	session->ending_ns = fgv_now_ns();
	fgv_vm_set_ending(session->vm, session->account);
	fgv_gpusched_session_ending(session->sched);
}

static void connection_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_session *session = (struct fgv_session *)watch;

	(void)events;
	mark_ending(session);
	drop_connection(session);
}

/*
 * A copy of the connection is kept, whose end says that the program has gone, and by which the
 * program is told why its session ends. Nothing is read from it.
 */
static int watch_connection(struct fgv_session *session, int fd)
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

static void look_at_connections(struct fgv_sessions *sessions, const struct fgv_vm *vm)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->vm == vm)
			look_at_connection(session);
	}
}

bool fgv_sessions_must_wait(struct fgv_sessions *sessions, struct fgv_vm *vm)
{
	look_at_connections(sessions, vm);
	return fgv_vm_is_full(vm) && fgv_vm_has_ending(vm);
}

/* --- The start --------------------------------------------------------------- */

static void fill_setup(const struct fgv_sessions *sessions, const struct fgv_session *session,
		       const struct fgv_client_window *window, struct fgv_setup *setup)
{
	const struct fgv_window *layout = &sessions->layout;
	bool pays = sessions->config->context_memory;
	const struct fgv_config_vm *vm = session->vm->config;
	uint64_t soft_bytes = session->vm->device->soft ? sessions->config->soft_memory_bytes : 0;

	*setup = (struct fgv_setup){
		.session = session->number,
		.account = session->account,
		.window_off = window->off,
		.window_len = layout->len,
		.lanes_off = layout->lanes_off,
		.arena_off = layout->arena_off,
		.arena_len = layout->arena_len,
		.staging_len = layout->staging_len,
		.slice_ns = sessions->config->slice_ns,
		.idle_ns = sessions->config->idle_ns,
		.context_bytes = pays ? fgv_device_context_bytes(session->vm->device) : 0,
		.data_bytes = vm->process_memory_bytes + soft_bytes,
		.file_bytes = FILE_MAX + soft_bytes,
		.threads = fgv_vm_threads(vm),
		.uid = vm->uid,
		.lanes = layout->lanes,
		.is_substitute = session->vm->device->is_substitute,
		.batching = sessions->config->batching,
		.engines = session->vm->copying[0] != NULL,
	};
	snprintf(setup->vm, sizeof(setup->vm), "%s", vm->name);
	snprintf(setup->program, sizeof(setup->program), "%s", session->program);
}

/* --- What its process says ------------------------------------------------- */

static void unwatch(struct fgv_session *session)
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
				    session->label, sessions->config->record);
}

static void take_serving(struct fgv_session *session)
{
	struct fgv_sessions *sessions = session->sessions;

	unwatch(session);
	if (session->ending_ns) {
		fgv_holding_fini(&session->holding);
		return;
	}
	if (!fgv_holding_begin(&session->holding, sessions->config, session->vm->device,
			       session->sched, session->pid, session->label, &sessions->hold_told))
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
		unwatch(session);
}

static void watch_control(struct fgv_session *session)
{
	session->control.fd = session->control_fd;
	session->is_watched =
		fgv_loop_add(session->sessions->warm->loop, &session->control, EPOLLIN) == 0;
}

/* --- Its beginning ---------------------------------------------------------- */

static int hand_over_with(const struct fgv_sessions *sessions, struct fgv_session *session,
			  const struct fgv_client *client, const struct fgv_client_window *window,
			  const int grant_fds[FGV_SETUP_GRANT_FDS], int images_fd)
{
	int fds[FGV_SETUP_FDS] = {
		[FGV_SETUP_CONNECTION] = client->fd,
		[FGV_SETUP_WINDOW] = window->fd,
		[FGV_SETUP_DOORBELL] = window->doorbell_fd,
		[FGV_SETUP_ALLOWANCE] = session->vm->allowance_fd,
		[FGV_SETUP_ACCOUNTS] = session->vm->accounts_read_fd,
		[FGV_SETUP_ACCOUNT] = session->vm->accounts_fd,
		[FGV_SETUP_CGROUP] = session->vm->cgroup_fd,
		[FGV_SETUP_IMAGES] = images_fd,
	};
	struct fgv_setup setup;

	memcpy(&fds[FGV_SETUP_GRANT], grant_fds, FGV_SETUP_GRANT_FDS * sizeof(int));
	fill_setup(sessions, session, window, &setup);
	return fgv_warm_assign(sessions->warm, (unsigned)session->vm->config->device, &setup, fds,
			       &session->pid, &session->control_fd);
}

/* With a line to the keeper of its VM's images. */
static int hand_over(const struct fgv_sessions *sessions, struct fgv_session *session,
		     const struct fgv_client *client, const struct fgv_client_window *window,
		     const int grant_fds[FGV_SETUP_GRANT_FDS])
{
	struct fgv_vm *vm = session->vm;
	int fd = fgv_keeper_connect(&session->images, &vm->keeper, sessions->warm->vgpu_path,
				    vm->cgroup_fd, sessions->loop);
	int ret;

	if (fd < 0)
		return fd;
	ret = hand_over_with(sessions, session, client, window, grant_fds, fd);
	close(fd);
	if (ret)
		fgv_keeper_hang_up(&session->images);
	return ret;
}

/* With a window and a doorbell of its own, neither of which is kept. */
static int hand_over_new(const struct fgv_sessions *sessions, struct fgv_session *session,
			 const struct fgv_client *client, const int grant_fds[FGV_SETUP_GRANT_FDS])
{
	struct fgv_client_window window = {.fd = fgv_window_create(&sessions->layout)};
	int ret;

	if (window.fd < 0)
		return window.fd;
	window.doorbell_fd = fgv_doorbell_create();
	ret = window.doorbell_fd;
	if (ret >= 0) {
		ret = hand_over(sessions, session, client, &window, grant_fds);
		close(window.doorbell_fd);
	}
	close(window.fd);
	return ret;
}

/* Finds the session a process. On failure there is none to get rid of. */
static int find_process(const struct fgv_sessions *sessions, struct fgv_session *session,
			const struct fgv_client *client, const int grant_fds[FGV_SETUP_GRANT_FDS])
{
	if (!client->window)
		return hand_over_new(sessions, session, client, grant_fds);
	return hand_over(sessions, session, client, client->window, grant_fds);
}

/* *@use: of the engine that computes, but for why the process was killed. */
static void detach_share(struct fgv_session *session, struct fgv_gpusched_stats *use)
{
	struct fgv_gpusched_stats copying = {0};
	const char *killed_for = NULL;

	for (unsigned i = 0; i < FGV_COPY_ENGINES; i++) {
		if (!session->copying[i])
			continue;
		fgv_gpusched_detach_session(session->copying[i], &copying);
		session->copying[i] = NULL;
		killed_for = copying.killed_for ? copying.killed_for : killed_for;
	}
	fgv_gpusched_detach_session(session->sched, use);
	if (use && !use->killed_for)
		use->killed_for = killed_for;
}

/* Where engines are not granted by themselves, the descriptors of the one grant stand for all. */
static int attach_share(struct fgv_session *session, int fds[FGV_SETUP_GRANT_FDS])
{
	int ret = fgv_gpusched_attach_session(session->vm->vgpu, session->label, &session->sched,
					      fds);

	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++) {
		int *own = &fds[3 * (i + 1)];

		if (session->vm->copying[i])
			ret = fgv_gpusched_attach_session(session->vm->copying[i], session->label,
							  &session->copying[i], own);
		else
			memcpy(own, fds, 3 * sizeof(int));
		if (ret)
			detach_share(session, NULL);
	}
	return ret;
}

static void tell_started(struct fgv_session *session)
{
	fgv_gpusched_session_started(session->sched, session->pid);
	for (unsigned i = 0; i < FGV_COPY_ENGINES; i++) {
		if (session->copying[i])
			fgv_gpusched_session_started(session->copying[i], session->pid);
	}
}

static int start(const struct fgv_sessions *sessions, struct fgv_session *session,
		 const struct fgv_client *client)
{
	const struct fgv_cosched_owner owner = {
		.pid = client->pid,
		.uid = client->uid,
		.vcpus = client->window ? &session->vm->vcpus : NULL,
	};
	int grant_fds[FGV_SETUP_GRANT_FDS];
	int ret = attach_share(session, grant_fds);

	if (ret)
		return ret;
	fgv_gpusched_session_guest(session->sched, &owner);
	ret = find_process(sessions, session, client, grant_fds);
	if (ret)
		detach_share(session, NULL);
	else
		tell_started(session);
	return ret;
}

static CUresult refuse_start(struct fgv_session *session, int error, char *text, size_t text_len)
{
	struct fgv_account last;

	fgv_error("vm %s: can't start a session: %s", session->vm->config->name, strerror(-error));
	snprintf(text, text_len, "the session can't be started: %s", strerror(-error));
	fgv_vm_put_account(session->vm, session->account, &last);
	drop_connection(session);
	free(session);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

static bool take_start(const struct fgv_rate *rate, struct fgv_rate_bucket *bucket, const char *who,
		       char *text, size_t text_len)
{
	uint64_t now_ns = fgv_now_ns();

	if (fgv_rate_take(rate, bucket, now_ns))
		return true;
	snprintf(text, text_len,
		 "%s starts sessions too often: %llu a second at most (key starts); the next one "
		 "in %u ms",
		 who, (unsigned long long)rate->per_second, fgv_rate_wait_ms(rate, bucket, now_ns));
	return false;
}

/* The user is asked first, who may not use up what is the VM's. */
static bool may_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
		      const struct fgv_client *client, char *text, size_t text_len)
{
	const struct fgv_rate rate = {
		.per_second = sessions->config->starts,
		.burst = sessions->config->starts_burst,
	};
	char who[FGV_NAME_MAX + 16];

	snprintf(who, sizeof(who), "user %u", (unsigned)client->uid);
	if (client->is_user &&
	    !take_start(&rate, fgv_rate_user(&sessions->starts, client->uid, fgv_now_ns()), who,
			text, text_len))
		return false;
	snprintf(who, sizeof(who), "VM %s", vm->config->name);
	return take_start(&rate, &vm->starts, who, text, text_len);
}

CUresult fgv_sessions_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
			    const struct fgv_client *client, char *text, size_t text_len)
{
	struct fgv_session *session;
	int account, ret;

	if (!may_start(sessions, vm, client, text, text_len))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	/* NVIDIA's driver goes on without MPS where it meets none. */
	if (!sessions->mps->ready) {
		snprintf(text, text_len, "NVIDIA's MPS is not ready; try again later");
		return CUDA_ERROR_MPS_SERVER_NOT_READY;
	}
	/* Whatever it needs of theirs it waits for. */
	look_at_connections(sessions, vm);
	account = fgv_vm_take_account(vm);
	if (account < 0) {
		snprintf(text, text_len, "VM %s has %llu sessions, as many as it may have",
			 vm->config->name, (unsigned long long)vm->config->sessions);
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	session = calloc(1, sizeof(*session));
	if (!session) {
		struct fgv_account last;

		fgv_vm_put_account(vm, (unsigned)account, &last);
		snprintf(text, text_len, "the daemon is out of memory");
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	session->sessions = sessions;
	session->control.ready = control_ready;
	fgv_refusals_init(&session->refusals);
	fgv_holding_init(&session->holding);
	session->vm = vm;
	session->account = (unsigned)account;
	session->number = ++sessions->last_number;
	session->uid = client->uid;
	session->client_pid = client->pid;
	session->guest_pid = client->guest_pid;
	session->started_ns = fgv_now_ns();
	snprintf(session->program, sizeof(session->program), "%s", client->program);
	snprintf(session->label, sizeof(session->label), "session %u: vm %s, program \"%s\"",
		 session->number, vm->config->name, session->program);
	ret = watch_connection(session, client->fd);
	if (!ret)
		ret = start(sessions, session, client);
	if (ret)
		return refuse_start(session, ret, text, text_len);
	LIST_INSERT_HEAD(&sessions->list, session, link);
	sessions->count++;
	if (sessions->journal)
		fgv_journal_add(sessions->journal, session->pid);
	watch_control(session);
	fgv_info("%s (process %d of user %u), served by process %d", session->label,
		 (int)client->pid, (unsigned)client->uid, (int)session->pid);
	return CUDA_SUCCESS;
}

static enum fgv_log_level describe_end(const struct fgv_session *session, const siginfo_t *end,
				       const char *why, char *how, size_t len)
{
	if (end->si_code == CLD_EXITED) {
		snprintf(how, len, "ended with status %d", end->si_status);
		return FGV_LOG_INFO;
	}
	if (session->is_late)
		why = "it did not end after its program";
	snprintf(how, len, "killed by signal %d (%s)%s%s%s", end->si_status,
		 strsignal(end->si_status), why ? ", as " : "", why ? why : "", why ? "," : "");
	if (session->is_late)
		return FGV_LOG_WARNING;
	return session->control_fd < 0 ? FGV_LOG_INFO : FGV_LOG_WARNING;
}

/* What the program hears of it, if it is still there and was told nothing before. */
static void tell_end(const struct fgv_session *session, const siginfo_t *end,
		     const struct fgv_gpusched_stats *use)
{
	char why[FGV_END_TEXT_MAX];

	if (session->connection.fd < 0)
		return;
	if (use->killed_for)
		snprintf(why, sizeof(why), "the host has ended it: %s", use->killed_for);
	else if (end->si_code == CLD_EXITED)
		snprintf(why, sizeof(why), "its process on the host has ended");
	else
		snprintf(why, sizeof(why), "its process on the host was killed by signal %d (%s)",
			 end->si_status, strsignal(end->si_status));
	fgv_hello_end(session->connection.fd, why);
}

/* The one line that closes a session's story. A vGPU process says itself why it exits. */
static void log_end(const struct fgv_session *session, const siginfo_t *end,
		    const struct fgv_account *last, const struct fgv_gpusched_stats *use)
{
	char how[160];
	enum fgv_log_level level = describe_end(session, end, use->killed_for, how, sizeof(how));
	const struct fgv_sched_stats *sched = &use->sched;

	fgv_log(level,
		"%s: %s after %.3f s, %llu requests, %llu round trips, %llu launches; GPU %.3f s "
		"in %llu grants, %.3f ms overrun, waits p50 %.3f ms p99 %.3f "
		"ms, %llu stalls",
		session->label, how, (double)(fgv_now_ns() - session->started_ns) / FGV_NS_PER_SEC,
		(unsigned long long)last->requests, (unsigned long long)last->round_trips,
		(unsigned long long)last->launches, (double)sched->gpu_ns / FGV_NS_PER_SEC,
		(unsigned long long)sched->grants, (double)sched->overrun_ns / FGV_NS_PER_MS,
		(double)fgv_hist_quantile_ns(&sched->wait, 500) / FGV_NS_PER_MS,
		(double)fgv_hist_quantile_ns(&sched->wait, 990) / FGV_NS_PER_MS,
		(unsigned long long)use->stalls);
}

/* Takes a session off all books; @end: how its process has ended, NULL if it has not. */
static void forget(struct fgv_sessions *sessions, struct fgv_session *session, const siginfo_t *end,
		   struct fgv_account *last, struct fgv_gpusched_stats *use)
{
	unwatch(session);
	fgv_keeper_hang_up(&session->images);
	fgv_refusals_fini(&session->refusals);
	fgv_holding_fini(&session->holding);
	detach_share(session, use);
	if (end)
		tell_end(session, end, use);
	fgv_device_forget(session->vm->device, session->pid);
	fgv_vm_put_account(session->vm, session->account, last);
	drop_connection(session);
	if (session->control_fd >= 0)
		close(session->control_fd);
	if (end && sessions->journal)
		fgv_journal_remove(sessions->journal, session->pid);
	LIST_REMOVE(session, link);
	sessions->count--;
}

/* The process has ended and waits to be reaped: until then nobody else has its id. */
static void end_session(struct fgv_sessions *sessions, struct fgv_session *session,
			const siginfo_t *end)
{
	struct fgv_gpusched_stats use;
	struct fgv_account last;

	if (end->si_code != CLD_EXITED || end->si_status)
		fgv_warm_suspect(sessions->warm, (unsigned)session->vm->config->device);
	forget(sessions, session, end, &last, &use);
	log_end(session, end, &last, &use);
	waitpid(session->pid, NULL, 0);
	free(session);
}

void fgv_sessions_reap(struct fgv_sessions *sessions)
{
	struct fgv_session *session, *after;

	for (session = LIST_FIRST(&sessions->list); session; session = after) {
		siginfo_t end = {0};

		after = LIST_NEXT(session, link);
		if (!waitid(P_PID, (id_t)session->pid, &end, WEXITED | WNOHANG | WNOWAIT) &&
		    end.si_pid)
			end_session(sessions, session, &end);
	}
}

void fgv_sessions_fini(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	while ((session = LIST_FIRST(&sessions->list))) {
		struct fgv_gpusched_stats use;
		struct fgv_account last;

		fgv_error("%s: process %d does not die", session->label, (int)session->pid);
		forget(sessions, session, NULL, &last, &use);
		free(session);
	}
}

void fgv_session_end(struct fgv_session *session, const char *why)
{
	if (session->control_fd < 0)
		return;
	if (session->connection.fd >= 0)
		fgv_hello_end(session->connection.fd, why);
	mark_ending(session);
	unwatch(session);
	close(session->control_fd);
	session->control_fd = -1;
}

void fgv_sessions_end(struct fgv_sessions *sessions, const char *why)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		fgv_session_end(session, why);
}

/* When it is killed if it has not ended by then; 0: it is not, or has been. */
static uint64_t kill_at_ns(const struct fgv_session *session)
{
	bool is_shared = session->sessions->config->context == FGV_CONTEXT_MPS;

	if (!session->ending_ns || session->is_late)
		return 0;
	return session->ending_ns +
	       (is_shared ? SHARED_KILL_MS : FGV_ENDING_KILL_MS) * FGV_NS_PER_MS;
}

uint64_t fgv_sessions_deadline_ns(const struct fgv_sessions *sessions)
{
	const struct fgv_session *session;
	uint64_t deadline_ns = 0;

	LIST_FOREACH(session, &sessions->list, link)
		deadline_ns = fgv_earlier_ns(deadline_ns, kill_at_ns(session));
	return deadline_ns;
}

void fgv_sessions_tick(struct fgv_sessions *sessions)
{
	uint64_t now_ns = fgv_now_ns();
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		uint64_t at_ns = kill_at_ns(session);

		if (!at_ns || now_ns < at_ns)
			continue;
		session->is_late = true;
		kill(session->pid, SIGKILL);
	}
}

void fgv_sessions_signal(struct fgv_sessions *sessions, int signal)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		kill(session->pid, signal);
}

void fgv_sessions_kill(struct fgv_sessions *sessions, uint32_t number, const char *why)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->number != number || session->is_killed)
			continue;
		session->is_killed = true;
		fgv_error("%s: killed: %s", session->label, why);
		kill(session->pid, SIGKILL);
	}
}

void fgv_sessions_find_vcpus(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		fgv_gpusched_find_vcpu(session->sched);
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
	fgv_gpusched_session_stats(session->sched, &view->stats);
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
