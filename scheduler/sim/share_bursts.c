/*
 * Programs whose GPU work comes in bursts with pauses between them, beside one that is always
 * busy: what the bursts wait for, and what their hand-overs cost the neighbour.
 */
#include "scheduler/sim/share_figures.h"

#include "common/util.h"
#include "scheduler/sim/share_trial.h"

#define US	  (1.0 * FGV_NS_PER_US)
#define MS	  (1.0 * FGV_NS_PER_MS)
#define KERNEL_US 50
#define PAUSE_US  300 /* of the processor's work between two bursts */

/* Weights of the neighbour and of the VM with bursts. */
static const uint32_t weights[][2] = {{1, 1}, {1, 3}, {3, 1}};
static const double slices_ms[] = {6, 30};

/* The neighbour's kernels, how long it computes without a pause (0: always), and the bursts. */
static const struct pair {
	const char *neighbour;
	double kernel_ms, busy_ms, burst_ms;
} pairs[] = {
	{"busy", 0.1, 0, 0.05}, {"busy", 0.1, 0, 0.5}, {"busy", 0.1, 0, 1.5},
	{"busy", 0.1, 0, 4.5},	{"busy", 0.1, 0, 9},   {"bursts", 0.1, 13.5, 4.5},
	{"long", 200, 0, 0.05}, {"long", 200, 0, 4.5},
};

struct burst {
	const struct pair *pair;
	double slice_ms;
};

/* Kernels one after the other, and a pause after each @busy_ms; 0: never. */
static struct share_stream stream_of(double kernel_ms, double busy_ms)
{
	return (struct share_stream){
		.op_ns = kernel_ms * MS,
		.jitter = 0.05,
		.width = 1,
		.burst = (uint32_t)(busy_ms / kernel_ms + 0.5),
		.gap_ns = (uint64_t)(PAUSE_US * US),
	};
}

static void shape(struct report *report)
{
	report->title = report->chart.title =
		"Bursts with pauses of 0.3 ms (VM 2) beside another program (VM 1)";
	report_column(report, "figure", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "weights", REPORT_STRING);
	report_column(report, "neighbour", REPORT_STRING);
	report_column(report, "burst_ms", 2);
	report_column(report, "slice_ms", 0);
	report_column(report, "vm1_progress", 3);
	report_column(report, "vm2_progress", 3);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report_column(report, "longest_wait_ms", 1);
	report_column(report, "hand_overs_per_s", 0);
	report->chart.kind = CHART_BARS;
	report->chart.x_title = "weights, neighbour, burst, slice";
	report->chart.y_title = "progress against alone";
}

static void burst_cells(const struct trial *trial, const struct burst *burst, struct report *report)
{
	const char *policy = trial->params.policy->name, *neighbour = burst->pair->neighbour;
	const char *ratio =
		report_keep(report, "%u:%u", trial->vms[0].weight, trial->vms[1].weight);
	unsigned int place =
		chart_group(report, report_keep(report, "%s %s %s %g ms / %g ms", policy, ratio,
						neighbour, burst->pair->burst_ms, burst->slice_ms));

	report_text(report, "bursts");
	report_text(report, policy);
	report_text(report, ratio);
	report_text(report, neighbour);
	report_number(report, burst->pair->burst_ms);
	report_number(report, burst->slice_ms);
	for (uint32_t i = 0; i < trial->count; i++) {
		report_number(report, trial->progress[i]);
		chart_point(report, chart_series(report, report_keep(report, "VM%u", i + 1)), place,
			    trial->progress[i]);
	}
}

static int burst_row(struct trial *trial, const void *burst, struct report *report)
{
	double seconds = (double)trial->params.measure_ns / FGV_NS_PER_SEC;
	int err = trial_run(trial);

	if (err != 0)
		return err;
	burst_cells(trial, burst, report);
	report_number(report, trial->mmr);
	report_number(report, 1 / trial->sum);
	report_number(report, trial->longest_wait_ms);
	report_number(report, (double)trial->result.hand_overs / seconds);
	return 0;
}

static int burst_trial(const struct share_params *params, const uint32_t weight[2],
		       const struct burst *burst, struct report *report)
{
	struct share_stream streams[] = {
		stream_of(burst->pair->kernel_ms, burst->pair->busy_ms),
		stream_of(KERNEL_US * US / MS, burst->pair->burst_ms),
	};
	struct share_vm vms[] = {{weight[0], &streams[0], 1}, {weight[1], &streams[1], 1}};
	struct trial trial;
	int err = trial_init(&trial, params, vms, 2);

	if (err != 0)
		return err;
	trial.params.sched.slice_ns = (uint64_t)(burst->slice_ms * MS);
	err = trial_alone(&trial);
	if (err == 0)
		err = trial_policies(&trial, burst_row, burst, report);
	trial_fini(&trial);
	return err;
}

int share_figure_bursts(const struct share_params *params, struct report *report)
{
	int err = 0;

	shape(report);
	for (size_t w = 0; w < FGV_ARRAY_LEN(weights); w++)
		for (size_t s = 0; s < FGV_ARRAY_LEN(slices_ms); s++)
			for (size_t b = 0; b < FGV_ARRAY_LEN(pairs) && err == 0; b++) {
				struct burst burst = {&pairs[b], slices_ms[s]};

				err = burst_trial(params, weights[w], &burst, report);
			}
	return err;
}
