/*
 * The end of sessions: programs that go, processes that are told to end, killed where they do not,
 * and reaped.
 */
#define _GNU_SOURCE
#include "backend/session_priv.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/hello.h"
#include "backend/journal.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"

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
	if (session->is_killed)
		return FGV_LOG_ERROR;
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

/*
 * The one line that closes a session's story, with why it was killed. A vGPU process says itself
 * why it exits.
 */
static void log_end(const struct fgv_session *session, const siginfo_t *end,
		    const struct fgv_account *last, const struct fgv_gpusched_stats *use)
{
	char how[160];
	enum fgv_log_level level = describe_end(session, end, use->killed_for, how, sizeof(how));
	const struct fgv_sched_stats *sched = &use->sched;

	fgv_log_of(level, &session->subject,
		   "%s after %.3f s, %llu requests, %llu round trips, %llu launches; GPU %.3f s "
		   "in %llu grants, %.3f ms overrun, waits p50 %.3f ms p99 %.3f "
		   "ms, %llu stalls",
		   how, (double)(fgv_now_ns() - session->started_ns) / FGV_NS_PER_SEC,
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
	fgv_session_unwatch_control(session);
	fgv_relay_close(session->relay);
	fgv_keeper_hang_up(&session->images);
	fgv_keeper_forget(&session->vm->keeper, &session->images.who);
	fgv_refusals_fini(&session->refusals);
	fgv_holding_fini(&session->holding);
	fgv_session_detach_parts(session, use);
	if (!use->killed_for && *session->killed_for)
		use->killed_for = session->killed_for;
	fgv_session_unplace(session);
	if (end)
		tell_end(session, end, use);
	for (unsigned i = 0; i < session->vm->share_count; i++)
		fgv_device_forget(session->vm->shares[i].device, session->pid);
	fgv_vm_put_account(session->vm, session->account, last);
	fgv_session_drop_connection(session);
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

	if (end->si_code != CLD_EXITED || end->si_status) {
		fgv_warm_suspect(sessions->warm, session->parts[0].share->number);
		session->vm->failed++;
	}
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

		fgv_error_of(&session->subject, "process %d does not die", (int)session->pid);
		forget(sessions, session, NULL, &last, &use);
		free(session);
	}
	fgv_place_destroy(sessions->place);
	sessions->place = NULL;
}

void fgv_session_end(struct fgv_session *session, const char *why)
{
	if (session->control_fd < 0)
		return;
	if (session->connection.fd >= 0)
		fgv_hello_end(session->connection.fd, why);
	fgv_session_mark_ending(session);
	fgv_session_unwatch_control(session);
	close(session->control_fd);
	session->control_fd = -1;
}

void fgv_sessions_end(struct fgv_sessions *sessions, const char *why)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link)
		fgv_session_end(session, why);
}

void fgv_sessions_end_vm(struct fgv_sessions *sessions, const struct fgv_vm *vm, const char *why)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->vm == vm)
			fgv_session_end(session, why);
	}
}

/* When it is killed if it has not ended by then; 0: it is not, or has been. */
static uint64_t kill_at_ns(const struct fgv_session *session)
{
	bool is_shared = session->sessions->config->context == FGV_CONTEXT_MPS;

	if (!session->ending_ns || session->is_late)
		return 0;
	return session->ending_ns +
	       (is_shared ? FGV_ENDING_KILL_MPS_MS : FGV_ENDING_KILL_MS) * FGV_NS_PER_MS;
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
		snprintf(session->killed_for, sizeof(session->killed_for), "%s", why);
		kill(session->pid, SIGKILL);
	}
}

void fgv_sessions_end_lost(struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		if (session->vm->keeper.lost & UINT64_C(1) << session->account)
			fgv_sessions_kill(sessions, session->number,
					  "the process that kept what its VM's programs share has "
					  "ended");
	}
}
