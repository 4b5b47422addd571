/*
 * Table 2 and figure 18 of the FIKIT paper (arXiv 2311.10359): an urgent service whose kernels have
 * gaps between them, and another one without, share a GPU (fikit_world.h).
 *
 * The paper does not print its kernels' times. Those here are chosen so that under the GPU's own
 * first come, first served both services take as long as its table 2 says, and so that the urgent
 * one has about as many gaps into which a kernel of the other one fits; all else follows.
 */
#include "scheduler/sim/figures.h"

#include <math.h>

#include "common/util.h"
#include "scheduler/sim/fikit_world.h"

#define US FGV_NS_PER_US

#define SERVICES FIKIT_SERVICES

static const struct fikit_service services[SERVICES] = {
	{"keypointrcnn_resnet50_fpn", 60, 300 * US, 203 * US, 620 * US, 0, 0},
	{"fcn_resnet50", 20, 500 * US, 0, 0, 9, 0},
};

/* So many tasks of each, from now on; the times at which they were done. */
static int together(const struct sim_params *params, bool is_fikit, const uint64_t tasks[SERVICES],
		    double seconds[SERVICES])
{
	struct fikit_load loads[SERVICES];
	struct fikit_result results[SERVICES];
	int err;

	for (unsigned int i = 0; i < SERVICES; i++)
		loads[i] = (struct fikit_load){.service = &services[i], .tasks = tasks[i]};
	err = fikit_together(params, is_fikit, loads, 0, results);
	for (unsigned int i = 0; i < SERVICES; i++)
		seconds[i] = results[i].done_s;
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
		double seconds[SERVICES], after_s = fikit_alone_s(&services[0], ratios[r]) +
						    fikit_alone_s(&services[1], 1);

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
