/*
 * Matrix multiplication by tiles in shared memory, C = A B + beta C, where the first
 * iteration ignores C (beta 0) and the others add to it. Every element must have been
 * written; all of them are compared up to 256 x 256, and a random choice of 65,536 beyond.
 */
#include "workload.h"

#include <vector>

#define TILE	16
#define SAMPLES 65536

__global__ void matmul(float *c, const float *a, const float *b, int n, float beta)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
	float sum = 0;

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

static void compute(const struct workload *w, const std::vector<float> &a,
		    const std::vector<float> &b, std::vector<float> &c)
{
	unsigned tiles = (unsigned)((w->size + TILE - 1) / TILE);
	size_t bytes = c.size() * sizeof(float);
	float *device_a, *device_b, *device_c;

	CUDA(w, cudaMalloc(&device_a, bytes));
	CUDA(w, cudaMalloc(&device_b, bytes));
	CUDA(w, cudaMalloc(&device_c, bytes));
	CUDA(w, cudaMemset(device_c, WORKLOAD_POISON, bytes));
	CUDA(w, cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
	CUDA(w, cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
	for (long i = 0; i < w->iterations; i++) {
		matmul<<<dim3(tiles, tiles), dim3(TILE, TILE)>>>(device_c, device_a, device_b,
								 (int)w->size, i ? 1.0f : 0.0f);
		workload_cuda(w, cudaGetLastError(), "launch of matmul");
	}
	CUDA(w, cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
	CUDA(w, cudaFree(device_c));
	CUDA(w, cudaFree(device_b));
	CUDA(w, cudaFree(device_a));
}

/* Element @index of C after all iterations, and how far from it rounding may lead. */
static bool verify_element(const struct workload *w, const std::vector<float> &a,
			   const std::vector<float> &b, const std::vector<float> &c, size_t index)
{
	size_t n = w->size, row = index / n, column = index % n;
	double sum = 0, magnitude = 0, rounding = (double)(n + w->iterations) * 0x1p-24;

	for (size_t k = 0; k < n; k++) {
		double product = (double)a[row * n + k] * b[k * n + column];

		sum += product;
		magnitude += fabs(product);
	}
	return workload_close(w, c[index], (double)w->iterations * sum,
			      (double)w->iterations * magnitude * rounding, index);
}

static bool verify(const struct workload *w, const std::vector<float> &a,
		   const std::vector<float> &b, const std::vector<float> &c)
{
	uint64_t dice = 3;

	for (size_t i = 0; i < c.size(); i++)
		if (isnan(c[i]))
			return workload_close(w, c[i], 0, 0, i);
	for (size_t i = 0; i < c.size() && i < SAMPLES; i++) {
		size_t index = c.size() > SAMPLES ? workload_random(&dice) % c.size() : i;

		if (!verify_element(w, a, b, c, index))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct workload w = {};

	w.name = "matmul";
	w.about = "Multiplies square matrices of random numbers and checks the product.";
	w.size_about = "rows and columns of a matrix";
	w.size = 150;
	w.max_size = 16384;
	w.iterations = 3;
	workload_start(&w, argc, argv);

	size_t count = (size_t)w.size * w.size;
	std::vector<float> a(count), b(count), c(count);

	workload_fill(a.data(), count, 1);
	workload_fill(b.data(), count, 2);
	memset(c.data(), WORKLOAD_POISON, count * sizeof(float));
	workload_clock_start(&w);
	compute(&w, a, b, c);
	workload_clock_stop(&w);
	workload_finish(&w, verify(&w, a, b, c));
}
