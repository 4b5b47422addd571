/*
 * Speckle reducing anisotropic diffusion (Yu and Acton, 2002), which smooths an ultrasound
 * image but not its edges. Each iteration takes mean and variance of the image, computes
 * from them and from the gradients how much each pixel diffuses, and lets it. The
 * processor needs the sums in the middle of each iteration: this is the program that
 * waits for the device all the time. All pixels are compared.
 */
#include "workload.h"

#include <algorithm>
#include <utility>
#include <vector>

#define BLOCK	   256
#define MAX_BLOCKS 256 /* of a reduction */
#define TILE	   16
#define STEP	   0.125f /* of time, a quarter of it for each neighbour */

struct sums {
	float value, square;
};

/* Each block leaves its part of the sums. */
__global__ void reduce(struct sums *parts, const float *image, size_t pixels,
		       unsigned long long *count)
{
	__shared__ float values[BLOCK], squares[BLOCK];
	size_t stride = (size_t)gridDim.x * BLOCK;
	int me = threadIdx.x;
	float value = 0, square = 0;

	workload_count(count);
	for (size_t i = (size_t)blockIdx.x * BLOCK + me; i < pixels; i += stride) {
		value += image[i];
		square += image[i] * image[i];
	}
	values[me] = value;
	squares[me] = square;
	for (int half = BLOCK / 2; half; half /= 2) {
		__syncthreads();
		if (me < half) {
			values[me] += values[me + half];
			squares[me] += squares[me + half];
		}
	}
	if (me == 0)
		parts[blockIdx.x] = {values[0], squares[0]};
}

/* Differences of a pixel to its neighbours, 0 beyond the image's edge. */
struct gradient {
	float north, south, west, east;
};

__device__ static struct gradient gradient_at(const float *image, int n, int row, int column)
{
	const float *pixel = &image[(size_t)row * n + column];

	return {row ? pixel[-n] - *pixel : 0, row < n - 1 ? pixel[n] - *pixel : 0,
		column ? pixel[-1] - *pixel : 0, column < n - 1 ? pixel[1] - *pixel : 0};
}

/* How much each pixel diffuses, from 0 at an edge to 1; @speckle is that of the image. */
__global__ void coefficients(float *diffusion, const float *image, int n, float speckle,
			     unsigned long long *count)
{
	int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;

	workload_count(count);
	if (row >= n || column >= n)
		return;

	size_t i = (size_t)row * n + column;
	struct gradient g = gradient_at(image, n, row, column);
	float slope = (g.north * g.north + g.south * g.south + g.west * g.west + g.east * g.east) /
		      (image[i] * image[i]);
	float curve = (g.north + g.south + g.west + g.east) / image[i];
	float scale = 1 + 0.25f * curve;
	float local = (0.5f * slope - 0.0625f * curve * curve) / (scale * scale);
	float value = 1 / (1 + (local - speckle) / (speckle * (1 + speckle)));

	diffusion[i] = fminf(fmaxf(value, 0), 1);
}

__global__ void diffuse(float *out, const float *image, const float *diffusion, int n,
			unsigned long long *count)
{
	int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;

	workload_count(count);
	if (row >= n || column >= n)
		return;

	size_t i = (size_t)row * n + column;
	struct gradient g = gradient_at(image, n, row, column);
	float south = row < n - 1 ? diffusion[i + n] : 0;
	float east = column < n - 1 ? diffusion[i + 1] : 0;

	out[i] = image[i] +
		 STEP * (diffusion[i] * (g.north + g.west) + south * g.south + east * g.east);
}

/* The speckle of an image: its variance by its squared mean; never 0, to divide by it. */
static float speckle_of(double value, double square, double pixels)
{
	double mean = value / pixels;

	return (float)std::max((square / pixels - mean * mean) / (mean * mean), 1e-6);
}

/* The same on the processor, in double precision. */
struct reference {
	long n;
	std::vector<double> image, diffusion, next;

	double at(long row, long column) const
	{
		return image[std::clamp(row, 0L, n - 1) * n + std::clamp(column, 0L, n - 1)];
	}

	void set_diffusion(long row, long column, double speckle)
	{
		double here = at(row, column), slope = 0, curve = 0, scale, local;

		for (double there : {at(row - 1, column), at(row + 1, column), at(row, column - 1),
				     at(row, column + 1)}) {
			slope += (there - here) * (there - here) / (here * here);
			curve += (there - here) / here;
		}
		scale = 1 + curve / 4;
		local = (slope / 2 - curve * curve / 16) / (scale * scale);
		diffusion[row * n + column] = std::clamp(
			1 / (1 + (local - speckle) / (speckle * (1 + speckle))), 0.0, 1.0);
	}

	void set_next(long row, long column)
	{
		double here = at(row, column), own = diffusion[row * n + column];
		double south = diffusion[std::min(row + 1, n - 1) * n + column];
		double east = diffusion[row * n + std::min(column + 1, n - 1)];

		next[row * n + column] = here + STEP * (own * (at(row - 1, column) - here) +
							own * (at(row, column - 1) - here) +
							south * (at(row + 1, column) - here) +
							east * (at(row, column + 1) - here));
	}

	void step()
	{
		double value = 0, square = 0, speckle;

		for (double pixel : image) {
			value += pixel;
			square += pixel * pixel;
		}
		speckle = speckle_of(value, square, (double)image.size());
		for (long i = 0; i < n * n; i++)
			set_diffusion(i / n, i % n, speckle);
		for (long i = 0; i < n * n; i++)
			set_next(i / n, i % n);
		std::swap(image, next);
	}
};

struct srad : workload {
	std::vector<float> image;
	float *start, *diffusion;
	float *images[2]; /* iteration i writes images[i % 2] */
	struct sums *parts;

	double units() const override
	{
		return (double)size * (double)size;
	}

	size_t bytes() const
	{
		return (size_t)size * (size_t)size * sizeof(float);
	}

	/* A speckled image after its logarithm was undone: values from 1 to e. */
	void allocate() override
	{
		image.resize((size_t)size * (size_t)size);
		workload_fill(image.data(), image.size(), 0, 1, 1);
		for (float &pixel : image)
			pixel = expf(pixel);
		for (float **memory : {&start, &diffusion, &images[0], &images[1]})
			CUDA(this, cudaMalloc(memory, bytes()));
		CUDA(this, cudaMalloc(&parts, MAX_BLOCKS * sizeof(*parts)));
	}

	void load() override
	{
		CUDA(this, cudaMemcpy(start, image.data(), bytes(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(parts, WORKLOAD_POISON, MAX_BLOCKS * sizeof(*parts)));
		for (float *memory : {diffusion, images[0], images[1]})
			CUDA(this, cudaMemset(memory, WORKLOAD_POISON, bytes()));
	}

	float measure_speckle(const float *from)
	{
		size_t pixels = image.size();
		unsigned blocks =
			(unsigned)std::min<size_t>((pixels + BLOCK - 1) / BLOCK, MAX_BLOCKS);
		struct sums sums[MAX_BLOCKS];
		double value = 0, square = 0;

		reduce<<<blocks, BLOCK>>>(parts, from, pixels, count);
		workload_cuda(this, cudaGetLastError(), "launch of reduce");
		CUDA(this,
		     cudaMemcpy(sums, parts, blocks * sizeof(*parts), cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < blocks; i++) {
			value += sums[i].value;
			square += sums[i].square;
		}
		return speckle_of(value, square, (double)pixels);
	}

	void step(long i) override
	{
		unsigned tiles = (unsigned)((size + TILE - 1) / TILE);
		const float *from = i % round ? images[(i + 1) % 2] : start;
		dim3 grid(tiles, tiles), block(TILE, TILE);
		float speckle = measure_speckle(from);

		coefficients<<<grid, block>>>(diffusion, from, (int)size, speckle, count);
		workload_cuda(this, cudaGetLastError(), "launch of coefficients");
		diffuse<<<grid, block>>>(images[i % 2], from, diffusion, (int)size, count);
		workload_cuda(this, cudaGetLastError(), "launch of diffuse");
	}

	bool verify() override
	{
		struct reference r = {size, {image.begin(), image.end()}, {}, {}};
		std::vector<float> result(image.size());

		r.diffusion.resize(image.size());
		r.next.resize(image.size());
		for (long i = 0; i < workload_depth(this); i++)
			r.step();
		workload_fetch(this, result, images[(done - 1) % 2]);
		for (size_t i = 0; i < result.size(); i++)
			if (!workload_close(this, result[i], r.image[i], 1e-4, i))
				return false;
		return true;
	}

	void release() override
	{
		for (float *memory : {start, diffusion, images[0], images[1]})
			CUDA(this, cudaFree(memory));
		CUDA(this, cudaFree(parts));
	}
};

int main(int argc, char **argv)
{
	struct srad w = {};

	w.name = "srad";
	w.about = "Takes the speckle out of an image by diffusion and checks every pixel.";
	w.size_about = "rows and columns of pixels";
	w.units_about = "one step of diffusion for one pixel";
	w.size = 150;
	w.max_size = 16384;
	w.iterations = 4;
	w.sync_every = 1;
	w.round = 8;
	w.kernels = 3;
	w.growth = 2;
	workload_main(&w, argc, argv);
}
