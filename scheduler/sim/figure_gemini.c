/*
 * Figure 13 of the Gemini paper (IEEE TCC 2021): three inference services of which the second
 * and third come later and the second goes again, each with a request and a limit; what part
 * of the GPU each has, in steps of ten seconds. On the library alone, as figure 4: what the
 * figure is about are the decisions.
 *
 * The paper's text gives limits of 60 and 40 %, and requests of 100 % together; the requests
 * here are those of the project's own experiments.
 */
#include "scheduler/sim/figures.h"

#include <errno.h>
#include <math.h>

#include "common/util.h"

#define MS    FGV_NS_PER_MS
#define S     FGV_NS_PER_SEC
#define STEP  (10 * S)
#define END_S 430
#define APPS  3

#define PERCENT (FGV_SCHED_WHOLE / 100)

/* A service is always at work between two times: an inference after the other. */
struct app {
	const char *name;
	struct fgv_sched_shares shares;
	uint64_t from_ns, to_ns;
	uint64_t inference_ns; /* GPU time */
	uint64_t kernel_ns;    /* after one it may give back */
};

static const struct app apps[APPS] = {
	{"Faster R-CNN R50", {50 * PERCENT, 60 * PERCENT, 0}, 0, END_S *S, 30 * MS, 300000},
	{"RetinaNet R50", {30 * PERCENT, 60 * PERCENT, 0}, 100 * S, 330 * S, 40 * MS, 400000},
	{"Faster R-CNN X101", {20 * PERCENT, 40 * PERCENT, 0}, 230 * S, END_S *S, 80 * MS, 800000},
};

/* What the paper says of each between the changes at 100, 230 and 330 s; NAN: not there. */
static const struct {
	uint64_t from_s, to_s;
	double share[APPS];
} paper[] = {
	{0, 100, {0.6, NAN, NAN}},
	{100, 230, {0.5, 0.5, NAN}},
	{230, 330, {0.5, 0.3, 0.2}}, /* "their minimum resource demand" */
	{330, END_S, {0.6, NAN, 0.4}},
};

struct world13 {
	struct fgv_sched *sched;
	struct fgv_sched_session *session[APPS];
	bool is_there[APPS];
	uint64_t used_ns[APPS]; /* in all */
	uint64_t left_ns[APPS]; /* of the inference */
	struct fgv_sched_session *holder;
	unsigned int holds;
	uint64_t slice_ns, granted_ns;
};

static double papers_share(uint64_t at_s, unsigned int app)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(paper); i++)
		if (at_s > paper[i].from_s && at_s <= paper[i].to_s)
			return paper[i].share[app];
	return NAN;
}

static void shape(struct report *report)
{
	report->title = report->chart.title =
		"Gemini, figure 13: shares of three services with requests and limits";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "time_s", 0);
	report_column(report, "app", REPORT_STRING);
	report_column(report, "request", 2);
	report_column(report, "limit", 2);
	report_column(report, "share", 4);
	report_column(report, "paper", 2);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "time (s)";
	report->chart.y_title = "part of the GPU, in steps of 10 s";
}

static void row(struct report *report, uint64_t at_s, unsigned int app, double share)
{
	const struct fgv_sched_shares *shares = &apps[app].shares;
	double theirs = papers_share(at_s, app);

	report_text(report, "gemini-13");
	report_text(report, "gemini");
	report_number(report, (double)at_s);
	report_text(report, apps[app].name);
	report_number(report, (double)shares->request / FGV_SCHED_WHOLE);
	report_number(report, (double)shares->limit / FGV_SCHED_WHOLE);
	report_number(report, share);
	report_number(report, theirs);
	chart_point(report,
		    chart_series(report, report_keep(report, "%s (%.1f, %.1f)", apps[app].name,
						     (double)shares->request / FGV_SCHED_WHOLE,
						     (double)shares->limit / FGV_SCHED_WHOLE)),
		    (double)at_s, share);
	if (isfinite(theirs))
		chart_point(report,
			    chart_series(report, report_keep(report, "paper, %s", apps[app].name)),
			    (double)at_s, theirs);
}

static void come_and_go(struct world13 *world, uint64_t now_ns)
{
	for (unsigned int i = 0; i < APPS; i++) {
		bool is_there = now_ns >= apps[i].from_ns && now_ns < apps[i].to_ns;

		if (is_there == world->is_there[i] || world->holder == world->session[i])
			continue;
		world->is_there[i] = is_there;
		if (is_there)
			fgv_sched_request(world->session[i], now_ns);
		else
			fgv_sched_withdraw(world->session[i], now_ns);
	}
}

static void decide(struct world13 *world, uint64_t now_ns)
{
	struct fgv_sched_decision d;

	while (fgv_sched_decide(world->sched, now_ns, &d)) {
		if (d.action == FGV_SCHED_GRANT) {
			world->holder = d.session;
			world->granted_ns = now_ns;
			world->slice_ns = d.slice_ns;
		} else if (d.action == FGV_SCHED_LIMIT) {
			world->slice_ns = now_ns - world->granted_ns + d.slice_ns;
		}
	}
	for (unsigned int i = 0; i < APPS && world->holder != NULL; i++)
		if (world->session[i] == world->holder)
			world->holds = i;
}

/* One kernel of the holder; then it may have to give back, or its inference is done. */
static uint64_t run_kernel(struct world13 *world, uint64_t now_ns)
{
	unsigned int i = world->holds;
	uint64_t kernel_ns = fgv_min_u64(apps[i].kernel_ns, world->left_ns[i]), held_ns;

	now_ns += kernel_ns;
	world->used_ns[i] += kernel_ns;
	world->left_ns[i] -= kernel_ns;
	held_ns = now_ns - world->granted_ns;
	if (world->left_ns[i] != 0 && held_ns < world->slice_ns)
		return now_ns;
	if (world->left_ns[i] == 0)
		world->left_ns[i] = apps[i].inference_ns;
	fgv_sched_release(world->holder, held_ns, true, now_ns);
	world->holder = NULL;
	return now_ns;
}

static void run(struct world13 *world, struct report *report)
{
	uint64_t had_ns[APPS] = {0}, now_ns = 0;

	for (uint64_t at_ns = STEP; at_ns <= END_S * S; at_ns += STEP) {
		while (now_ns < at_ns) {
			come_and_go(world, now_ns);
			decide(world, now_ns);
			if (world->holder != NULL)
				now_ns = run_kernel(world, now_ns);
			else
				now_ns =
					fgv_min_u64(fgv_sched_next_ns(world->sched, now_ns), at_ns);
		}
		for (unsigned int i = 0; i < APPS; i++) {
			double used_ns = (double)(world->used_ns[i] - had_ns[i]);

			had_ns[i] = world->used_ns[i];
			if (at_ns > apps[i].from_ns && at_ns <= apps[i].to_ns)
				row(report, at_ns / S, i, used_ns / STEP);
		}
	}
}

int figure_gemini_13(const struct sim_params *params, struct report *report)
{
	struct world13 world = {.sched = NULL};
	int err = fgv_sched_create(&world.sched, &fgv_policy_gemini, &params->sched, 0);

	shape(report);
	for (unsigned int i = 0; i < APPS && err == 0; i++) {
		struct fgv_sched_vgpu *vgpu;

		world.left_ns[i] = apps[i].inference_ns;
		err = fgv_sched_attach_vgpu(world.sched, 1, NULL, 0, &vgpu);
		if (err == 0)
			err = fgv_sched_set_shares(vgpu, &apps[i].shares, 0);
		if (err == 0)
			err = fgv_sched_attach_session(vgpu, NULL, 0, &world.session[i]);
	}
	if (err == 0)
		run(&world, report);
	fgv_sched_destroy(world.sched);
	return err;
}
