/*
 * A device's scheduler: set-up, figures, and the thread; see gpusched.h. What the thread does
 * in a turn is in gpusched_turn.c.
 *
 * Lock order: there is the one lock. The thread gives it up while it sleeps or pauses.
 */
#define _GNU_SOURCE
#include "backend/sched/gpusched_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "backend/memory.h"
#include "backend/sched/gpugangs.h"
#include "common/util.h"
#include "shmring/park.h"

/* A look at the holders' words costs next to nothing, a whole turn a microsecond. */
#define LOOKS_PER_TURN 32

/* --- The thread ------------------------------------------------------------ */

static void sleep_until(struct fgv_gpusched *gpusched, uint64_t until_ns)
{
	pthread_mutex_unlock(&gpusched->lock);
	fgv_bells_sleep(&gpusched->bells, until_ns);
	pthread_mutex_lock(&gpusched->lock);
}

/* For a moment; false if this process is not to spin. */
static bool pause_moment(struct fgv_gpusched *gpusched)
{
	if (fgv_spin_again(&gpusched->spin))
		return true;
	gpusched->spin = fgv_spin_start();
	return fgv_spin_again(&gpusched->spin);
}

/* Until a grant has come back, but a few moments at most; false if it is better to sleep. */
static bool watch(struct fgv_gpusched *gpusched)
{
	bool spins = true;

	for (int i = 0; i < LOOKS_PER_TURN && spins && !fgv_gpusched_has_news(gpusched); i++) {
		pthread_mutex_unlock(&gpusched->lock);
		spins = pause_moment(gpusched);
		pthread_mutex_lock(&gpusched->lock);
	}
	return spins;
}

static void serve(void *arg)
{
	struct fgv_gpusched *gpusched = arg;

	prctl(PR_SET_TIMERSLACK, 1);
	pthread_mutex_lock(&gpusched->lock);
	while (!gpusched->stopping) {
		bool close;
		uint64_t until_ns = fgv_gpusched_turn(gpusched, &close);

		if (!close || !watch(gpusched))
			sleep_until(gpusched, until_ns);
	}
	pthread_mutex_unlock(&gpusched->lock);
}

static void stop_thread(struct fgv_gpusched *gpusched)
{
	pthread_mutex_lock(&gpusched->lock);
	gpusched->stopping = true;
	pthread_mutex_unlock(&gpusched->lock);
	fgv_bells_join(&gpusched->bells);
}

/* --- Set-up ---------------------------------------------------------------- */

/* From now on nobody knocks here. */
static void leave_gangs(const struct fgv_gpusched *gpusched)
{
	if (gpusched->config.gangs)
		fgv_gpugangs_leave(gpusched->config.gangs, gpusched->config.number);
}

int fgv_gpusched_create(struct fgv_gpusched **out, const struct fgv_gpusched_config *config)
{
	struct fgv_gpusched *gpusched = calloc(1, sizeof(*gpusched));
	int ret;

	if (!gpusched)
		return -ENOMEM;
	fgv_spin_init();
	gpusched->config = *config;
	pthread_mutex_init(&gpusched->lock, NULL);
	LIST_INIT(&gpusched->holders);
	LIST_INIT(&gpusched->favoured);
	LIST_INIT(&gpusched->loose);
	ret = fgv_sched_create(&gpusched->sched, config->policy, &config->params, fgv_now_ns());
	if (ret)
		goto free_gpusched;
	ret = fgv_bells_init(&gpusched->bells);
	if (ret)
		goto destroy_sched;
	if (config->gangs) {
		fgv_sched_join_gangs(gpusched->sched, config->gangs->gangs, config->number);
		fgv_gpugangs_join(config->gangs, config->number, &gpusched->bells);
	}
	ret = fgv_bells_start(&gpusched->bells, serve, gpusched);
	if (ret)
		goto close_bells;
	*out = gpusched;
	return 0;
close_bells:
	leave_gangs(gpusched);
	fgv_bells_fini(&gpusched->bells);
destroy_sched:
	fgv_sched_destroy(gpusched->sched);
free_gpusched:
	pthread_mutex_destroy(&gpusched->lock);
	free(gpusched);
	return ret;
}

void fgv_gpusched_destroy(struct fgv_gpusched *gpusched)
{
	if (!gpusched)
		return;
	leave_gangs(gpusched);
	stop_thread(gpusched);
	fgv_bells_fini(&gpusched->bells);
	fgv_sched_destroy(gpusched->sched);
	pthread_mutex_destroy(&gpusched->lock);
	free(gpusched);
}

int fgv_gpusched_attach_vgpu(struct fgv_gpusched *gpusched, uint32_t weight,
			     struct fgv_gpusched_vgpu **out)
{
	struct fgv_gpusched_vgpu *vgpu = calloc(1, sizeof(*vgpu));
	int ret;

	if (!vgpu)
		return -ENOMEM;
	vgpu->gpusched = gpusched;
	LIST_INIT(&vgpu->sessions);
	pthread_mutex_lock(&gpusched->lock);
	ret = fgv_gpusched_levels_attach(vgpu, weight);
	pthread_mutex_unlock(&gpusched->lock);
	if (ret)
		free(vgpu);
	else
		*out = vgpu;
	return ret;
}

void fgv_gpusched_detach_vgpu(struct fgv_gpusched_vgpu *vgpu)
{
	pthread_mutex_lock(&vgpu->gpusched->lock);
	fgv_gpusched_levels_detach(vgpu);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	free(vgpu);
}

int fgv_gpusched_set_weight(struct fgv_gpusched_vgpu *vgpu, uint32_t weight)
{
	int ret;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	ret = fgv_gpusched_levels_weigh(vgpu, weight);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return ret;
}

int fgv_gpusched_set_gang(struct fgv_gpusched_vgpu *vgpu, struct fgv_gang *gang)
{
	int ret;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	ret = fgv_sched_set_gang(vgpu->sched, gang);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return ret;
}

uint32_t fgv_gpusched_weight(const struct fgv_gpusched_vgpu *vgpu)
{
	uint32_t weight;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	weight = fgv_sched_vgpu_weight(vgpu->sched);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return weight;
}

const char *fgv_gpusched_policy(struct fgv_gpusched *gpusched)
{
	const char *name;

	pthread_mutex_lock(&gpusched->lock);
	name = fgv_sched_policy(gpusched->sched)->name;
	pthread_mutex_unlock(&gpusched->lock);
	return name;
}

/* --- Sessions -------------------------------------------------------------- */

static int open_session(struct fgv_gpusched_session *session)
{
	void *memory;
	int ret;

	session->grant_fd = fgv_memory_create("fairgv-grant", sizeof(*session->grant), &memory);
	if (session->grant_fd < 0)
		return session->grant_fd;
	session->grant = memory;
	session->bell_fd = fgv_doorbell_create();
	ret = session->bell_fd;
	if (ret < 0)
		goto close_grant;
	session->sched_bell_fd = fgv_doorbell_create();
	ret = session->sched_bell_fd;
	if (ret >= 0)
		return 0;
	close(session->bell_fd);
close_grant:
	munmap(session->grant, sizeof(*session->grant));
	close(session->grant_fd);
	return ret;
}

static void close_session(struct fgv_gpusched_session *session)
{
	close(session->sched_bell_fd);
	close(session->bell_fd);
	munmap(session->grant, sizeof(*session->grant));
	if (session->grant_fd >= 0)
		close(session->grant_fd);
}

/* Lets an open session in. */
static int enter(struct fgv_gpusched_session *session)
{
	struct fgv_gpusched_vgpu *vgpu = session->vgpu;
	int ret;

	pthread_mutex_lock(&vgpu->gpusched->lock);
	session->attached_ns = fgv_now_ns();
	ret = fgv_sched_attach_session(vgpu->sched, session, session->attached_ns, &session->sched);
	if (ret)
		goto unlock;
	ret = fgv_bells_watch(&vgpu->gpusched->bells, session->sched_bell_fd, session);
	if (ret)
		fgv_sched_detach_session(session->sched, 0, session->attached_ns);
	else
		LIST_INSERT_HEAD(&vgpu->sessions, session, vgpu_link);
unlock:
	pthread_mutex_unlock(&vgpu->gpusched->lock);
	return ret;
}

int fgv_gpusched_attach_session(struct fgv_gpusched_vgpu *vgpu,
				const struct fgv_log_subject *subject,
				struct fgv_gpusched_session **out, int fds[3])
{
	struct fgv_gpusched_session *session = calloc(1, sizeof(*session));
	int ret;

	if (!session)
		return -ENOMEM;
	session->vgpu = vgpu;
	session->favour = FGV_GPUSCHED_NOBODY;
	session->vcpu = FGV_GPUSCHED_NOBODY;
	session->subject = *subject;
	ret = open_session(session);
	if (ret)
		goto free_session;
	ret = enter(session);
	if (ret)
		goto close_session;
	fds[0] = session->grant_fd;
	fds[1] = session->bell_fd;
	fds[2] = session->sched_bell_fd;
	*out = session;
	return 0;
close_session:
	close_session(session);
free_session:
	free(session);
	return ret;
}

void fgv_gpusched_session_guest(struct fgv_gpusched_session *session,
				const struct fgv_cosched_owner *owner)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;
	struct fgv_cosched_guest *guest = NULL;

	if (gpusched->config.cosched)
		guest = fgv_cosched_attach(gpusched->config.cosched, owner);
	pthread_mutex_lock(&gpusched->lock);
	session->guest = guest;
	pthread_mutex_unlock(&gpusched->lock);
}

void fgv_gpusched_find_vcpu(struct fgv_gpusched_session *session)
{
	pthread_mutex_t *lock = &session->vgpu->gpusched->lock;
	pid_t thread;
	int32_t vcpu;

	if (!session->guest)
		return;
	pthread_mutex_lock(lock);
	vcpu = fgv_cosched_asks(session->guest);
	pthread_mutex_unlock(lock);
	if (vcpu == FGV_GPUSCHED_NOBODY)
		return;
	thread = fgv_cosched_find(session->guest, vcpu);
	pthread_mutex_lock(lock);
	fgv_cosched_learn(session->guest, vcpu, thread);
	pthread_mutex_unlock(lock);
}

void fgv_gpusched_session_started(struct fgv_gpusched_session *session, pid_t pid)
{
	close(session->grant_fd);
	session->grant_fd = -1;
	pthread_mutex_lock(&session->vgpu->gpusched->lock);
	session->pid = pid;
	if (session->condemned)
		kill(pid, SIGKILL);
	pthread_mutex_unlock(&session->vgpu->gpusched->lock);
}

void fgv_gpusched_session_hold(struct fgv_gpusched_session *session, struct fgv_hold *hold)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;

	pthread_mutex_lock(&gpusched->lock);
	session->hold = hold;
	fgv_store_ordered(&session->grant->is_holdable, 1);
	fgv_gpusched_hold_loosen(session, fgv_now_ns());
	pthread_mutex_unlock(&gpusched->lock);
	fgv_bells_kick(&gpusched->bells);
}

void fgv_gpusched_session_ending(struct fgv_gpusched_session *session)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;
	struct fgv_hold *hold;

	pthread_mutex_lock(&gpusched->lock);
	hold = session->hold && session->hold->holder->keeps_memory ? session->hold : NULL;
	if (hold) {
		fgv_gpusched_hold_free(session);
		fgv_store_ordered(&session->grant->is_holdable, 0);
		session->hold = NULL;
	}
	pthread_mutex_unlock(&gpusched->lock);
	if (hold)
		hold->holder->forget(hold);
}

void fgv_gpusched_session_wake(struct fgv_gpusched_session *session)
{
	struct fgv_gpusched *gpusched = session->vgpu->gpusched;

	pthread_mutex_lock(&gpusched->lock);
	fgv_gpusched_wake(session);
	pthread_mutex_unlock(&gpusched->lock);
}

/* --- Figures --------------------------------------------------------------- */

static void add_session(struct fgv_gpusched_stats *stats,
			const struct fgv_gpusched_session *session)
{
	const struct fgv_grant *grant = session->grant;

	stats->stalls += __atomic_load_n(&grant->stalls, __ATOMIC_RELAXED);
	stats->sync_calls += __atomic_load_n(&grant->sync_calls, __ATOMIC_RELAXED);
	stats->holds += session->holds;
	stats->favoured += session->guest ? fgv_cosched_count(session->guest) : 0;
	stats->interactive |= fgv_sched_interactive(session->sched);
	stats->holding |= session->state == SESSION_HOLDING;
	stats->waiting |= session->state == SESSION_WAITING;
}

void fgv_gpusched_stats_add(struct fgv_gpusched_stats *sum, const struct fgv_gpusched_stats *stats)
{
	fgv_sched_stats_add(&sum->sched, &stats->sched);
	sum->stalls += stats->stalls;
	sum->sync_calls += stats->sync_calls;
	sum->favoured += stats->favoured;
	sum->holds += stats->holds;
	sum->recent_ns += stats->recent_ns;
	sum->interactive |= stats->interactive;
	sum->holding |= stats->holding;
	sum->waiting |= stats->waiting;
	if (!sum->killed_for)
		sum->killed_for = stats->killed_for;
}

static void look_at_session(const struct fgv_gpusched_session *session,
			    struct fgv_gpusched_stats *stats)
{
	*stats = (struct fgv_gpusched_stats){
		.sched = *fgv_sched_session_stats(session->sched),
		.recent_ns = fgv_sched_session_recent_ns(session->sched, fgv_now_ns()),
		.killed_for = session->condemned,
	};
	add_session(stats, session);
}

void fgv_gpusched_session_stats(struct fgv_gpusched_session *session,
				struct fgv_gpusched_stats *stats)
{
	pthread_mutex_lock(&session->vgpu->gpusched->lock);
	fgv_gpusched_charge(session);
	look_at_session(session, stats);
	pthread_mutex_unlock(&session->vgpu->gpusched->lock);
}

void fgv_gpusched_vgpu_stats(struct fgv_gpusched_vgpu *vgpu, struct fgv_gpusched_stats *stats)
{
	struct fgv_gpusched_session *session;

	*stats = (struct fgv_gpusched_stats){0};
	pthread_mutex_lock(&vgpu->gpusched->lock);
	stats->stalls = vgpu->gone_stalls;
	stats->sync_calls = vgpu->gone_sync_calls;
	stats->favoured = vgpu->gone_favoured;
	stats->holds = vgpu->gone_holds;
	LIST_FOREACH(session, &vgpu->sessions, vgpu_link) {
		fgv_gpusched_charge(session);
		add_session(stats, session);
	}
	fgv_gpusched_levels_sum(vgpu, stats);
	pthread_mutex_unlock(&vgpu->gpusched->lock);
}

void fgv_gpusched_detach_session(struct fgv_gpusched_session *session,
				 struct fgv_gpusched_stats *last)
{
	struct fgv_gpusched_vgpu *vgpu = session->vgpu;
	struct fgv_gpusched *gpusched = vgpu->gpusched;
	struct fgv_gpusched_stats stats;

	pthread_mutex_lock(&gpusched->lock);
	fgv_bells_forget(&gpusched->bells, session->sched_bell_fd);
	fgv_gpusched_leave(session);
	look_at_session(session, &stats);
	vgpu->gone_stalls += stats.stalls;
	vgpu->gone_sync_calls += stats.sync_calls;
	vgpu->gone_favoured += stats.favoured;
	vgpu->gone_holds += stats.holds;
	fgv_sched_detach_session(session->sched, 0, fgv_now_ns());
	LIST_REMOVE(session, vgpu_link);
	pthread_mutex_unlock(&gpusched->lock);
	fgv_bells_kick(&gpusched->bells);
	if (last)
		*last = stats;
	if (session->guest)
		fgv_cosched_detach(session->guest);
	if (session->hold)
		session->hold->holder->forget(session->hold);
	close_session(session);
	free(session);
}
