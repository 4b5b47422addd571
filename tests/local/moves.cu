/*
 * Moves memory: `moves WORDS SECONDS` says "begun", waits for a line, and copies so many words from
 * one place of the GPU's memory to another, by kernels, again and again for so long. Says how many
 * gigabytes were read and written in how many seconds.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define THREADS 256

static void check(cudaError_t error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "moves: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

__global__ void move(unsigned *to, const unsigned *from, size_t words)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words;
	     i += (size_t)gridDim.x * blockDim.x)
		to[i] = from[i];
}

int main(int argc, char **argv)
{
	size_t words = argc == 3 ? strtoull(argv[1], nullptr, 0) : 0;
	double seconds = words ? atof(argv[2]) : 0, now = 0, counted = 0;
	unsigned *from, *to;
	unsigned long count = 0;
	int processors;

	if (!words)
		return 2;
	check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "attribute");
	check(cudaMalloc(&from, words * sizeof(*from)), "memory");
	check(cudaMalloc(&to, words * sizeof(*to)), "memory");
	check(cudaMemset(from, 1, words * sizeof(*from)), "memset");
	move<<<processors * 8, THREADS>>>(to, from, words);
	check(cudaDeviceSynchronize(), "the beginning");
	printf("begun\n");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	auto begun = std::chrono::steady_clock::now();
	while (now < seconds * 1.25) {
		move<<<processors * 8, THREADS>>>(to, from, words);
		check(cudaDeviceSynchronize(), "a kernel");
		now = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
		if (now > seconds)
			continue;
		count++;
		counted = now;
	}
	printf("gigabytes=%.3f seconds=%.6f\n", count * 2 * words * sizeof(*from) / 1e9,
	       counted > 0 ? counted : seconds);
	return 0;
}
