/*
 * Experiments of the FIKIT paper (arXiv 2311.10359): an urgent service whose kernels have gaps
 * between them, and another one without, share a GPU. On the library alone, with the rules by
 * which a vGPU process and the daemon use it; without holding, as in the paper.
 *
 * The paper does not print its kernels' times. Those here are chosen so that under the GPU's own
 * first come, first served both services take as long as its table 2 says, and so that the urgent
 * one has about as many gaps into which a kernel of the other one fits; all else follows.
 */
#include "scheduler/sim/figures.h"

#include <math.h>

#include "common/util.h"

#define US FGV_NS_PER_US
#define MS FGV_NS_PER_MS
#define S  FGV_NS_PER_SEC

#define SERVICES 2

/* From a grant that comes back to the next one's first kernel. */
#define HAND_OVER_NS (20 * US)

#define LONG_EVERY 8

/* A task is so many kernels, each with a gap behind it, of which every eighth is a longer one. */
struct service {
	const char *name;
	uint32_t kernels;
	uint64_t kernel_ns, gap_ns, long_gap_ns;
	uint32_t priority;
};

static const struct service services[SERVICES] = {
	{"keypointrcnn_resnet50_fpn", 60, 300 * US, 203 * US, 620 * US, 0},
	{"fcn_resnet50", 20, 500 * US, 0, 0, 9},
};

struct run {
	const struct service *service;
	uint64_t tasks; /* to do */
	uint64_t left;	/* kernels of this one */
	uint64_t ready_ns;
	uint64_t gap_ns;  /* behind the last */
	uint64_t done_ns; /* when the last task was done */
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
	bool asks;
};

struct world_fikit {
	struct run run[SERVICES];
	struct fgv_sched *sched; /* NULL: first come, first served */
	uint64_t now_ns;
};

static void begin(struct run *run, unsigned int i, uint64_t tasks)
{
	*run = (struct run){.service = &services[i], .tasks = tasks, .left = services[i].kernels};
}

static bool is_over(const struct run *run)
{
	return run->tasks == 0;
}

static uint64_t gap_of(const struct service *service, uint64_t kernel)
{
	return kernel % LONG_EVERY == 0 ? service->long_gap_ns : service->gap_ns;
}

/* A kernel of @run is done. */
static void kernel_done(struct run *run, uint64_t now_ns)
{
	run->gap_ns = gap_of(run->service, run->left);
	run->ready_ns = now_ns + run->gap_ns;
	if (--run->left > 0)
		return;
	run->left = run->service->kernels;
	run->done_ns = now_ns;
	run->tasks--;
}

/* --- First come, first served -------------------------------------------------- */

static void share(struct world_fikit *world)
{
	for (;;) {
		struct run *first = NULL;

		for (unsigned int i = 0; i < SERVICES; i++)
			if (!is_over(&world->run[i]) &&
			    (first == NULL || world->run[i].ready_ns < first->ready_ns))
				first = &world->run[i];
		if (first == NULL)
			return;
		world->now_ns =
			fgv_max_u64(world->now_ns, first->ready_ns) + first->service->kernel_ns;
		kernel_done(first, world->now_ns);
	}
}

/* --- The policy ---------------------------------------------------------------- */

static void ask_if_ready(struct world_fikit *world)
{
	for (unsigned int i = 0; i < SERVICES; i++) {
		struct run *run = &world->run[i];
		const struct fgv_sched_advice advice = {.next_ns =
								(uint32_t)run->service->kernel_ns};

		if (run->asks || is_over(run) || run->ready_ns > world->now_ns)
			continue;
		fgv_sched_advise(run->session, &advice);
		fgv_sched_request(run->session, world->now_ns);
		run->asks = true;
	}
}

static uint64_t next_ready(const struct world_fikit *world)
{
	uint64_t next_ns = fgv_sched_next_ns(world->sched, world->now_ns);

	for (unsigned int i = 0; i < SERVICES; i++)
		if (!world->run[i].asks && !is_over(&world->run[i]))
			next_ns = fgv_min_u64(next_ns, world->run[i].ready_ns);
	return next_ns;
}

/* The decisions at this time; the slice of @holder, if it holds, may be another one after. */
static struct run *decide(struct world_fikit *world, struct run *holder,
			  struct fgv_sched_decision *grant, uint64_t *end_ns)
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
static void give_back(struct world_fikit *world, struct run *run, uint64_t from_ns)
{
	bool more = !is_over(run) && run->ready_ns <= world->now_ns;
	const struct fgv_sched_advice advice = {
		.gap_ns = is_over(run) || more ? 0 : (uint32_t)run->gap_ns,
		.next_ns = (uint32_t)run->service->kernel_ns,
	};

	fgv_sched_advise(run->session, &advice);
	fgv_sched_release(run->session, world->now_ns - from_ns, more, world->now_ns);
	run->asks = more;
	world->now_ns += HAND_OVER_NS;
}

/* Kernels of @run, until its slice is over, or it has to wait for the host. */
static void hold_grant(struct world_fikit *world, struct run *run, struct fgv_sched_decision *grant,
		       uint64_t end_ns)
{
	uint64_t from_ns = world->now_ns, kernel_ns = run->service->kernel_ns;

	while (!is_over(run) && run->ready_ns <= world->now_ns && world->now_ns < end_ns &&
	       !(grant->must_fit && world->now_ns + kernel_ns > end_ns)) {
		world->now_ns += kernel_ns;
		kernel_done(run, world->now_ns);
		ask_if_ready(world);
		decide(world, run, grant, &end_ns);
	}
	give_back(world, run, from_ns);
}

static void fikit(struct world_fikit *world)
{
	while (!is_over(&world->run[0]) || !is_over(&world->run[1])) {
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

static int attach(struct world_fikit *world, const struct sim_params *params)
{
	int err = fgv_sched_create(&world->sched, &fgv_policy_fikit, &params->sched, 0);

	for (unsigned int i = 0; i < SERVICES && err == 0; i++) {
		struct run *run = &world->run[i];

		err = fgv_sched_attach_vgpu(world->sched, 1, NULL, 0, &run->vgpu);
		if (err == 0)
			err = fgv_sched_set_priority(run->vgpu, run->service->priority, 0);
		if (err == 0)
			err = fgv_sched_attach_session(run->vgpu, run, 0, &run->session);
	}
	return err;
}

/* So many tasks of each, from now on; the times at which they were done. */
static int together(const struct sim_params *params, bool is_fikit, const uint64_t tasks[SERVICES],
		    double seconds[SERVICES])
{
	struct world_fikit world = {.sched = NULL};
	int err = 0;

	for (unsigned int i = 0; i < SERVICES; i++)
		begin(&world.run[i], i, tasks[i]);
	if (is_fikit)
		err = attach(&world, params);
	if (err == 0 && is_fikit)
		fikit(&world);
	else if (err == 0)
		share(&world);
	for (unsigned int i = 0; i < SERVICES; i++)
		seconds[i] = (double)world.run[i].done_ns / S;
	fgv_sched_destroy(world.sched);
	return err;
}

/* --- Table 2 ------------------------------------------------------------------- */

#define TABLE_TASKS 1000

static const struct {
	const char *mode;
	bool is_fikit;
	double paper[SERVICES];
} modes[] = {
	{"default sharing", false, {38.15803, 16.02363}},
	{"fikit", true, {33.12627, 39.09784}},
};

int figure_fikit_table_2(const struct sim_params *params, struct report *report)
{
	static const uint64_t tasks[SERVICES] = {TABLE_TASKS, TABLE_TASKS};
	double seconds[SERVICES];
	int err = 0;

	report->title = report->chart.title = "FIKIT, table 2: 1000 tasks of each of two services";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "mode", REPORT_STRING);
	report_column(report, "service", REPORT_STRING);
	report_column(report, "priority", 0);
	report_column(report, "seconds", 3);
	report_column(report, "paper", 3);
	report->chart.kind = CHART_BARS;
	report->chart.y_title = "seconds until 1000 tasks are done";
	for (size_t m = 0; m < FGV_ARRAY_LEN(modes) && err == 0; m++) {
		err = together(params, modes[m].is_fikit, tasks, seconds);
		for (unsigned int i = 0; i < SERVICES; i++) {
			unsigned int group =
				chart_group(report, report_keep(report, "%s, %s", modes[m].mode,
								services[i].name));

			report_text(report, "fikit-table-2");
			report_text(report, modes[m].mode);
			report_text(report, services[i].name);
			report_number(report, services[i].priority);
			report_number(report, seconds[i]);
			report_number(report, modes[m].paper[i]);
			chart_point(report, chart_series(report, "simulated"), group, seconds[i]);
			chart_point(report, chart_series(report, "paper"), group,
				    modes[m].paper[i]);
		}
	}
	return err;
}

/* --- Figure 18 ----------------------------------------------------------------- */

/* Alone, with its gaps. */
static double alone_s(unsigned int i, uint64_t tasks)
{
	const struct service *service = &services[i];
	uint64_t task_ns = 0;

	for (uint64_t kernel = service->kernels; kernel > 0; kernel--)
		task_ns += service->kernel_ns + gap_of(service, kernel);
	return (double)(tasks * task_ns) / S;
}

/*
 * The other service's task next to so many urgent ones that are wanted at the same time: one after
 * the other (the paper's exclusive mode) against in their gaps. The paper's figure is a drawing;
 * its text says close to 1 for 1:1, and that it grows with the ratio.
 */
int figure_fikit_18(const struct sim_params *params, struct report *report)
{
	static const uint64_t ratios[] = {1, 10, 20, 30, 40, 50};
	int err = 0;

	report->title = report->chart.title =
		"FIKIT, figure 18: a task in the gaps of the urgent ones, against after them";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "ratio", 0);
	report_column(report, "exclusive_s", 4);
	report_column(report, "fikit_s", 4);
	report_column(report, "speedup", 2);
	report_column(report, "paper", 2);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "urgent tasks for each other one";
	report->chart.y_title = "time after the urgent ones / time in their gaps";
	for (size_t r = 0; r < FGV_ARRAY_LEN(ratios) && err == 0; r++) {
		const uint64_t tasks[SERVICES] = {ratios[r], 1};
		double seconds[SERVICES], after_s = alone_s(0, ratios[r]) + alone_s(1, 1);

		err = together(params, true, tasks, seconds);
		report_text(report, "fikit-18");
		report_number(report, (double)ratios[r]);
		report_number(report, after_s);
		report_number(report, seconds[1]);
		report_number(report, after_s / seconds[1]);
		report_number(report, ratios[r] == 1 ? 1.0 : NAN);
		chart_point(report, chart_series(report, "simulated"), (double)ratios[r],
			    after_s / seconds[1]);
	}
	return err;
}
