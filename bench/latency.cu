/*
 * What single CUDA calls cost, as a program sees it. An ordinary CUDA program: the
 * same binary runs on the driver and under FairGV, and bench/bench compares the two.
 *
 * On stdout, one line for the device and one for each measurement:
 *
 *	device=NAME
 *	name=NAME unit=us|GB/s median=X low=X high=X samples=N
 *
 * A sample is the mean over a loop that is long enough for the clock; median, lowest
 * and highest are over the samples. Two samples of each measurement go before and are
 * thrown away. Exit status: 0, 1 if a CUDA call failed, 2 for a wrong command line.
 */
#include <cuda_runtime.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <vector>

#define BATCH	   32 /* launches that fit in any queue, so that the call alone is measured */
#define LOOP	   200
#define WARM_UP	   2
#define SMALL	   4
#define ALLOCATION (1 << 20)

struct bench {
	long samples;
	long sustained; /* launches without a synchronization between them */
	size_t bulk_bytes;
	char *device; /* bulk_bytes of device memory */
	char *host;   /* as many of pageable host memory */
};

#define CUDA(call) check((call), #call)

static void check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "latency: %s: %s (%s)\n", call, cudaGetErrorString(error),
		cudaGetErrorName(error));
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

__global__ void empty(void)
{
}

__global__ void with_params(char *pointer, int number, float real, double precise)
{
	if (number > 0)
		*pointer = (char)(real + precise);
}

static double launch_call(const struct bench *)
{
	double start, end;

	CUDA(cudaDeviceSynchronize());
	start = now_us();
	for (int i = 0; i < BATCH; i++)
		empty<<<1, 1>>>();
	end = now_us();
	CUDA(cudaDeviceSynchronize());
	return (end - start) / BATCH;
}

static double launch_call_params(const struct bench *b)
{
	double start, end;

	CUDA(cudaDeviceSynchronize());
	start = now_us();
	for (int i = 0; i < BATCH; i++)
		with_params<<<1, 1>>>(b->device, -i, 1.0f, 2.0);
	end = now_us();
	CUDA(cudaDeviceSynchronize());
	return (end - start) / BATCH;
}

static double launch_sync(const struct bench *)
{
	double start = now_us();

	for (int i = 0; i < LOOP; i++) {
		empty<<<1, 1>>>();
		CUDA(cudaDeviceSynchronize());
	}
	return (now_us() - start) / LOOP;
}

static double launch_sustained(const struct bench *b)
{
	double start;

	CUDA(cudaDeviceSynchronize());
	start = now_us();
	for (long i = 0; i < b->sustained; i++)
		empty<<<1, 1>>>();
	CUDA(cudaDeviceSynchronize());
	return (now_us() - start) / (double)b->sustained;
}

static double sync_idle(const struct bench *)
{
	double start;

	CUDA(cudaDeviceSynchronize());
	start = now_us();
	for (int i = 0; i < LOOP; i++)
		CUDA(cudaDeviceSynchronize());
	return (now_us() - start) / LOOP;
}

static double copy(const struct bench *b, size_t bytes, enum cudaMemcpyKind kind, int times)
{
	bool in = kind == cudaMemcpyHostToDevice;
	double start = now_us();

	for (int i = 0; i < times; i++)
		CUDA(cudaMemcpy(in ? b->device : b->host, in ? b->host : b->device, bytes, kind));
	/* Small copies to the device may return before they are there. */
	CUDA(cudaDeviceSynchronize());
	return (now_us() - start) / times;
}

static double copy_in_small(const struct bench *b)
{
	return copy(b, SMALL, cudaMemcpyHostToDevice, LOOP);
}

static double copy_out_small(const struct bench *b)
{
	return copy(b, SMALL, cudaMemcpyDeviceToHost, LOOP);
}

static double gigabytes_per_s(const struct bench *b, enum cudaMemcpyKind kind)
{
	return (double)b->bulk_bytes / copy(b, b->bulk_bytes, kind, 1) * 1e-3;
}

static double copy_in_bulk(const struct bench *b)
{
	return gigabytes_per_s(b, cudaMemcpyHostToDevice);
}

static double copy_out_bulk(const struct bench *b)
{
	return gigabytes_per_s(b, cudaMemcpyDeviceToHost);
}

static double malloc_free(const struct bench *)
{
	double start = now_us();

	for (int i = 0; i < LOOP; i++) {
		void *memory;

		CUDA(cudaMalloc(&memory, ALLOCATION));
		CUDA(cudaFree(memory));
	}
	return (now_us() - start) / LOOP;
}

static const struct measurement {
	const char *name, *unit;
	double (*sample)(const struct bench *b);
} measurements[] = {
	{"launch_call", "us", launch_call},	{"launch_call_params", "us", launch_call_params},
	{"launch_sync", "us", launch_sync},	{"launch_sustained", "us", launch_sustained},
	{"sync_idle", "us", sync_idle},		{"copy_in_4B", "us", copy_in_small},
	{"copy_out_4B", "us", copy_out_small},	{"malloc_free_1MiB", "us", malloc_free},
	{"copy_in_bulk", "GB/s", copy_in_bulk}, {"copy_out_bulk", "GB/s", copy_out_bulk},
};

static void report(const char *name, const char *unit, std::vector<double> &samples)
{
	size_t middle = samples.size() / 2;

	std::sort(samples.begin(), samples.end());
	printf("name=%s unit=%s median=%.4g low=%.4g high=%.4g samples=%zu\n", name, unit,
	       samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2,
	       samples.front(), samples.back(), samples.size());
	fflush(stdout);
}

static void measure(const struct bench *b, const struct measurement *m)
{
	std::vector<double> samples;

	for (long i = -WARM_UP; i < b->samples; i++) {
		double sample = m->sample(b);

		/* What a launch could not do shows here, outside the time taken. */
		CUDA(cudaGetLastError());
		if (i >= 0)
			samples.push_back(sample);
	}
	report(m->name, m->unit, samples);
}

/* The first call of all makes the context; it can be taken once per process. */
static void first_call(void)
{
	struct cudaDeviceProp properties;
	double start = now_us();
	std::vector<double> sample;

	CUDA(cudaFree(NULL));
	sample.push_back(now_us() - start);
	CUDA(cudaGetDeviceProperties(&properties, 0));
	for (char *c = properties.name; *c; c++)
		if (*c <= ' ')
			*c = '_';
	printf("device=%s\n", properties.name);
	report("first_call", "us", sample);
}

static long number(const char *option, const char *text, long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > max) {
		fprintf(stderr, "latency: --%s: '%s' is not a number from 1 to %ld\n", option, text,
			max);
		exit(2);
	}
	return value;
}

static void help(void)
{
	printf("usage: latency [--samples N] [--sustained N] [--bulk MIB]\n"
	       "Measures what single CUDA calls cost; one line of key=value words for each.\n\n"
	       "  --samples N     samples of each measurement (default 21)\n"
	       "  --sustained N   launches in a row without a synchronization (default 10000)\n"
	       "  --bulk MIB      size of a bulk copy (default 64)\n"
	       "  --help          print this and exit\n");
}

static void parse(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{"samples", required_argument, NULL, 'n'},
		{"sustained", required_argument, NULL, 's'},
		{"bulk", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			b->samples = number("samples", optarg, 100000);
			break;
		case 's':
			b->sustained = number("sustained", optarg, 100000000);
			break;
		case 'b':
			b->bulk_bytes = (size_t)number("bulk", optarg, 4096) << 20;
			break;
		case 'h':
			help();
			exit(0);
		default: /* getopt has said what is wrong */
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "latency: unexpected argument '%s'\n", argv[optind]);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct bench b = {};

	b.samples = 21;
	b.sustained = 10000;
	b.bulk_bytes = 64 << 20;
	parse(&b, argc, argv);
	std::vector<char> host(b.bulk_bytes, 1);

	b.host = host.data();
	first_call();
	CUDA(cudaMalloc(&b.device, b.bulk_bytes));
	CUDA(cudaMemset(b.device, 2, b.bulk_bytes));
	for (const struct measurement &m : measurements)
		measure(&b, &m);
	CUDA(cudaFree(b.device));
	return 0;
}
