/*
 * What the measuring programs share. Each is an ordinary CUDA program: the same binary
 * runs on the driver and under FairGV, and bench/bench compares the two.
 *
 * On stdout, one line for the device and one for each measurement:
 *
 *	device=NAME
 *	name=NAME unit=us|ms|GB/s median=X low=X high=X samples=N
 *
 * A sample is the mean over a loop that is long enough for the clock; median, lowest
 * and highest are over the samples. Two samples of each measurement go before and are
 * thrown away. Exit status: 0, 1 if a CUDA call failed, 2 for a wrong command line.
 */
#ifndef FGV_MEASURE_H
#define FGV_MEASURE_H

#include <cuda_runtime.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <vector>

#define MEASURE_WARM_UP	    2
#define MEASURE_MAX_SAMPLES 100000

/* An option --NAME N, with N from 1 to max; flag: one without N, which sets the value to 1. */
struct setting {
	const char *name;
	long *value;
	long max;
	bool flag;
	const char *about;
};

#define CUDA(call) measure_check((call), #call)

static inline void measure_check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s: %s (%s)\n", program_invocation_short_name, call,
		cudaGetErrorString(error), cudaGetErrorName(error));
	exit(1);
}

static inline double measure_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static inline void measure_print_device(void)
{
	struct cudaDeviceProp properties;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	for (char *c = properties.name; *c; c++)
		if (*c <= ' ')
			*c = '_';
	printf("device=%s\n", properties.name);
}

static inline void measure_report(const char *name, const char *unit, std::vector<double> samples)
{
	size_t middle = samples.size() / 2;

	std::sort(samples.begin(), samples.end());
	printf("name=%s unit=%s median=%.4g low=%.4g high=%.4g samples=%zu\n", name, unit,
	       samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2,
	       samples.front(), samples.back(), samples.size());
	fflush(stdout);
}

/* Takes @count samples, each of which is what @sample() returns. */
template <typename Sample>
static inline void measure(const char *name, const char *unit, long count, Sample sample)
{
	std::vector<double> samples;

	for (long i = -MEASURE_WARM_UP; i < count; i++) {
		double value = sample();

		/* What a launch could not do shows here, outside the time taken. */
		CUDA(cudaGetLastError());
		if (i >= 0)
			samples.push_back(value);
	}
	measure_report(name, unit, samples);
}

/* Microseconds of one call of @call(i), over @times, with what it leaves to be done. */
template <typename Call> static inline double measure_each_us(long times, Call call)
{
	double start;

	CUDA(cudaDeviceSynchronize());
	start = measure_now_us();
	for (long i = 0; i < times; i++)
		call(i);
	CUDA(cudaDeviceSynchronize());
	return (measure_now_us() - start) / (double)times;
}

static inline long measure_number(const struct setting *setting, const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > setting->max) {
		fprintf(stderr, "%s: --%s: '%s' is not a number from 1 to %ld\n",
			program_invocation_short_name, setting->name, text, setting->max);
		exit(2);
	}
	return value;
}

static inline void measure_help(const char *about, const std::vector<setting> &settings)
{
	printf("usage: %s [OPTION]...\n%s; one line of key=value words for each.\n\n",
	       program_invocation_short_name, about);
	for (const struct setting &s : settings) {
		printf("  --%-9s %s  %s", s.name, s.flag ? " " : "N", s.about);
		printf(s.flag ? "\n" : " (default %ld)\n", *s.value);
	}
	printf("  --help         print this and exit\n");
}

static inline void measure_parse(int argc, char **argv, const char *about,
				 const std::vector<setting> &settings)
{
	std::vector<struct option> options;
	int option, index;

	for (const struct setting &s : settings)
		options.push_back({s.name, s.flag ? no_argument : required_argument, NULL, 's'});
	options.push_back({"help", no_argument, NULL, 'h'});
	options.push_back({});
	while ((option = getopt_long(argc, argv, "", options.data(), &index)) != -1) {
		if (option == 'h') {
			measure_help(about, settings);
			exit(0);
		}
		if (option != 's') /* getopt has said what is wrong */
			exit(2);
		*settings[index].value =
			settings[index].flag ? 1 : measure_number(&settings[index], optarg);
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument '%s'\n", program_invocation_short_name,
			argv[optind]);
		exit(2);
	}
}

#endif
