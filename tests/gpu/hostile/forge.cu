/*
 * Tries to have its own work taken for done while it runs: while a kernel keeps the GPU, it
 * writes small numbers to every page of the vGPU process that the GPU can reach. The pages are
 * named on standard input, by whoever can look into that process ("first-last" in hexadecimal
 * on each line, an empty line at the end); which of them the GPU can reach is found out by
 * copying from them. Ends with 0 if the work was never said to be done too early.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_ != cudaSuccess) {                                                       \
			printf("%s: %s\n", #call, cudaGetErrorString(error_));                     \
			exit(2);                                                                   \
		}                                                                                  \
	} while (0)

static const uint64_t page_bytes = 4096, pages_max = 1 << 20;
static const unsigned long long run_ns = 2000000000ull, early_ns = 1500000000ull;

static __device__ unsigned long long now()
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* A thread for each page, and one at least. */
static __global__ void keep_and_write(volatile uint32_t *const *pages, int count,
				      unsigned long long ns)
{
	unsigned long long begin = now();
	int page = threadIdx.x;

	for (uint32_t round = 0; now() - begin < ns; round++) {
		for (int i = page; i < count; i += blockDim.x) {
			for (uint32_t word = 0; word < 1024; word++)
				pages[i][word] = word + round % 4 * 1024;
		}
	}
}

static uint64_t host_ns()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_reachable(uint64_t page)
{
	uint32_t word;

	if (cudaMemcpy(&word, (void *)page, sizeof(word), cudaMemcpyDeviceToHost) == cudaSuccess)
		return true;
	cudaGetLastError();
	return false;
}

static std::vector<uint64_t> find_pages()
{
	std::vector<uint64_t> found;
	unsigned long long first, last;
	uint64_t probed = 0;
	char line[128];

	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%llx-%llx", &first, &last) == 2) {
		for (uint64_t at = first; at < last && probed < pages_max; at += page_bytes) {
			probed++;
			if (is_reachable(at))
				found.push_back(at);
		}
	}
	printf("%zu of %llu pages can be reached\n", found.size(), (unsigned long long)probed);
	return found;
}

int main()
{
	std::vector<uint64_t> pages;
	uint32_t **list = NULL;
	cudaError_t status;
	uint64_t begin, took;

	CHECK(cudaFree(0));
	printf("READY\n");
	fflush(stdout);
	pages = find_pages();
	CHECK(cudaMalloc(&list, (pages.size() + 1) * sizeof(*list)));
	CHECK(cudaMemcpy(list, pages.data(), pages.size() * sizeof(*list), cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	begin = host_ns();
	keep_and_write<<<1, 256>>>(list, (int)pages.size(), run_ns);
	status = cudaDeviceSynchronize();
	took = host_ns() - begin;
	printf("done after %.1f ms: %s\n", (double)took / 1e6, cudaGetErrorString(status));
	if (status == cudaSuccess && took < early_ns) {
		printf("the work was taken for done while it ran\n");
		return 1;
	}
	return 0;
}
