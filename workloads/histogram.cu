/*
 * How often each value of a byte occurs in a block of memory. Each block of threads counts
 * its part with atomic additions in shared memory; a second kernel adds the blocks' counts up,
 * a warp for each value. The counts of a round's iterations add up as well, exactly.
 */
#include "workload.h"

#include <algorithm>
#include <vector>

#define BINS	   256
#define BLOCK	   BINS
#define MAX_BLOCKS 1024
#define WARP	   32
#define ALL_LANES  0xffffffffu

__global__ void count_bytes(unsigned *parts, const uint32_t *words, size_t amount,
			    unsigned long long *count)
{
	__shared__ unsigned bins[BINS];
	size_t stride = (size_t)gridDim.x * BLOCK;

	workload_count(count);
	bins[threadIdx.x] = 0;
	__syncthreads();
	for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < amount; i += stride)
		for (int shift = 0; shift < 32; shift += 8)
			atomicAdd(&bins[words[i] >> shift & 0xff], 1);
	__syncthreads();
	parts[blockIdx.x * BINS + threadIdx.x] = bins[threadIdx.x];
}

/* Adds @amount counts of each value up, to @totals unless they begin anew. */
__global__ void merge(unsigned long long *totals, const unsigned *parts, int amount, bool anew,
		      unsigned long long *count)
{
	int bin = (blockIdx.x * BLOCK + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
	unsigned long long sum = 0;

	workload_count(count);
	for (int i = lane; i < amount; i += WARP)
		sum += parts[i * BINS + bin];
	for (int half = WARP / 2; half; half /= 2)
		sum += __shfl_down_sync(ALL_LANES, sum, half);
	if (lane == 0)
		totals[bin] = anew ? sum : totals[bin] + sum;
}

struct histogram : workload {
	std::vector<uint32_t> words;
	uint32_t *device_words;
	unsigned *parts;
	unsigned long long *totals;

	double units() const override
	{
		return 4.0 * (double)size;
	}

	/* The more bits of a byte are set, the rarer it is. */
	void allocate() override
	{
		uint64_t dice = 1;

		words.resize(size);
		for (uint32_t &word : words) {
			uint64_t bits = workload_random(&dice);

			word = (uint32_t)(bits & bits >> 32);
		}
		CUDA(this, cudaMalloc(&device_words, words.size() * sizeof(words[0])));
		CUDA(this, cudaMalloc(&parts, MAX_BLOCKS * BINS * sizeof(*parts)));
		CUDA(this, cudaMalloc(&totals, BINS * sizeof(*totals)));
	}

	void load() override
	{
		CUDA(this, cudaMemcpy(device_words, words.data(), words.size() * sizeof(words[0]),
				      cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(parts, WORKLOAD_POISON, MAX_BLOCKS * BINS * sizeof(*parts)));
		CUDA(this, cudaMemset(totals, WORKLOAD_POISON, BINS * sizeof(*totals)));
	}

	void step(long i) override
	{
		unsigned blocks = (unsigned)std::min<long>((size + BLOCK - 1) / BLOCK, MAX_BLOCKS);

		count_bytes<<<blocks, BLOCK>>>(parts, device_words, words.size(), count);
		workload_cuda(this, cudaGetLastError(), "launch of count_bytes");
		merge<<<BINS * WARP / BLOCK, BLOCK>>>(totals, parts, (int)blocks, i % round == 0,
						      count);
		workload_cuda(this, cudaGetLastError(), "launch of merge");
	}

	bool verify() override
	{
		uint64_t depth = (uint64_t)workload_depth(this);
		std::vector<unsigned long long> result(BINS), reference(BINS);

		for (uint32_t word : words)
			for (int shift = 0; shift < 32; shift += 8)
				reference[word >> shift & 0xff] += depth;
		workload_fetch(this, result, totals);
		for (size_t i = 0; i < BINS; i++)
			if (!workload_same(this, result[i], reference[i], i))
				return false;
		return true;
	}

	void release() override
	{
		CUDA(this, cudaFree(device_words));
		CUDA(this, cudaFree(parts));
		CUDA(this, cudaFree(totals));
	}
};

int main(int argc, char **argv)
{
	struct histogram w = {};

	w.name = "histogram";
	w.about = "Counts how often each byte occurs in random memory and checks the counts.";
	w.size_about = "words of four bytes";
	w.units_about = "one byte counted";
	w.size = 100003;
	w.max_size = 1L << 32;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = 50;
	w.kernels = 2;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
