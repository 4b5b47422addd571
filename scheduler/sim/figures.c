/*
 * The paper's experiments on the simulator: figure 4 step by step on the library alone,
 * figures 8 and 9 (fairness and overhead without and with congestion), 10 (work
 * conservation) and 11 (short kernels against long ones).
 */
#include "scheduler/sim/figures.h"

#include <errno.h>
#include <math.h>

#include "common/util.h"

#define MS FGV_NS_PER_MS

/* Those that the FairGV paper compares. */
static const struct fgv_policy *const rivals[] = {
	&fgv_policy_fair,      &fgv_policy_credit_poll, &fgv_policy_credit_hs,
	&fgv_policy_strict_co, &fgv_policy_none,	NULL,
};

/* `fair` with a vGPU that keeps the grant while it polls an empty ring; figure 10 only. */
static struct fgv_policy fair_polling(void)
{
	struct fgv_policy policy = fgv_policy_fair;

	policy.name = "fair-polling";
	policy.gpu_wait = FGV_POLICY_WAIT_POLL;
	return policy;
}

/* --- Running --------------------------------------------------------------- */

int figure_alone(struct figure_run *run)
{
	struct sim_params params = *run->params;
	int err = 0;

	params.policy = &fgv_policy_fair;
	for (unsigned int i = 0; i < run->count && err == 0; i++) {
		err = sim_run(&params, &run->vms[i], 1, &run->result);
		run->alone[i] = run->result.vm[0].kernels_per_s;
	}
	return err;
}

/*
 * Section 5.4.1: a VM's normalized throughput is its throughput over its weight's part of
 * what it does alone. Overhead is ideal over measured in sum; with different programs, the
 * sum of each one's progress against alone.
 */
int figure_together(struct figure_run *run)
{
	struct sim_params params = *run->params;
	double least = INFINITY, most = 0, sum = 0;
	uint64_t weights = 0;
	int err;

	params.policy = run->policy;
	err = sim_run(&params, run->vms, run->count, &run->result);
	for (unsigned int i = 0; i < run->count; i++)
		weights += run->vms[i].weight;
	for (unsigned int i = 0; i < run->count && err == 0; i++) {
		double due = (double)run->vms[i].weight / (double)weights;

		run->progress[i] = run->result.vm[i].kernels_per_s / run->alone[i];
		sum += run->progress[i];
		least = fmin(least, run->progress[i] / due);
		most = fmax(most, run->progress[i] / due);
	}
	run->mmr = least / most;
	run->overhead = 1 / sum;
	return err;
}

/* --- Figure 4 -------------------------------------------------------------- */

static void figure_4_row(struct report *report, double at_ms, unsigned int runs,
			 struct fgv_sched_vgpu *const *vgpu)
{
	struct fgv_policy_tags tags[2] = {{0, 0}, {0, 0}};
	double start_ms;

	report_number(report, 4);
	report_text(report, "fair");
	report_number(report, at_ms);
	report_number(report, runs);
	for (unsigned int i = 0; i < 2; i++) {
		fgv_sched_tags(vgpu[i], &tags[i]);
		start_ms = (double)tags[i].start_ns / (double)MS;
		report_number(report, start_ms);
		chart_point(report, i, at_ms, start_ms);
	}
	report_number(report, (double)tags[0].virtual_ns / (double)MS);
	chart_point(report, 2, at_ms, (double)tags[0].virtual_ns / (double)MS);
}

static void figure_4_shape(struct report *report)
{
	report->title = "Figure 4: tags and virtual time, vGPU 1 and 2 of weights 1 and 2, in ms";
	report_column(report, "figure", 0);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "time_ms", 0);
	report_column(report, "runs", 0);
	report_column(report, "start_tag_1", 1);
	report_column(report, "start_tag_2", 1);
	report_column(report, "virtual_time", 1);
	report->chart.kind = CHART_STEPS;
	report->chart.title = report->title;
	report->chart.x_title = "time (ms)";
	report->chart.y_title = "virtual ms";
	chart_series(report, "start tag, vGPU 1");
	chart_series(report, "start tag, vGPU 2");
	chart_series(report, "virtual time");
}

static void figure_4_steps(struct fgv_sched *sched, struct fgv_sched_vgpu **vgpu,
			   struct fgv_sched_session **session, struct report *report)
{
	struct fgv_sched_session *holder = NULL;
	struct fgv_sched_decision d;
	unsigned int runs = 0;

	for (unsigned int at_ms = 0; at_ms <= 130; at_ms += 10) {
		if (at_ms == 110) { /* in between, at 105 ms, vGPU 1 wakes */
			fgv_sched_request(session[0], 105 * MS);
			figure_4_row(report, 105, runs, vgpu);
		}
		if (holder != NULL)
			fgv_sched_release(holder, 10 * MS, at_ms != 70, at_ms * MS);
		while (fgv_sched_decide(sched, at_ms * MS, &d))
			if (d.action == FGV_SCHED_GRANT)
				holder = d.session;
		runs = holder == session[0] ? 1 : 2;
		figure_4_row(report, at_ms, runs, vgpu);
	}
}

static int figure_4(struct report *report)
{
	struct fgv_sched_params params;
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu[2];
	struct fgv_sched_session *session[2];
	int err;

	figure_4_shape(report);
	fgv_sched_params_init(&params);
	params.slice_ns = 10 * MS;
	err = fgv_sched_create(&sched, &fgv_policy_fair, &params, 0);
	if (err != 0)
		return err;
	for (unsigned int i = 0; i < 2 && err == 0; i++) {
		err = fgv_sched_attach_vgpu(sched, i + 1, NULL, 0, &vgpu[i]);
		if (err == 0)
			err = fgv_sched_attach_session(vgpu[i], NULL, 0, &session[i]);
		if (err == 0)
			fgv_sched_request(session[i], 0);
	}
	if (err == 0)
		figure_4_steps(sched, vgpu, session, report);
	fgv_sched_destroy(sched);
	return err;
}

/* --- Figures 8 and 9 ------------------------------------------------------- */

struct group {
	int figure;
	const char *title;
	const char *const *workloads; /* ending with NULL */
	const uint32_t *weights;
	unsigned int vms, per_processor;
};

static void group_shape(const struct group *group, struct report *report)
{
	report->title = report->chart.title = group->title;
	report_column(report, "figure", 0);
	report_column(report, "workload", REPORT_STRING);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report_column(report, "gpu_busy", 3);
	for (unsigned int i = 1; i <= group->vms; i++)
		report_column(report, report_keep(report, "vm%u_completion_s", i), 1);
	report->chart.kind = CHART_BARS;
	report->chart.x_title = "M: Min-Max Ratio, O: aggregated overhead";
	report->chart.y_title = "completion time (s)";
}

static void group_row(const struct group *group, const struct sim_workload *workload,
		      const struct figure_run *run, struct report *report)
{
	unsigned int place =
		chart_group(report, report_keep(report, "%s %s M %.2f O %.2f", workload->name,
						run->policy->name, run->mmr, run->overhead));

	report_number(report, group->figure);
	report_text(report, workload->name);
	report_text(report, run->policy->name);
	report_number(report, run->mmr);
	report_number(report, run->overhead);
	report_number(report, run->result.gpu_busy);
	for (unsigned int i = 0; i < run->count; i++) {
		double completion_s = workload->run_time_s / run->progress[i];

		report_number(report, completion_s);
		chart_point(report, chart_series(report, report_keep(report, "VM%u", i + 1)), place,
			    completion_s);
	}
}

static int group_figure(const struct group *group, const struct sim_params *params,
			struct report *report)
{
	struct sim_vm vms[SIM_VMS_MAX];
	int err = 0;

	group_shape(group, report);
	for (size_t w = 0; group->workloads[w] != NULL && err == 0; w++) {
		const struct sim_workload *workload = sim_workload_find(group->workloads[w]);
		struct figure_run run = {.params = params, .vms = vms, .count = group->vms};

		for (unsigned int i = 0; i < group->vms; i++)
			vms[i] = (struct sim_vm){
				.weight = group->weights[i],
				.processor_weight = group->weights[i],
				.processor = i / group->per_processor,
				.program = sim_program_of(workload, params),
			};
		err = figure_alone(&run);
		for (size_t p = 0; rivals[p] != NULL && err == 0; p++) {
			run.policy = rivals[p];
			err = figure_together(&run);
			if (err == 0)
				group_row(group, workload, &run, report);
		}
	}
	return err;
}

static int figure_8(const struct sim_params *params, struct report *report)
{
	static const char *const workloads[] = {"MM", "HS", "BS", "SRD1", NULL};
	static const uint32_t weights[] = {1, 2, 3};
	static const struct group group = {
		8, "Figure 8: three VMs of weights 1:2:3 on one processor", workloads, weights, 3,
		3,
	};

	return group_figure(&group, params, report);
}

static int figure_9(const struct sim_params *params, struct report *report)
{
	static const char *const workloads[] = {"BS", "SRD1", NULL};
	static const uint32_t weights[] = {1, 2, 2, 3, 3, 4};
	static const struct group group = {
		9,
		"Figure 9: six VMs of weights 1:2:2:3:3:4, two on each of three processors",
		workloads,
		weights,
		6,
		2,
	};

	return group_figure(&group, params, report);
}

/* --- Figures 10 and 11: two VMs of equal weight, a processor each ---------- */

static struct sim_vm equal_vm(const struct sim_program *program, unsigned int processor)
{
	return (struct sim_vm){
		.weight = 1,
		.processor_weight = 1,
		.processor = processor,
		.program = *program,
	};
}

static void figure_10_shape(struct report *report)
{
	report->title = report->chart.title =
		"Figure 10: GPU utilization of BS beside an MM that sleeps, with and without "
		"work conservation (fair, fair-polling)";
	report_column(report, "figure", 0);
	report_column(report, "workload", REPORT_STRING);
	report_column(report, "sleep_percent", 0);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "gpu_utilization", 3);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "MM sleeps (% of its time alone)";
	report->chart.y_title = "GPU utilization";
}

static int figure_10_row(struct figure_run *run, unsigned int percent,
			 const struct fgv_policy *policy, struct report *report)
{
	int err;

	run->policy = policy;
	err = figure_together(run);
	if (err != 0)
		return err;
	report_number(report, 10);
	report_text(report, "BS+MM");
	report_number(report, percent);
	report_text(report, policy->name);
	report_number(report, run->result.gpu_busy);
	report_number(report, run->mmr);
	report_number(report, run->overhead);
	chart_point(report, chart_series(report, policy->name), percent, run->result.gpu_busy);
	return 0;
}

/* MM launches 10 ms of kernels, waits for them, and sleeps in proportion. */
static int figure_10(const struct sim_params *params, struct report *report)
{
	static struct fgv_policy polling;
	struct sim_program mm = sim_program_of(sim_workload_find("MM"), params);
	struct sim_program bs = sim_program_of(sim_workload_find("BS"), params);
	int err = 0;

	polling = fair_polling();
	figure_10_shape(report);
	mm.burst = 48;
	for (unsigned int percent = 50; percent <= 80 && err == 0; percent += 5) {
		struct sim_vm vms[2];
		struct figure_run run = {.params = params, .vms = vms, .count = 2};

		mm.sleep_ns = (uint64_t)(mm.burst * mm.kernel_ns * percent / (100 - percent));
		vms[0] = equal_vm(&bs, 0);
		vms[1] = equal_vm(&mm, 1);
		err = figure_alone(&run);
		if (err == 0)
			err = figure_10_row(&run, percent, &polling, report);
		for (size_t p = 0; rivals[p] != NULL && err == 0; p++)
			err = figure_10_row(&run, percent, rivals[p], report);
	}
	return err;
}

static void figure_11_shape(struct report *report)
{
	report->title = report->chart.title =
		"Figure 11: run time beside an MM of another kernel size, against alone";
	report_column(report, "figure", 0);
	report_column(report, "workload", REPORT_STRING);
	report_column(report, "background_us", 0);
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "normalized_run_time", 3);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report->chart.kind = CHART_LINES;
	report->chart.x_title = "kernel of the MM in the background (us)";
	report->chart.y_title = "run time / run time alone";
}

static int figure_11_rows(struct figure_run *run, const char *workload, double background_us,
			  struct report *report)
{
	int err = figure_alone(run);

	for (size_t p = 0; rivals[p] != NULL && err == 0; p++) {
		run->policy = rivals[p];
		err = figure_together(run);
		if (err != 0)
			break;
		report_number(report, 11);
		report_text(report, workload);
		report_number(report, background_us);
		report_text(report, run->policy->name);
		report_number(report, 1 / run->progress[0]);
		report_number(report, run->mmr);
		report_number(report, run->overhead);
		chart_point(report,
			    chart_series(report,
					 report_keep(report, "%s %s", workload, run->policy->name)),
			    background_us, 1 / run->progress[0]);
	}
	return err;
}

static int figure_11(const struct sim_params *params, struct report *report)
{
	static const double background_us[] = {21, 51, 102, 207, 391, 803, 1605};
	static const char *const workloads[] = {"MM", "HS"};
	int err = 0;

	figure_11_shape(report);
	for (size_t w = 0; w < FGV_ARRAY_LEN(workloads); w++)
		for (size_t k = 0; k < FGV_ARRAY_LEN(background_us) && err == 0; k++) {
			struct sim_program fore, back;
			struct sim_vm vms[2];
			struct figure_run run = {.params = params, .vms = vms, .count = 2};

			fore = sim_program_of(sim_workload_find(workloads[w]), params);
			back = sim_program_of(sim_workload_find("MM"), params);
			back.kernel_ns = background_us[k] * FGV_NS_PER_US;
			vms[0] = equal_vm(&fore, 0);
			vms[1] = equal_vm(&back, 1);
			err = figure_11_rows(&run, workloads[w], background_us[k], report);
		}
	return err;
}

int figure_make(int number, const struct sim_params *params, struct report *report)
{
	switch (number) {
	case 4:
		return figure_4(report);
	case 8:
		return figure_8(params, report);
	case 9:
		return figure_9(params, report);
	case 10:
		return figure_10(params, report);
	case 11:
		return figure_11(params, report);
	default:
		return -EINVAL;
	}
}

/* --- Table 3 --------------------------------------------------------------- */

int figure_workloads(const struct sim_params *params, struct report *report)
{
	struct sim_params longer = *params;
	struct sim_result result;
	int err = 0;

	report->title = "Table 3, calls per 10 ms: the paper's, and of the simulated program alone";
	report_column(report, "workload", REPORT_STRING);
	report_column(report, "program", REPORT_STRING);
	report_column(report, "kernel_us", 0);
	report_column(report, "async_calls", 3);
	report_column(report, "sync_calls", 3);
	report_column(report, "waits", 3);
	report_column(report, "sim_async_calls", 3);
	report_column(report, "sim_sync_calls", 3);
	report_column(report, "sim_host_us", 1);
	report_column(report, "sim_gpu_busy", 3);
	for (const struct sim_workload *w = sim_workloads; w->name != NULL && err == 0; w++) {
		struct sim_program program = sim_program_of(w, params);
		struct sim_vm vm = equal_vm(&program, 0);

		/* hundreds of calls, whatever their rate */
		longer.measure_ns =
			fgv_max_u64(params->measure_ns, (uint64_t)(200 * 10 * MS / w->async_calls));
		err = sim_run(&longer, &vm, 1, &result);
		report_text(report, w->name);
		report_text(report, w->title);
		report_number(report, w->kernel_us);
		report_number(report, w->async_calls);
		report_number(report, w->sync_calls);
		report_number(report, w->waits);
		report_number(report, result.vm[0].async_per_s / 100);
		report_number(report, result.vm[0].sync_per_s / 100);
		report_number(report, program.host_ns / 1000);
		report_number(report, result.gpu_busy);
	}
	return err;
}
