/*
 * fairgv-sim: the project's scheduler on a virtual clock. Command line only; what it does is
 * in figures.c and scenario.c.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/util.h"
#include "scheduler/sim/figures.h"
#include "scheduler/sim/jobs_figures.h"
#include "scheduler/sim/scenario.h"
#include "scheduler/sim/share_figures.h"

#define EXIT_USAGE 2

struct options {
	enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON } format;
	const char *svg;
	uint64_t seed;
	double seconds; /* 0: as it comes */
	bool seed_given;
};

static const char usage[] =
	"usage: fairgv-sim figure 4|8|9|10|11|gemini-13|i|j|k|l|bursts|gangs|crowd [OPTION]...\n"
	"       fairgv-sim figure fikit-16|fikit-17|fikit-18|fikit-19|fikit-20|fikit-21 "
	"[OPTION]...\n"
	"       fairgv-sim figure fikit-table-2|fikit-table-3 [OPTION]...\n"
	"       fairgv-sim figure smguard-11|smguard-12|smguard-13|smguard-14|smguard-15 "
	"[OPTION]...\n"
	"       fairgv-sim figure mgb-4|mgb-5|mgb-table-2|mgb-table-3|mgb-table-4 [OPTION]...\n"
	"       fairgv-sim run FILE [OPTION]...\n"
	"       fairgv-sim workloads [OPTION]...\n"
	"\n"
	"Runs FairGV's scheduler and its rivals on a virtual clock: the paper's figures, kernels\n"
	"of any length and engines, jobs on several GPUs (mgb), a scenario of one's own, or the\n"
	"paper's Table 3.\n"
	"\n"
	"  --json          one JSON object per row\n"
	"  --csv           comma-separated\n"
	"  --svg FILE      have gnuplot draw a chart into FILE; print nothing\n"
	"  --seed N        of the random numbers (1)\n"
	"  --seconds S     of virtual time to measure (30)\n"
	"  --help, --version\n"
	"\n"
	"Without an option it prints a table. See fairgv-sim(1).\n";

static int complain(const char *what, const char *value)
{
	fprintf(stderr, "fairgv-sim: %s: %s\n", what, value);
	return EXIT_USAGE;
}

static bool parse_seed(const char *text, struct options *options)
{
	char *end;

	errno = 0;
	options->seed = strtoull(text, &end, 0);
	options->seed_given = true;
	return errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9';
}

static bool parse_seconds(const char *text, struct options *options)
{
	char *end;

	options->seconds = strtod(text, &end);
	return *end == '\0' && options->seconds >= 0.001 && options->seconds <= 3600;
}

/* -1: go on; otherwise the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"json", no_argument, NULL, 'j'},	   {"csv", no_argument, NULL, 'c'},
		{"svg", required_argument, NULL, 's'},	   {"seed", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 't'}, FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = known, .order = "", .refusal = EXIT_USAGE};
	int option;

	while ((option = fgv_options_next(&command_line, argc, argv)) != -1) {
		switch (option) {
		case 'j':
			options->format = FORMAT_JSON;
			break;
		case 'c':
			options->format = FORMAT_CSV;
			break;
		case 's':
			options->svg = optarg;
			break;
		case 'r':
			if (!parse_seed(optarg, options))
				return complain("not a seed", optarg);
			break;
		case 't':
			if (!parse_seconds(optarg, options))
				return complain("not a time from 0.001 to 3600 seconds", optarg);
			break;
		}
	}
	return -1;
}

static void apply(const struct options *options, struct sim_params *params)
{
	if (options->seed_given)
		params->seed = options->seed;
	if (options->seconds > 0)
		params->measure_ns = (uint64_t)(options->seconds * FGV_NS_PER_SEC);
}

static int print(const struct report *report, const struct options *options)
{
	switch (options->format) {
	case FORMAT_JSON:
		return report_print_json(report, stdout);
	case FORMAT_CSV:
		return report_print_csv(report, stdout);
	case FORMAT_TABLE:
		break;
	}
	return report_print_table(report, stdout);
}

/* Where it fails, @why says what is wrong. */
static int show(const struct report *report, const struct options *options, char *why, size_t size)
{
	int err;

	if (options->svg != NULL)
		return report_draw(report, options->svg, why, size);
	err = print(report, options);
	snprintf(why, size, "%s", strerror(-err));
	return err;
}

/* Shows the report unless @err says that it could not be made. */
static int finish(int err, struct report *report, const struct options *options)
{
	char why[512];

	snprintf(why, sizeof(why), "%s", strerror(-err));
	if (err == 0)
		err = show(report, options, why, sizeof(why));
	report_fini(report);
	if (err == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "fairgv-sim: %s\n", why);
	return EXIT_FAILURE;
}

/* The paper's have numbers. */
static int run_papers_figure(int number, const struct options *options)
{
	struct report report = {.title = NULL};
	struct sim_params params;

	sim_params_init(&params);
	apply(options, &params);
	return finish(figure_make(number, &params, &report), &report, options);
}

/* Its times are the paper's on Gemini. */
static int run_gemini_figure(const struct options *options)
{
	struct report report = {.title = NULL};
	struct sim_params params;

	sim_params_init(&params);
	return finish(figure_gemini_13(&params, &report), &report, options);
}

static int run_fikit_figure(const char *name, const struct options *options)
{
	struct report report = {.title = NULL};
	struct sim_params params;
	int err;

	sim_params_init(&params);
	err = figure_fikit(name, &params, &report);
	if (err == -EINVAL)
		return complain("no such figure of FIKIT (16 to 21, table-2 and table-3 are there)",
				name);
	return finish(err, &report, options);
}

static int run_smguard_figure(const char *name, const struct options *options)
{
	struct report report = {.title = NULL};
	struct sim_params params;
	int err;

	sim_params_init(&params);
	err = figure_smguard(name, &params, &report);
	if (err == -EINVAL)
		return complain("no such figure of SMGuard (11 to 15 are there)", name);
	return finish(err, &report, options);
}

static int run_share_figure(const char *name, const struct options *options)
{
	struct report report = {.title = NULL};
	struct share_params params;

	share_params_init(&params);
	if (options->seed_given)
		params.seed = options->seed;
	if (options->seconds > 0)
		params.measure_ns = (uint64_t)(options->seconds * FGV_NS_PER_SEC);
	return finish(share_figure_make(name, &params, &report), &report, options);
}

/* Its jobs come to their end, however long that takes. */
static int run_jobs_figure(const char *name, const struct options *options)
{
	struct report report = {.title = NULL};
	uint64_t seed = options->seed_given ? options->seed : 1;

	return finish(jobs_figure_make(name, seed, JOBS_DRAWS, &report), &report, options);
}

static int run_figure(const char *name, const struct options *options)
{
	static const char *const papers[] = {"4", "8", "9", "10", "11"};

	for (size_t i = 0; i < FGV_ARRAY_LEN(papers); i++)
		if (strcmp(papers[i], name) == 0)
			return run_papers_figure(atoi(name), options);
	if (strcmp(name, "gemini-13") == 0)
		return run_gemini_figure(options);
	if (strncmp(name, "fikit-", 6) == 0)
		return run_fikit_figure(name, options);
	if (strncmp(name, "smguard-", 8) == 0)
		return run_smguard_figure(name, options);
	if (share_figure_known(name))
		return run_share_figure(name, options);
	if (jobs_figure_known(name))
		return run_jobs_figure(name, options);
	return complain("no such figure (4, 8, 9, 10, 11, gemini-13, fikit-16 to fikit-21, "
			"fikit-table-2, fikit-table-3, smguard-11 to smguard-15, mgb-4, mgb-5, "
			"mgb-table-2, mgb-table-3, mgb-table-4, i, j, k, l, bursts, gangs and crowd are there)",
			name);
}

static int run_scenario(const char *path, const struct options *options)
{
	struct report report = {.title = NULL};
	struct scenario *scenario = calloc(1, sizeof(*scenario));
	char why[256];
	int err = -ENOMEM, status;

	if (scenario != NULL) {
		sim_params_init(&scenario->params);
		err = scenario_read(scenario, path, why, sizeof(why));
		if (err != 0) {
			fprintf(stderr, "fairgv-sim: %s\n", why);
			free(scenario);
			return EXIT_FAILURE;
		}
		apply(options, &scenario->params);
		err = scenario_run(scenario, &report);
	}
	status = finish(err, &report, options);
	free(scenario);
	return status;
}

static int run_workloads(const struct options *options)
{
	struct report report = {.title = NULL};
	struct sim_params params;

	sim_params_init(&params);
	apply(options, &params);
	return finish(figure_workloads(&params, &report), &report, options);
}

int main(int argc, char **argv)
{
	struct options options = {.format = FORMAT_TABLE};
	int status = parse_options(argc, argv, &options), words;

	if (status >= 0)
		return status;
	words = argc - optind;
	if (words == 2 && strcmp(argv[optind], "figure") == 0)
		return run_figure(argv[optind + 1], &options);
	if (words == 2 && strcmp(argv[optind], "run") == 0)
		return run_scenario(argv[optind + 1], &options);
	if (words == 1 && strcmp(argv[optind], "workloads") == 0)
		return run_workloads(&options);
	fputs(usage, stderr);
	return EXIT_USAGE;
}
