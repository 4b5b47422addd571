/*
 * Figures 16, 17 and 19 to 21 and table 3 of the FIKIT paper (arXiv 2311.10359): ten pairs of
 * an urgent service and another one (fikit_world.h), under the policy and under the GPU's own first
 * come, first served.
 *
 * Of its ten combinations the paper prints how long a task of the less urgent one takes beside the
 * other (table 3). The kernels here are chosen so that these times come out, and so that by default
 * sharing the urgent services are slowed down as little and as much as figure 16 says; all else
 * follows. Where the paper says no more than from where to where its bars go, so do the columns
 * paper_least and paper_most.
 */
#include "scheduler/sim/figures.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/fikit_world.h"

#define US     FGV_NS_PER_US
#define URGENT 0
#define OTHER  1

static const struct fikit_service pairs[][FIKIT_SERVICES] = {
	{{"A, urgent", 200, 60 * US, 40 * US, 600 * US, 0, 8},
	 {"A, other", 20, 300 * US, 0, 0, 9, 0}},
	{{"B, urgent", 602, 60 * US, 40 * US, 1340 * US, 0, 8},
	 {"B, other", 20, 1190 * US, 0, 0, 9, 0}},
	{{"C, urgent", 368, 60 * US, 40 * US, 640 * US, 0, 8},
	 {"C, other", 20, 490 * US, 0, 0, 9, 0}},
	{{"D, urgent", 176, 60 * US, 40 * US, 600 * US, 0, 8},
	 {"D, other", 140, 81 * US, 0, 0, 9, 0}},
	{{"E, urgent", 433, 60 * US, 40 * US, 990 * US, 0, 8},
	 {"E, other", 20, 840 * US, 0, 0, 9, 0}},
	{{"F, urgent", 44, 30 * US, 20 * US, 300 * US, 0, 2},
	 {"F, other", 20, 70 * US, 0, 0, 9, 0}},
	{{"G, urgent", 264, 60 * US, 40 * US, 600 * US, 0, 8},
	 {"G, other", 20, 380 * US, 0, 0, 9, 0}},
	{{"H, urgent", 485, 60 * US, 40 * US, 790 * US, 0, 8},
	 {"H, other", 20, 640 * US, 0, 0, 9, 0}},
	{{"I, urgent", 358, 60 * US, 40 * US, 2029 * US, 0, 5},
	 {"I, other", 12, 1879 * US, 0, 0, 9, 0}},
	{{"J, urgent", 122, 60 * US, 40 * US, 600 * US, 0, 8},
	 {"J, other", 40, 220 * US, 0, 0, 9, 0}},
};

#define PAIRS FGV_ARRAY_LEN(pairs)

/* Tasks of a service that comes now and then, and how often. */
#define TASKS	 100
#define EVERY_NS FGV_NS_PER_SEC

/* So long both have work all the time, in figures 16 and 17. */
#define OVERLAP_S 4

/* What the two take as they are wanted: all the time, or every second, so often. */
static struct fikit_load load_of(size_t pair, unsigned int which, bool is_rare)
{
	return (struct fikit_load){
		.service = &pairs[pair][which],
		.tasks = is_rare ? TASKS : FIKIT_ENDLESS,
		.every_ns = is_rare ? EVERY_NS : 0,
	};
}

/* @rare: which of them comes now and then; FIKIT_SERVICES: none. */
static int run_pair(const struct sim_params *params, size_t pair, unsigned int rare, bool is_fikit,
		    struct fikit_result results[FIKIT_SERVICES])
{
	const struct fikit_load loads[] = {load_of(pair, URGENT, rare == URGENT),
					   load_of(pair, OTHER, rare == OTHER)};

	return fikit_together(params, is_fikit, loads, rare == FIKIT_SERVICES ? OVERLAP_S : 0,
			      results);
}

/* --- Against the GPU's own sharing ----------------------------------------------- */

static const struct comparison {
	const char *figure, *title;
	unsigned int rare, which;
	double least, most; /* in the paper; NaN: it does not say */
} comparisons[] = {
	{"fikit-16", "FIKIT, figure 16: the urgent service's tasks, default sharing against fikit",
	 FIKIT_SERVICES, URGENT, 1.32, 16.41},
	{"fikit-17", "FIKIT, figure 17: the other service's tasks, default sharing against fikit",
	 FIKIT_SERVICES, OTHER, NAN, 0.3},
	{"fikit-19", "FIKIT, figure 19: an urgent task every second, default sharing against fikit",
	 URGENT, URGENT, NAN, 15.77},
	{"fikit-20", "FIKIT, figure 20: the other service beside an urgent task every second",
	 URGENT, OTHER, 0.86, 1.0},
};

static void row(struct report *report, const struct comparison *comparison, size_t pair,
		const struct fikit_result *shared, const struct fikit_result *fikit)
{
	double speedup = shared->mean_ms / fikit->mean_ms;
	const char *name = report_keep(report, "%c", 'A' + (int)pair);

	report_text(report, comparison->figure);
	report_text(report, name);
	report_number(report, shared->mean_ms);
	report_number(report, fikit->mean_ms);
	report_number(report, speedup);
	report_number(report, comparison->least);
	report_number(report, comparison->most);
	chart_point(report, chart_series(report, "simulated"), chart_group(report, name), speedup);
}

static int compare(const struct comparison *comparison, const struct sim_params *params,
		   struct report *report)
{
	struct fikit_result shared[FIKIT_SERVICES], fikit[FIKIT_SERVICES];
	int err = 0;

	report->title = report->chart.title = comparison->title;
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "combination", REPORT_STRING);
	report_column(report, "shared_ms", 3);
	report_column(report, "fikit_ms", 3);
	report_column(report, "speedup", 3);
	report_column(report, "paper_least", 2);
	report_column(report, "paper_most", 2);
	report->chart.kind = CHART_BARS;
	report->chart.y_title = "time of a task, default sharing / fikit";
	for (size_t pair = 0; pair < PAIRS && err == 0; pair++) {
		err = run_pair(params, pair, comparison->rare, false, shared);
		if (err == 0)
			err = run_pair(params, pair, comparison->rare, true, fikit);
		if (err == 0)
			row(report, comparison, pair, &shared[comparison->which],
			    &fikit[comparison->which]);
	}
	return err;
}

/* --- Table 3 and figure 21 ------------------------------------------------------- */

static const struct {
	double deviation_ms, mean_ms, variation;
} table_3[PAIRS] = {
	{10.047, 61.391, 0.163657}, {18.428, 176.578, 0.104361}, {11.948, 104.195, 0.114673},
	{8.692, 55.408, 0.156871},  {15.962, 127.269, 0.125423}, {0.670, 7.017, 0.095457},
	{10.524, 77.409, 0.135951}, {21.547, 136.410, 0.157956}, {12.393, 114.532, 0.108204},
	{4.616, 41.719, 0.110651},
};

/* Figure 21 draws the tasks of which the table has the means. */
static int figure_table_3(const char *figure, const struct sim_params *params,
			  struct report *report)
{
	struct fikit_result results[FIKIT_SERVICES];
	int err = 0;

	report->title = report->chart.title =
		"FIKIT, table 3 and figure 21: a task every second beside an urgent service";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "combination", REPORT_STRING);
	report_column(report, "mean_ms", 3);
	report_column(report, "deviation_ms", 3);
	report_column(report, "variation", 4);
	report_column(report, "paper_mean_ms", 3);
	report_column(report, "paper_deviation_ms", 3);
	report_column(report, "paper_variation", 4);
	report->chart.kind = CHART_BARS;
	report->chart.y_title = "deviation / mean of a task's time";
	for (size_t pair = 0; pair < PAIRS && err == 0; pair++) {
		const char *name = report_keep(report, "%c", 'A' + (int)pair);
		double variation;

		err = run_pair(params, pair, OTHER, true, results);
		variation = results[OTHER].deviation_ms / results[OTHER].mean_ms;
		report_text(report, figure);
		report_text(report, name);
		report_number(report, results[OTHER].mean_ms);
		report_number(report, results[OTHER].deviation_ms);
		report_number(report, variation);
		report_number(report, table_3[pair].mean_ms);
		report_number(report, table_3[pair].deviation_ms);
		report_number(report, table_3[pair].variation);
		chart_point(report, chart_series(report, "simulated"), chart_group(report, name),
			    variation);
		chart_point(report, chart_series(report, "paper"), chart_group(report, name),
			    table_3[pair].variation);
	}
	return err;
}

/* --- By name --------------------------------------------------------------------- */

int figure_fikit(const char *name, const struct sim_params *params, struct report *report)
{
	if (strcmp(name, "fikit-18") == 0)
		return figure_fikit_18(params, report);
	if (strcmp(name, "fikit-table-2") == 0)
		return figure_fikit_table_2(params, report);
	if (strcmp(name, "fikit-21") == 0 || strcmp(name, "fikit-table-3") == 0)
		return figure_table_3(name, params, report);
	for (size_t i = 0; i < FGV_ARRAY_LEN(comparisons); i++)
		if (strcmp(name, comparisons[i].figure) == 0)
			return compare(&comparisons[i], params, report);
	return -EINVAL;
}
