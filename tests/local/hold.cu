/*
 * Kernels that take long: `hold endless` launches one that never ends, says so, and waits for it.
 * `hold chain STEPS COUNT [BLOCKS]` runs COUNT kernels of so many steps one after another, each
 * going on where the one before ended, and says "verified=yes" where the result is that of the
 * processor. `hold calibrate [BLOCKS]` says how many steps take a millisecond, and `hold loop STEPS
 * BATCH SECONDS [BLOCKS]` says "begun" when it is ready, waits for a line, and runs kernels for so
 * long, in batches each of which it waits for. It goes on for a quarter of that time, so that others
 * which were told to begin with it are not alone at their end, and says how many kernels there were
 * in the time that counts, when the last of them ended, and how long the longest batch took.
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define THREADS 64

static void check(cudaError_t error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "hold: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

__global__ void never_end(volatile int *stop)
{
	while (!*stop)
		;
}

__host__ __device__ static uint32_t step(uint32_t value)
{
	return value * 1664525u + 1013904223u;
}

__global__ void chain(uint32_t *values, unsigned long long steps)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t value = values[i];

	for (unsigned long long n = 0; n < steps; n++)
		value = step(value);
	values[i] = value;
}

/* What so many steps make of @value: each is affine, so twice as many are one of these, too. */
static uint32_t jump(uint32_t value, unsigned long long steps)
{
	uint32_t factor = step(1) - step(0), summand = step(0);

	for (; steps; steps >>= 1) {
		if (steps & 1)
			value = value * factor + summand;
		summand += factor * summand;
		factor *= factor;
	}
	return value;
}

static int run_endless(void)
{
	int *stop;

	check(cudaMalloc(&stop, sizeof(*stop)), "memory");
	check(cudaMemset(stop, 0, sizeof(*stop)), "memset");
	check(cudaDeviceSynchronize(), "the beginning");
	never_end<<<1, 1>>>(stop);
	printf("endless\n");
	fflush(stdout);
	check(cudaDeviceSynchronize(), "the end");
	return 0;
}

static int run_chain(unsigned long long steps, unsigned count, unsigned blocks)
{
	std::vector<uint32_t> values(blocks * THREADS), expected(values.size());
	size_t bytes = values.size() * sizeof(uint32_t);
	uint32_t *memory;

	for (size_t i = 0; i < values.size(); i++) {
		values[i] = (uint32_t)i;
		expected[i] = jump(values[i], steps * count);
	}
	check(cudaMalloc(&memory, bytes), "memory");
	check(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice), "copy in");
	printf("begun\n");
	fflush(stdout);
	for (unsigned i = 0; i < count; i++)
		chain<<<blocks, THREADS>>>(memory, steps);
	check(cudaGetLastError(), "launch");
	check(cudaMemcpy(values.data(), memory, bytes, cudaMemcpyDeviceToHost), "copy out");
	printf("verified=%s\n", values == expected ? "yes" : "no");
	return 0;
}

using timer = std::chrono::steady_clock;

static double seconds_since(timer::time_point begun)
{
	return std::chrono::duration<double>(timer::now() - begun).count();
}

static uint32_t *make_values(unsigned blocks)
{
	uint32_t *memory;

	check(cudaMalloc(&memory, blocks * THREADS * sizeof(uint32_t)), "memory");
	check(cudaMemset(memory, 1, blocks * THREADS * sizeof(uint32_t)), "memset");
	check(cudaDeviceSynchronize(), "the beginning");
	return memory;
}

static double time_chain(uint32_t *memory, unsigned long long steps, unsigned blocks)
{
	timer::time_point begun = timer::now();

	chain<<<blocks, THREADS>>>(memory, steps);
	check(cudaDeviceSynchronize(), "a kernel");
	return seconds_since(begun);
}

static int run_calibrate(unsigned blocks)
{
	uint32_t *memory = make_values(blocks);
	unsigned long long steps = 1000;

	while (time_chain(memory, steps, blocks) < 0.05)
		steps *= 2;
	printf("steps_per_ms=%.0f\n", steps / time_chain(memory, steps, blocks) / 1000);
	return 0;
}

static void wait_for_line()
{
	int c;

	printf("begun\n");
	fflush(stdout);
	do {
		c = getchar();
	} while (c != '\n' && c != EOF);
}

static int run_loop(unsigned long long steps, unsigned batch, double seconds, unsigned blocks)
{
	uint32_t *memory = make_values(blocks);
	timer::time_point begun;
	double longest = 0, before = 0, now = 0;
	unsigned long count = 0;

	time_chain(memory, steps, blocks);
	wait_for_line();
	for (begun = timer::now(); now < seconds * 1.25;) {
		for (unsigned i = 0; i < batch; i++)
			chain<<<blocks, THREADS>>>(memory, steps);
		check(cudaDeviceSynchronize(), "a batch");
		now = seconds_since(begun);
		if (now > seconds)
			continue;
		count += batch;
		if (now - before > longest)
			longest = now - before;
		before = now;
	}
	printf("count=%lu seconds=%.6f longest_ms=%.3f\n", count, count ? before : seconds,
	       longest * 1000);
	return 0;
}

static unsigned blocks_of(int argc, char **argv, int at)
{
	return argc > at ? (unsigned)atoi(argv[at]) : 1;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "calibrate"))
		return run_calibrate(blocks_of(argc, argv, 2));
	if (argc >= 5 && !strcmp(argv[1], "loop"))
		return run_loop(strtoull(argv[2], nullptr, 0), (unsigned)atoi(argv[3]),
				atof(argv[4]), blocks_of(argc, argv, 5));
	if (argc == 2 && !strcmp(argv[1], "endless"))
		return run_endless();
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "chain"))
		return run_chain(strtoull(argv[2], nullptr, 0), (unsigned)atoi(argv[3]),
				 blocks_of(argc, argv, 4));
	fprintf(stderr, "usage: hold endless | chain STEPS COUNT [BLOCKS] | calibrate [BLOCKS] | "
			"loop STEPS BATCH SECONDS [BLOCKS]\n");
	return 2;
}
