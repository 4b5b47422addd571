/*
 * Keeps the GPU busy until it is killed, in one of several ways, for tests of what a VM gets of
 * it: `shares KIND MICROSECONDS [BLOCKS]`, where a kernel takes about so long by itself. Says
 * "begun" when it knows how many steps that are. KIND is
 *
 *	launches  kernels behind each other, in batches of about four milliseconds
 *	waits     a kernel, and a wait for it
 *	streams   the same as launches in eight streams, with an eighth of the blocks each
 *	graphs    graphs of sixteen kernels
 *	copies    eight megabytes to the GPU and eight back, at the same time
 *
 * `shares service MICROSECONDS BLOCKS SECONDS [REQUEST-US]` is a service instead: requests of twenty
 * kernels, each of which is waited for, come at random times, so that they take half of the time.
 * It says how long a request takes from coming to its end, in microseconds: of half of them, of 99 %,
 * and one by itself, which can be given so that two runs have the same load.
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define THREADS	   64
#define STREAMS	   8
#define COPY_BYTES (8u << 20)
#define BATCH_US   4000
#define GRAPH	   16
#define REQUEST	   20 /* kernels */
#define ALONE	   50 /* requests, to learn how long one takes */

static void check(cudaError_t error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "shares: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

__global__ void chain(uint32_t *values, unsigned long long steps)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t value = values[i];

	for (unsigned long long n = 0; n < steps; n++)
		value = value * 1664525u + 1013904223u;
	values[i] = value;
}

struct load {
	uint32_t *values;
	unsigned long long steps; /* of a kernel */
	unsigned blocks, batch;
	cudaStream_t streams[STREAMS];
};

static double time_us(const struct load *load, unsigned long long steps)
{
	auto begun = std::chrono::steady_clock::now();

	chain<<<load->blocks, THREADS>>>(load->values, steps);
	check(cudaDeviceSynchronize(), "a kernel");
	return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun)
		.count();
}

/* The difference of two kernels, so that what a launch costs does not count. */
static void calibrate(struct load *load, double kernel_us)
{
	unsigned long long steps = 1000;
	double us = time_us(load, steps), more_us = time_us(load, 2 * steps);

	while (more_us < 20000) {
		steps *= 2;
		us = more_us;
		more_us = time_us(load, 2 * steps);
	}
	load->steps = (unsigned long long)(kernel_us * (double)steps / (more_us - us)) + 1;
	load->batch = kernel_us < BATCH_US ? (unsigned)(BATCH_US / kernel_us) : 1;
}

static void open_load(struct load *load, unsigned blocks)
{
	load->blocks = blocks;
	check(cudaMalloc(&load->values, blocks * THREADS * sizeof(uint32_t)), "memory");
	check(cudaMemset(load->values, 1, blocks * THREADS * sizeof(uint32_t)), "memset");
	for (auto &stream : load->streams)
		check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
	check(cudaDeviceSynchronize(), "the beginning");
}

static void run_launches(const struct load *load)
{
	for (unsigned i = 0; i < load->batch; i++)
		chain<<<load->blocks, THREADS>>>(load->values, load->steps);
	check(cudaDeviceSynchronize(), "kernels");
}

static void run_waits(const struct load *load)
{
	chain<<<load->blocks, THREADS>>>(load->values, load->steps);
	check(cudaDeviceSynchronize(), "a kernel");
}

static void run_streams(const struct load *load)
{
	unsigned blocks = load->blocks < STREAMS ? 1 : load->blocks / STREAMS;

	for (unsigned i = 0; i < load->batch; i++)
		for (unsigned s = 0; s < STREAMS; s++)
			chain<<<blocks, THREADS, 0, load->streams[s]>>>(
				load->values + (s * blocks % load->blocks) * THREADS, load->steps);
	check(cudaDeviceSynchronize(), "kernels in streams");
}

static cudaGraphExec_t graph;

static void make_graph(const struct load *load)
{
	cudaGraph_t captured;

	check(cudaStreamBeginCapture(load->streams[0], cudaStreamCaptureModeGlobal), "a capture");
	for (int i = 0; i < GRAPH; i++)
		chain<<<load->blocks, THREADS, 0, load->streams[0]>>>(load->values, load->steps);
	check(cudaStreamEndCapture(load->streams[0], &captured), "a graph");
	check(cudaGraphInstantiate(&graph, captured, 0), "a graph to launch");
}

static void run_graphs(const struct load *load)
{
	for (int i = 0; i < 4; i++)
		check(cudaGraphLaunch(graph, load->streams[0]), "a graph's launch");
	check(cudaDeviceSynchronize(), "graphs");
}

static char *host[2], *device[2];

static void make_buffers(void)
{
	for (int i = 0; i < 2; i++) {
		check(cudaMallocHost(&host[i], COPY_BYTES), "memory of the host");
		check(cudaMalloc(&device[i], COPY_BYTES), "memory of the GPU");
	}
}

static void run_copies(const struct load *load)
{
	for (int i = 0; i < 4; i++) {
		check(cudaMemcpyAsync(device[0], host[0], COPY_BYTES, cudaMemcpyHostToDevice,
				      load->streams[0]),
		      "a copy to the GPU");
		check(cudaMemcpyAsync(host[1], device[1], COPY_BYTES, cudaMemcpyDeviceToHost,
				      load->streams[1]),
		      "a copy from the GPU");
	}
	check(cudaDeviceSynchronize(), "copies");
}

static void serve(const struct load *load)
{
	for (int i = 0; i < REQUEST; i++)
		run_waits(load);
}

static double since_us(std::chrono::steady_clock::time_point begun)
{
	return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun)
		.count();
}

static double request_us(const struct load *load)
{
	auto begun = std::chrono::steady_clock::now();

	for (int i = 0; i < ALONE; i++)
		serve(load);
	return since_us(begun) / ALONE;
}

static int run_service(const struct load *load, double seconds, double us)
{
	auto begun = std::chrono::steady_clock::now();
	std::exponential_distribution<double> pause(1 / (2 * us));
	std::vector<double> latencies;
	std::mt19937 random(1);
	double at_us = 0;

	while (at_us < seconds * 1e6) {
		at_us += pause(random);
		std::this_thread::sleep_until(begun + std::chrono::nanoseconds((long long)(at_us * 1e3)));
		serve(load);
		latencies.push_back(since_us(begun) - at_us);
	}
	std::sort(latencies.begin(), latencies.end());
	printf("%.1f %.1f %.1f\n", latencies[latencies.size() / 2],
	       latencies[latencies.size() * 99 / 100], us);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const struct load *load);
	} kinds[] = {{"launches", run_launches},
		     {"waits", run_waits},
		     {"streams", run_streams},
		     {"graphs", run_graphs},
		     {"copies", run_copies}};
	struct load load = {};

	if (argc < 3 || atof(argv[2]) <= 0) {
		fprintf(stderr, "usage: shares KIND MICROSECONDS [BLOCKS]\n");
		return 2;
	}
	open_load(&load, argc > 3 ? (unsigned)atoi(argv[3]) : 264);
	calibrate(&load, atof(argv[2]));
	if (!strcmp(argv[1], "service") && argc > 4)
		return run_service(&load, atof(argv[4]), argc > 5 ? atof(argv[5]) : request_us(&load));
	make_buffers();
	make_graph(&load);
	printf("begun\n");
	fflush(stdout);
	for (const auto &kind : kinds)
		while (!strcmp(kind.name, argv[1]))
			kind.run(&load);
	fprintf(stderr, "shares: there is no kind %s\n", argv[1]);
	return 2;
}
