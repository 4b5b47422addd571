/*
 * Matrix multiplication by tiles in shared memory, C = A B + beta C, where the first
 * iteration of a round ignores C (beta 0) and the others add to it. Every element must have
 * been written; all of them are compared up to 256 x 256, and a random choice of 65,536 beyond.
 */
#include "workload.h"

#include <vector>

#define TILE	16
#define SAMPLES 65536

__global__ void multiply(float *c, const float *a, const float *b, int n, float beta,
			 unsigned long long *count)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
	float sum = 0;

	workload_count(count);
	for (int k = 0; k < n; k += TILE) {
		tile_a[y][x] = row < n && k + x < n ? a[(size_t)row * n + k + x] : 0;
		tile_b[y][x] = k + y < n && column < n ? b[(size_t)(k + y) * n + column] : 0;
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += tile_a[y][i] * tile_b[i][x];
		__syncthreads();
	}
	if (row < n && column < n) {
		float *out = &c[(size_t)row * n + column];

		*out = beta == 0 ? sum : sum + beta * *out;
	}
}

struct matmul : workload {
	std::vector<float> a, b, c;
	float *device_a, *device_b, *device_c;

	double units() const override
	{
		return (double)size * (double)size * (double)size;
	}

	size_t bytes() const
	{
		return (size_t)size * (size_t)size * sizeof(float);
	}

	void allocate() override
	{
		for (std::vector<float> *matrix : {&a, &b, &c})
			matrix->resize((size_t)size * (size_t)size);
		workload_fill(a.data(), a.size(), -1, 1, 1);
		workload_fill(b.data(), b.size(), -1, 1, 2);
		for (float **memory : {&device_a, &device_b, &device_c})
			CUDA(this, cudaMalloc(memory, bytes()));
	}

	void load() override
	{
		CUDA(this, cudaMemcpy(device_a, a.data(), bytes(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemcpy(device_b, b.data(), bytes(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(device_c, WORKLOAD_POISON, bytes()));
	}

	void step(long i) override
	{
		unsigned tiles = (unsigned)((size + TILE - 1) / TILE);

		multiply<<<dim3(tiles, tiles), dim3(TILE, TILE), 0, stream>>>(
			device_c, device_a, device_b, (int)size, i % round ? 1.0f : 0.0f, count);
		workload_cuda(this, cudaGetLastError(), "launch of multiply");
	}

	/* Element @index of C after all iterations, and how far from it rounding may lead. */
	bool verify_element(size_t index) const
	{
		size_t n = size, row = index / n, column = index % n;
		double sum = 0, magnitude = 0, depth = (double)workload_depth(this);

		for (size_t k = 0; k < n; k++) {
			double product = (double)a[row * n + k] * b[k * n + column];

			sum += product;
			magnitude += fabs(product);
		}
		return workload_close(this, c[index], depth * sum,
				      depth * magnitude * ((double)n + depth) * 0x1p-24, index);
	}

	bool verify() override
	{
		uint64_t dice = 3;

		workload_fetch(this, c, device_c);
		if (!workload_all_written(this, c.data(), c.size()))
			return false;
		for (size_t i = 0; i < c.size() && i < SAMPLES; i++)
			if (!verify_element(workload_sample(i, SAMPLES, c.size(), &dice)))
				return false;
		return true;
	}

	void release() override
	{
		for (float *memory : {device_a, device_b, device_c})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct matmul w = {};

	w.name = "matmul";
	w.about = "Multiplies square matrices of random numbers and checks the product.";
	w.size_about = "rows and columns of a matrix";
	w.units_about = "one multiplication and addition";
	w.size = 150;
	w.max_size = 16384;
	w.iterations = 3;
	w.sync_every = 32;
	w.round = 1000;
	w.kernels = 1;
	w.can_graph = true;
	w.growth = 3;
	workload_main(&w, argc, argv);
}
