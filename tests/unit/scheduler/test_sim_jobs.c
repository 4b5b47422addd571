/*
 * The simulator's model of a batch of jobs on several GPUs, and the MGB paper's figures by it. It
 * is deterministic, so its figures have bounds here.
 */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/jobs_figures.h"
#include "scheduler/sim/jobs_mixes.h"

#define GIB   (1ull << 30)
#define DRAWS 2

static const struct fgv_place_gpu gpus[] = {{16 * GIB, 80, 32, 64}, {16 * GIB, 80, 32, 64}};

static struct jobs_params params_of(const struct fgv_place_rule *rule, uint32_t workers)
{
	return (struct jobs_params){
		.gpus = gpus,
		.gpu_count = 2,
		.rule = rule,
		.workers = workers,
		.claim = 1,
		.seed = 3,
	};
}

static struct jobs_result run(const struct jobs_params *params, const struct jobs_kind *kind,
			      uint32_t count)
{
	const struct jobs_kind *jobs[JOBS_MAX];
	struct jobs_result result;

	for (uint32_t i = 0; i < count; i++)
		jobs[i] = kind;
	ck_assert_int_eq(jobs_run(params, jobs, count, &result), 0);
	return result;
}

/* --- Runs ---------------------------------------------------------------------- */

START_TEST(alone_a_job_takes_its_time)
{
	static const struct jobs_kind job = {"job", 4, 10, 40, 0.3, 10000, 8, 400};
	struct jobs_params params = params_of(&fgv_place_mgb3, 1);
	struct jobs_result result = run(&params, &job, 1);

	ck_assert_double_eq_tol(result.makespan_s, 50, 6); /* its time on the host is drawn once */
	ck_assert_double_eq(result.turnaround_s, result.makespan_s);
	ck_assert_double_eq_tol(result.slowdown, 1, 1e-9);
	ck_assert_double_eq(result.waited_s, 0);
	ck_assert_uint_eq(result.crashed, 0);
	/* two that have a GPU each do not feel each other */
	params.workers = 2;
	ck_assert_double_eq_tol(run(&params, &job, 2).slowdown, 1, 1e-9);
}
END_TEST

/* Two on one GPU whose kernels fill it and never stop take twice as long; halves fit beside. */
START_TEST(kernels_share_a_gpu)
{
	struct jobs_kind job = {"job", 4, 0.001, 40, 0.999, 10000, 8, 100};
	struct jobs_params params = params_of(&fgv_place_memory, 2);

	ck_assert_double_eq_tol(run(&params, &job, 2).slowdown, 2, 0.1);
	job.blocks = 320;
	ck_assert_double_eq_tol(run(&params, &job, 2).slowdown, 1, 1e-9);
	/* with algorithm 2 there is nothing to share */
	job.blocks = 10000;
	params.rule = &fgv_place_mgb2;
	params.workers = 8;
	ck_assert_double_eq_tol(run(&params, &job, 8).slowdown, 1, 1e-9);
	/* unless jobs claim less than they are */
	params.claim = 0.5;
	ck_assert_double_ge(run(&params, &job, 8).slowdown, 1.8);
}
END_TEST

START_TEST(memory_that_lacks_kills_or_is_waited_for)
{
	static const struct jobs_kind job = {"job", 9, 1, 20, 0.1, 100, 8, 20};
	struct jobs_params params = params_of(&fgv_place_cores, 4);
	struct jobs_result result;

	params.per_gpu = 2;
	result = run(&params, &job, 8);
	ck_assert_uint_gt(result.crashed, 0);
	params.per_gpu = 1;
	params.workers = 2;
	ck_assert_uint_eq(run(&params, &job, 8).crashed, 0);
	params = params_of(&fgv_place_mgb3, 8);
	result = run(&params, &job, 8);
	ck_assert_uint_eq(result.crashed, 0);
	ck_assert_double_gt(result.waited_s, 20);
	params.rule = &fgv_place_mgb2;
	ck_assert_uint_eq(run(&params, &job, 8).crashed, 0);
}
END_TEST

START_TEST(the_same_input_gives_the_same_output)
{
	static const struct jobs_kind job = {"job", 5, 3, 20, 0.2, 4000, 8, 20};
	struct jobs_params params = params_of(&fgv_place_mgb3, 6);
	struct jobs_result first = run(&params, &job, 16), second = run(&params, &job, 16);

	ck_assert_mem_eq(&first, &second, sizeof(first));
	params.seed++;
	second = run(&params, &job, 16);
	ck_assert_mem_ne(&first, &second, sizeof(first));
}
END_TEST

START_TEST(bad_input_is_refused)
{
	static const struct jobs_kind large = {"job", 17, 3, 20, 0.2, 4000, 8, 20};
	const struct jobs_kind *job = &large;
	struct jobs_params params = params_of(&fgv_place_mgb3, 1);
	struct jobs_result result;

	ck_assert_int_eq(jobs_run(&params, &job, 0, &result), -EINVAL);
	ck_assert_int_eq(jobs_run(&params, &job, JOBS_MAX + 1, &result), -EINVAL);
	ck_assert_int_eq(jobs_run(&params, &job, 1, &result), -E2BIG);
	params.workers = 0;
	ck_assert_int_eq(jobs_run(&params, &job, 1, &result), -EINVAL);
}
END_TEST

/* --- Mixes ---------------------------------------------------------------------- */

START_TEST(mixes_are_the_papers)
{
	static const uint32_t larges[JOBS_MIXES] = {8, 11, 12, 13, 16, 21, 24, 27};
	const struct jobs_kind *jobs[JOBS_MAX];
	struct engine random = {.seed = 5};

	for (size_t x = 0; x < JOBS_MIXES; x++) {
		uint32_t large = 0;

		jobs_mix_draw(&jobs_mixes[x], &random, jobs);
		for (uint32_t i = 0; i < jobs_mixes[x].count; i++) {
			ck_assert_double_ge(jobs[i]->memory_gib, 1);
			ck_assert_double_le(jobs[i]->memory_gib, 13);
			large += jobs[i]->memory_gib > 4;
		}
		ck_assert_uint_eq(large, larges[x]);
	}
}
END_TEST

/* --- Figures -------------------------------------------------------------------- */

/* The rows of a figure, as JSON. */
static json_t *rows_of(const char *name)
{
	struct report report = {.title = NULL};
	json_t *rows = json_array();
	char *text = NULL, *rest, *line;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ck_assert_int_eq(jobs_figure_make(name, 1, DRAWS, &report), 0);
	ck_assert_int_eq(report_print_json(&report, out), 0);
	fclose(out);
	report_fini(&report);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *row = json_loads(line, 0, NULL);

		ck_assert_ptr_nonnull(row);
		json_array_append_new(rows, row);
	}
	free(text);
	return rows;
}

static bool is(json_t *row, const char *key, const char *value)
{
	return value == NULL || strcmp(json_string_value(json_object_get(row, key)), value) == 0;
}

static double mean_of(json_t *rows, const char *system, const char *policy, const char *column)
{
	size_t i;
	json_t *row;

	json_array_foreach(
		rows, i,
		row) if (is(row, "system", system) && is(row, "workload", "mean") &&
			 is(row, "policy",
			    policy)) return json_number_value(json_object_get(row, column));
	ck_abort_msg("no mean of %s %s", system, policy);
}

/* The paper's ranking, on both machines: algorithm 3, algorithm 2, core-to-GPU, single. */
START_TEST(throughput_ranks_as_in_the_paper)
{
	static const char *const systems[] = {"2xP100", "4xV100"};
	static const double papers[] = {2.2, 2.0};
	json_t *rows = rows_of("mgb-5");

	for (size_t i = 0; i < 2; i++) {
		double mgb3 = mean_of(rows, systems[i], "mgb3", "over_single");
		double half = mean_of(rows, systems[i], "mgb2-half", "over_single");
		double cores = mean_of(rows, systems[i], "cores", "over_single");

		ck_assert_double_eq_tol(mgb3, papers[i], 0.3);
		ck_assert_double_gt(mgb3, half);
		ck_assert_double_gt(half, cores);
		ck_assert_double_gt(cores, 1);
		ck_assert_double_eq(mean_of(rows, systems[i], "single", "over_single"), 1);
		ck_assert_double_eq(mean_of(rows, systems[i], "mgb3", "paper"), papers[i]);
	}
	json_decref(rows);
}
END_TEST

START_TEST(turnaround_is_shorter)
{
	json_t *rows = rows_of("mgb-table-3");

	ck_assert_uint_eq(json_array_size(rows), 2 * 9 * 3);
	ck_assert_double_ge(mean_of(rows, "2xP100", "mgb3", "turnaround_over_single"),
			    mean_of(rows, "4xV100", "mgb3", "turnaround_over_single"));
	ck_assert_double_ge(mean_of(rows, "4xV100", "mgb3", "turnaround_over_single"), 2);
	ck_assert_double_eq(mean_of(rows, "2xP100", "mgb3", "paper"), 3.7);
	json_decref(rows);
}
END_TEST

START_TEST(kernels_are_hardly_slower)
{
	json_t *rows = rows_of("mgb-table-4");
	double mgb3 = mean_of(rows, "4xV100", "mgb3", "slowdown_percent");

	ck_assert_double_eq_tol(mgb3, 2.5, 1.5);
	ck_assert_double_le(mean_of(rows, "4xV100", "mgb2-half", "slowdown_percent"), mgb3);
	ck_assert_double_le(fabs(mean_of(rows, "4xV100", "mgb2", "slowdown_percent")), 0.01);
	json_decref(rows);
}
END_TEST

/* More workers, more of them. */
START_TEST(core_to_gpu_crashes)
{
	json_t *rows = rows_of("mgb-table-2"), *row;
	double of_workers[16] = {0};
	size_t i;

	json_array_foreach(rows, i, row)
	{
		double percent = json_number_value(json_object_get(row, "crashed_percent"));
		json_int_t workers = (json_int_t)json_number_value(json_object_get(row, "workers"));

		if (is(row, "system", "2xP100") && workers > 0)
			of_workers[workers] += percent / 4;
	}
	ck_assert_double_gt(of_workers[3], 0);
	ck_assert_double_gt(of_workers[6], of_workers[3]);
	json_decref(rows);
}
END_TEST

START_TEST(algorithm_3_is_ahead_of_2)
{
	json_t *rows = rows_of("mgb-4");

	ck_assert_double_gt(mean_of(rows, "4xV100", "mgb3", "over_mgb2"),
			    mean_of(rows, "4xV100", "mgb2-half", "over_mgb2"));
	ck_assert_double_gt(mean_of(rows, "4xV100", "mgb2-half", "over_mgb2"), 1);
	json_decref(rows);
}
END_TEST

START_TEST(other_names_are_no_figures)
{
	struct report report = {.title = NULL};

	ck_assert(jobs_figure_known("mgb-5"));
	ck_assert(!jobs_figure_known("mgb-6"));
	ck_assert_int_eq(jobs_figure_make("mgb-6", 1, 1, &report), -EINVAL);
	report_fini(&report);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_jobs");
	TCase *runs = tcase_create("runs"), *figures = tcase_create("figures");
	SRunner *runner;
	int failed;

	tcase_add_test(runs, alone_a_job_takes_its_time);
	tcase_add_test(runs, kernels_share_a_gpu);
	tcase_add_test(runs, memory_that_lacks_kills_or_is_waited_for);
	tcase_add_test(runs, the_same_input_gives_the_same_output);
	tcase_add_test(runs, bad_input_is_refused);
	tcase_add_test(runs, mixes_are_the_papers);
	tcase_add_test(figures, throughput_ranks_as_in_the_paper);
	tcase_add_test(figures, turnaround_is_shorter);
	tcase_add_test(figures, kernels_are_hardly_slower);
	tcase_add_test(figures, core_to_gpu_crashes);
	tcase_add_test(figures, algorithm_3_is_ahead_of_2);
	tcase_add_test(figures, other_names_are_no_figures);
	tcase_set_timeout(runs, 60);
	tcase_set_timeout(figures, 240);
	suite_add_tcase(suite, runs);
	suite_add_tcase(suite, figures);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
