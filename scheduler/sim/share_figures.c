/*
 * Experiments on how a GPU is shared: what slices that end by holding do for long kernels
 * (i, j), engines that are granted separately (k), a gate that knows what overlaps (l), and
 * many VMs (crowd).
 */
#include "scheduler/sim/share_figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/share_trial.h"

#define US     (1.0 * FGV_NS_PER_US)
#define MS     (1.0 * FGV_NS_PER_MS)
#define BLOCK  (1.0 / 132) /* the part of an H200 that a kernel of one large block fills */
#define ROUNDS 20	   /* turns of everybody, at least */

static struct share_stream kernels(double ns)
{
	return (struct share_stream){.op_ns = ns, .jitter = 0.05, .width = 1};
}

/* Eight kernels of 28 us, and a wait for them: an interactive program. */
static struct share_stream short_kernels(void)
{
	struct share_stream stream = kernels(28 * US);

	stream.burst = 8;
	stream.gap_ns = (uint64_t)(5 * US);
	return stream;
}

/* --- i and j: kernels of any length ---------------------------------------- */

/* How slices end. */
static const struct mechanism {
	const char *name;
	bool holds;
	bool leads;
	bool by_use;
} mechanisms[] = {
	{"drain", false, false, false},		 {"hold", true, false, false},
	{"hold-early", true, true, false},	 {"hold-by-use", true, false, true},
	{"hold-early-by-use", true, true, true},
};

static const double slices_ms[] = {6, 30};

static void use(struct trial *trial, const struct mechanism *mechanism, double slice_ms)
{
	struct share_params *params = &trial->params;

	params->sched.slice_ns = (uint64_t)(slice_ms * MS);
	params->holds = mechanism->holds;
	params->by_use = mechanism->by_use;
	params->lead_ns = mechanism->leads ? params->let_go_ns : 0;
}

static void length_shape(uint32_t vms, struct report *report)
{
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "kernel_ms", 1);
	report_column(report, "slice_ms", 0);
	report_column(report, "slice_ends", REPORT_STRING);
	for (uint32_t i = 1; i <= vms; i++)
		report_column(report, report_keep(report, "vm%u_progress", i), 3);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report_column(report, "longest_wait_ms", 1);
	report_column(report, "holds_per_s", 0);
	report->chart.kind = CHART_BARS;
	report->chart.x_title = "kernel, slice, how slices end";
	report->chart.y_title = "progress against alone";
}

struct length {
	const char *figure;
	double kernel_ms;
};

static void length_row(const struct trial *trial, const struct length *length,
		       const struct mechanism *mechanism, struct report *report)
{
	double slice_ms = (double)trial->params.sched.slice_ns / MS;
	const char *policy = trial->params.policy->name;
	unsigned int place =
		chart_group(report, report_keep(report, "%s %g ms / %g ms %s", policy,
						length->kernel_ms, slice_ms, mechanism->name));

	report_text(report, length->figure);
	report_text(report, policy);
	report_number(report, length->kernel_ms);
	report_number(report, slice_ms);
	report_text(report, mechanism->name);
	for (uint32_t i = 0; i < trial->count; i++) {
		report_number(report, trial->progress[i]);
		chart_point(report, chart_series(report, report_keep(report, "VM%u", i + 1)), place,
			    trial->progress[i]);
	}
	report_number(report, trial->mmr);
	report_number(report, 1 / trial->sum);
	report_number(report, trial->longest_wait_ms);
	report_number(report, (double)trial->result.holds /
				      ((double)trial->params.measure_ns / FGV_NS_PER_SEC));
}

static int length_rows(struct trial *trial, const void *arg, struct report *report)
{
	int err = 0;

	for (size_t s = 0; s < FGV_ARRAY_LEN(slices_ms); s++)
		for (size_t m = 0; m < FGV_ARRAY_LEN(mechanisms) && err == 0; m++) {
			use(trial, &mechanisms[m], slices_ms[s]);
			err = trial_run(trial);
			if (err == 0)
				length_row(trial, arg, &mechanisms[m], report);
		}
	return err;
}

static int figure_i(const struct share_params *params, struct report *report)
{
	static const double kernels_ms[] = {0.5, 200, 1000};
	int err = 0;

	report->title = report->chart.title =
		"Figure i: kernels of 28 us (VM 1) beside long ones (VM 2), equal weights";
	length_shape(2, report);
	for (size_t k = 0; k < FGV_ARRAY_LEN(kernels_ms) && err == 0; k++) {
		struct share_stream streams[] = {short_kernels(), kernels(kernels_ms[k] * MS)};
		struct share_vm vms[] = {{1, &streams[0], 1}, {1, &streams[1], 1}};
		struct length length = {"i", kernels_ms[k]};
		struct trial trial;

		err = trial_init(&trial, params, vms, 2);
		if (err != 0)
			break;
		err = trial_alone(&trial);
		if (err == 0)
			err = trial_policies(&trial, length_rows, &length, report);
		trial_fini(&trial);
	}
	return err;
}

static int figure_j(const struct share_params *params, struct report *report)
{
	struct share_stream streams[] = {kernels(0.3 * MS), kernels(30 * MS), kernels(500 * MS)};
	struct share_vm vms[] = {{1, &streams[0], 1}, {2, &streams[1], 1}, {3, &streams[2], 1}};
	struct length length = {"j", 500};
	struct trial trial;
	int err = trial_init(&trial, params, vms, 3);

	report->title = report->chart.title =
		"Figure j: weights of 1:2:3, kernels of 0.3 ms, 30 ms and 500 ms";
	length_shape(3, report);
	if (err != 0)
		return err;
	err = trial_alone(&trial);
	if (err == 0)
		err = trial_policies(&trial, length_rows, &length, report);
	trial_fini(&trial);
	return err;
}

/* --- k: engines ------------------------------------------------------------ */

static struct share_stream copies(enum share_engine engine)
{
	return (struct share_stream){
		.engine = engine, .op_ns = 80 * US, .jitter = 0.05, .width = 1}; /* of 4 MiB */
}

static const char *grant_name(bool by_engine)
{
	return by_engine ? "engine" : "whole GPU";
}

static int engine_rows(struct trial *trial, const void *name, struct report *report)
{
	for (int by_engine = 0; by_engine < 2; by_engine++) {
		const char *policy = trial->params.policy->name;
		unsigned int place;
		int err;

		trial->params.by_engine = by_engine;
		err = trial_run(trial);
		if (err != 0)
			return err;
		place = chart_group(report, report_keep(report, "%s: %s %s", (const char *)name,
							policy, grant_name(by_engine)));
		report_text(report, "k");
		report_text(report, policy);
		report_text(report, name);
		report_text(report, grant_name(by_engine));
		for (uint32_t i = 0; i < 3; i++) {
			double progress = i < trial->count ? trial->progress[i] : NAN;

			report_number(report, progress);
			if (i < trial->count)
				chart_point(
					report,
					chart_series(report, report_keep(report, "VM%u", i + 1)),
					place, progress);
		}
		report_number(report, trial->sum);
		report_number(report, trial->mmr);
		report_number(report, trial->longest_wait_ms);
	}
	return 0;
}

static int engine_trial(const struct share_params *params, struct share_vm *vms, uint32_t count,
			const char *name, struct report *report)
{
	struct trial trial;
	int err = trial_init(&trial, params, vms, count);

	if (err != 0)
		return err;
	err = trial_alone(&trial);
	if (err == 0)
		err = trial_policies(&trial, engine_rows, name, report);
	trial_fini(&trial);
	return err;
}

static int figure_k(const struct share_params *params, struct report *report)
{
	struct share_stream in = copies(SHARE_COPY_IN), out = copies(SHARE_COPY_OUT);
	struct share_stream both[] = {copies(SHARE_COPY_IN), kernels(0.5 * MS)};
	struct share_stream compute = kernels(0.5 * MS);
	struct share_vm three[] = {{1, &in, 1}, {1, &out, 1}, {1, &compute, 1}};
	struct share_vm two[] = {{1, &in, 1}, {3, &in, 1}};
	struct share_vm mixed[] = {{1, both, 2}, {1, &compute, 1}, {1, &in, 1}};
	int err;

	report->title = report->chart.title = "Figure k: copies in, copies out and kernels";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "vms", REPORT_STRING);
	report_column(report, "granted", REPORT_STRING);
	for (uint32_t i = 1; i <= 3; i++)
		report_column(report, report_keep(report, "vm%u_progress", i), 3);
	report_column(report, "sum", 3);
	report_column(report, "mmr", 3);
	report_column(report, "longest_wait_ms", 1);
	report->chart.kind = CHART_BARS;
	report->chart.x_title = "VMs, what is granted";
	report->chart.y_title = "progress against alone";
	err = engine_trial(params, three, 3, "in, out, compute", report);
	if (err == 0)
		err = engine_trial(params, two, 2, "in 1:3", report);
	if (err == 0)
		err = engine_trial(params, mixed, 3, "in+compute, compute, in", report);
	return err;
}

/* --- l: streams that overlap ----------------------------------------------- */

static const char *const gate_names[] = {[SHARE_MAKESPAN] = "makespan", [SHARE_SUM] = "sum"};

struct overlap {
	uint32_t streams;
	double kernel_us;
};

static int overlap_rows(struct trial *trial, const void *arg, struct report *report)
{
	static const enum share_gate gates[] = {SHARE_SUM, SHARE_MAKESPAN};
	const struct overlap *overlap = arg;

	for (size_t g = 0; g < FGV_ARRAY_LEN(gates); g++) {
		double alone;
		int err;

		trial->params.gate = gates[g];
		trial->count = 1;
		err = trial_run(trial);
		alone = 1 / trial->progress[0];
		trial->count = 2;
		if (err == 0)
			err = trial_run(trial);
		if (err != 0)
			return err;
		report_text(report, "l");
		report_text(report, trial->params.policy->name);
		report_number(report, overlap->streams);
		report_number(report, overlap->kernel_us);
		report_text(report, gate_names[gates[g]]);
		report_number(report, alone);
		report_number(report, trial->progress[0]);
		report_number(report, trial->progress[1]);
		chart_point(
			report,
			chart_series(report, report_keep(report, "%g us, %s", overlap->kernel_us,
							 gate_names[gates[g]])),
			overlap->streams, alone);
	}
	return 0;
}

static int overlap_trial(const struct share_params *params, const struct overlap *overlap,
			 struct report *report)
{
	struct share_stream streams[32], other = short_kernels();
	struct share_vm vms[] = {{1, streams, overlap->streams}, {1, &other, 1}};
	struct trial trial;
	int err = trial_init(&trial, params, vms, 2);

	if (err != 0)
		return err;
	trial.params.measure_ns /= 10; /* a million kernels a second */
	trial.params.warm_up_ns /= 10;
	for (uint32_t i = 0; i < overlap->streams; i++) {
		streams[i] = kernels(overlap->kernel_us * US);
		streams[i].width = BLOCK;
	}
	err = trial_alone(&trial);
	if (err == 0)
		err = trial_policies(&trial, overlap_rows, overlap, report);
	trial_fini(&trial);
	return err;
}

static int figure_l(const struct share_params *params, struct report *report)
{
	static const uint32_t streams[] = {1, 8, 32};
	static const double kernels_us[] = {30, 1000, 18000, 100000};
	int err = 0;

	report->title = report->chart.title =
		"Figure l: kernels of one block in several streams, alone and beside 28 us";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "streams", 0);
	report_column(report, "kernel_us", 0);
	report_column(report, "gate", REPORT_STRING);
	report_column(report, "alone_run_time", 3);
	report_column(report, "progress", 3);
	report_column(report, "other_progress", 3);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "streams";
	report->chart.y_title = "run time alone / natively";
	for (size_t s = 0; s < FGV_ARRAY_LEN(streams); s++)
		for (size_t k = 0; k < FGV_ARRAY_LEN(kernels_us) && err == 0; k++) {
			struct overlap overlap = {streams[s], kernels_us[k]};

			err = overlap_trial(params, &overlap, report);
		}
	return err;
}

/* --- crowd: many VMs ------------------------------------------------------- */

static int crowd_rows(struct trial *trial, const void *arg, struct report *report)
{
	static const size_t some[] = {0, 1, FGV_ARRAY_LEN(mechanisms) - 1};

	(void)arg;
	for (size_t i = 0; i < FGV_ARRAY_LEN(some); i++) {
		const struct mechanism *mechanism = &mechanisms[some[i]];
		const char *policy = trial->params.policy->name;
		int err;

		use(trial, mechanism, 6);
		err = trial_run(trial);
		if (err != 0)
			return err;
		report_text(report, "crowd");
		report_text(report, policy);
		report_number(report, trial->count);
		report_text(report, mechanism->name);
		report_number(report, trial->mmr);
		report_number(report, 1 / trial->sum);
		report_number(report, trial->longest_wait_ms);
		report_number(report, (double)trial->params.measure_ns / FGV_NS_PER_SEC);
		report_number(report, (double)trial->result.events);
		chart_point(
			report,
			chart_series(report, report_keep(report, "%s %s", policy, mechanism->name)),
			log10(trial->count), trial->mmr);
	}
	return 0;
}

/* Kernels of three lengths in turn, weights of 1, 2, 3 and 4. */
static int crowd_trial(const struct share_params *params, uint32_t count, struct report *report)
{
	struct share_stream streams[] = {kernels(0.3 * MS), kernels(2 * MS), kernels(30 * MS)};
	struct share_vm *vms = calloc(count, sizeof(*vms));
	struct trial trial;
	uint64_t weights = 0;
	int err;

	if (vms == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		vms[i] = (struct share_vm){1 + i / 3 % 4, &streams[i % 3], 1};
		weights += vms[i].weight;
	}
	err = trial_init(&trial, params, vms, count);
	if (err != 0)
		goto free_vms;
	trial.kinds = 3;
	err = trial_alone(&trial);
	trial.params.measure_ns =
		fgv_max_u64(params->measure_ns, weights * ROUNDS * 7 * FGV_NS_PER_MS);
	if (err == 0)
		err = trial_policies(&trial, crowd_rows, NULL, report);
	trial_fini(&trial);
free_vms:
	free(vms);
	return err;
}

static int figure_crowd(const struct share_params *params, struct report *report)
{
	static const uint32_t counts[] = {10, 100, 1000, 10000};
	int err = 0;

	report->title = report->chart.title =
		"Many VMs of weights 1 to 4, with kernels of 0.3 ms, 2 ms and 30 ms";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "vms", 0);
	report_column(report, "slice_ends", REPORT_STRING);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report_column(report, "longest_wait_ms", 0);
	report_column(report, "seconds", 0);
	report_column(report, "events", 0);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "VMs (powers of ten)";
	report->chart.y_title = "Min-Max Ratio";
	for (size_t i = 0; i < FGV_ARRAY_LEN(counts) && err == 0; i++)
		err = crowd_trial(params, counts[i], report);
	return err;
}

static const struct {
	const char *name;
	int (*make)(const struct share_params *params, struct report *report);
} figures[] = {
	{"i", figure_i},
	{"j", figure_j},
	{"k", figure_k},
	{"l", figure_l},
	{"bursts", share_figure_bursts},
	{"gangs", share_figure_gangs},
	{"crowd", figure_crowd},
};

bool share_figure_known(const char *name)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(figures); i++)
		if (strcmp(figures[i].name, name) == 0)
			return true;
	return false;
}

int share_figure_make(const char *name, const struct share_params *params, struct report *report)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(figures); i++)
		if (strcmp(figures[i].name, name) == 0)
			return figures[i].make(params, report);
	return -EINVAL;
}
