/*
 * The daemon's scheduler of a device, against vGPU processes that are played here: threads
 * that speak grant.h. None asserts a time; what must happen some time is awaited, and what
 * is charged is made exact by holding for as long as is reported.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/gpusched_priv.h"
#include "common/util.h"
#include "shmring/park.h"

#define SLICE_NS       (200 * FGV_NS_PER_US)
#define STARVE_NS      (60 * FGV_NS_PER_SEC)
#define HANG_NS	       FGV_NS_PER_SEC
#define HANG_LIMIT_SEC 60

/* Waits until @condition, which is asked again and again. */
#define AWAIT(condition)                                                                           \
	do {                                                                                       \
		uint64_t until_ns_ = fgv_now_ns() + HANG_LIMIT_SEC * FGV_NS_PER_SEC;               \
		while (!(condition)) {                                                             \
			ck_assert_msg(fgv_now_ns() < until_ns_, "in vain: %s", #condition);        \
			usleep(50);                                                                \
		}                                                                                  \
	} while (0)

/* --- A vGPU process -------------------------------------------------------- */

struct fake {
	struct fgv_gpusched_session *session;
	struct fgv_grant *grant;
	int bell_fd, sched_bell_fd;
	pid_t pid; /* a child that does nothing but be there */
	uint64_t used_ns;
};

static struct fgv_gpusched *gpusched;
static struct fgv_gpusched_vgpu *vgpus[4];

static void start_with(const struct fgv_policy *policy, uint64_t hang_ns)
{
	struct fgv_gpusched_config config = {.policy = policy, .hang_ns = hang_ns};

	fgv_sched_params_init(&config.params);
	config.params.slice_ns = SLICE_NS;
	config.params.starve_ns = STARVE_NS;
	ck_assert_int_eq(fgv_gpusched_create(&gpusched, &config), 0);
	for (size_t i = 0; i < FGV_ARRAY_LEN(vgpus); i++)
		ck_assert_int_eq(fgv_gpusched_attach_vgpu(gpusched, 1, &vgpus[i]), 0);
}

static void start(void)
{
	start_with(&fgv_policy_fair, 0);
}

static void stop(void)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(vgpus); i++)
		fgv_gpusched_detach_vgpu(vgpus[i]);
	fgv_gpusched_destroy(gpusched);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pid == 0)
		pause();
	return pid;
}

/* Like the daemon: what the session keeps is used through copies of its own. */
static void fake_attach(struct fake *fake, struct fgv_gpusched_vgpu *vgpu)
{
	int fds[3];

	*fake = (struct fake){0};
	ck_assert_int_eq(fgv_gpusched_attach_session(vgpu, "session", &fake->session, fds), 0);
	fake->grant =
		mmap(NULL, sizeof(*fake->grant), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	ck_assert(fake->grant != MAP_FAILED);
	fake->bell_fd = dup(fds[1]);
	fake->sched_bell_fd = dup(fds[2]);
	fake->pid = start_child();
	fgv_gpusched_session_started(fake->session, fake->pid);
}

/* Ends the process, however it was left. Returns the signal that killed it before, or 0. */
static int fake_detach(struct fake *fake, struct fgv_gpusched_stats *last)
{
	siginfo_t end = {0};
	int killed;

	waitid(P_PID, (id_t)fake->pid, &end, WEXITED | WNOHANG | WNOWAIT);
	killed = end.si_pid ? end.si_status : 0;
	kill(fake->pid, SIGKILL);
	waitid(P_PID, (id_t)fake->pid, &end, WEXITED | WNOWAIT);
	fgv_gpusched_detach_session(fake->session, last);
	waitpid(fake->pid, NULL, 0);
	munmap(fake->grant, sizeof(*fake->grant));
	close(fake->bell_fd);
	close(fake->sched_bell_fd);
	return killed;
}

static enum fgv_grant_state fake_state(const struct fake *fake)
{
	return fgv_grant_state(fgv_grant_load(fake->grant));
}

static void fake_ring(const struct fake *fake)
{
	fgv_doorbell_ring(fake->sched_bell_fd);
}

static void fake_want(struct fake *fake, bool wants)
{
	__atomic_store_n(&fake->grant->wants, wants, __ATOMIC_RELEASE);
	fake_ring(fake);
}

static uint64_t fake_limit(const struct fake *fake)
{
	return __atomic_load_n(&fake->grant->limit_ns, __ATOMIC_SEQ_CST);
}

static bool fake_is_next(const struct fake *fake)
{
	return __atomic_load_n(&fake->grant->is_next, __ATOMIC_SEQ_CST);
}

static void fake_report(struct fake *fake, uint64_t used_ns)
{
	fake->used_ns = used_ns;
	__atomic_store_n(&fake->grant->used_ns, used_ns, __ATOMIC_RELAXED);
}

/* From BUSY or IDLE; false: the daemon was faster. */
static bool fake_move(struct fake *fake, enum fgv_grant_state state)
{
	return fgv_grant_move(fake->grant, fgv_grant_load(fake->grant), state);
}

static void fake_give_back(struct fake *fake, bool more)
{
	__atomic_store_n(&fake->grant->wants, more, __ATOMIC_RELEASE);
	ck_assert(fake_move(fake, FGV_GRANT_NONE));
	fake_ring(fake);
}

#define AWAIT_STATE(fake, state) AWAIT(fake_state(fake) == FGV_GRANT_##state)

/* Two that are there, the first holding without limit, as it came when there was nobody. */
static struct fake one, two;

static void one_alone(void)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	fake_want(&one, true);
	AWAIT_STATE(&one, BUSY);
}

static void both_leave(void)
{
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}

/* --- The protocol ---------------------------------------------------------- */

START_TEST(who_is_alone_has_no_limit)
{
	struct fgv_gpusched_stats stats;

	one_alone();
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(one.grant->flags, 0);
	fgv_gpusched_session_stats(one.session, &stats);
	ck_assert(stats.holding && !stats.waiting && !stats.hung);
	ck_assert_uint_eq(stats.sched.grants, 1);
	fake_give_back(&one, false);
	do
		fgv_gpusched_session_stats(one.session, &stats);
	while (stats.holding);
	both_leave();
}
END_TEST

START_TEST(newcomer_limits_and_gets_the_grant)
{
	one_alone();
	fake_report(&one, 7777);
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	ck_assert_uint_gt(fake_limit(&one), 7777);
	ck_assert_uint_le(fake_limit(&one), 7777 + SLICE_NS);
	/* What it had used by then was charged before two was heard of. */
	pthread_mutex_lock(&gpusched->lock);
	ck_assert_uint_eq(one.session->used_ns, 7777);
	pthread_mutex_unlock(&gpusched->lock);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	ck_assert_uint_eq(fake_limit(&two), FGV_GRANT_NO_LIMIT);
	both_leave();
}
END_TEST

START_TEST(both_busy_have_limits)
{
	one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_report(&one, 1000);
	fake_give_back(&one, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_uint_eq(fake_limit(&two), SLICE_NS);
	fake_report(&two, 2000);
	fake_give_back(&two, true);
	AWAIT(fake_state(&one) == FGV_GRANT_BUSY || fake_state(&two) == FGV_GRANT_BUSY);
	if (fake_state(&one) == FGV_GRANT_BUSY)
		ck_assert_uint_eq(fake_limit(&one), 1000 + SLICE_NS);
	else
		ck_assert_uint_eq(fake_limit(&two), 2000 + SLICE_NS);
	both_leave();
}
END_TEST

START_TEST(next_is_told_before)
{
	one_alone();
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	ck_assert(!fake_is_next(&two));
	both_leave();
}
END_TEST

START_TEST(next_that_withdraws_is_next_no_more)
{
	struct fgv_gpusched_stats stats;

	one_alone();
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	fake_want(&two, false);
	AWAIT(!fake_is_next(&two));
	fgv_gpusched_session_stats(two.session, &stats);
	ck_assert(!stats.waiting);
	fake_give_back(&one, false);
	fake_want(&one, true);
	AWAIT_STATE(&one, BUSY);
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	both_leave();
}
END_TEST

/* The session that sleeps is not woken for it: its bell stays silent. */
START_TEST(idle_is_taken_without_waking)
{
	one_alone();
	fgv_park_announce(&one.grant->parked);
	ck_assert(fake_move(&one, FGV_GRANT_IDLE));
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_NONE);
	ck_assert_int_eq(fgv_doorbell_wait(one.bell_fd, -1, 0), 0);
	/* And it gets the grant again when it asks. */
	ck_assert(!fgv_grant_move(one.grant, 4 | FGV_GRANT_IDLE, FGV_GRANT_BUSY));
	fake_want(&one, true);
	AWAIT(fake_limit(&two) != FGV_GRANT_NO_LIMIT);
	fake_give_back(&two, false);
	AWAIT_STATE(&one, BUSY);
	both_leave();
}
END_TEST

START_TEST(idle_and_back_while_alone)
{
	struct fgv_gpusched_stats stats;

	one_alone();
	for (int i = 0; i < 1000; i++) {
		ck_assert(fake_move(&one, FGV_GRANT_IDLE));
		fake_ring(&one);
		ck_assert(fake_move(&one, FGV_GRANT_BUSY));
	}
	fgv_gpusched_session_stats(one.session, &stats);
	ck_assert_uint_eq(stats.sched.grants, 1);
	both_leave();
}
END_TEST

/* Whatever the order, either the daemon sees IDLE or the session sees the limit. */
START_TEST(idle_against_limit)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	for (int i = 0; i < 2000; i++) {
		uint64_t word;

		fake_want(&one, true);
		AWAIT_STATE(&one, BUSY);
		__atomic_store_n(&one.grant->wants, 0, __ATOMIC_RELEASE);
		fake_want(&two, true);
		for (volatile int spin = i % 500; spin > 0; spin--)
			continue;
		ck_assert(fake_move(&one, FGV_GRANT_IDLE));
		word = fgv_grant_load(one.grant);
		if (fgv_grant_state(word) == FGV_GRANT_IDLE &&
		    fake_limit(&one) != FGV_GRANT_NO_LIMIT &&
		    fgv_grant_move(one.grant, word, FGV_GRANT_NONE))
			fake_ring(&one);
		AWAIT_STATE(&two, BUSY);
		fake_give_back(&two, false);
	}
	both_leave();
}
END_TEST

START_TEST(sleeper_is_woken)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	fgv_park_announce(&one.grant->parked);
	fake_want(&one, true);
	ck_assert_int_eq(fgv_doorbell_wait(one.bell_fd, -1, -1), 1);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_BUSY);
	fgv_doorbell_clear(one.bell_fd);
	/* By a limit, too. */
	fake_want(&two, true);
	ck_assert_int_eq(fgv_doorbell_wait(one.bell_fd, -1, -1), 1);
	ck_assert_uint_ne(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	/* Who is next is woken by that, unless it is awake. */
	AWAIT(fake_is_next(&two));
	ck_assert_int_eq(fgv_doorbell_wait(two.bell_fd, -1, 0), 0);
	fake_want(&two, false);
	AWAIT(!fake_is_next(&two));
	fgv_park_announce(&two.grant->parked);
	fake_want(&two, true);
	ck_assert_int_eq(fgv_doorbell_wait(two.bell_fd, -1, -1), 1);
	ck_assert(fake_is_next(&two));
	both_leave();
}
END_TEST

START_TEST(time_shared_grants)
{
	uint64_t before_ns, limit_ns;

	start_with(&fgv_policy_credit_poll, 0);
	one_alone();
	ck_assert_uint_eq(one.grant->flags, FGV_GRANT_UNDRAINED | FGV_GRANT_KEEP);
	before_ns = fgv_now_ns();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	limit_ns = fake_limit(&one);
	ck_assert_uint_ge(limit_ns, before_ns);
	ck_assert_uint_le(limit_ns, fgv_now_ns() + SLICE_NS);
	both_leave();
	stop();
}
END_TEST

/* Under `none` everybody holds, and who is idle keeps what it has. */
START_TEST(everybody_holds_under_none)
{
	start_with(&fgv_policy_none, 0);
	one_alone();
	ck_assert(fake_move(&one, FGV_GRANT_IDLE));
	fake_want(&two, true);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_state(&one), FGV_GRANT_IDLE);
	ck_assert_uint_eq(fake_limit(&two), FGV_GRANT_NO_LIMIT);
	both_leave();
	stop();
}
END_TEST

static struct fgv_policy_vgpu *pick_nobody(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	return NULL;
}

START_TEST(starving_policy_gives_way)
{
	struct fgv_policy starving = {
		.name = "starving",
		.starve_ns = FGV_NS_PER_MS,
		.pick = pick_nobody,
	};

	start_with(&starving, 0);
	ck_assert_str_eq(fgv_gpusched_policy(gpusched), "starving");
	one_alone();
	ck_assert_str_eq(fgv_gpusched_policy(gpusched), "fair");
	both_leave();
	stop();
}
END_TEST

/* --- Shares ---------------------------------------------------------------- */

struct worker {
	struct fake fake;
	unsigned vm;
	pthread_t thread;
	uint64_t grants; /* that it has had */
	uint32_t over;
};

/*
 * Uses each grant up to its limit, to the nanosecond: the daemon can't think that it was held
 * for less, and what was held longer is not reported.
 */
static void *work(void *arg)
{
	struct worker *worker = arg;
	struct fake *fake = &worker->fake;
	uint64_t since_ns;

	fake_want(fake, true);
	while (!__atomic_load_n(&worker->over, __ATOMIC_RELAXED)) {
		if (fake_state(fake) != FGV_GRANT_BUSY || fake_limit(fake) == FGV_GRANT_NO_LIMIT) {
			usleep(50);
			continue;
		}
		since_ns = fgv_now_ns();
		while (fgv_now_ns() < since_ns + SLICE_NS)
			sched_yield();
		fake_report(fake, fake_limit(fake));
		__atomic_fetch_add(&worker->grants, 1, __ATOMIC_RELAXED);
		fake_give_back(fake, true);
	}
	return NULL;
}

static uint64_t worker_grants(const struct worker *worker)
{
	return __atomic_load_n(&worker->grants, __ATOMIC_RELAXED);
}

static void resume_workers(struct worker *workers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		workers[i].over = 0;
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
}

static void start_workers(struct worker *workers, const unsigned *vms, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		workers[i] = (struct worker){.vm = vms[i]};
		fake_attach(&workers[i].fake, vgpus[vms[i]]);
	}
	resume_workers(workers, count);
}

static void stop_workers(struct worker *workers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(&workers[i].over, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

static void detach_workers(struct worker *workers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(fake_detach(&workers[i].fake, NULL), 0);
}

static uint64_t gpu_ns(struct fgv_gpusched_vgpu *vgpu)
{
	struct fgv_gpusched_stats stats;

	fgv_gpusched_vgpu_stats(vgpu, &stats);
	return stats.sched.gpu_ns;
}

/* What two VMs, always busy, have been charged since the last such look. */
struct balance {
	uint64_t charged_ns[2];
	uint64_t reported_ns[2];
};

static struct balance look_at_balance(const struct worker *workers, size_t count)
{
	struct balance balance = {{gpu_ns(vgpus[0]), gpu_ns(vgpus[1])}, {0, 0}};

	for (size_t i = 0; i < count; i++)
		balance.reported_ns[workers[i].vm] += workers[i].fake.used_ns;
	return balance;
}

/*
 * By the rule of start-time fair queuing they are no further apart than the longest grants of
 * the two: a slice each, and what was charged beyond the report because a worker did not run
 * for long. As much again for where they were stopped, and for where they began.
 */
static void check_balance(const struct balance *from, const struct balance *to,
			  const uint64_t weights[2])
{
	uint64_t used_ns[2], apart_ns, allowed_ns = 0;

	for (int i = 0; i < 2; i++) {
		ck_assert_uint_ge(to->charged_ns[i], to->reported_ns[i]);
		used_ns[i] = (to->charged_ns[i] - from->charged_ns[i]) / weights[i];
		allowed_ns += 3 * (SLICE_NS + to->charged_ns[i] - to->reported_ns[i]);
	}
	apart_ns = fgv_max_u64(used_ns[0], used_ns[1]) - fgv_min_u64(used_ns[0], used_ns[1]);
	ck_assert_uint_le(apart_ns, allowed_ns);
}

static const struct balance nothing;

START_TEST(shares_follow_weights)
{
	static const uint64_t weights[] = {1, 3};
	struct worker workers[2];
	struct balance end;

	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[1], 3), 0);
	ck_assert_uint_eq(fgv_gpusched_weight(vgpus[1]), 3);
	start_workers(workers, (unsigned[]){0, 1}, 2);
	AWAIT(worker_grants(&workers[0]) >= 50);
	stop_workers(workers, 2);
	end = look_at_balance(workers, 2);
	check_balance(&nothing, &end, weights);
	detach_workers(workers, 2);
}
END_TEST

/* What was used before the change does not count against anybody after it. */
START_TEST(change_of_weight)
{
	static const uint64_t before[] = {1, 1}, after[] = {4, 1};
	struct balance middle, end;
	struct worker workers[2];

	start_workers(workers, (unsigned[]){0, 1}, 2);
	AWAIT(worker_grants(&workers[0]) >= 20 && worker_grants(&workers[1]) >= 20);
	stop_workers(workers, 2);
	middle = look_at_balance(workers, 2);
	check_balance(&nothing, &middle, before);
	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], 4), 0);
	resume_workers(workers, 2);
	AWAIT(worker_grants(&workers[1]) >= 60);
	stop_workers(workers, 2);
	end = look_at_balance(workers, 2);
	check_balance(&middle, &end, after);
	detach_workers(workers, 2);
}
END_TEST

START_TEST(weights_have_a_range)
{
	struct fgv_gpusched_vgpu *vgpu;

	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], 0), -EINVAL);
	ck_assert_int_eq(fgv_gpusched_set_weight(vgpus[0], FGV_SCHED_WEIGHT_MAX + 1), -EINVAL);
	ck_assert_uint_eq(fgv_gpusched_weight(vgpus[0]), 1);
	ck_assert_int_eq(fgv_gpusched_attach_vgpu(gpusched, 0, &vgpu), -EINVAL);
}
END_TEST

/* The VM of two sessions gets no more than that of one. */
START_TEST(sessions_share_their_vm)
{
	static const uint64_t weights[] = {1, 1};
	struct fgv_gpusched_stats stats;
	struct balance end, sessions;
	struct worker workers[3];

	start_workers(workers, (unsigned[]){0, 0, 1}, 3);
	AWAIT(worker_grants(&workers[0]) >= 20 && worker_grants(&workers[1]) >= 20);
	stop_workers(workers, 3);
	end = look_at_balance(workers, 3);
	check_balance(&nothing, &end, weights);
	for (int i = 0; i < 2; i++) {
		fgv_gpusched_session_stats(workers[i].fake.session, &stats);
		sessions.charged_ns[i] = stats.sched.gpu_ns;
		sessions.reported_ns[i] = workers[i].fake.used_ns;
	}
	check_balance(&nothing, &sessions, weights);
	detach_workers(workers, 3);
	/* What has gone still counts for the VM. */
	ck_assert_uint_ge(gpu_ns(vgpus[0]), sessions.charged_ns[0] + sessions.charged_ns[1]);
}
END_TEST

/* --- Ends ------------------------------------------------------------------ */

START_TEST(killed_holder_is_charged)
{
	struct fgv_gpusched_stats last;
	uint64_t since_ns;
	siginfo_t end;

	one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	since_ns = fgv_now_ns();
	kill(one.pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)one.pid, &end, WEXITED | WNOWAIT), 0);
	while (fgv_now_ns() < since_ns + SLICE_NS)
		continue;
	ck_assert_int_eq(fake_detach(&one, &last), SIGKILL);
	/* It has reported nothing. */
	ck_assert_uint_ge(last.sched.gpu_ns, SLICE_NS);
	ck_assert(!last.hung);
	ck_assert_uint_ge(gpu_ns(vgpus[0]), SLICE_NS);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}
END_TEST

START_TEST(waiting_session_goes)
{
	one_alone();
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
	fake_give_back(&one, true);
	AWAIT_STATE(&one, BUSY);
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

START_TEST(hung_holder_is_killed)
{
	struct fgv_gpusched_stats last;
	siginfo_t end;

	start_with(&fgv_policy_fair, FGV_NS_PER_MS);
	one_alone();
	fake_want(&two, true);
	ck_assert_int_eq(waitid(P_PID, (id_t)one.pid, &end, WEXITED | WNOWAIT), 0);
	/* Not before it is gone: it may have work on the GPU still. */
	ck_assert_int_eq(fake_state(&two), FGV_GRANT_NONE);
	ck_assert_int_eq(fake_detach(&one, &last), SIGKILL);
	ck_assert(last.hung);
	ck_assert_uint_ge(last.sched.gpu_ns, SLICE_NS + FGV_NS_PER_MS);
	AWAIT_STATE(&two, BUSY);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
	stop();
}
END_TEST

/* Alone, or with somebody behind it who wants nothing any more, nobody is late. */
START_TEST(nobody_hangs_alone)
{
	uint64_t since_ns = fgv_now_ns();

	start_with(&fgv_policy_fair, HANG_NS);
	one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_want(&two, false);
	while (fgv_now_ns() < since_ns + 2 * HANG_NS)
		usleep(1000);
	/* And who comes then has not waited yet. */
	fake_want(&two, true);
	AWAIT(fake_is_next(&two));
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	both_leave();
	stop();
}
END_TEST

/* In a process that is stopped for longer than a holder may hang, with all that is in it. */
static void be_stopped(int fd)
{
	char byte = 0;

	start_with(&fgv_policy_fair, HANG_NS);
	one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	ck_assert_int_eq(write(fd, &byte, 1), 1);
	ck_assert_int_eq(read(fd, &byte, 1), 1);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	both_leave();
	stop();
	_exit(EXIT_SUCCESS);
}

START_TEST(time_that_the_daemon_was_stopped_for)
{
	uint64_t since_ns;
	int pair[2], status;
	char byte;
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		be_stopped(pair[1]);
	ck_assert_int_eq(read(pair[0], &byte, 1), 1);
	kill(pid, SIGSTOP);
	ck_assert_int_eq(write(pair[0], &byte, 1), 1);
	since_ns = fgv_now_ns();
	while (fgv_now_ns() < since_ns + 3 * HANG_NS)
		usleep(10000);
	kill(pid, SIGCONT);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, EXIT_SUCCESS);
}
END_TEST

/* Killed as soon as there is a process to kill. */
START_TEST(took_a_grant_before_it_started)
{
	struct fgv_gpusched_session *session;
	struct fgv_grant *grant;
	pid_t pid = start_child();
	siginfo_t end;
	int fds[3];

	ck_assert_int_eq(fgv_gpusched_attach_session(vgpus[0], "session", &session, fds), 0);
	grant = mmap(NULL, sizeof(*grant), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	ck_assert(grant != MAP_FAILED);
	ck_assert(fgv_grant_move(grant, 0, FGV_GRANT_BUSY));
	fgv_doorbell_ring(fds[2]);
	fgv_gpusched_session_started(session, pid);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(end.si_status, SIGKILL);
	fgv_gpusched_detach_session(session, NULL);
	waitpid(pid, NULL, 0);
	munmap(grant, sizeof(*grant));
}
END_TEST

START_TEST(took_a_grant)
{
	siginfo_t end;

	one_alone();
	__atomic_store_n(&two.grant->word, 64 + FGV_GRANT_BUSY + (uint64_t)_i, __ATOMIC_SEQ_CST);
	fake_want(&two, true);
	ck_assert_int_eq(waitid(P_PID, (id_t)two.pid, &end, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(fake_detach(&two, NULL), SIGKILL);
	ck_assert_uint_eq(fake_limit(&one), FGV_GRANT_NO_LIMIT);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

/* --- Lies ------------------------------------------------------------------ */

static const uint64_t lies[] = {0,	   1, FGV_NS_PER_SEC * 3600, UINT64_MAX / 2, UINT64_MAX - 1,
				UINT64_MAX};

/* The next of the two to hold does what it does in a turn; was it @fake? */
static bool take_turn(struct fake *fake, uint64_t used_ns)
{
	AWAIT(fake_state(&one) == FGV_GRANT_BUSY || fake_state(&two) == FGV_GRANT_BUSY);
	if (fake_state(fake) != FGV_GRANT_BUSY)
		return false;
	fake_report(fake, used_ns);
	fake_give_back(fake, true);
	return true;
}

/* Whatever it says, both get on, and no more is charged than there was time. */
static void expect_harmless(uint64_t (*lie)(unsigned turn))
{
	uint64_t begun_ns = fgv_now_ns(), charged_ns;
	unsigned turns = 0, others = 0;

	one_alone();
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	while (turns < 20 || others < 20) {
		turns += take_turn(&one, lie(turns));
		others += take_turn(&two, two.used_ns + 1000);
	}
	charged_ns = gpu_ns(vgpus[0]) + gpu_ns(vgpus[1]);
	ck_assert_uint_le(charged_ns, fgv_now_ns() - begun_ns);
	both_leave();
}

static uint64_t constant_lie;

static uint64_t lie_the_same(unsigned turn)
{
	(void)turn;
	return constant_lie;
}

START_TEST(always_the_same_report)
{
	constant_lie = lies[_i];
	expect_harmless(lie_the_same);
}
END_TEST

static uint64_t lie_in_turn(unsigned turn)
{
	return lies[turn * 5 % FGV_ARRAY_LEN(lies)];
}

START_TEST(reports_that_go_back)
{
	expect_harmless(lie_in_turn);
}
END_TEST

static void fill_bell(int fd, bool blocking)
{
	uint64_t most = UINT64_MAX - 1;
	int flags = fcntl(fd, F_GETFL);

	fgv_doorbell_clear(fd);
	ck_assert_int_eq(write(fd, &most, sizeof(most)), sizeof(most));
	if (blocking)
		ck_assert_int_eq(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK), 0);
}

/* Full is as good as rung. */
START_TEST(full_bell)
{
	one_alone();
	fill_bell(one.bell_fd, false);
	fgv_park_announce(&one.grant->parked);
	fake_want(&two, true);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	fake_give_back(&one, false);
	AWAIT_STATE(&two, BUSY);
	both_leave();
}
END_TEST

START_TEST(blocking_bell)
{
	siginfo_t end;

	one_alone();
	fill_bell(two.bell_fd, true);
	fgv_park_announce(&two.grant->parked);
	fake_want(&two, true);
	/* It is killed when it is to be told that it is next. */
	ck_assert_int_eq(waitid(P_PID, (id_t)two.pid, &end, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(fake_detach(&two, NULL), SIGKILL);
	fake_give_back(&one, true);
	AWAIT_STATE(&one, BUSY);
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
}
END_TEST

/* The bells that the daemon hears: it never reads them, and so has nothing to block on. */
START_TEST(bells_of_the_daemon)
{
	struct fgv_gpusched_stats stats;

	one_alone();
	fill_bell(two.sched_bell_fd, true);
	/* The write that filled it was a ring. */
	__atomic_store_n(&two.grant->wants, 1, __ATOMIC_RELEASE);
	fgv_doorbell_clear(two.sched_bell_fd);
	fake_ring(&two);
	AWAIT(fake_limit(&one) != FGV_GRANT_NO_LIMIT);
	/* One that rings all the time is looked at all the time, like the others. */
	fake_give_back(&one, false);
	for (int i = 0; i < 100; i++) {
		AWAIT_STATE(&two, BUSY);
		for (int j = 0; j < 100; j++)
			fake_ring(&one);
		fake_give_back(&two, true);
	}
	fgv_gpusched_session_stats(two.session, &stats);
	ck_assert_uint_ge(stats.sched.grants, 100);
	both_leave();
}
END_TEST

static bool is_interactive(const struct fake *fake)
{
	bool interactive;

	pthread_mutex_lock(&gpusched->lock);
	interactive = fgv_sched_interactive(fake->session->sched);
	pthread_mutex_unlock(&gpusched->lock);
	return interactive;
}

START_TEST(calls_are_counted)
{
	uint64_t calls = 0;

	one_alone();
	ck_assert(!is_interactive(&one));
	while (!is_interactive(&one)) {
		__atomic_store_n(&one.grant->sync_calls, calls += 1000, __ATOMIC_RELAXED);
		fake_ring(&one);
		usleep(50);
	}
	both_leave();
}
END_TEST

START_TEST(figures_of_the_process)
{
	struct fgv_gpusched_stats stats;

	one_alone();
	__atomic_store_n(&one.grant->stalls, 5, __ATOMIC_RELAXED);
	__atomic_store_n(&one.grant->sync_calls, 9, __ATOMIC_RELAXED);
	fgv_gpusched_vgpu_stats(vgpus[0], &stats);
	ck_assert_uint_eq(stats.stalls, 5);
	ck_assert_uint_eq(stats.sync_calls, 9);
	ck_assert(stats.holding);
	ck_assert_int_eq(fake_detach(&one, &stats), 0);
	ck_assert_uint_eq(stats.stalls, 5);
	fgv_gpusched_vgpu_stats(vgpus[0], &stats);
	ck_assert_uint_eq(stats.stalls, 5);
	ck_assert_uint_eq(stats.sync_calls, 9);
	ck_assert(!stats.holding);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}
END_TEST

static TCase *add(Suite *suite, const char *name, bool fair)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	if (fair)
		tcase_add_checked_fixture(tcase, start, stop);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void add_fair(Suite *suite)
{
	TCase *tcase = add(suite, "fair", true);

	tcase_add_test(tcase, who_is_alone_has_no_limit);
	tcase_add_test(tcase, newcomer_limits_and_gets_the_grant);
	tcase_add_test(tcase, both_busy_have_limits);
	tcase_add_test(tcase, next_is_told_before);
	tcase_add_test(tcase, next_that_withdraws_is_next_no_more);
	tcase_add_test(tcase, idle_is_taken_without_waking);
	tcase_add_test(tcase, idle_and_back_while_alone);
	tcase_add_test(tcase, idle_against_limit);
	tcase_add_test(tcase, sleeper_is_woken);
	tcase_add_test(tcase, shares_follow_weights);
	tcase_add_test(tcase, change_of_weight);
	tcase_add_test(tcase, weights_have_a_range);
	tcase_add_test(tcase, sessions_share_their_vm);
	tcase_add_test(tcase, killed_holder_is_charged);
	tcase_add_test(tcase, waiting_session_goes);
	tcase_add_test(tcase, took_a_grant_before_it_started);
	tcase_add_loop_test(tcase, took_a_grant, 0, 3);
	tcase_add_loop_test(tcase, always_the_same_report, 0, FGV_ARRAY_LEN(lies));
	tcase_add_test(tcase, reports_that_go_back);
	tcase_add_test(tcase, full_bell);
	tcase_add_test(tcase, blocking_bell);
	tcase_add_test(tcase, bells_of_the_daemon);
	tcase_add_test(tcase, calls_are_counted);
	tcase_add_test(tcase, figures_of_the_process);
}

static void add_others(Suite *suite)
{
	TCase *tcase = add(suite, "others", false);

	tcase_add_test(tcase, time_shared_grants);
	tcase_add_test(tcase, everybody_holds_under_none);
	tcase_add_test(tcase, starving_policy_gives_way);
	tcase_add_test(tcase, hung_holder_is_killed);
	tcase_add_test(tcase, nobody_hangs_alone);
	tcase_add_test(tcase, time_that_the_daemon_was_stopped_for);
}

int main(void)
{
	Suite *suite = suite_create("gpusched");
	SRunner *runner;
	int failed;

	add_fair(suite);
	add_others(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
