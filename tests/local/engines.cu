/*
 * Programs for each of a GPU's engines.
 *
 * `engines copy in|out ROUNDS`: copies, and nothing else, in one direction; of the other there is
 * one copy. `engines pipeline ROUNDS`: copies in, computes and copies out in two streams that take
 * turns. Both say "verified=yes" where the data is right.
 *
 * `engines loop WHAT...` does so until it is ended, each WHAT in a thread and a stream of its own:
 * "in", "out", "compute", which fills the GPU, or "block" and "long", kernels of one block. It says
 * "begun" first.
 *
 * `engines rate SECONDS WHAT...` says "begun", and does so when there is a line to read. What counts
 * are so many seconds, with half a second before and behind them. It says how many each WHAT did in
 * a second, and "total" for all.
 */
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define WORDS	(64u << 10) /* of a copy */
#define BYTES	(WORDS * sizeof(uint32_t))
#define THREADS 256
#define BATCH	100

static void check(cudaError_t error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "engines: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

__host__ __device__ static uint32_t step(uint32_t value)
{
	return value * 1664525u + 1013904223u;
}

__global__ void compute(uint32_t *values, unsigned steps)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t value = values[i];

	for (unsigned n = 0; n < steps; n++)
		value = step(value);
	values[i] = value;
}

static uint32_t *host_buffer(size_t bytes)
{
	void *memory;

	check(cudaMallocHost(&memory, bytes), "host memory");
	memset(memory, 0, bytes);
	return (uint32_t *)memory;
}

static uint32_t *device_buffer(size_t bytes)
{
	void *memory;

	check(cudaMalloc(&memory, bytes), "memory");
	return (uint32_t *)memory;
}

static cudaStream_t new_stream()
{
	cudaStream_t stream;

	check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
	return stream;
}

static int say(bool right)
{
	printf("verified=%s\n", right ? "yes" : "no");
	return right ? 0 : 1;
}

static int run_copy(bool in, unsigned rounds)
{
	uint32_t *host = host_buffer(BYTES), *device = device_buffer(BYTES);
	cudaStream_t stream = new_stream();
	bool right = true;

	for (unsigned i = 0; i < WORDS; i++)
		host[i] = step(i);
	check(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream), "in");
	for (unsigned n = 0; n < rounds; n++) {
		if (in)
			host[n % WORDS] = n;
		check(cudaMemcpyAsync(in ? device : host, in ? host : device, BYTES,
				      in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
		      "a copy");
		if (in || n % 4 == 0)
			check(cudaStreamSynchronize(stream), "copies");
	}
	check(cudaStreamSynchronize(stream), "copies");
	if (in) {
		memset(host, 0, BYTES);
		check(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost), "out");
	}
	for (unsigned i = 0; i < WORDS; i++)
		right &= host[i] == (in && i < rounds ? i : step(i));
	return say(right);
}

struct half {
	uint32_t *in, *out, *device;
	cudaStream_t stream;
	cudaEvent_t done;
};

/* What @half has brought back of round @round. */
static bool is_right(const struct half *half, unsigned round, unsigned steps)
{
	for (unsigned i = 0; i < WORDS; i += WORDS / 64) {
		uint32_t value = i ^ round;

		for (unsigned n = 0; n < steps; n++)
			value = step(value);
		if (half->out[i] != value)
			return false;
	}
	return true;
}

static int run_pipeline(unsigned rounds)
{
	const unsigned steps = 20;
	struct half halves[2];
	bool right = true;

	for (struct half &half : halves) {
		half = {host_buffer(BYTES), host_buffer(BYTES), device_buffer(BYTES), new_stream()};
		check(cudaEventCreate(&half.done), "an event");
	}
	for (unsigned n = 0; n < rounds + 2; n++) {
		struct half &half = halves[n % 2];

		if (n >= 2) {
			check(cudaEventSynchronize(half.done), "the end of a round");
			right &= is_right(&half, n - 2, steps);
		}
		if (n >= rounds)
			continue;
		for (unsigned i = 0; i < WORDS; i++)
			half.in[i] = i ^ n;
		check(cudaMemcpyAsync(half.device, half.in, BYTES, cudaMemcpyHostToDevice,
				      half.stream),
		      "in");
		compute<<<WORDS / THREADS, THREADS, 0, half.stream>>>(half.device, steps);
		check(cudaMemcpyAsync(half.out, half.device, BYTES, cudaMemcpyDeviceToHost,
				      half.stream),
		      "out");
		check(cudaEventRecord(half.done, half.stream), "an event");
	}
	return say(right);
}

static std::atomic<bool> over;

/* One after the other, up to two batches of them queued; how many. */
static void run_loop(const char *what, bool is_large, std::atomic<uint64_t> *count)
{
	/* A soft GPU's copies and kernels are no larger than is needed. */
	bool fills = !strcmp(what, "compute"), is_long = !strcmp(what, "long");
	bool in = !strcmp(what, "in"), out = !strcmp(what, "out");
	size_t bytes = is_large ? 32u << 20 : BYTES;
	unsigned blocks = fills ? (is_large ? 8192 : 16) : 1;
	unsigned steps = fills ? 200 : (is_long ? 6000 : 60) * (is_large ? 100 : 1);
	/* What is counted is no more than 6 ms. */
	unsigned batch = is_large && (in || out || is_long) ? BATCH / 10 : BATCH;
	uint32_t *host = host_buffer(bytes), *device = device_buffer(bytes);
	cudaStream_t stream = new_stream();
	cudaEvent_t done[2];

	for (cudaEvent_t &event : done)
		check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
	for (unsigned n = 0; !over; n++) {
		for (unsigned i = 0; i < batch; i++) {
			if (in || out)
				check(cudaMemcpyAsync(in ? device : host, in ? host : device, bytes,
						      in ? cudaMemcpyHostToDevice
							 : cudaMemcpyDeviceToHost,
						      stream),
				      what);
			else
				compute<<<blocks, THREADS, 0, stream>>>(device, steps);
		}
		check(cudaEventRecord(done[n % 2], stream), "an event");
		if (n == 0)
			continue;
		check(cudaEventSynchronize(done[(n - 1) % 2]), what);
		*count += batch;
	}
	check(cudaStreamSynchronize(stream), what);
}

static double seconds_now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

static void wait(double seconds)
{
	std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

static void measure(char **what, std::vector<std::atomic<uint64_t>> *counts, double seconds)
{
	std::vector<uint64_t> before;
	double begin, took, total = 0;

	wait(0.5);
	begin = seconds_now();
	for (auto &count : *counts)
		before.push_back(count);
	wait(seconds);
	took = seconds_now() - begin;
	for (size_t i = 0; i < counts->size(); i++) {
		double rate = (double)((*counts)[i] - before[i]) / took;

		printf("%s=%g\n", what[i], rate);
		total += rate;
	}
	printf("total=%g\n", total);
	fflush(stdout);
	wait(0.5);
	over = true;
}

static void run_loops(char **what, int count, double seconds)
{
	int processors;
	std::vector<std::thread> threads;
	std::vector<std::atomic<uint64_t>> counts(count);

	check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "the GPU");
	printf("begun\n");
	fflush(stdout);
	if (seconds > 0)
		getchar();
	for (int i = 0; i < count; i++)
		threads.emplace_back(run_loop, what[i], processors > 64, &counts[i]);
	if (seconds > 0)
		measure(what, &counts, seconds);
	for (std::thread &thread : threads)
		thread.join();
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "copy"))
		return run_copy(!strcmp(argv[2], "in"), (unsigned)atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "pipeline"))
		return run_pipeline((unsigned)atoi(argv[2]));
	if (argc > 2 && !strcmp(argv[1], "loop"))
		run_loops(argv + 2, argc - 2, 0);
	else if (argc > 3 && !strcmp(argv[1], "rate"))
		run_loops(argv + 3, argc - 3, atof(argv[2]));
	else
		return 2;
	return 0;
}
