/* Two services and a GPU; see fikit_world.h. */
#include "scheduler/sim/fikit_world.h"

#include <math.h>

#include "common/util.h"
#include "scheduler/sched.h"

/* From a grant that comes back to the next one's first kernel. */
#define HAND_OVER_NS (20 * FGV_NS_PER_US)

/* In a shorter gap a vGPU process keeps the grant. */
#define KEEPS_NS (200 * FGV_NS_PER_US)

#define LONG_EVERY 8

struct run {
	struct fikit_load load;
	uint64_t left;	  /* kernels of this task */
	uint64_t came_ns; /* this task */
	uint64_t ready_ns;
	uint64_t gap_ns; /* behind the last */
	uint64_t done_ns;
	uint64_t done;
	double sum_ms, squares; /* of the tasks that are done */
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
	bool asks;
};

struct world {
	struct run run[FIKIT_SERVICES];
	struct fgv_sched *sched; /* NULL: first come, first served */
	uint64_t now_ns;
	uint64_t end_ns;
};

static void begin(struct run *run, const struct fikit_load *load)
{
	*run = (struct run){.load = *load, .left = load->service->kernels};
}

static bool is_over(const struct run *run)
{
	return run->load.tasks == 0;
}

static bool is_endless(const struct run *run)
{
	return run->load.tasks == FIKIT_ENDLESS;
}

/* One that is endless goes on while there is another one to be done. */
static bool is_done(const struct world *world)
{
	bool is_done = true;

	for (unsigned int i = 0; i < FIKIT_SERVICES; i++)
		is_done &= is_over(&world->run[i]) || is_endless(&world->run[i]);
	return world->end_ns ? world->now_ns >= world->end_ns : is_done;
}

/* Behind the kernel with which @left of a task are left. */
static uint64_t gap_of(const struct fikit_service *service, uint64_t left)
{
	bool is_long = service->last_long ? left <= service->last_long : left % LONG_EVERY == 0;

	return is_long ? service->long_gap_ns : service->gap_ns;
}

static void task_done(struct run *run, uint64_t now_ns)
{
	double ms = (double)(now_ns - run->came_ns) / FGV_NS_PER_MS;

	run->sum_ms += ms;
	run->squares += ms * ms;
	run->done++;
	run->done_ns = now_ns;
	run->left = run->load.service->kernels;
	if (!is_endless(run))
		run->load.tasks--;
	if (run->load.every_ns)
		run->ready_ns = fgv_max_u64(run->ready_ns, run->done * run->load.every_ns);
	run->came_ns = run->load.every_ns ? run->done * run->load.every_ns : run->ready_ns;
}

/* A kernel of @run is done. */
static void kernel_done(struct run *run, uint64_t now_ns)
{
	run->gap_ns = gap_of(run->load.service, run->left);
	run->ready_ns = now_ns + run->gap_ns;
	if (--run->left == 0)
		task_done(run, now_ns);
}

/* --- First come, first served -------------------------------------------------- */

static void share(struct world *world)
{
	while (!is_done(world)) {
		struct run *first = NULL;

		for (unsigned int i = 0; i < FIKIT_SERVICES; i++)
			if (!is_over(&world->run[i]) &&
			    (first == NULL || world->run[i].ready_ns < first->ready_ns))
				first = &world->run[i];
		if (first == NULL)
			return;
		world->now_ns = fgv_max_u64(world->now_ns, first->ready_ns) +
				first->load.service->kernel_ns;
		kernel_done(first, world->now_ns);
	}
}

/* --- The policy ---------------------------------------------------------------- */

static void ask_if_ready(struct world *world)
{
	for (unsigned int i = 0; i < FIKIT_SERVICES; i++) {
		struct run *run = &world->run[i];
		const struct fgv_sched_advice advice = {
			.next_ns = (uint32_t)run->load.service->kernel_ns};

		if (run->asks || is_over(run) || run->ready_ns > world->now_ns)
			continue;
		fgv_sched_advise(run->session, &advice);
		fgv_sched_request(run->session, world->now_ns);
		run->asks = true;
	}
}

static uint64_t next_ready(const struct world *world)
{
	uint64_t next_ns = fgv_sched_next_ns(world->sched, world->now_ns);

	for (unsigned int i = 0; i < FIKIT_SERVICES; i++)
		if (!world->run[i].asks && !is_over(&world->run[i]))
			next_ns = fgv_min_u64(next_ns, world->run[i].ready_ns);
	return next_ns;
}

/* The decisions at this time; the slice of @holder, if it holds, may be another one after. */
static struct run *decide(struct world *world, struct run *holder, struct fgv_sched_decision *grant,
			  uint64_t *end_ns)
{
	struct fgv_sched_decision d;

	while (fgv_sched_decide(world->sched, world->now_ns, &d)) {
		if (d.action == FGV_SCHED_GRANT) {
			holder = fgv_sched_session_owner(d.session);
			*grant = d;
		}
		if (d.action == FGV_SCHED_GRANT || d.action == FGV_SCHED_LIMIT)
			*end_ns = d.slice_ns == FGV_SCHED_NO_LIMIT ? UINT64_MAX
								   : world->now_ns + d.slice_ns;
	}
	return holder;
}

/* What @run says as it gives back: its gap, as it was learned. */
static void give_back(struct world *world, struct run *run, uint64_t from_ns)
{
	bool more = !is_over(run) && run->ready_ns <= world->now_ns;
	const struct fgv_sched_advice advice = {
		.gap_ns = is_over(run) || more ? 0 : (uint32_t)run->gap_ns,
		.next_ns = (uint32_t)run->load.service->kernel_ns,
	};

	fgv_sched_advise(run->session, &advice);
	fgv_sched_release(run->session, world->now_ns - from_ns, more, world->now_ns);
	run->asks = more;
	world->now_ns += HAND_OVER_NS;
}

/* Whether @run has a kernel now, perhaps after a gap in which it keeps the grant. */
static bool has_more(struct world *world, const struct run *run)
{
	if (is_over(run))
		return false;
	if (run->ready_ns > world->now_ns && run->ready_ns - world->now_ns < KEEPS_NS)
		world->now_ns = run->ready_ns;
	return run->ready_ns <= world->now_ns;
}

/* Kernels of @run, until its slice is over, or it has to wait for the host. */
static void hold_grant(struct world *world, struct run *run, struct fgv_sched_decision *grant,
		       uint64_t end_ns)
{
	uint64_t from_ns = world->now_ns, kernel_ns = run->load.service->kernel_ns;

	while (has_more(world, run) && world->now_ns < end_ns &&
	       !(grant->must_fit && world->now_ns + kernel_ns > end_ns)) {
		world->now_ns += kernel_ns;
		kernel_done(run, world->now_ns);
		ask_if_ready(world);
		decide(world, run, grant, &end_ns);
	}
	give_back(world, run, from_ns);
}

static void fikit(struct world *world)
{
	while (!is_done(world)) {
		struct fgv_sched_decision grant;
		struct run *holder;
		uint64_t end_ns = UINT64_MAX;

		ask_if_ready(world);
		holder = decide(world, NULL, &grant, &end_ns);
		if (holder != NULL)
			hold_grant(world, holder, &grant, end_ns);
		else
			world->now_ns = fgv_max_u64(world->now_ns + 1, next_ready(world));
	}
}

static int attach(struct world *world, const struct sim_params *params)
{
	int err = fgv_sched_create(&world->sched, &fgv_policy_fikit, &params->sched, 0);

	for (unsigned int i = 0; i < FIKIT_SERVICES && err == 0; i++) {
		struct run *run = &world->run[i];

		err = fgv_sched_attach_vgpu(world->sched, 1, NULL, 0, &run->vgpu);
		if (err == 0)
			err = fgv_sched_set_priority(run->vgpu, run->load.service->priority, 0);
		if (err == 0)
			err = fgv_sched_attach_session(run->vgpu, run, 0, &run->session);
	}
	return err;
}

static void tell(const struct run *run, struct fikit_result *result)
{
	double mean = run->done ? run->sum_ms / (double)run->done : NAN;
	double variance = run->done ? run->squares / (double)run->done - mean * mean : NAN;

	*result = (struct fikit_result){
		.done = run->done,
		.done_s = (double)run->done_ns / FGV_NS_PER_SEC,
		.mean_ms = mean,
		.deviation_ms = sqrt(fmax(variance, 0)),
	};
}

int fikit_together(const struct sim_params *params, bool is_fikit,
		   const struct fikit_load loads[FIKIT_SERVICES], double seconds,
		   struct fikit_result results[FIKIT_SERVICES])
{
	struct world world = {.end_ns = (uint64_t)(seconds * FGV_NS_PER_SEC)};
	int err = 0;

	for (unsigned int i = 0; i < FIKIT_SERVICES; i++)
		begin(&world.run[i], &loads[i]);
	if (is_fikit)
		err = attach(&world, params);
	if (err == 0 && is_fikit)
		fikit(&world);
	else if (err == 0)
		share(&world);
	for (unsigned int i = 0; i < FIKIT_SERVICES; i++)
		tell(&world.run[i], &results[i]);
	fgv_sched_destroy(world.sched);
	return err;
}

double fikit_alone_s(const struct fikit_service *service, uint64_t tasks)
{
	uint64_t task_ns = 0;

	for (uint64_t left = service->kernels; left > 0; left--)
		task_ns += service->kernel_ns + gap_of(service, left);
	return (double)(tasks * task_ns) / FGV_NS_PER_SEC;
}
