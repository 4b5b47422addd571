/* The command line of a workload; a part of workload.h. */
#ifndef FGV_WORKLOAD_OPTIONS_H
#define FGV_WORKLOAD_OPTIONS_H

#define WORKLOAD_MAX_ITERATIONS 1000000000
#define WORKLOAD_MAX_SECONDS	86400.0

static inline void workload_help(const struct workload *w)
{
	printf("usage: %s [OPTION]...\n%s\n\n"
	       "  --size N         %s (default %ld, at most %ld)\n"
	       "  --iterations N   how often, %d kernel%s each (default %ld)\n"
	       "  --seconds S      run for S seconds instead, and tell the progress of each\n"
	       "  --kernel-us N    choose the size so that a kernel takes about N microseconds\n"
	       "  --sync-every N   synchronize after N iterations (default %ld)\n"
	       "  --queries N      ask N times after each iteration whether the device is done\n"
	       "  --burst-ms B     after B milliseconds of work, sleep for\n"
	       "  --sleep-ms S     S milliseconds, and so on\n"
	       "  --start-at T     get ready, then start at T seconds after 1970 (as date "
	       "+%%s.%%N\n"
	       "                   tells it); -: once ready, read T from standard input\n"
	       "  --events         measure the device's time with events, too\n"
	       "  --graphs         launch what lies between two synchronizations as a graph\n"
	       "  --help           print this and exit\n\n"
	       "A unit of work is %s.\n",
	       w->name, w->about, w->size_about, w->size, w->max_size, w->kernels,
	       w->kernels == 1 ? "" : "s", w->iterations, w->sync_every, w->units_about);
}

[[noreturn]] static inline void workload_usage(const struct workload *w, const char *what)
{
	fprintf(stderr, "%s: %s\n", w->name, what);
	exit(2);
}

static inline long workload_number(const struct workload *w, const char *option, const char *text,
				   long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > max) {
		fprintf(stderr, "%s: --%s: '%s' is not a number from 1 to %ld\n", w->name, option,
			text, max);
		exit(2);
	}
	return value;
}

/* More than 0 and at most @max. */
static inline double workload_real(const struct workload *w, const char *option, const char *text,
				   double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value <= max)) {
		fprintf(stderr, "%s: --%s: '%s' is not a number above 0 and up to %.0f\n", w->name,
			option, text, max);
		exit(2);
	}
	return value;
}

/* The time that --start-at or standard input tells. */
static inline double workload_date(const struct workload *w, const char *text)
{
	return workload_real(w, "start-at", text, 1e11);
}

static inline void workload_option(struct workload *w, int option, bool *count_given)
{
	double max_ms = WORKLOAD_MAX_SECONDS * 1e3;

	switch (option) {
	case 's':
		w->size = workload_number(w, "size", optarg, w->max_size);
		break;
	case 'i':
		w->iterations = workload_number(w, "iterations", optarg, WORKLOAD_MAX_ITERATIONS);
		*count_given = true;
		break;
	case 't':
		w->run_s = workload_real(w, "seconds", optarg, WORKLOAD_MAX_SECONDS);
		break;
	case 'k':
		w->kernel_us = workload_real(w, "kernel-us", optarg, max_ms * 1e3);
		break;
	case 'y':
		w->sync_every = workload_number(w, "sync-every", optarg, WORKLOAD_MAX_ITERATIONS);
		break;
	case 'q':
		w->queries = workload_number(w, "queries", optarg, WORKLOAD_MAX_ITERATIONS);
		break;
	case 'b':
		w->burst_s = workload_real(w, "burst-ms", optarg, max_ms) * 1e-3;
		break;
	case 'z':
		w->sleep_s = workload_real(w, "sleep-ms", optarg, max_ms) * 1e-3;
		break;
	case 'a':
		w->start_at = optarg;
		if (strcmp(optarg, "-") != 0)
			workload_date(w, optarg);
		break;
	case 'e':
		w->time_events = true;
		break;
	case 'g':
		w->as_graph = true;
		break;
	case 'h':
		workload_help(w);
		exit(0);
	default: /* getopt has said what is wrong */
		exit(2);
	}
}

static inline void workload_parse(struct workload *w, int argc, char **argv)
{
	static const struct option options[] = {
		{"size", required_argument, NULL, 's'},
		{"iterations", required_argument, NULL, 'i'},
		{"seconds", required_argument, NULL, 't'},
		{"kernel-us", required_argument, NULL, 'k'},
		{"sync-every", required_argument, NULL, 'y'},
		{"queries", required_argument, NULL, 'q'},
		{"burst-ms", required_argument, NULL, 'b'},
		{"sleep-ms", required_argument, NULL, 'z'},
		{"start-at", required_argument, NULL, 'a'},
		{"events", no_argument, NULL, 'e'},
		{"graphs", no_argument, NULL, 'g'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	bool count_given = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		workload_option(w, option, &count_given);
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument '%s'\n", w->name, argv[optind]);
		exit(2);
	}
	if (count_given && w->run_s > 0)
		workload_usage(w, "--iterations and --seconds exclude each other");
	if (w->as_graph && (!w->can_graph || w->queries))
		workload_usage(w, "--graphs is for iterations that are kernels alone");
	if ((w->burst_s > 0) != (w->sleep_s > 0))
		workload_usage(w, "--burst-ms and --sleep-ms need each other");
}

#endif
