/*
 * Prefix sums: each element becomes the sum of all up to it. Every block of threads adds its
 * chunk of the array up, one block makes prefix sums of these, and from there each block
 * makes those of its chunk. Each iteration takes the sums of the iteration before, so that a
 * mistake anywhere spreads to the end. Integers modulo 2^32: all elements are compared exactly.
 */
#include "workload.h"

#include <algorithm>
#include <vector>

#define BLOCK	   256
#define MAX_BLOCKS 1024 /* whose sums one block can take */
#define WARP	   32
#define ALL_LANES  0xffffffffu

/*
 * The sum of @value over the threads of the block up to this one, and over all of them in
 * @total. All threads of the block must come here, whose warps must be full.
 */
__device__ static unsigned scan_block(unsigned value, unsigned *total)
{
	__shared__ unsigned sums[MAX_BLOCKS / WARP];
	unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

	for (unsigned distance = 1; distance < WARP; distance *= 2) {
		unsigned other = __shfl_up_sync(ALL_LANES, value, distance);

		if (lane >= distance)
			value += other;
	}
	__syncthreads(); /* the sums of an earlier call have been read */
	if (lane == WARP - 1)
		sums[warp] = value;
	__syncthreads();
	*total = 0;
	for (unsigned i = 0; i < blockDim.x / WARP; i++) {
		if (i < warp)
			value += sums[i];
		*total += sums[i];
	}
	return value;
}

__global__ void sum_chunks(unsigned *sums, const unsigned *in, size_t amount, size_t chunk,
			   unsigned long long *count)
{
	size_t from = blockIdx.x * chunk, to = min(from + chunk, amount);
	unsigned sum = 0, total;

	workload_count(count);
	for (size_t i = from + threadIdx.x; i < to; i += BLOCK)
		sum += in[i];
	scan_block(sum, &total);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = total;
}

/* By one block: makes of each chunk's sum that of the chunks before it. */
__global__ void scan_sums(unsigned *sums, unsigned chunks, unsigned long long *count)
{
	unsigned i = threadIdx.x, sum = i < chunks ? sums[i] : 0, total;

	workload_count(count);
	sum = scan_block(sum, &total) - sum;
	if (i < chunks)
		sums[i] = sum;
}

__global__ void scan_chunks(unsigned *out, const unsigned *in, const unsigned *sums, size_t amount,
			    size_t chunk, unsigned long long *count)
{
	size_t from = blockIdx.x * chunk, to = min(from + chunk, amount);
	unsigned before = sums[blockIdx.x], total;

	workload_count(count);
	for (; from < to; from += BLOCK) {
		size_t i = from + threadIdx.x;
		unsigned sum = before + scan_block(i < to ? in[i] : 0, &total);

		if (i < to)
			out[i] = sum;
		before += total;
	}
}

struct scan : workload {
	std::vector<unsigned> input;
	unsigned *start, *sums;
	unsigned *arrays[2]; /* iteration i writes arrays[i % 2] */

	double units() const override
	{
		return (double)size;
	}

	void allocate() override
	{
		uint64_t dice = 1;

		input.resize(size);
		for (unsigned &element : input)
			element = (unsigned)workload_random(&dice);
		for (unsigned **memory : {&start, &arrays[0], &arrays[1]})
			CUDA(this, cudaMalloc(memory, input.size() * sizeof(unsigned)));
		CUDA(this, cudaMalloc(&sums, MAX_BLOCKS * sizeof(*sums)));
	}

	void load() override
	{
		size_t bytes = input.size() * sizeof(unsigned);

		CUDA(this, cudaMemcpy(start, input.data(), bytes, cudaMemcpyHostToDevice));
		for (unsigned *array : arrays)
			CUDA(this, cudaMemset(array, WORKLOAD_POISON, bytes));
		CUDA(this, cudaMemset(sums, WORKLOAD_POISON, MAX_BLOCKS * sizeof(*sums)));
	}

	void step(long i) override
	{
		size_t tiles = (input.size() + BLOCK - 1) / BLOCK;
		size_t chunk = (tiles + MAX_BLOCKS - 1) / MAX_BLOCKS * BLOCK;
		unsigned blocks = (unsigned)((input.size() + chunk - 1) / chunk);
		const unsigned *from = i % round ? arrays[(i + 1) % 2] : start;

		sum_chunks<<<blocks, BLOCK>>>(sums, from, input.size(), chunk, count);
		workload_cuda(this, cudaGetLastError(), "launch of sum_chunks");
		scan_sums<<<1, MAX_BLOCKS>>>(sums, blocks, count);
		workload_cuda(this, cudaGetLastError(), "launch of scan_sums");
		scan_chunks<<<blocks, BLOCK>>>(arrays[i % 2], from, sums, input.size(), chunk,
					       count);
		workload_cuda(this, cudaGetLastError(), "launch of scan_chunks");
	}

	bool verify() override
	{
		std::vector<unsigned> reference = input, result(input.size());

		for (long i = 0; i < workload_depth(this); i++)
			for (size_t j = 1; j < reference.size(); j++)
				reference[j] += reference[j - 1];
		workload_fetch(this, result, arrays[(done - 1) % 2]);
		for (size_t i = 0; i < result.size(); i++)
			if (!workload_same(this, result[i], reference[i], i))
				return false;
		return true;
	}

	void release() override
	{
		for (unsigned *memory : {start, sums, arrays[0], arrays[1]})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct scan w = {};

	w.name = "scan";
	w.about = "Makes prefix sums of random integers, over and over, and checks every one.";
	w.size_about = "elements of the array";
	w.units_about = "one element summed";
	w.size = 300007;
	w.max_size = 1L << 31;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = 8;
	w.kernels = 3;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
