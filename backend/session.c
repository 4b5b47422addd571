/*
 * Sessions; see session.h. A session lives from the start of its process until that
 * has been reaped: while there is a struct fgv_session its process id is not reused.
 */
#define _GNU_SOURCE
#include "backend/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/cosched.h"
#include "backend/mps.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

#define LABEL_LEN (2 * FGV_NAME_MAX + 64)

struct fgv_session {
	LIST_ENTRY(fgv_session) link;
	struct fgv_vm *vm;
	struct fgv_gpusched_session *sched;
	pid_t pid;
	pid_t client_pid;
	int control_fd; /* its end ends the process; -1: told already */
	uint32_t number;
	unsigned account;
	uid_t uid;
	uint64_t started_ns;
	char program[FGV_NAME_MAX];
	char label[LABEL_LEN]; /* begins its log lines */
};

int fgv_sessions_init(struct fgv_sessions *sessions, const struct fgv_config *config,
		      struct fgv_warm *warm, char *why, size_t why_len)
{
	int ret;

	*sessions = (struct fgv_sessions){.config = config, .warm = warm};
	LIST_INIT(&sessions->list);
	ret = fgv_window_layout(&sessions->layout, config->window_bytes, (uint32_t)config->lanes);
	if (ret)
		snprintf(why, why_len, "a window of this size can't be laid out");
	return ret;
}

static void fill_setup(const struct fgv_sessions *sessions, const struct fgv_session *session,
		       const struct fgv_client_window *window, struct fgv_setup *setup)
{
	const struct fgv_window *layout = &sessions->layout;

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
		.lanes = layout->lanes,
	};
	snprintf(setup->vm, sizeof(setup->vm), "%s", session->vm->config->name);
	snprintf(setup->program, sizeof(setup->program), "%s", session->program);
}

static int hand_over(const struct fgv_sessions *sessions, struct fgv_session *session,
		     const struct fgv_client *client, const struct fgv_client_window *window,
		     const int grant_fds[3])
{
	int fds[FGV_SETUP_FDS] = {
		[FGV_SETUP_CONNECTION] = client->fd,
		[FGV_SETUP_WINDOW] = window->fd,
		[FGV_SETUP_DOORBELL] = window->doorbell_fd,
		[FGV_SETUP_ACCOUNTS] = session->vm->accounts_fd,
	};
	struct fgv_setup setup;

	memcpy(&fds[FGV_SETUP_GRANT], grant_fds, 3 * sizeof(int));
	fill_setup(sessions, session, window, &setup);
	return fgv_warm_assign(sessions->warm, (unsigned)session->vm->config->device, &setup, fds,
			       &session->pid, &session->control_fd);
}

/* With a window and a doorbell of its own, neither of which is kept. */
static int hand_over_new(const struct fgv_sessions *sessions, struct fgv_session *session,
			 const struct fgv_client *client, const int grant_fds[3])
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
			const struct fgv_client *client, const int grant_fds[3])
{
	if (!client->window)
		return hand_over_new(sessions, session, client, grant_fds);
	return hand_over(sessions, session, client, client->window, grant_fds);
}

static int start(const struct fgv_sessions *sessions, struct fgv_session *session,
		 const struct fgv_client *client)
{
	const struct fgv_cosched_owner owner = {
		.pid = client->pid,
		.uid = client->uid,
		.vcpus = client->window ? &session->vm->vcpus : NULL,
	};
	int grant_fds[3];
	int ret = fgv_gpusched_attach_session(session->vm->vgpu, session->label, &session->sched,
					      grant_fds);

	if (ret)
		return ret;
	fgv_gpusched_session_guest(session->sched, &owner);
	ret = find_process(sessions, session, client, grant_fds);
	if (ret)
		fgv_gpusched_detach_session(session->sched, NULL);
	else
		fgv_gpusched_session_started(session->sched, session->pid);
	return ret;
}

static CUresult refuse_start(struct fgv_session *session, int error, char *text, size_t text_len)
{
	struct fgv_account last;

	fgv_error("vm %s: can't start a session: %s", session->vm->config->name, strerror(-error));
	snprintf(text, text_len, "the session can't be started: %s", strerror(-error));
	fgv_vm_put_account(session->vm, session->account, &last);
	free(session);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult fgv_sessions_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
			    const struct fgv_client *client, char *text, size_t text_len)
{
	struct fgv_session *session;
	int account, ret;

	/* NVIDIA's driver goes on without MPS where it meets none. */
	if (!sessions->mps->ready) {
		snprintf(text, text_len, "NVIDIA's MPS is not ready; try again later");
		return CUDA_ERROR_MPS_SERVER_NOT_READY;
	}
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
	session->vm = vm;
	session->account = (unsigned)account;
	session->number = ++sessions->last_number;
	session->uid = client->uid;
	session->client_pid = client->pid;
	session->started_ns = fgv_now_ns();
	snprintf(session->program, sizeof(session->program), "%s", client->program);
	snprintf(session->label, sizeof(session->label), "session %u: vm %s, program \"%s\"",
		 session->number, vm->config->name, session->program);
	ret = start(sessions, session, client);
	if (ret)
		return refuse_start(session, ret, text, text_len);
	LIST_INSERT_HEAD(&sessions->list, session, link);
	sessions->count++;
	fgv_info("%s (process %d of user %u), served by process %d", session->label,
		 (int)client->pid, (unsigned)client->uid, (int)session->pid);
	return CUDA_SUCCESS;
}

static enum fgv_log_level describe_end(const struct fgv_session *session, const siginfo_t *end,
				       bool hung, char *how, size_t len)
{
	if (end->si_code == CLD_EXITED) {
		snprintf(how, len, "ended with status %d", end->si_status);
		return FGV_LOG_INFO;
	}
	snprintf(how, len, "killed by signal %d (%s)%s", end->si_status, strsignal(end->si_status),
		 hung ? " as it did not give the GPU back" : "");
	return session->control_fd < 0 ? FGV_LOG_INFO : FGV_LOG_WARNING;
}

/* The one line that closes a session's story. A vGPU process says itself why it exits. */
static void log_end(const struct fgv_session *session, const siginfo_t *end,
		    const struct fgv_account *last, const struct fgv_gpusched_stats *use)
{
	char how[128];
	enum fgv_log_level level = describe_end(session, end, use->hung, how, sizeof(how));
	const struct fgv_sched_stats *sched = &use->sched;

	fgv_log(level,
		"%s: %s after %.3f s, %llu requests, %llu round trips, %llu launches, %llu bytes "
		"in use; GPU %.3f s in %llu grants, %.3f ms overrun, waits p50 %.3f ms p99 %.3f "
		"ms, %llu stalls",
		session->label, how, (double)(fgv_now_ns() - session->started_ns) / FGV_NS_PER_SEC,
		(unsigned long long)last->requests, (unsigned long long)last->round_trips,
		(unsigned long long)last->launches, (unsigned long long)last->memory_bytes,
		(double)sched->gpu_ns / FGV_NS_PER_SEC, (unsigned long long)sched->grants,
		(double)sched->overrun_ns / FGV_NS_PER_MS,
		(double)fgv_hist_quantile_ns(&sched->wait, 500) / FGV_NS_PER_MS,
		(double)fgv_hist_quantile_ns(&sched->wait, 990) / FGV_NS_PER_MS,
		(unsigned long long)use->stalls);
}

/* Takes a session off all books. */
static void forget(struct fgv_sessions *sessions, struct fgv_session *session,
		   struct fgv_account *last, struct fgv_gpusched_stats *use)
{
	fgv_gpusched_detach_session(session->sched, use);
	fgv_device_forget(session->vm->device, session->pid);
	fgv_vm_put_account(session->vm, session->account, last);
	if (session->control_fd >= 0)
		close(session->control_fd);
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
	forget(sessions, session, &last, &use);
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
		forget(sessions, session, &last, &use);
		free(session);
	}
}

void fgv_sessions_end(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		close(session->control_fd);
		session->control_fd = -1;
	}
}

void fgv_sessions_signal(struct fgv_sessions *sessions, int signal)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		kill(session->pid, signal);
}

void fgv_sessions_find_vcpus(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		fgv_gpusched_find_vcpu(session->sched);
}

bool fgv_sessions_has(const struct fgv_sessions *sessions, uint32_t number)
{
	const struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->number == number)
			return true;
	}
	return false;
}

void fgv_session_look(const struct fgv_session *session, struct fgv_session_view *view)
{
	*view = (struct fgv_session_view){
		.number = session->number,
		.program = session->program,
		.pid = session->client_pid,
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
