/*
 * Vector addition, the smallest useful kernel: each iteration adds a vector to the
 * sum of the iterations before, from one buffer into another, so that an element
 * or a launch that got lost shows in the result.
 */
#include "workload.h"

#include <utility>
#include <vector>

#define BLOCK 256

__global__ void vecadd(float *out, const float *a, const float *b, size_t count)
{
	size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		out[i] = a[i] + b[i];
}

static void compute(const struct workload *w, const std::vector<float> &a,
		    const std::vector<float> &b, std::vector<float> &result)
{
	size_t count = a.size(), bytes = count * sizeof(float);
	unsigned blocks = (unsigned)((count + BLOCK - 1) / BLOCK);
	float *from, *to, *step;

	CUDA(w, cudaMalloc(&from, bytes));
	CUDA(w, cudaMalloc(&to, bytes));
	CUDA(w, cudaMalloc(&step, bytes));
	CUDA(w, cudaMemset(to, WORKLOAD_POISON, bytes));
	CUDA(w, cudaMemcpy(from, a.data(), bytes, cudaMemcpyHostToDevice));
	CUDA(w, cudaMemcpy(step, b.data(), bytes, cudaMemcpyHostToDevice));
	for (long i = 0; i < w->iterations; i++) {
		vecadd<<<blocks, BLOCK>>>(to, from, step, count);
		workload_cuda(w, cudaGetLastError(), "launch of vecadd");
		std::swap(from, to);
	}
	CUDA(w, cudaMemcpy(result.data(), from, bytes, cudaMemcpyDeviceToHost));
	CUDA(w, cudaFree(step));
	CUDA(w, cudaFree(to));
	CUDA(w, cudaFree(from));
}

/* Each of the additions may round by half a unit in the last place of its sum. */
static bool verify(const struct workload *w, const std::vector<float> &a,
		   const std::vector<float> &b, const std::vector<float> &result)
{
	double k = (double)w->iterations;

	for (size_t i = 0; i < result.size(); i++) {
		double reference = a[i] + k * b[i];
		double tolerance = k * 0x1p-24 * (fabs(a[i]) + k * fabs(b[i])) + 1e-6;

		if (!workload_close(w, result[i], reference, tolerance, i))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct workload w = {};

	w.name = "vecadd";
	w.about = "Adds vectors of random numbers and checks every element of the sum.";
	w.size_about = "elements of a vector";
	w.size = 1000003;
	w.max_size = 1L << 30;
	w.iterations = 4;
	workload_start(&w, argc, argv);

	std::vector<float> a(w.size), b(w.size), result(w.size);

	workload_fill(a.data(), a.size(), 1);
	workload_fill(b.data(), b.size(), 2);
	memset(result.data(), WORKLOAD_POISON, result.size() * sizeof(float));
	workload_clock_start(&w);
	compute(&w, a, b, result);
	workload_clock_stop(&w);
	workload_finish(&w, verify(&w, a, b, result));
}
