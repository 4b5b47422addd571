/*
 * What the workloads share: the command line, random input, checking of CUDA
 * calls, the clock, and the line that a workload ends with. A workload is one
 * CUDA C++ program in one file; it knows nothing of where its device comes from.
 *
 * On stdout a workload prints exactly one line of key=value words:
 *
 *	workload=NAME device=NAME size=N iterations=N seconds=S verified=yes|no
 *
 * seconds is the time from the first allocation until the result is back in host
 * memory; making the context and checking the result are not in it. The exit status
 * is 0 only if the result was verified, 1 if it was wrong or a CUDA call failed (then
 * one line on stderr names the call and the error), 2 for a wrong command line.
 */
#ifndef FGV_WORKLOAD_H
#define FGV_WORKLOAD_H

#include <cuda_runtime.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct workload {
	const char *name;
	const char *about;	/* one line for --help */
	const char *size_about; /* what --size counts, for --help */
	long size;		/* the default, then what was asked for */
	long max_size;		/* at least 1 is always asked for */
	long iterations;
	char device[256]; /* its name, spaces made underscores */
	double seconds;
	double started;
};

/* Stops the program with the call's name and error on stderr if it failed. */
#define CUDA(w, call) workload_cuda((w), (call), #call)

static inline double workload_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Prints the line and ends the program. */
[[noreturn]] static inline void workload_finish(const struct workload *w, bool verified)
{
	printf("workload=%s device=%s size=%ld iterations=%ld seconds=%.6f verified=%s\n", w->name,
	       w->device[0] ? w->device : "unknown", w->size, w->iterations, w->seconds,
	       verified ? "yes" : "no");
	exit(verified && fflush(stdout) == 0 ? 0 : 1);
}

static inline void workload_cuda(const struct workload *w, cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s: %s (%s)\n", w->name, call, cudaGetErrorString(error),
		cudaGetErrorName(error));
	workload_finish(w, false);
}

static inline void workload_help(const struct workload *w)
{
	printf("usage: %s [--size N] [--iterations N]\n%s\n\n"
	       "  --size N         %s (default %ld, at most %ld)\n"
	       "  --iterations N   times that the kernels run (default %ld)\n"
	       "  --help           print this and exit\n",
	       w->name, w->about, w->size_about, w->size, w->max_size, w->iterations);
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

static inline void workload_parse(struct workload *w, int argc, char **argv)
{
	static const struct option options[] = {
		{"size", required_argument, NULL, 's'},
		{"iterations", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			w->size = workload_number(w, "size", optarg, w->max_size);
			break;
		case 'i':
			w->iterations = workload_number(w, "iterations", optarg, 1000000000);
			break;
		case 'h':
			workload_help(w);
			exit(0);
		default: /* getopt has said what is wrong */
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument '%s'\n", w->name, argv[optind]);
		exit(2);
	}
}

/* Reads the command line and makes the context. */
static inline void workload_start(struct workload *w, int argc, char **argv)
{
	struct cudaDeviceProp properties;
	int device;

	workload_parse(w, argc, argv);
	CUDA(w, cudaGetDevice(&device));
	CUDA(w, cudaGetDeviceProperties(&properties, device));
	for (size_t i = 0; i + 1 < sizeof(w->device) && properties.name[i]; i++)
		w->device[i] = properties.name[i] > ' ' ? properties.name[i] : '_';
	CUDA(w, cudaFree(NULL));
}

/* Between these two lies what seconds= counts. */
static inline void workload_clock_start(struct workload *w)
{
	w->started = workload_now();
}

static inline void workload_clock_stop(struct workload *w)
{
	w->seconds = workload_now() - w->started;
}

/* The next number of a sequence that is the same in every run (splitmix64). */
static inline uint64_t workload_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Fills @values with random numbers from -1 to 1; @seed tells one input from another. */
static inline void workload_fill(float *values, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(workload_random(&seed) >> 40) * 0x1p-23f - 1.0f;
}

/*
 * Poison for results: NaN in every element, on the device and, with memset(), on the
 * host. What a kernel or a copy leaves unwritten never passes workload_close().
 */
#define WORKLOAD_POISON 0xff

/* Says whether a result is the reference within @tolerance, which is absolute. */
static inline bool workload_close(const struct workload *w, float result, double reference,
				  double tolerance, size_t index)
{
	if (fabs((double)result - reference) <= tolerance) /* false for NaN */
		return true;
	fprintf(stderr, "%s: element %zu is %.9g, not %.9g\n", w->name, index, (double)result,
		reference);
	return false;
}

#endif
