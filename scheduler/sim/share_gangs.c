/*
 * Two VMs with a training each on both of two GPUs, whose schedulers know nothing of each other or
 * are those of gangs (scheduler/gangs.h). A step computes on each GPU by itself, and then exchanges
 * for a fifth of its time, while both GPUs are its VM's. Slices end by holding.
 *
 * Time goes in ticks: what happens within one does not matter here.
 */
#include "scheduler/sim/share_figures.h"

#include <errno.h>

#include "common/util.h"

#define GPUS	2
#define VMS	2
#define TICK_NS (10 * FGV_NS_PER_US)
#define MS	(1.0 * FGV_NS_PER_MS)
#define PARTS	5 /* of a step; one of them is the exchange */

static const uint32_t weights[][VMS] = {{1, 1}, {1, 2}, {1, 3}};
static const double slices_ms[] = {6, 30}, steps_ms[] = {1, 5, 20};

struct part {
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
	uint64_t left_ns; /* to compute in this step */
	bool is_held;	  /* its kernel stands still */
};

struct vm {
	struct part part[GPUS];
	struct fgv_gang *gang;
	uint64_t exchanged_ns; /* of this step */
	uint64_t steps;
	bool is_between; /* a step has just ended, and no other has begun */
};

struct gpu {
	struct fgv_sched *sched;
	struct vm *holder, *last;
	uint64_t end_ns, from_ns; /* of its slice; when it computes */
};

struct world {
	const struct share_params *params;
	struct fgv_gangs *gangs;
	struct gpu gpu[GPUS];
	struct vm vm[VMS];
	uint64_t now_ns, step_ns;
	uint64_t random;
};

/* --- Scheduling -------------------------------------------------------------- */

static void take_grant(struct world *world, unsigned int g, const struct fgv_sched_decision *d)
{
	struct gpu *gpu = &world->gpu[g];

	gpu->holder = fgv_sched_session_owner(d->session);
	gpu->end_ns = d->slice_ns == FGV_SCHED_NO_LIMIT ? UINT64_MAX : world->now_ns + d->slice_ns;
	gpu->from_ns = world->now_ns;
	if (gpu->holder != gpu->last)
		gpu->from_ns += world->params->switch_ns;
	if (gpu->holder != gpu->last && gpu->holder->part[g].is_held)
		gpu->from_ns += world->params->let_go_ns;
	gpu->last = gpu->holder;
}

static uint32_t decide(struct world *world, unsigned int g)
{
	struct fgv_sched_decision d;
	uint32_t knocks = 0;

	while (fgv_sched_decide(world->gpu[g].sched, world->now_ns, &d)) {
		if (d.action == FGV_SCHED_GRANT)
			take_grant(world, g, &d);
		else if (d.action == FGV_SCHED_LIMIT)
			world->gpu[g].end_ns = world->now_ns + d.slice_ns;
		else if (d.action == FGV_SCHED_KNOCK)
			knocks |= d.gpus;
	}
	return knocks;
}

static void decide_all(struct world *world, uint32_t gpus)
{
	while (gpus != 0) {
		unsigned int g = (unsigned int)__builtin_ctz(gpus);

		gpus &= gpus - 1;
		gpus |= decide(world, g);
	}
}

/* --- Working ------------------------------------------------------------------ */

/* By a linear congruential generator: 0 to 1, of its upper bits. */
static double draw(struct world *world)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(world->random >> 32) / 4294967296.0;
}

/* Each GPU takes a little more or less for its part of a step. */
static void begin_step(struct world *world, struct vm *vm)
{
	uint64_t ns = world->step_ns / PARTS * (PARTS - 1);

	vm->exchanged_ns = 0;
	for (unsigned int g = 0; g < GPUS; g++)
		vm->part[g].left_ns = (uint64_t)((double)ns * (0.95 + 0.1 * draw(world)));
}

static bool works(const struct world *world, const struct vm *vm, unsigned int g)
{
	return world->gpu[g].holder == vm && world->now_ns >= world->gpu[g].from_ns;
}

static void work(struct world *world, struct vm *vm)
{
	unsigned int exchange = 0;

	vm->is_between = false;
	for (unsigned int g = 0; g < GPUS; g++) {
		if (!works(world, vm, g))
			continue;
		if (vm->part[g].left_ns == 0)
			exchange++;
		vm->part[g].left_ns -= fgv_min_u64(vm->part[g].left_ns, TICK_NS);
	}
	if (exchange < GPUS)
		return;
	vm->exchanged_ns += TICK_NS;
	if (vm->exchanged_ns < world->step_ns / PARTS)
		return;
	vm->steps++;
	vm->is_between = true;
	begin_step(world, vm);
}

/* A slice ends when a step does, or is taken a little later. */
static void end_slice(struct world *world, unsigned int g)
{
	struct gpu *gpu = &world->gpu[g];
	struct part *part;

	if (gpu->holder == NULL || world->now_ns < gpu->end_ns)
		return;
	part = &gpu->holder->part[g];
	part->is_held = !gpu->holder->is_between;
	if (part->is_held && world->now_ns < gpu->end_ns + world->params->drain_ns)
		return;
	fgv_sched_release(part->session, FGV_SCHED_HELD, true, world->now_ns);
	gpu->holder = NULL;
	decide_all(world, 1u << g);
}

static void run(struct world *world, uint64_t until_ns)
{
	for (; world->now_ns < until_ns; world->now_ns += TICK_NS) {
		for (unsigned int i = 0; i < VMS; i++)
			work(world, &world->vm[i]);
		for (unsigned int g = 0; g < GPUS; g++)
			end_slice(world, g);
	}
}

/* --- Worlds -------------------------------------------------------------------- */

static int add_part(struct world *world, unsigned int g, struct vm *vm, uint32_t weight)
{
	struct part *part = &vm->part[g];
	int err = fgv_sched_attach_vgpu(world->gpu[g].sched, weight, vm, 0, &part->vgpu);

	if (err == 0)
		err = fgv_sched_attach_session(part->vgpu, vm, 0, &part->session);
	if (err == 0 && vm->gang != NULL)
		err = fgv_sched_set_gang(part->vgpu, vm->gang);
	if (err == 0)
		fgv_sched_request(part->session, 0);
	return err;
}

/* On each GPU another one comes first, so that no order is common to both by itself. */
static int add_parts(struct world *world, unsigned int g, const uint32_t weight[VMS])
{
	int err = 0;

	for (unsigned int i = 0; i < VMS && err == 0; i++) {
		unsigned int vm = (i + g) % VMS;

		err = add_part(world, g, &world->vm[vm], weight[vm]);
	}
	return err;
}

static void close_world(struct world *world)
{
	for (unsigned int g = 0; g < GPUS; g++)
		fgv_sched_destroy(world->gpu[g].sched);
	for (unsigned int i = 0; i < VMS; i++)
		fgv_gang_destroy(world->vm[i].gang);
	fgv_gangs_destroy(world->gangs);
}

static int open_world(struct world *world, const struct share_params *params, double slice_ms,
		      bool has_gangs, const uint32_t weight[VMS])
{
	struct fgv_sched_params sched = params->sched;
	int err = has_gangs ? fgv_gangs_create(&world->gangs, NULL) : 0;

	sched.slice_ns = (uint64_t)(slice_ms * MS);
	for (unsigned int i = 0; i < VMS && err == 0; i++) {
		begin_step(world, &world->vm[i]);
		err = has_gangs ? fgv_gang_create(&world->vm[i].gang, world->gangs) : 0;
	}
	for (unsigned int g = 0; g < GPUS && err == 0; g++) {
		err = fgv_sched_create(&world->gpu[g].sched, &fgv_policy_fair, &sched, 0);
		if (err == 0 && has_gangs)
			fgv_sched_join_gangs(world->gpu[g].sched, world->gangs, g);
		if (err == 0)
			err = add_parts(world, g, weight);
	}
	return err;
}

static void row(const struct world *world, double slice_ms, const uint32_t weight[VMS],
		struct report *report)
{
	double progress[VMS], sum = 0, least = 1, most = 0;

	for (unsigned int i = 0; i < VMS; i++) {
		double part;

		progress[i] = (double)(world->vm[i].steps * world->step_ns) / (double)world->now_ns;
		part = progress[i] / weight[i];
		sum += progress[i];
		least = i == 0 || part < least ? part : least;
		most = part > most ? part : most;
	}
	report_text(report, "gangs");
	report_text(report, world->gangs != NULL ? "gangs" : "each GPU by itself");
	report_text(report, report_keep(report, "%u:%u", weight[0], weight[1]));
	report_number(report, (double)world->step_ns / MS);
	report_number(report, slice_ms);
	for (unsigned int i = 0; i < VMS; i++) {
		report_number(report, progress[i]);
		chart_point(
			report, chart_series(report, report_keep(report, "VM%u", i + 1)),
			chart_group(report,
				    report_keep(report, "%s %u:%u %g ms / %g ms",
						world->gangs != NULL ? "gangs" : "apart", weight[0],
						weight[1], (double)world->step_ns / MS, slice_ms)),
			progress[i]);
	}
	report_number(report, least / most);
	report_number(report, 1 / sum);
}

static int trial(const struct share_params *params, const uint32_t weight[VMS], double slice_ms,
		 double step_ms, bool has_gangs, struct report *report)
{
	struct world world = {.params = params, .step_ns = (uint64_t)(step_ms * MS)};
	int err;

	world.random = params->seed;
	err = open_world(&world, params, slice_ms, has_gangs, weight);
	if (err == 0) {
		decide_all(&world, (1u << GPUS) - 1);
		run(&world, params->measure_ns);
		row(&world, slice_ms, weight, report);
	}
	close_world(&world);
	return err;
}

static void shape(struct report *report)
{
	report->title = report->chart.title = "Two VMs with a training each on both of two GPUs, "
					      "whose steps end with an exchange";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "scheduling", REPORT_STRING);
	report_column(report, "weights", REPORT_STRING);
	report_column(report, "step_ms", 0);
	report_column(report, "slice_ms", 0);
	report_column(report, "vm1_progress", 3);
	report_column(report, "vm2_progress", 3);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report->chart.kind = CHART_BARS;
	report->chart.x_title = "weights, step, slice";
	report->chart.y_title = "progress against alone";
}

int share_figure_gangs(const struct share_params *params, struct report *report)
{
	int err = 0;

	shape(report);
	for (size_t w = 0; w < FGV_ARRAY_LEN(weights); w++)
		for (size_t s = 0; s < FGV_ARRAY_LEN(slices_ms); s++)
			for (size_t t = 0; t < 2 * FGV_ARRAY_LEN(steps_ms) && err == 0; t++)
				err = trial(params, weights[w], slices_ms[s], steps_ms[t / 2],
					    t % 2 != 0, report);
	return err;
}
