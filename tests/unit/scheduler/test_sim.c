/*
 * The simulator: its clock, determinism, single programs against Table 3, the paper's
 * orderings in every figure, preemptive GPUs, every refusal of a scenario file, and the
 * forms of output.
 */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "scheduler/sim/engine.h"
#include "scheduler/sim/figures.h"
#include "scheduler/sim/scenario.h"

/* --- The clock ------------------------------------------------------------- */

static uint64_t fired[64];
static unsigned int fired_count;

static void note(void *arg)
{
	fired[fired_count++] = *(uint64_t *)arg;
}

START_TEST(timers_fire_in_order)
{
	struct engine engine;
	struct engine_timer timer[40] = {{0}};
	uint64_t name[40];

	fired_count = 0;
	ck_assert_int_eq(engine_init(&engine, 40, 3), 0);
	for (unsigned int i = 0; i < 40; i++) {
		name[i] = i;
		timer[i].fire = note;
		timer[i].arg = &name[i];
		engine_set(&engine, &timer[i], (uint64_t)(engine_draw(&engine) * 10));
	}
	for (unsigned int i = 0; i < 40; i += 4)
		engine_cancel(&engine, &timer[i]);
	for (unsigned int i = 1; i < 40; i += 4)
		engine_set(&engine, &timer[i], 5);
	engine_run(&engine, 20);
	ck_assert_uint_eq(fired_count, 30);
	for (unsigned int i = 1; i < fired_count; i++) {
		const struct engine_timer *a = &timer[fired[i - 1]], *b = &timer[fired[i]];

		ck_assert(a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order));
	}
	ck_assert_uint_eq(engine.now_ns, 20);
	ck_assert_uint_eq(engine.fired, 30);
	engine_fini(&engine);
}
END_TEST

/* --- Runs ------------------------------------------------------------------ */

static struct sim_params short_params(void)
{
	struct sim_params params;

	sim_params_init(&params);
	params.warm_up_ns = 500 * FGV_NS_PER_MS;
	params.measure_ns = 8000 * FGV_NS_PER_MS;
	return params;
}

static struct sim_vm vm_of(const struct sim_params *params, const char *workload, uint32_t weight,
			   unsigned int processor)
{
	return (struct sim_vm){
		.name = workload,
		.weight = weight,
		.processor_weight = weight,
		.processor = processor,
		.program = sim_program_of(sim_workload_find(workload), params),
	};
}

START_TEST(the_same_input_gives_the_same_output)
{
	static struct sim_result a, b, c;
	struct sim_params params = short_params();
	struct sim_vm vms[2] = {vm_of(&params, "SRD1", 1, 0), vm_of(&params, "MM", 2, 0)};

	params.measure_ns = 1000 * FGV_NS_PER_MS;
	ck_assert_int_eq(sim_run(&params, vms, 2, &a), 0);
	ck_assert_int_eq(sim_run(&params, vms, 2, &b), 0);
	ck_assert_int_eq(memcmp(&a, &b, sizeof(a)), 0);
	params.seed = 2;
	ck_assert_int_eq(sim_run(&params, vms, 2, &c), 0);
	ck_assert_int_ne(memcmp(&a, &c, sizeof(a)), 0);
}
END_TEST

START_TEST(bad_input_is_refused)
{
	static struct sim_result result;
	struct sim_params params = short_params();
	struct sim_vm vm = vm_of(&params, "MM", 1, 0);

	ck_assert_int_eq(sim_run(&params, &vm, 0, &result), -EINVAL);
	vm.weight = 0;
	ck_assert_int_eq(sim_run(&params, &vm, 1, &result), -EINVAL);
	vm.weight = 1;
	vm.processor = SIM_PROCESSORS_MAX;
	ck_assert_int_eq(sim_run(&params, &vm, 1, &result), -EINVAL);
	vm.processor = 0;
	params.ring = 1;
	ck_assert_int_eq(sim_run(&params, &vm, 1, &result), -EINVAL);
}
END_TEST

/* One program alone: no policy costs anything that could be seen, and the rates are Table 3's. */
START_TEST(alone_nothing_is_lost)
{
	static struct sim_result result;
	struct sim_params params = short_params();
	struct sim_vm vm = vm_of(&params, "MM", 1, 0);

	params.policy = fgv_policies[_i];
	ck_assert_int_eq(sim_run(&params, &vm, 1, &result), 0);
	ck_assert_double_ge(result.gpu_busy, 0.995);
	ck_assert_double_eq_tol(result.vm[0].kernels_per_s, 1e6 / 207, 60);
	vm = vm_of(&params, "BS", 1, 0);
	ck_assert_int_eq(sim_run(&params, &vm, 1, &result), 0);
	ck_assert_double_eq_tol(result.vm[0].async_per_s / 100, 26.318, 0.3);
	ck_assert_double_eq_tol(result.vm[0].sync_per_s / 100, 26.355, 0.3);
}
END_TEST

START_TEST(preemptive_gpus_keep_the_weights)
{
	static struct sim_result result;
	struct sim_params params = short_params();
	struct sim_vm vms[2] = {vm_of(&params, "MM", 1, 0), vm_of(&params, "LMD", 3, 1)};

	params.preemptive = true;
	params.sched.slice_ns = FGV_SCHED_PREEMPTIVE_SLICE_NS;
	vms[1].program.host_ns = 1000; /* always busy, with kernels of two seconds */
	vms[1].program.sync_per_async = 0;
	ck_assert_int_eq(sim_run(&params, vms, 2, &result), 0);
	ck_assert_double_eq_tol(result.vm[1].gpu_share / result.vm[0].gpu_share, 3.0, 0.1);
	ck_assert_double_ge(result.gpu_busy, 0.99);
	/* nobody schedules: turns of the driver's quantum, whatever the weights */
	params.policy = &fgv_policy_none;
	ck_assert_int_eq(sim_run(&params, vms, 2, &result), 0);
	ck_assert_double_eq_tol(result.vm[1].gpu_share / result.vm[0].gpu_share, 1.0, 0.05);
}
END_TEST

/* --- Figures --------------------------------------------------------------- */

static size_t column(const struct report *report, const char *name)
{
	for (size_t c = 0; c < report->column_count; c++)
		if (strcmp(report->columns[c].name, name) == 0)
			return c;
	ck_abort_msg("no column %s", name);
}

static double number(const struct report *report, size_t row, const char *name)
{
	return report->cells[row * report->column_count + column(report, name)].number;
}

static const char *word(const struct report *report, size_t row, const char *name)
{
	return report->cells[row * report->column_count + column(report, name)].text;
}

static size_t row_count(const struct report *report)
{
	return report->cell_count / report->column_count;
}

/* The number in the row of this workload and policy, and of this x unless 0. */
static double value(const struct report *report, const char *workload, const char *policy,
		    const char *x_name, double x, const char *name)
{
	for (size_t row = 0; row < row_count(report); row++)
		if (strcmp(word(report, row, "workload"), workload) == 0 &&
		    strcmp(word(report, row, "policy"), policy) == 0 &&
		    (x_name == NULL || fabs(number(report, row, x_name) - x) < 0.5))
			return number(report, row, name);
	ck_abort_msg("no row %s %s", workload, policy);
}

static void make(int figure, struct report *report)
{
	struct sim_params params;

	sim_params_init(&params);
	memset(report, 0, sizeof(*report));
	ck_assert_int_eq(figure_make(figure, &params, report), 0);
	ck_assert(!report->failed);
	ck_assert_uint_eq(report->cell_count % report->column_count, 0);
}

START_TEST(figure_4_is_the_papers)
{
	static const double want[][3] = {
		{0, 0, 0},    {10, 0, 0},   {10, 5, 5},	  {10, 10, 10}, {20, 10, 10},
		{20, 15, 15}, {20, 20, 20}, {30, 20, 20}, {30, 25, 25}, {30, 30, 30},
		{30, 35, 35}, {35, 35, 35}, {35, 40, 35}, {45, 40, 40}, {45, 45, 45},
	};
	struct report report;

	make(4, &report);
	ck_assert_uint_eq(row_count(&report), FGV_ARRAY_LEN(want));
	for (size_t row = 0; row < FGV_ARRAY_LEN(want); row++) {
		ck_assert_double_eq(number(&report, row, "start_tag_1"), want[row][0]);
		ck_assert_double_eq(number(&report, row, "start_tag_2"), want[row][1]);
		ck_assert_double_eq(number(&report, row, "virtual_time"), want[row][2]);
	}
	report_fini(&report);
}
END_TEST

static void fair_beats_strict(const struct report *report, const char *workload)
{
	double fair = value(report, workload, "fair", NULL, 0, "mmr");

	ck_assert_double_gt(fair, value(report, workload, "strict-co", NULL, 0, "mmr"));
}

START_TEST(figure_8_orders_as_the_paper_does)
{
	static const char *const workloads[] = {"MM", "HS", "BS", "SRD1"};
	struct report r;

	make(8, &r);
	for (size_t w = 0; w < FGV_ARRAY_LEN(workloads); w++) {
		ck_assert_double_ge(value(&r, workloads[w], "fair", NULL, 0, "mmr"), 0.99);
		ck_assert_double_le(value(&r, workloads[w], "fair", NULL, 0, "overhead"), 1.02);
		fair_beats_strict(&r, workloads[w]);
	}
	/* asynchronous programs do well under Credit, interactive ones do not when polling */
	for (size_t w = 0; w < 2; w++) {
		ck_assert_double_ge(value(&r, workloads[w], "credit-poll", NULL, 0, "mmr"), 0.9);
		ck_assert_double_ge(value(&r, workloads[w], "credit-hs", NULL, 0, "mmr"), 0.9);
	}
	ck_assert_double_lt(value(&r, "BS", "credit-poll", NULL, 0, "mmr"), 0.9);
	ck_assert_double_gt(value(&r, "SRD1", "credit-poll", NULL, 0, "overhead"), 1.5);
	ck_assert_double_gt(value(&r, "SRD1", "credit-hs", NULL, 0, "overhead"),
			    value(&r, "SRD1", "fair", NULL, 0, "overhead"));
	report_fini(&r);
}
END_TEST

/* A guest that sees whether its vGPU holds the grant leaves the processor to the next. */
START_TEST(seeing_the_grant_helps)
{
	static struct sim_result blind, seeing;
	struct sim_params params = short_params();
	struct sim_vm vms[3] = {
		vm_of(&params, "SRD1", 1, 0),
		vm_of(&params, "SRD1", 2, 0),
		vm_of(&params, "SRD1", 3, 0),
	};

	ck_assert_int_eq(sim_run(&params, vms, 3, &seeing), 0);
	params.grant_seen = false;
	ck_assert_int_eq(sim_run(&params, vms, 3, &blind), 0);
	ck_assert_double_gt(seeing.gpu_busy, blind.gpu_busy + 0.005);
	/* as long as it spins blindly anyway, seeing does not help */
	params.grant_seen = true;
	params.blind_ns = params.spin_ns;
	ck_assert_int_eq(sim_run(&params, vms, 3, &seeing), 0);
	ck_assert_double_eq_tol(seeing.gpu_busy, blind.gpu_busy, 0.001);
}
END_TEST

START_TEST(figure_9_orders_as_the_paper_does)
{
	struct report r;

	make(9, &r);
	ck_assert_double_ge(value(&r, "BS", "fair", NULL, 0, "mmr"), 0.97);
	ck_assert_double_ge(value(&r, "SRD1", "fair", NULL, 0, "mmr"), 0.97);
	ck_assert_double_le(value(&r, "BS", "fair", NULL, 0, "overhead"), 1.02);
	ck_assert_double_le(value(&r, "SRD1", "fair", NULL, 0, "overhead"), 1.02);
	fair_beats_strict(&r, "BS");
	fair_beats_strict(&r, "SRD1");
	ck_assert_double_lt(value(&r, "BS", "strict-co", NULL, 0, "mmr"), 0.7);
	ck_assert_double_lt(value(&r, "SRD1", "strict-co", NULL, 0, "mmr"), 0.7);
	ck_assert_double_lt(value(&r, "BS", "credit-poll", NULL, 0, "mmr"), 0.7);
	ck_assert_double_ge(value(&r, "BS", "credit-hs", NULL, 0, "mmr"), 0.95);
	report_fini(&r);
}
END_TEST

START_TEST(figure_10_work_conservation_fills_the_gpu)
{
	struct report r;

	make(10, &r);
	for (int percent = 50; percent <= 80; percent += 5) {
		ck_assert_double_ge(
			value(&r, "BS+MM", "fair", "sleep_percent", percent, "gpu_utilization"),
			0.97);
		ck_assert_double_le(value(&r, "BS+MM", "fair-polling", "sleep_percent", percent,
					  "gpu_utilization"),
				    0.9);
	}
	report_fini(&r);
}
END_TEST

START_TEST(figure_11_kernel_sizes_do_not_matter_to_fair)
{
	static const double sizes[] = {21, 51, 102, 207, 391, 803, 1605};
	struct report r;
	double credit, last = 0;

	make(11, &r);
	for (size_t i = 0; i < FGV_ARRAY_LEN(sizes); i++) {
		ck_assert_double_eq_tol(
			value(&r, "MM", "fair", "background_us", sizes[i], "normalized_run_time"),
			2.02, 0.03);
		credit = value(&r, "MM", "credit-poll", "background_us", sizes[i],
			       "normalized_run_time");
		ck_assert_double_gt(credit, last);
		last = credit;
	}
	ck_assert_double_lt(
		value(&r, "MM", "credit-poll", "background_us", 21, "normalized_run_time"), 1.5);
	ck_assert_double_gt(last, 5);
	report_fini(&r);
}
END_TEST

/* Each within 2 % of the GPU of what the paper says, in every step of ten seconds. */
START_TEST(figure_13_of_gemini_is_the_papers)
{
	struct sim_params params = short_params();
	struct report report = {.title = NULL};
	unsigned int compared = 0;

	ck_assert_int_eq(figure_gemini_13(&params, &report), 0);
	for (size_t row = 0; row < row_count(&report); row++) {
		double theirs = number(&report, row, "paper");

		ck_assert_double_le(number(&report, row, "share"),
				    number(&report, row, "limit") + 0.001);
		ck_assert(isfinite(theirs));
		ck_assert_double_eq_tol(number(&report, row, "share"), theirs, 0.02);
		compared++;
	}
	ck_assert_uint_eq(compared, 43 + 23 + 20);
	report_fini(&report);
}
END_TEST

/* It can be drawn, too. */
static void make_fikit(const char *name, struct report *report, size_t rows)
{
	struct sim_params params = short_params();
	FILE *drawing = tmpfile();

	*report = (struct report){.title = NULL};
	ck_assert_int_eq(figure_fikit(name, &params, report), 0);
	ck_assert_uint_eq(row_count(report), rows);
	ck_assert_ptr_nonnull(drawing);
	ck_assert_int_eq(report_print_plot(report, drawing), 0);
	fclose(drawing);
}

/* As long as in the paper, to within 5 %; the urgent service hardly longer than alone. */
START_TEST(table_2_of_fikit_is_the_papers)
{
	struct report report;

	make_fikit("fikit-table-2", &report, 4);
	for (size_t row = 0; row < row_count(&report); row++)
		ck_assert_double_eq_tol(
			number(&report, row, "seconds") / number(&report, row, "paper"), 1.0, 0.05);
	report_fini(&report);
}
END_TEST

/* In gaps a task waits for no number of urgent ones, so what it gains grows with them. */
START_TEST(figure_18_of_fikit_grows_with_the_ratio)
{
	struct sim_params params = short_params();
	struct report report = {.title = NULL};

	ck_assert_int_eq(figure_fikit_18(&params, &report), 0);
	ck_assert_uint_eq(row_count(&report), 6);
	ck_assert_double_eq_tol(number(&report, 0, "speedup"), 1.0, 0.3);
	for (size_t row = 2; row < row_count(&report); row++) {
		double step = number(&report, row, "ratio") - number(&report, row - 1, "ratio");

		ck_assert_double_gt(number(&report, row, "speedup"),
				    number(&report, row - 1, "speedup") + step / 10);
	}
	report_fini(&report);
}
END_TEST

/* What the paper prints, and what it says of it: times are steady, to 0.095 to 0.164. */
START_TEST(table_3_of_fikit_is_the_papers)
{
	struct report report;

	make_fikit("fikit-table-3", &report, 10);
	for (size_t row = 0; row < 10; row++) {
		ck_assert_double_eq_tol(number(&report, row, "mean_ms") /
						number(&report, row, "paper_mean_ms"),
					1.0, 0.05);
		ck_assert_double_ge(number(&report, row, "variation"), 0.09);
		ck_assert_double_le(number(&report, row, "variation"), 0.165);
	}
	report_fini(&report);
}
END_TEST

/* From where to where the paper's bars go, and how many are above 3.4. */
START_TEST(figures_of_fikit_are_within_the_papers)
{
	static const struct {
		const char *name;
		double least, most, highest; /* of all of them, and the largest at least */
	} figures[] = {{"fikit-16", 1.3, 16.5, 15},
		       {"fikit-17", 0.05, 0.35, 0.2},
		       {"fikit-19", 1.0, 16.5, 14},
		       {"fikit-20", 0.86, 1.01, 0.98}};

	for (size_t i = 0; i < 4; i++) {
		double highest = 0, many = 0;
		struct report report;

		make_fikit(figures[i].name, &report, 10);
		for (size_t row = 0; row < 10; row++) {
			double speedup = number(&report, row, "speedup");

			ck_assert_double_ge(speedup, figures[i].least);
			ck_assert_double_le(speedup, figures[i].most);
			highest = fmax(highest, speedup);
			many += speedup > 3.4;
		}
		ck_assert_double_ge(highest, figures[i].highest);
		if (i == 0)
			ck_assert_double_gt(many, 5);
		report_fini(&report);
	}
}
END_TEST

static void make_smguard(const char *name, struct report *report, size_t rows)
{
	struct sim_params params = short_params();

	*report = (struct report){.title = NULL};
	ck_assert_int_eq(figure_smguard(name, &params, report), 0);
	ck_assert_uint_eq(row_count(report), rows);
}

/* A service with 8 of 13 multiprocessors takes 13/8 as long, whoever else is there. */
START_TEST(reservations_of_smguard_are_kept)
{
	struct report report;

	make_smguard("smguard-11", &report, 48);
	for (size_t row = 0; row < row_count(&report); row++)
		ck_assert_double_eq_tol(number(&report, row, "slowdown") *
						number(&report, row, "reserved") / 13,
					1.0, 0.02);
	report_fini(&report);
}
END_TEST

/* Under MPS a service waits for the longest batch program: the paper's worst turnaround, 30.3. */
START_TEST(pairs_of_smguard_turn_around)
{
	struct report report;
	double worst = 0;

	make_smguard("smguard-13", &report, 25);
	for (size_t row = 0; row + 1 < row_count(&report); row++) {
		worst = fmax(worst, number(&report, row, "mps"));
		ck_assert_double_le(number(&report, row, "smguard"), 2.2);
	}
	ck_assert_double_eq_tol(worst, 30.3, 0.1);
	report_fini(&report);
	make_smguard("smguard-12", &report, 25);
	ck_assert_double_ge(number(&report, 24, "speedup"), 4);
	report_fini(&report);
	make_smguard("smguard-14", &report, 25);
	ck_assert_double_ge(number(&report, 24, "smguard"), 1);
	report_fini(&report);
}
END_TEST

/* An owner that comes at any time waits for half a kernel on average. */
START_TEST(what_smguard_lends_comes_back_with_the_kernel)
{
	static const double kernels_ms[] = {0.65,    3.7,  3.15, 2.01,	2.81,
					    2123.46, 6.74, 4.12, 13.33, 39.13};
	struct report report;

	make_smguard("smguard-15", &report, 10);
	for (size_t row = 0; row < row_count(&report); row++) {
		double wait = number(&report, row, "wait_ms") / kernels_ms[row];

		ck_assert_double_ge(wait, 0.3);
		ck_assert_double_le(wait, 0.7);
	}
	report_fini(&report);
}
END_TEST

START_TEST(there_is_no_other_figure)
{
	struct report report = {.title = NULL};
	struct sim_params params = short_params();

	ck_assert_int_eq(figure_make(7, &params, &report), -EINVAL);
	ck_assert_int_eq(figure_fikit("fikit-15", &params, &report), -EINVAL);
	ck_assert_int_eq(figure_smguard("smguard-10", &params, &report), -EINVAL);
}
END_TEST

/* --- Scenarios ------------------------------------------------------------- */

static int read_text(struct scenario *scenario, const char *text, char *why, size_t size)
{
	char path[] = "/tmp/fairgv-sim-XXXXXX";
	int fd = mkstemp(path), err;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	memset(scenario, 0, sizeof(*scenario));
	sim_params_init(&scenario->params);
	err = scenario_read(scenario, path, why, size);
	unlink(path);
	return err;
}

START_TEST(a_scenario_is_read_and_run)
{
	static struct scenario s;
	struct report report = {.title = NULL};
	char why[256];

	ck_assert_int_eq(read_text(&s,
				   "policies = (\"fair\", \"none\"); slice_ms = 2.5; seconds = 1;\n"
				   "preemptive = false; costs = { ring = 64; spin_us = 100; };\n"
				   "vms = ( { name = \"a\"; workload = \"MM\"; weight = 3; },\n"
				   "        { workload = \"BS\"; kernel_us = 50; } );\n",
				   why, sizeof(why)),
			 0);
	ck_assert_uint_eq(s.policy_count, 2);
	ck_assert_uint_eq(s.vm_count, 2);
	ck_assert_uint_eq(s.params.sched.slice_ns, 2500000);
	ck_assert_uint_eq(s.params.ring, 64);
	ck_assert_uint_eq(s.params.spin_ns, 100000);
	ck_assert_str_eq(s.vms[0].name, "a");
	ck_assert_str_eq(s.vms[1].name, "vm2");
	ck_assert_uint_eq(s.vms[0].processor_weight, 3);
	ck_assert_double_eq(s.vms[1].program.kernel_ns, 50000);
	ck_assert_int_eq(scenario_run(&s, &report), 0);
	ck_assert_uint_eq(row_count(&report), 4);
	ck_assert_double_ge(number(&report, 0, "mmr"), 0.95);
	report_fini(&report);
}
END_TEST

static const struct {
	const char *text, *why; /* after the path */
} refusals[] = {
	{"vms = ( { workload = \"MM\"; }", ":1: "},
	{"slice_ms = 6;", ":0: vms: a list of 1 to 64 VMs is wanted"},
	{"\nvms = ();", ":2: vms: a list of 1 to 64 VMs is wanted"},
	{"vms = ( 1 );", ":1: vms: a list of groups is wanted"},
	{"vms = ( { weight = 1; } );", ":1: workload: the name of a row of table 3 is wanted"},
	{"vms = ( { workload = \"XX\"; } );", ":1: workload: no such row of table 3"},
	{"vms = ( { workload = \"MM\"; weight = 0; } );", ":1: weight: must be from 1 to 1e+06"},
	{"vms = ( { workload = \"MM\"; weight = 1.5; } );", ":1: weight: a whole number is wanted"},
	{"vms = ( { workload = \"MM\"; weight = \"1\"; } );", ":1: weight: a number is wanted"},
	{"vms = ( { workload = \"MM\"; waits = 1.1; } );", ":1: waits: must be from 0 to 1"},
	{"vms = ( { workload = \"MM\"; name = 1; } );", ":1: name: a string is wanted"},
	{"vms = ( { workload = \"MM\";\n wieght = 1; } );", ":2: wieght: unknown key"},
	{"speed = 1;", ":1: speed: unknown key"},
	{"slice_ms = 0;", ":1: slice_ms: must be from 0.001 to 60000"},
	{"preemptive = 1;", ":1: preemptive: true or false is wanted"},
	{"costs = 1;", ":1: costs: a group is wanted"},
	{"costs = { ring = 2000; };", ":1: ring: must be from 2 to 1024"},
	{"policies = \"fair\";", ":1: policies: a list of 1 to 16 names is wanted"},
	{"policies = (\"fairly\");", ":1: policies: no such policy"},
	{"policies = (1);", ":1: policies: no such policy"},
};

START_TEST(a_scenario_is_refused_with_line_and_key)
{
	static struct scenario s;
	char why[256];

	ck_assert_int_eq(read_text(&s, refusals[_i].text, why, sizeof(why)), -EINVAL);
	ck_assert_msg(strstr(why, refusals[_i].why) != NULL, "%s", why);
}
END_TEST

START_TEST(a_missing_scenario)
{
	static struct scenario s;
	char why[256];

	ck_assert_int_eq(scenario_read(&s, "/nonexistent", why, sizeof(why)), -ENOENT);
	ck_assert_str_eq(why, "/nonexistent: No such file or directory");
}
END_TEST

/* --- Output ---------------------------------------------------------------- */

static char *printed(const struct report *report, int (*print)(const struct report *, FILE *))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(print(report, out), 0);
	fclose(out);
	return text;
}

START_TEST(rows_in_every_form)
{
	struct report report = {.title = "title"};
	char *text;

	report_column(&report, "name", REPORT_STRING);
	report_column(&report, "value", 2);
	report_column(&report, "count", 0);
	report_text(&report, "a");
	report_number(&report, 1.2345);
	report_number(&report, 7);
	report_text(&report, report_keep(&report, "b%d", 1));
	report_number(&report, INFINITY);
	report_number(&report, 1);
	report.chart.title = report.chart.x_title = report.chart.y_title = "a < b";
	chart_point(&report, chart_series(&report, "s"), chart_group(&report, "g"), 3);

	text = printed(&report, report_print_csv);
	ck_assert_str_eq(text, "name,value,count\na,1.23,7\nb1,,1\n");
	free(text);
	text = printed(&report, report_print_json);
	ck_assert_str_eq(text, "{\"name\": \"a\", \"value\": 1.23, \"count\": 7}\n"
			       "{\"name\": \"b1\", \"value\": null, \"count\": 1}\n");
	free(text);
	text = printed(&report, report_print_table);
	ck_assert_str_eq(text,
			 "title\n\nname  value  count\na      1.23      7\nb1        -      1\n");
	free(text);
	text = printed(&report, report_print_plot);
	ck_assert_ptr_nonnull(strstr(text, "set title \"a < b\"\n"));
	free(text);
	report_fini(&report);
}
END_TEST

static char *plotted(struct report *report)
{
	char *text = printed(report, report_print_plot);

	report_fini(report);
	return text;
}

/* Bars beside each other; what is above four times the median is cut off, and says its height. */
START_TEST(bars_as_gnuplot_draws_them)
{
	struct report report = {.title = "title"};
	static const double heights[2][2] = {{1, 100}, {2, 3}};
	char *text;

	report.chart.title = "a \"quoted\" \\ title";
	for (int group = 0; group < 2; group++)
		for (int series = 0; series < 2; series++)
			chart_point(&report, chart_series(&report, series ? "right" : "left"),
				    chart_group(&report, group ? "second" : "first"),
				    heights[group][series]);
	chart_point(&report, chart_series(&report, "none"), 0, INFINITY);

	text = plotted(&report);
	ck_assert_ptr_nonnull(strstr(text, "set title \"a \\\"quoted\\\" \\\\ title\"\n"));
	ck_assert_ptr_nonnull(strstr(text, "(\"first\" 0, \"second\" 1)"));
	ck_assert_ptr_nonnull(
		strstr(text, "$series0 << END\n-0.266666667 1\n0.733333333 2\nEND\n"));
	ck_assert_ptr_nonnull(strstr(text, "$series1 << END\n0 100\n1 3\nEND\n"));
	ck_assert_ptr_nonnull(strstr(text, "$series2 << END\nEND\n"));
	ck_assert_ptr_nonnull(strstr(text, "set yrange [0:12]\nset label \"100\" at 0, 12 "));
	free(text);
}
END_TEST

START_TEST(lines_as_gnuplot_draws_them)
{
	struct report report = {.title = "title"};
	char *text;

	report.chart.kind = CHART_STEPS;
	chart_point(&report, chart_series(&report, "s"), 0.5, 1);
	chart_point(&report, 0, 1, NAN);
	chart_point(&report, 0, 1.5, 2);

	text = plotted(&report);
	ck_assert_ptr_nonnull(strstr(text, "$series0 << END\n0.5 1\n1.5 2\nEND\n"));
	ck_assert_ptr_nonnull(strstr(text, "plot $series0 with steps "));
	free(text);
}
END_TEST

START_TEST(no_chart_is_no_plot)
{
	struct report report = {.title = "title"};
	char why[256];

	ck_assert_int_eq(report_print_plot(&report, stdout), -EINVAL);
	ck_assert_int_eq(report_draw(&report, "/nonexistent/chart.svg", why, sizeof(why)), -ENOENT);
	ck_assert_str_eq(why, "/nonexistent/chart.svg: No such file or directory");
}
END_TEST

/* Each figure as JSON: one valid object per line, with the metrics where there are any. */
START_TEST(figures_are_valid_json)
{
	static const int figures[] = {4, 8, 10};
	struct sim_params params = short_params();
	struct report report = {.title = NULL};
	char *text, *line, *rest = NULL;
	size_t lines = 0;

	params.measure_ns = 200 * FGV_NS_PER_MS;
	ck_assert_int_eq(figure_make(figures[_i], &params, &report), 0);
	text = printed(&report, report_print_json);
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		json_t *object = json_loads(line, 0, NULL);

		ck_assert_ptr_nonnull(object);
		ck_assert_int_eq(json_integer_value(json_object_get(object, "figure")),
				 figures[_i]);
		ck_assert(json_is_string(json_object_get(object, "policy")));
		if (figures[_i] != 4) {
			ck_assert(json_object_get(object, "mmr") != NULL);
			ck_assert(json_object_get(object, "overhead") != NULL);
		}
		json_decref(object);
		lines++;
	}
	ck_assert_uint_eq(lines, row_count(&report));
	free(text);
	text = printed(&report, report_print_plot);
	free(text);
	report_fini(&report);
}
END_TEST

static TCase *figures_case(void)
{
	TCase *tc = tcase_create("figures");

	tcase_add_test(tc, figure_4_is_the_papers);
	tcase_add_test(tc, figure_8_orders_as_the_paper_does);
	tcase_add_test(tc, seeing_the_grant_helps);
	tcase_add_test(tc, figure_9_orders_as_the_paper_does);
	tcase_add_test(tc, figure_10_work_conservation_fills_the_gpu);
	tcase_add_test(tc, figure_11_kernel_sizes_do_not_matter_to_fair);
	tcase_add_test(tc, figure_13_of_gemini_is_the_papers);
	tcase_add_test(tc, table_2_of_fikit_is_the_papers);
	tcase_add_test(tc, table_3_of_fikit_is_the_papers);
	tcase_add_test(tc, figures_of_fikit_are_within_the_papers);
	tcase_add_test(tc, reservations_of_smguard_are_kept);
	tcase_add_test(tc, pairs_of_smguard_turn_around);
	tcase_add_test(tc, what_smguard_lends_comes_back_with_the_kernel);
	tcase_add_test(tc, figure_18_of_fikit_grows_with_the_ratio);
	tcase_add_test(tc, there_is_no_other_figure);
	tcase_add_loop_test(tc, figures_are_valid_json, 0, 3);
	tcase_set_timeout(tc, 300);
	return tc;
}

static TCase *parts_case(void)
{
	TCase *tc = tcase_create("parts");

	tcase_add_test(tc, timers_fire_in_order);
	tcase_add_test(tc, the_same_input_gives_the_same_output);
	tcase_add_test(tc, bad_input_is_refused);
	tcase_add_loop_test(tc, alone_nothing_is_lost, 0, 6);
	tcase_add_test(tc, preemptive_gpus_keep_the_weights);
	tcase_add_test(tc, a_scenario_is_read_and_run);
	tcase_add_loop_test(tc, a_scenario_is_refused_with_line_and_key, 0,
			    (int)FGV_ARRAY_LEN(refusals));
	tcase_add_test(tc, a_missing_scenario);
	tcase_add_test(tc, rows_in_every_form);
	tcase_add_test(tc, bars_as_gnuplot_draws_them);
	tcase_add_test(tc, lines_as_gnuplot_draws_them);
	tcase_add_test(tc, no_chart_is_no_plot);
	tcase_set_timeout(tc, 60);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("sim");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, parts_case());
	suite_add_tcase(suite, figures_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
