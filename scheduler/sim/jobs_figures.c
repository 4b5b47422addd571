/*
 * The MGB paper's experiment: how many jobs get done under each rule of placement, how soon, how
 * much longer their kernels take, and which die for want of memory. The paper ran each mix once;
 * here each figure is a mean over several draws of it.
 */
#include "scheduler/sim/jobs_figures.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/jobs_mixes.h"

/* Those that are compared. */
enum { SINGLE, CORES, MGB2, MGB2_HALF, MGB3, RIVALS };

static const struct rival {
	const char *name;
	const struct fgv_place_rule *rule;
	double claim;
} rivals[RIVALS] = {
	[SINGLE] = {"single", &fgv_place_single, 1},
	[CORES] = {"cores", &fgv_place_cores, 1},
	[MGB2] = {"mgb2", &fgv_place_mgb2, 1},
	[MGB2_HALF] = {"mgb2-half", &fgv_place_mgb2, 0.5},
	[MGB3] = {"mgb3", &fgv_place_mgb3, 1},
};

/* Means over draws; against single assignment of the same draw. */
struct tally {
	double throughput, turnaround;
	double makespan_s, waited_s, slowdown;
};

struct experiment {
	uint64_t seed;
	uint32_t draws;
	struct report *report;
};

/* --- Running ----------------------------------------------------------------- */

static struct jobs_params params_of(const struct jobs_machine *machine, const struct rival *rival,
				    uint32_t workers, uint64_t seed)
{
	struct jobs_params params = {
		.gpus = machine->gpus,
		.gpu_count = machine->gpu_count,
		.rule = rival->rule,
		.workers = workers,
		.claim = rival->claim,
		.seed = seed,
	};

	if (rival->rule == &fgv_place_cores)
		params.per_gpu = (workers + machine->gpu_count - 1) / machine->gpu_count;
	return params;
}

/* Core-to-GPU as the paper ran it: the best number of workers at which nothing crashes. */
static int run_cores(const struct jobs_machine *machine, const struct jobs_kind *const *jobs,
		     uint32_t count, uint64_t seed, struct jobs_result *best)
{
	int err = 0;

	best->makespan_s = INFINITY;
	for (uint32_t workers = 1; workers <= machine->workers && err == 0; workers++) {
		struct jobs_params params = params_of(machine, &rivals[CORES], workers, seed);
		struct jobs_result result;

		err = jobs_run(&params, jobs, count, &result);
		if (err == 0 && result.crashed == 0 && result.makespan_s < best->makespan_s)
			*best = result;
	}
	return err;
}

static int run_rival(const struct jobs_machine *machine, size_t rival,
		     const struct jobs_kind *const *jobs, uint32_t count, uint64_t seed,
		     struct jobs_result *result)
{
	uint32_t workers = rival == SINGLE ? machine->gpu_count : machine->workers;
	struct jobs_params params = params_of(machine, &rivals[rival], workers, seed);

	if (rival == CORES)
		return run_cores(machine, jobs, count, seed, result);
	return jobs_run(&params, jobs, count, result);
}

static void add(struct tally *tally, const struct jobs_result *result,
		const struct jobs_result *single, uint32_t draws)
{
	tally->throughput += single->makespan_s / result->makespan_s / draws;
	tally->turnaround += single->turnaround_s / result->turnaround_s / draws;
	tally->makespan_s += result->makespan_s / draws;
	tally->waited_s += result->waited_s / draws;
	tally->slowdown += result->slowdown / draws;
}

/* All rivals on the same jobs. */
static int compare(const struct experiment *experiment, const struct jobs_machine *machine,
		   const struct jobs_mix *mix, struct tally tally[RIVALS])
{
	int err = 0;

	memset(tally, 0, RIVALS * sizeof(*tally));
	for (uint32_t d = 0; d < experiment->draws && err == 0; d++) {
		const struct jobs_kind *jobs[JOBS_MAX];
		struct jobs_result result[RIVALS];
		struct engine random = {.seed = experiment->seed * 1000 + d};

		jobs_mix_draw(mix, &random, jobs);
		for (size_t r = 0; r < RIVALS && err == 0; r++) {
			err = run_rival(machine, r, jobs, mix->count, random.seed, &result[r]);
			if (err == 0)
				add(&tally[r], &result[r], &result[SINGLE], experiment->draws);
		}
	}
	return err;
}

static void add_tally(struct tally *sum, const struct tally *tally, double part)
{
	sum->throughput += tally->throughput * part;
	sum->turnaround += tally->turnaround * part;
	sum->makespan_s += tally->makespan_s * part;
	sum->waited_s += tally->waited_s * part;
	sum->slowdown += tally->slowdown * part;
}

/* --- Rows -------------------------------------------------------------------- */

/* What a figure shows of a tally, and what the paper has there. */
struct aspect {
	const char *figure, *column;
	double (*of)(const struct tally tally[RIVALS], size_t rival);
	double (*papers)(size_t machine, size_t mix, size_t rival); /* mix JOBS_MIXES: the mean */
	uint32_t shown;						    /* a bit for each rival */
};

static void row_head(struct report *report, const char *figure, size_t machine, size_t mix)
{
	report_text(report, figure);
	report_text(report, jobs_machines[machine].name);
	report_text(report, mix < JOBS_MIXES ? jobs_mixes[mix].name : "mean");
	report_text(report,
		    mix < JOBS_MIXES ? report_keep(report, "%u:1", jobs_mixes[mix].large) : "all");
}

static void rows(const struct aspect *aspect, size_t machine, size_t mix,
		 const struct tally tally[RIVALS], struct report *report)
{
	const char *place = report_keep(report, "%s %s", jobs_machines[machine].name,
					mix < JOBS_MIXES ? jobs_mixes[mix].name : "mean");
	unsigned int group = chart_group(report, place);

	for (size_t r = 0; r < RIVALS; r++) {
		double value = aspect->of(tally, r), papers = aspect->papers(machine, mix, r);

		if (!(aspect->shown >> r & 1))
			continue;
		row_head(report, aspect->figure, machine, mix);
		report_text(report, rivals[r].name);
		report_number(report, value);
		report_number(report, papers);
		report_number(report, tally[r].makespan_s);
		report_number(report, tally[r].waited_s);
		chart_point(report, chart_series(report, rivals[r].name), group, value);
		if (isfinite(papers))
			chart_point(report,
				    chart_series(report,
						 report_keep(report, "paper, %s", rivals[r].name)),
				    group, papers);
	}
}

static void shape(const struct aspect *aspect, struct report *report)
{
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "system", REPORT_STRING);
	report_column(report, "workload", REPORT_STRING);
	report_column(report, "mix", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, aspect->column, 3);
	report_column(report, "paper", 3);
	report_column(report, "makespan_s", 1);
	report_column(report, "waited_s", 1);
	report->chart.kind = CHART_BARS;
	report->chart.title = report->title;
	report->chart.x_title = "";
	report->chart.y_title = aspect->column;
}

static int compare_all(const struct experiment *experiment, const struct aspect *aspect,
		       size_t first_machine)
{
	int err = 0;

	shape(aspect, experiment->report);
	for (size_t m = first_machine; m < JOBS_MACHINES && err == 0; m++) {
		struct tally mean[RIVALS] = {{0}};

		for (size_t x = 0; x < JOBS_MIXES && err == 0; x++) {
			struct tally tally[RIVALS];

			err = compare(experiment, &jobs_machines[m], &jobs_mixes[x], tally);
			for (size_t r = 0; r < RIVALS; r++)
				add_tally(&mean[r], &tally[r], 1.0 / JOBS_MIXES);
			rows(aspect, m, x, tally, experiment->report);
		}
		rows(aspect, m, JOBS_MIXES, mean, experiment->report);
	}
	return err;
}

/* --- Figures 4 and 5: throughput ------------------------------------------------ */

static double over_mgb2(const struct tally tally[RIVALS], size_t rival)
{
	return tally[rival].throughput / tally[MGB2].throughput;
}

static double papers_over_mgb2(size_t machine, size_t mix, size_t rival)
{
	(void)machine;
	return mix == JOBS_MIXES && rival == MGB3 ? 1.21 : NAN;
}

static int figure_4(const struct experiment *experiment)
{
	static const struct aspect aspect = {
		"mgb-4",
		"over_mgb2",
		over_mgb2,
		papers_over_mgb2,
		1u << MGB2 | 1u << MGB2_HALF | 1u << MGB3,
	};

	experiment->report->title = "MGB, figure 4: throughput over that of algorithm 2, 4xV100";
	return compare_all(experiment, &aspect, JOBS_V100);
}

static double over_single(const struct tally tally[RIVALS], size_t rival)
{
	return tally[rival].throughput;
}

/* Its text gives means: 2.2 and 2.0 times single assignment, 64 and 41 % over core-to-GPU. */
static double papers_over_single(size_t machine, size_t mix, size_t rival)
{
	static const double mgb3[] = {2.2, 2.0}, over_cores[] = {1.64, 1.41};

	if (mix != JOBS_MIXES || (rival != MGB3 && rival != CORES))
		return NAN;
	return rival == MGB3 ? mgb3[machine] : mgb3[machine] / over_cores[machine];
}

static int figure_5(const struct experiment *experiment)
{
	static const struct aspect aspect = {
		"mgb-5",
		"over_single",
		over_single,
		papers_over_single,
		1u << SINGLE | 1u << CORES | 1u << MGB2 | 1u << MGB2_HALF | 1u << MGB3,
	};

	experiment->report->title =
		"MGB, figure 5: throughput over that of single assignment; core-to-GPU without "
		"crashes";
	return compare_all(experiment, &aspect, 0);
}

/* --- Tables III and IV ---------------------------------------------------------- */

static double turnaround(const struct tally tally[RIVALS], size_t rival)
{
	return tally[rival].turnaround;
}

static double papers_turnaround(size_t machine, size_t mix, size_t rival)
{
	static const double mgb3[JOBS_MACHINES][JOBS_MIXES + 1] = {
		{4.9, 2.3, 4.9, 4.3, 4.6, 3.2, 3.6, 2.0, 3.7},
		{2.4, 2.0, 3.5, 2.6, 3.8, 2.9, 2.9, 2.6, 2.8},
	};

	return rival == MGB3 ? mgb3[machine][mix] : NAN;
}

static int table_3(const struct experiment *experiment)
{
	static const struct aspect aspect = {
		"mgb-table-3",
		"turnaround_over_single",
		turnaround,
		papers_turnaround,
		1u << MGB2 | 1u << MGB2_HALF | 1u << MGB3,
	};

	experiment->report->title =
		"MGB, table III: how many times shorter the turnaround is than with single "
		"assignment";
	return compare_all(experiment, &aspect, 0);
}

static double slowdown_percent(const struct tally tally[RIVALS], size_t rival)
{
	return 100 * (tally[rival].slowdown / tally[SINGLE].slowdown - 1);
}

static double papers_slowdown(size_t machine, size_t mix, size_t rival)
{
	static const double mgb2[] = {-0.3, 1.0, 0.3, 4.1, 2.9, 5.1, 1.1, 0.6, 1.8};
	static const double mgb3[] = {-0.7, 0.8, 7.0, 3.1, 2.2, 4.1, 0.4, 2.9, 2.5};

	(void)machine;
	if (rival == MGB2)
		return mgb2[mix];
	return rival == MGB3 ? mgb3[mix] : NAN;
}

static int table_4(const struct experiment *experiment)
{
	static const struct aspect aspect = {
		"mgb-table-4",
		"slowdown_percent",
		slowdown_percent,
		papers_slowdown,
		1u << MGB2 | 1u << MGB2_HALF | 1u << MGB3,
	};

	experiment->report->title =
		"MGB, table IV: how much longer kernels take than with single assignment, 4xV100";
	return compare_all(experiment, &aspect, JOBS_V100);
}

/* --- Table II: crashes of core-to-GPU --------------------------------------------- */

#define RATIOS 4 /* mixes of 16 jobs, and the same of 32 */
#define WIDTHS 4

/* Of workers, for each GPU: 1.5, 2, 2.5 and 3. */
static uint32_t workers_of(const struct jobs_machine *machine, size_t width)
{
	return machine->gpu_count * (3 + (uint32_t)width) / 2;
}

static int crashes(const struct experiment *experiment, const struct jobs_machine *machine,
		   const struct jobs_mix *mix, uint32_t workers, double *percent)
{
	int err = 0;

	for (uint32_t d = 0; d < experiment->draws && err == 0; d++) {
		const struct jobs_kind *jobs[JOBS_MAX];
		struct engine random = {.seed = experiment->seed * 1000 + d};
		struct jobs_params params;
		struct jobs_result result;

		jobs_mix_draw(mix, &random, jobs);
		params = params_of(machine, &rivals[CORES], workers, random.seed);
		err = jobs_run(&params, jobs, mix->count, &result);
		if (err == 0)
			*percent += 100.0 * result.crashed / mix->count / experiment->draws;
	}
	return err;
}

static void crash_row(struct report *report, size_t machine, uint32_t workers, const char *mix,
		      double percent, double papers)
{
	unsigned int group = chart_group(
		report, report_keep(report, "%s %u workers", jobs_machines[machine].name, workers));

	report_text(report, "mgb-table-2");
	report_text(report, jobs_machines[machine].name);
	report_number(report, workers);
	report_text(report, mix);
	report_number(report, percent);
	report_number(report, papers);
	chart_point(report, chart_series(report, mix), group, percent);
	chart_point(report, chart_series(report, report_keep(report, "paper, %s", mix)), group,
		    papers);
}

static int crash_rows(const struct experiment *experiment, size_t machine, size_t width,
		      double *sum)
{
	static const double papers[JOBS_MACHINES][WIDTHS][RATIOS] = {
		{{0, 3, 8, 0}, {14, 6, 6, 9}, {13, 13, 20, 22}, {16, 17, 16, 16}},
		{{0, 6, 17, 0}, {13, 19, 25, 13}, {15, 25, 20, 25}, {33, 29, 38, 50}},
	};
	uint32_t workers = workers_of(&jobs_machines[machine], width);
	int err = 0;

	for (size_t x = 0; x < RATIOS && err == 0; x++) {
		double few = 0, many = 0;

		err = crashes(experiment, &jobs_machines[machine], &jobs_mixes[x], workers, &few);
		if (err == 0)
			err = crashes(experiment, &jobs_machines[machine], &jobs_mixes[x + RATIOS],
				      workers, &many);
		*sum += (few + many) / 2;
		crash_row(experiment->report, machine, workers,
			  report_keep(experiment->report, "%u:1", jobs_mixes[x].large),
			  (few + many) / 2, papers[machine][width][x]);
	}
	return err;
}

static int table_2(const struct experiment *experiment)
{
	static const double papers[JOBS_MACHINES] = {11, 20};
	struct report *report = experiment->report;
	int err = 0;

	report->title = report->chart.title =
		"MGB, table II: jobs that die for want of memory under core-to-GPU";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "system", REPORT_STRING);
	report_column(report, "workers", 0);
	report_column(report, "mix", REPORT_STRING);
	report_column(report, "crashed_percent", 1);
	report_column(report, "paper", 0);
	report->chart.kind = CHART_BARS;
	report->chart.x_title = "";
	report->chart.y_title = "percent of the jobs";
	for (size_t m = 0; m < JOBS_MACHINES && err == 0; m++) {
		double sum = 0;

		for (size_t w = 0; w < WIDTHS && err == 0; w++)
			err = crash_rows(experiment, m, w, &sum);
		crash_row(report, m, 0, "mean", sum / (WIDTHS * RATIOS), papers[m]);
	}
	return err;
}

/* ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*make)(const struct experiment *experiment);
} figures[] = {
	{"mgb-4", figure_4},	  {"mgb-5", figure_5},	    {"mgb-table-2", table_2},
	{"mgb-table-3", table_3}, {"mgb-table-4", table_4},
};

bool jobs_figure_known(const char *name)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(figures); i++)
		if (strcmp(figures[i].name, name) == 0)
			return true;
	return false;
}

int jobs_figure_make(const char *name, uint64_t seed, uint32_t draws, struct report *report)
{
	const struct experiment experiment = {seed, draws, report};

	for (size_t i = 0; i < FGV_ARRAY_LEN(figures); i++)
		if (strcmp(figures[i].name, name) == 0)
			return figures[i].make(&experiment);
	return -EINVAL;
}
