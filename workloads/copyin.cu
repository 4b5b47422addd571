/*
 * Copies from pinned host memory to the device, and nothing else: work for one of the GPU's engines
 * that copy. An iteration copies one of two vectors, by turns. copyout.cu is the same in the other
 * direction.
 */
#include "workload.h"

#ifndef COPIES_OUT
#define COPIES_OUT 0
#endif

struct vectors : workload {
	float *sources[2]; /* iteration i copies sources[i % 2] */
	float *target;

	double units() const override
	{
		return (double)size;
	}

	size_t bytes() const
	{
		return (size_t)size * sizeof(float);
	}

	float *make(bool on_device)
	{
		void *memory;

		if (on_device)
			CUDA(this, cudaMalloc(&memory, bytes()));
		else
			CUDA(this, cudaMallocHost(&memory, bytes()));
		return (float *)memory;
	}

	void allocate() override
	{
		for (float *&source : sources)
			source = make(COPIES_OUT);
		target = make(!COPIES_OUT);
	}

	void load() override
	{
		std::vector<float> values(size);

		for (uint64_t i = 0; i < 2; i++) {
			workload_fill(values.data(), values.size(), -1, 1, 1 + i);
			CUDA(this, cudaMemcpy(sources[i], values.data(), bytes(), cudaMemcpyDefault));
		}
		CUDA(this, cudaMemset(target, WORKLOAD_POISON, bytes()));
	}

	void step(long i) override
	{
		CUDA(this, cudaMemcpyAsync(target, sources[i % 2], bytes(), cudaMemcpyDefault, stream));
	}

	bool verify() override
	{
		std::vector<float> result(size), expected(size);

		workload_fill(expected.data(), expected.size(), -1, 1, 1 + (uint64_t)((done - 1) % 2));
		CUDA(this, cudaMemcpy(result.data(), target, bytes(), cudaMemcpyDefault));
		for (size_t i = 0; i < result.size(); i++) {
			if (!workload_close(this, result[i], expected[i], 0, i))
				return false;
		}
		return true;
	}

	void drop(float *memory, bool on_device)
	{
		CUDA(this, on_device ? cudaFree(memory) : cudaFreeHost(memory));
	}

	void release() override
	{
		for (float *source : sources)
			drop(source, COPIES_OUT);
		drop(target, !COPIES_OUT);
	}
};

int main(int argc, char **argv)
{
	struct vectors w = {};

	w.name = COPIES_OUT ? "copyout" : "copyin";
	w.about = COPIES_OUT ? "Copies vectors from the device to pinned host memory."
			     : "Copies vectors from pinned host memory to the device.";
	w.size_about = "elements of a vector";
	w.units_about = "an element copied";
	w.size = 1000003;
	w.max_size = 1L << 28;
	w.iterations = 4;
	w.sync_every = 16;
	w.round = 1000;
	w.kernels = 1;
	w.copies = true;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
