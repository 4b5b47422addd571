/*
 * Kernels that take long: `hold endless` launches one that never ends, says so, and waits for it.
 * `hold chain STEPS COUNT [BLOCKS]` runs COUNT kernels of so many steps one after another, each
 * going on where the one before ended, and says "verified=yes" where the result is that of the
 * processor.
 */
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
		values[i] = expected[i] = (uint32_t)i;
		for (unsigned long long n = 0; n < steps * count; n++)
			expected[i] = step(expected[i]);
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

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "endless"))
		return run_endless();
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "chain"))
		return run_chain(strtoull(argv[2], nullptr, 0), (unsigned)atoi(argv[3]),
				 argc == 5 ? (unsigned)atoi(argv[4]) : 1);
	fprintf(stderr, "usage: hold endless | chain STEPS COUNT [BLOCKS]\n");
	return 2;
}
