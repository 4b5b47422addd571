/*
 * An image at several scales: blurred by a Gaussian filter, separably, which is a convolution
 * along the rows and then one along the columns. Each iteration takes the next wider filter,
 * so that the result tells which one was the last. The filters lie in constant memory, tiles
 * with their margins in shared memory. Every pixel must have been written; all of them are
 * compared up to 256 x 256, and a random choice of 65,536 beyond.
 */
#include "workload.h"

#include <algorithm>
#include <vector>

#define TILE	16
#define RADIUS	8
#define TAPS	(2 * RADIUS + 1)
#define SCALES	6
#define SAMPLES 65536

__constant__ float filters[SCALES][TAPS];

/* Along the rows where DX is 1, along the columns where DY is; the other one is 0. */
template <int DX, int DY>
__global__ void blur(float *out, const float *in, int n, int scale, unsigned long long *count)
{
	__shared__ float tile[TILE + 2 * RADIUS * DY][TILE + 2 * RADIUS * DX];
	int left = blockIdx.x * TILE - RADIUS * DX, top = blockIdx.y * TILE - RADIUS * DY;
	int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;

	workload_count(count);
	/* Beyond the image's edge lies the pixel at the edge itself. */
	for (int y = threadIdx.y; y < TILE + 2 * RADIUS * DY; y += TILE)
		for (int x = threadIdx.x; x < TILE + 2 * RADIUS * DX; x += TILE)
			tile[y][x] = in[(size_t)min(max(top + y, 0), n - 1) * n +
					min(max(left + x, 0), n - 1)];
	__syncthreads();
	if (row >= n || column >= n)
		return;
	for (int i = 0; i < TAPS; i++)
		sum += filters[scale][i] * tile[threadIdx.y + i * DY][threadIdx.x + i * DX];
	out[(size_t)row * n + column] = sum;
}

struct convolution : workload {
	float taps[SCALES][TAPS];
	std::vector<float> image;
	float *device_image, *between, *blurred;

	double units() const override
	{
		return (double)size * (double)size;
	}

	/* A bell that is the wider the greater the scale; its taps add up to 1. */
	void fill_taps(int scale)
	{
		double deviation = 1 + 0.5 * scale, sum = 0;

		for (int i = -RADIUS; i <= RADIUS; i++)
			sum += exp(-i * i / (2 * deviation * deviation));
		for (int i = -RADIUS; i <= RADIUS; i++)
			taps[scale][i + RADIUS] =
				(float)(exp(-i * i / (2 * deviation * deviation)) / sum);
	}

	void allocate() override
	{
		for (int scale = 0; scale < SCALES; scale++)
			fill_taps(scale);
		image.resize((size_t)size * (size_t)size);
		workload_fill(image.data(), image.size(), 0, 1, 1);
		for (float **memory : {&device_image, &between, &blurred})
			CUDA(this, cudaMalloc(memory, image.size() * sizeof(float)));
	}

	void load() override
	{
		size_t bytes = image.size() * sizeof(float);

		CUDA(this, cudaMemcpyToSymbol(filters, taps, sizeof(taps)));
		CUDA(this, cudaMemcpy(device_image, image.data(), bytes, cudaMemcpyHostToDevice));
		for (float *memory : {between, blurred})
			CUDA(this, cudaMemset(memory, WORKLOAD_POISON, bytes));
	}

	void step(long i) override
	{
		unsigned tiles = (unsigned)((size + TILE - 1) / TILE);
		dim3 grid(tiles, tiles), block(TILE, TILE);
		int scale = (int)(i % round);

		blur<1, 0><<<grid, block, 0, stream>>>(between, device_image, (int)size, scale,
						       count);
		workload_cuda(this, cudaGetLastError(), "launch of blur along the rows");
		blur<0, 1><<<grid, block, 0, stream>>>(blurred, between, (int)size, scale, count);
		workload_cuda(this, cudaGetLastError(), "launch of blur along the columns");
	}

	double reference(long row, long column, const float *filter) const
	{
		double sum = 0;

		for (long y = -RADIUS; y <= RADIUS; y++) {
			const float *pixels = &image[std::clamp(row + y, 0L, size - 1) * size];
			double part = 0;

			for (long x = -RADIUS; x <= RADIUS; x++)
				part += (double)filter[x + RADIUS] *
					pixels[std::clamp(column + x, 0L, size - 1)];
			sum += filter[y + RADIUS] * part;
		}
		return sum;
	}

	/* Both sums are of numbers below 1, and round once for each tap and once for each sum. */
	bool verify() override
	{
		const float *filter = taps[workload_depth(this) - 1];
		double tolerance = 2 * TAPS * 0x1p-24;
		std::vector<float> result(image.size());
		uint64_t dice = 2;

		workload_fetch(this, result, blurred);
		if (!workload_all_written(this, result.data(), result.size()))
			return false;
		for (size_t i = 0; i < result.size() && i < SAMPLES; i++) {
			size_t index = workload_sample(i, SAMPLES, result.size(), &dice);
			double pixel = reference((long)index / size, (long)index % size, filter);

			if (!workload_close(this, result[index], pixel, tolerance, index))
				return false;
		}
		return true;
	}

	void release() override
	{
		for (float *memory : {device_image, between, blurred})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct convolution w = {};

	w.name = "convolution";
	w.about = "Blurs an image by separable filters of several widths and checks the pixels.";
	w.size_about = "rows and columns of pixels";
	w.units_about = "one pixel, blurred both ways";
	w.size = 150;
	w.max_size = 32768;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = SCALES;
	w.kernels = 2;
	w.can_graph = true;
	w.growth = 2;
	workload_main(&w, argc, argv);
}
