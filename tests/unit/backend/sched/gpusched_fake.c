/*
 * See gpusched_fake.h.
 */
#define _GNU_SOURCE
#include "tests/unit/backend/sched/gpusched_fake.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "shmring/park.h"

struct fgv_gpusched *gpusched;
struct fgv_gpusched_vgpu *vgpus[4];
struct fake one, two;

static void start(const struct fgv_policy *policy, uint64_t hang_ns, uint64_t slice_ns)
{
	struct fgv_gpusched_config config = {.policy = policy, .hang_ns = hang_ns};

	fgv_sched_params_init(&config.params);
	config.params.slice_ns = slice_ns;
	config.params.starve_ns = STARVE_NS;
	/* Long enough that a thread which runs late tells the next one nevertheless. */
	config.params.awake_lead_ns = FGV_NS_PER_SEC + slice_ns;
	ck_assert_int_eq(fgv_gpusched_create(&gpusched, &config), 0);
	for (size_t i = 0; i < FGV_ARRAY_LEN(vgpus); i++)
		ck_assert_int_eq(fgv_gpusched_attach_vgpu(gpusched, 1, &vgpus[i]), 0);
}

void gpusched_start_with(const struct fgv_policy *policy, uint64_t hang_ns)
{
	start(policy, hang_ns, SLICE_NS);
}

void gpusched_start(void)
{
	gpusched_start_with(&fgv_policy_fair, 0);
}

void gpusched_start_slow(void)
{
	start(&fgv_policy_fair, 0, 1000 * FGV_NS_PER_SEC);
}

void gpusched_finish_turn(void)
{
	pthread_mutex_lock(&gpusched->lock);
	pthread_mutex_unlock(&gpusched->lock);
}

void gpusched_stop(void)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(vgpus); i++)
		fgv_gpusched_detach_vgpu(vgpus[i]);
	fgv_gpusched_destroy(gpusched);
}

pid_t fake_child(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pid == 0)
		pause();
	return pid;
}

void fake_attach(struct fake *fake, struct fgv_gpusched_vgpu *vgpu)
{
	int fds[3];

	*fake = (struct fake){0};
	ck_assert_int_eq(fgv_gpusched_attach_session(vgpu, FGV_LOG_VM("vm"), &fake->session, fds),
			 0);
	fake->grant =
		mmap(NULL, sizeof(*fake->grant), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	ck_assert(fake->grant != MAP_FAILED);
	fake->bell_fd = dup(fds[1]);
	fake->sched_bell_fd = dup(fds[2]);
	fake->pid = fake_child();
	fgv_gpusched_session_started(fake->session, fake->pid);
}

int fake_detach(struct fake *fake, struct fgv_gpusched_stats *last)
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

bool fake_is_dead(const struct fake *fake)
{
	siginfo_t end = {0};

	waitid(P_PID, (id_t)fake->pid, &end, WEXITED | WNOHANG | WNOWAIT);
	return end.si_pid != 0;
}

enum fgv_grant_state fake_state(const struct fake *fake)
{
	return fgv_grant_state(fgv_grant_load(fake->grant));
}

void fake_ring(const struct fake *fake)
{
	fgv_doorbell_ring(fake->sched_bell_fd);
}

void fake_want(struct fake *fake, bool wants)
{
	__atomic_store_n(&fake->grant->wants, wants, __ATOMIC_RELEASE);
	fake_ring(fake);
}

uint64_t fake_limit(const struct fake *fake)
{
	return __atomic_load_n(&fake->grant->limit_ns, __ATOMIC_SEQ_CST);
}

bool fake_is_next(const struct fake *fake)
{
	return __atomic_load_n(&fake->grant->is_next, __ATOMIC_SEQ_CST);
}

void fake_report(struct fake *fake, uint64_t used_ns)
{
	fake->used_ns = used_ns;
	__atomic_store_n(&fake->grant->used_ns, used_ns, __ATOMIC_RELAXED);
}

bool fake_move(struct fake *fake, enum fgv_grant_state state)
{
	return fgv_grant_move(fake->grant, fgv_grant_load(fake->grant), state);
}

void fake_give_back(struct fake *fake, bool more)
{
	__atomic_store_n(&fake->grant->wants, more, __ATOMIC_RELEASE);
	ck_assert(fake_move(fake, FGV_GRANT_NONE));
	fake_ring(fake);
}

void fake_one_alone(void)
{
	fake_attach(&one, vgpus[0]);
	fake_attach(&two, vgpus[1]);
	fake_want(&one, true);
	AWAIT_STATE(&one, BUSY);
	/* Or it may be woken only now. */
	gpusched_finish_turn();
}

void fake_both_leave(void)
{
	ck_assert_int_eq(fake_detach(&one, NULL), 0);
	ck_assert_int_eq(fake_detach(&two, NULL), 0);
}

uint64_t gpusched_used_ns(struct fgv_gpusched_vgpu *vgpu)
{
	struct fgv_gpusched_stats stats;

	fgv_gpusched_vgpu_stats(vgpu, &stats);
	return stats.sched.gpu_ns;
}
