/*
 * Figures 11 to 15 of the SMGuard paper (Yu et al.): kernels of its table 3, of which those of
 * services are short, and those of batch programs long, on its GPU of 13 multiprocessors.
 *
 * The paper draws its figures; the columns with its name have what its text says of them. Where
 * services are faster in the paper than here they are bound by memory: on a part of the
 * multiprocessors they take less than that much longer, which is not modelled.
 */
#include "scheduler/sim/figures.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/spatial_world.h"

#define RESERVED 8 /* as in the paper, unless said otherwise */

/* Of table 3; myocyte and lavaMD with as many blocks at a time as the rewritten kernels have. */
static const struct spatial_kernel services[] = {
	{"nn", 32768, 8, 0.65},
	{"pf", 23149, 8, 3.7},
	{"va", 156250, 8, 3.15},
	{"bfs", 3907, 2, 2.01},
};

/* Of two sizes in the table, those that the extremes of figures 12 and 13 follow from. */
static const struct spatial_kernel batches[] = {
	{"pl", 79, 16, 2.81},  {"mc", 96, 16, 2123.46},	  {"md", 64, 10, 6.74},
	{"mm", 1024, 2, 4.12}, {"bs", 390625, 16, 13.33}, {"md5", 25432, 5, 39.13},
};

static struct spatial_load service_of(size_t service)
{
	return (struct spatial_load){
		.kernel = &services[service],
		.kernels = 1,
		.from_ns = FGV_NS_PER_MS, /* "1ms after the batch application" */
		.sms = RESERVED,
	};
}

/* --- Figures 12 to 14: pairs ------------------------------------------------------- */

/* Time together / time alone. */
struct slowdown {
	double service, batch;
};

static int slow_down(const struct sim_params *params, enum spatial_mode mode, size_t service,
		     size_t batch, struct slowdown *slowdown)
{
	const struct spatial_load loads[SPATIAL_APPS] = {service_of(service),
							 {.kernel = &batches[batch], .kernels = 1}};
	struct spatial_result results[SPATIAL_APPS];
	int err = spatial_together(params, mode, loads, results);

	slowdown->service = results[0].mean_ms / services[service].ms;
	slowdown->batch = results[1].mean_ms / batches[batch].ms;
	return err;
}

static double speedup(const struct slowdown *mps, const struct slowdown *own)
{
	return mps->service / own->service;
}

static double turnaround(const struct slowdown *slowdown)
{
	return (slowdown->service + slowdown->batch) / 2;
}

static double throughput(const struct slowdown *slowdown)
{
	return 1 / slowdown->service + 1 / slowdown->batch;
}

/* The speedup is a column of figure 12 alone: there the others' are slowdowns of the service. */
static const struct pairs {
	const char *figure, *title, *y_title;
	double (*value)(const struct slowdown *slowdown);
	double paper_mps, paper; /* means */
} pair_figures[] = {
	{"smguard-12", "SMGuard, figure 12: services beside batch programs, MPS against smguard",
	 "time under MPS / time under smguard", NULL, NAN, 9.8},
	{"smguard-13", "SMGuard, figure 13: average normalized turnaround time of pairs",
	 "time together / time alone, mean of both", turnaround, 6.5, 1.56},
	{"smguard-14", "SMGuard, figure 14: system throughput of pairs",
	 "time alone / time together, sum of both", throughput, 1.22, 1.57},
};

/* Of single pairs the paper's text says the extremes of figure 12. */
static double paper_of(const struct pairs *pairs, const char *name)
{
	if (pairs->value)
		return NAN;
	if (strcmp(name, "nn+md5") == 0)
		return 55.2;
	return strcmp(name, "va+bs") == 0 ? 1.9 : NAN;
}

static void pair_row(struct report *report, const struct pairs *pairs, const char *name,
		     const double values[2], double paper_mps, double paper)
{
	report_text(report, pairs->figure);
	report_text(report, name);
	if (pairs->value)
		report_number(report, values[0]);
	report_number(report, values[1]);
	if (pairs->value)
		report_number(report, paper_mps);
	report_number(report, paper);
	if (pairs->value)
		chart_point(report, chart_series(report, "MPS"), chart_group(report, name),
			    values[0]);
	chart_point(report, chart_series(report, "smguard"), chart_group(report, name), values[1]);
}

static void pair_columns(struct report *report, const struct pairs *pairs)
{
	report->title = report->chart.title = pairs->title;
	report->chart.kind = CHART_BARS;
	report->chart.y_title = pairs->y_title;
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "pair", REPORT_STRING);
	if (pairs->value)
		report_column(report, "mps", 2);
	report_column(report, pairs->value ? "smguard" : "speedup", 2);
	if (pairs->value)
		report_column(report, "paper_mps", 2);
	report_column(report, "paper", 2);
}

static int figure_pairs(const struct pairs *pairs, const struct sim_params *params,
			struct report *report)
{
	double sums[2] = {0, 0}, count = FGV_ARRAY_LEN(services) * FGV_ARRAY_LEN(batches);

	pair_columns(report, pairs);
	for (size_t i = 0; i < (size_t)count; i++) {
		size_t s = i / FGV_ARRAY_LEN(batches), b = i % FGV_ARRAY_LEN(batches);
		const char *name = report_keep(report, "%s+%s", services[s].name, batches[b].name);
		struct slowdown mps, own;
		double values[2];
		int err = slow_down(params, SPATIAL_MPS, s, b, &mps);

		if (err == 0)
			err = slow_down(params, SPATIAL_OWNED, s, b, &own);
		if (err != 0)
			return err;
		values[0] = pairs->value ? pairs->value(&mps) : NAN;
		values[1] = pairs->value ? pairs->value(&own) : speedup(&mps, &own);
		for (unsigned int v = 0; v < 2; v++)
			sums[v] += values[v];
		pair_row(report, pairs, name, values, NAN, paper_of(pairs, name));
	}
	pair_row(report, pairs, "mean", (double[]){sums[0] / count, sums[1] / count},
		 pairs->paper_mps, pairs->paper);
	return 0;
}

/* --- Figure 11: how much is reserved ------------------------------------------------ */

#define BURSTS	 100
#define BURST_NS (20 * FGV_NS_PER_MS)

/* Services that come now and then beside a batch program that runs all the time. */
static int figure_11(const struct sim_params *params, struct report *report)
{
	report->title = report->chart.title =
		"SMGuard, figure 11: services by the multiprocessors reserved, beside md5";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "service", REPORT_STRING);
	report_column(report, "reserved", 0);
	report_column(report, "slowdown", 2);
	report_column(report, "paper_most", 1);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "multiprocessors reserved, of 13";
	report->chart.y_title = "time / time alone";
	for (size_t i = 0; i < FGV_ARRAY_LEN(services) * (SPATIAL_SMS - 1); i++) {
		size_t s = i / (SPATIAL_SMS - 1);
		uint32_t reserved = 1 + (uint32_t)(i % (SPATIAL_SMS - 1));
		const struct spatial_load loads[SPATIAL_APPS] = {
			{.kernel = &services[s],
			 .kernels = BURSTS,
			 .gap_ns = BURST_NS,
			 .sms = reserved},
			{.kernel = &batches[FGV_ARRAY_LEN(batches) - 1],
			 .kernels = SPATIAL_ENDLESS}};
		struct spatial_result results[SPATIAL_APPS];
		int err = spatial_together(params, SPATIAL_OWNED, loads, results);
		double slowdown = results[0].mean_ms / services[s].ms;

		if (err != 0)
			return err;
		report_text(report, "smguard-11");
		report_text(report, services[s].name);
		report_number(report, reserved);
		report_number(report, slowdown);
		report_number(report, reserved == RESERVED ? 2.0 : NAN);
		chart_point(report, chart_series(report, services[s].name), reserved, slowdown);
	}
	return 0;
}

/* --- Figure 15: how soon a reservation is taken back --------------------------------- */

#define COMES 200

static void row_15(struct report *report, const struct spatial_kernel *kernel, double wait_ms)
{
	uint32_t at_once = SPATIAL_SMS * kernel->per_sm;
	double block_ms = kernel->ms / ((kernel->blocks + at_once - 1) / at_once);
	bool is_short = !strcmp(kernel->name, "nn") || !strcmp(kernel->name, "va") ||
			!strcmp(kernel->name, "bfs");

	report_text(report, "smguard-15");
	report_text(report, kernel->name);
	report_number(report, wait_ms);
	report_number(report, block_ms / 2);
	report_number(report, strcmp(kernel->name, "mc") ? NAN : 800.0);
	report_number(report, is_short ? 0.5 : NAN);
	chart_point(report, chart_series(report, "at the kernel's end"),
		    chart_group(report, kernel->name), wait_ms);
	chart_point(report, chart_series(report, "at a block's end"),
		    chart_group(report, kernel->name), block_ms / 2);
}

/* An owner comes at random times, when a kernel that is run over and over has all that is lent. */
static int figure_15(const struct sim_params *params, struct report *report)
{
	static const struct spatial_kernel probe = {"probe", 1, 8, 0.1};

	report->title = report->chart.title =
		"SMGuard, figure 15: how long an owner waits for what it has lent";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "borrower", REPORT_STRING);
	report_column(report, "wait_ms", 3);
	report_column(report, "half_a_block_ms", 3);
	report_column(report, "paper_least", 1);
	report_column(report, "paper_most", 1);
	report->chart.kind = CHART_BARS;
	report->chart.y_title = "mean wait of the owner (ms)";
	for (size_t i = 0; i < FGV_ARRAY_LEN(services) + FGV_ARRAY_LEN(batches); i++) {
		const struct spatial_kernel *kernel =
			i < FGV_ARRAY_LEN(services) ? &services[i]
						    : &batches[i - FGV_ARRAY_LEN(services)];
		const struct spatial_load loads[SPATIAL_APPS] = {
			{.kernel = &probe,
			 .kernels = COMES,
			 .from_ns = FGV_NS_PER_MS,
			 .gap_ns = (uint64_t)(5 * kernel->ms * FGV_NS_PER_MS),
			 .sms = RESERVED},
			{.kernel = kernel, .kernels = SPATIAL_ENDLESS}};
		struct spatial_result results[SPATIAL_APPS];
		int err = spatial_together(params, SPATIAL_LENT, loads, results);

		if (err != 0)
			return err;
		row_15(report, kernel, results[0].wait_ms);
	}
	return 0;
}

int figure_smguard(const char *name, const struct sim_params *params, struct report *report)
{
	if (strcmp(name, "smguard-11") == 0)
		return figure_11(params, report);
	if (strcmp(name, "smguard-15") == 0)
		return figure_15(params, report);
	for (size_t i = 0; i < FGV_ARRAY_LEN(pair_figures); i++)
		if (strcmp(name, pair_figures[i].figure) == 0)
			return figure_pairs(&pair_figures[i], params, report);
	return -EINVAL;
}
