/*
 * Vector addition, the smallest useful kernel: each iteration adds a vector to the
 * sum of the iterations before, from one buffer into another, so that an element
 * or a launch that got lost shows in the result.
 */
#include "workload.h"

#include <vector>

#define BLOCK 256

__global__ void add(float *out, const float *a, const float *b, size_t elements,
		    unsigned long long *count)
{
	size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

	workload_count(count);
	if (i < elements)
		out[i] = a[i] + b[i];
}

struct vecadd : workload {
	std::vector<float> a, b;
	float *start, *addend;
	float *sums[2]; /* iteration i writes sums[i % 2] */

	double units() const override
	{
		return (double)size;
	}

	size_t bytes() const
	{
		return (size_t)size * sizeof(float);
	}

	void allocate() override
	{
		a.resize(size);
		b.resize(size);
		workload_fill(a.data(), a.size(), -1, 1, 1);
		workload_fill(b.data(), b.size(), -1, 1, 2);
		for (float **memory : {&start, &addend, &sums[0], &sums[1]})
			CUDA(this, cudaMalloc(memory, bytes()));
	}

	void load() override
	{
		CUDA(this, cudaMemcpy(start, a.data(), bytes(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemcpy(addend, b.data(), bytes(), cudaMemcpyHostToDevice));
		for (float *sum : sums)
			CUDA(this, cudaMemset(sum, WORKLOAD_POISON, bytes()));
	}

	void step(long i) override
	{
		unsigned blocks = (unsigned)((size + BLOCK - 1) / BLOCK);
		const float *from = i % round ? sums[(i + 1) % 2] : start;

		add<<<blocks, BLOCK, 0, stream>>>(sums[i % 2], from, addend, (size_t)size, count);
		workload_cuda(this, cudaGetLastError(), "launch of add");
	}

	/* Each of the additions may round by half a unit in the last place of its sum. */
	bool verify() override
	{
		double depth = (double)workload_depth(this);
		std::vector<float> result(size);

		workload_fetch(this, result, sums[(done - 1) % 2]);
		for (size_t i = 0; i < result.size(); i++) {
			double tolerance =
				depth * 0x1p-24 * (fabs(a[i]) + depth * fabs(b[i])) + 1e-6;

			if (!workload_close(this, result[i], a[i] + depth * b[i], tolerance, i))
				return false;
		}
		return true;
	}

	void release() override
	{
		for (float *memory : {start, addend, sums[0], sums[1]})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct vecadd w = {};

	w.name = "vecadd";
	w.about = "Adds vectors of random numbers and checks every element of the sum.";
	w.size_about = "elements of a vector";
	w.units_about = "one addition";
	w.size = 1000003;
	w.max_size = 1L << 30;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = 1000;
	w.kernels = 1;
	w.can_graph = true;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
