/*
 * The temperature of a chip over time: a square grid of cells, each heated by the power
 * that is used in it, exchanging heat with its four neighbours and with the surroundings
 * above. One iteration is one step of time, a five-point stencil from one grid into the
 * other; tiles with their rim lie in shared memory. All cells are compared.
 */
#include "workload.h"

#include <utility>
#include <vector>

#define TILE 16

/* A chip of silicon, in metres, kelvins, watts, joules. */
#define CHIP_EDGE	 16e-3
#define CHIP_THICKNESS	 0.5e-3
#define CONDUCTIVITY	 100.0
#define HEAT_CAPACITY	 1.75e6 /* of a cubic metre */
#define POWER_DENSITY	 3e6	/* of a square metre, at most */
#define AMBIENT		 300.0f
#define WARMEST_AT_FIRST 360.0f

/* A step of time as the kernel needs it: what of each difference a cell makes up in it. */
struct flow {
	float lateral;	/* to a neighbour's temperature */
	float vertical; /* to the surroundings' */
	float heating;	/* kelvins of the greatest power */
};

/* Half the longest step that is stable. */
static struct flow flow_of(long size)
{
	double edge = CHIP_EDGE / (double)size, area = edge * edge;
	double lateral = CONDUCTIVITY * CHIP_THICKNESS; /* watts for a kelvin */
	double vertical = CONDUCTIVITY * area / CHIP_THICKNESS;
	double step_s = 0.5 / (4 * lateral + vertical); /* for each joule for a kelvin */

	return {(float)(step_s * lateral), (float)(step_s * vertical),
		(float)(step_s * POWER_DENSITY * area)};
}

__global__ void simulate(float *out, const float *in, const float *power, int n, struct flow flow,
			 unsigned long long *count)
{
	__shared__ float tile[TILE + 2][TILE + 2];
	int left = blockIdx.x * TILE - 1, top = blockIdx.y * TILE - 1;
	int column = left + 1 + threadIdx.x, row = top + 1 + threadIdx.y;
	int x = threadIdx.x + 1, y = threadIdx.y + 1;

	workload_count(count);
	/* Beyond the chip's edge lies the cell at the edge itself: no heat flows there. */
	for (int i = threadIdx.y * TILE + threadIdx.x; i < (TILE + 2) * (TILE + 2);
	     i += TILE * TILE) {
		int r = min(max(top + i / (TILE + 2), 0), n - 1);
		int c = min(max(left + i % (TILE + 2), 0), n - 1);

		tile[i / (TILE + 2)][i % (TILE + 2)] = in[(size_t)r * n + c];
	}
	__syncthreads();
	if (row >= n || column >= n)
		return;

	float here = tile[y][x];
	float around = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];

	out[(size_t)row * n + column] = here + flow.lateral * (around - 4 * here) +
					flow.vertical * (AMBIENT - here) +
					flow.heating * power[(size_t)row * n + column];
}

struct hotspot : workload {
	std::vector<float> temperature, power;
	float *start, *device_power;
	float *grids[2]; /* iteration i writes grids[i % 2] */

	double units() const override
	{
		return (double)size * (double)size;
	}

	size_t bytes() const
	{
		return (size_t)size * (size_t)size * sizeof(float);
	}

	void allocate() override
	{
		temperature.resize((size_t)size * (size_t)size);
		power.resize(temperature.size());
		workload_fill(temperature.data(), temperature.size(), AMBIENT, WARMEST_AT_FIRST, 1);
		workload_fill(power.data(), power.size(), 0, 1, 2);
		for (float **memory : {&start, &device_power, &grids[0], &grids[1]})
			CUDA(this, cudaMalloc(memory, bytes()));
	}

	void load() override
	{
		CUDA(this, cudaMemcpy(start, temperature.data(), bytes(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemcpy(device_power, power.data(), bytes(), cudaMemcpyHostToDevice));
		for (float *grid : grids)
			CUDA(this, cudaMemset(grid, WORKLOAD_POISON, bytes()));
	}

	void step(long i) override
	{
		unsigned tiles = (unsigned)((size + TILE - 1) / TILE);
		const float *from = i % round ? grids[(i + 1) % 2] : start;

		simulate<<<dim3(tiles, tiles), dim3(TILE, TILE), 0, stream>>>(
			grids[i % 2], from, device_power, (int)size, flow_of(size), count);
		workload_cuda(this, cudaGetLastError(), "launch of simulate");
	}

	void reference_step(std::vector<double> &to, const std::vector<double> &from) const
	{
		struct flow flow = flow_of(size);
		long n = size;

		for (long row = 0; row < n; row++) {
			const double *above = &from[(row ? row - 1 : 0) * n];
			const double *same = &from[row * n];
			const double *below = &from[(row < n - 1 ? row + 1 : row) * n];

			for (long c = 0; c < n; c++) {
				double around = above[c] + below[c] + same[c ? c - 1 : 0] +
						same[c < n - 1 ? c + 1 : c];

				to[row * n + c] = same[c] + flow.lateral * (around - 4 * same[c]) +
						  flow.vertical * (AMBIENT - same[c]) +
						  (double)flow.heating * power[row * n + c];
			}
		}
	}

	/* A step adds at most a few roundings of a temperature to the error, and damps it. */
	bool verify() override
	{
		std::vector<double> from(temperature.begin(), temperature.end()), to(from.size());
		std::vector<float> result(from.size());
		double tolerance = (double)workload_depth(this) * 8 * 512 * 0x1p-24;

		for (long i = 0; i < workload_depth(this); i++) {
			reference_step(to, from);
			std::swap(from, to);
		}
		workload_fetch(this, result, grids[(done - 1) % 2]);
		for (size_t i = 0; i < result.size(); i++)
			if (!workload_close(this, result[i], from[i], tolerance, i))
				return false;
		return true;
	}

	void release() override
	{
		for (float *memory : {start, device_power, grids[0], grids[1]})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct hotspot w = {};

	w.name = "hotspot";
	w.about = "Simulates the temperature of a chip and checks every cell.";
	w.size_about = "rows and columns of cells";
	w.units_about = "one step of time for one cell";
	w.size = 250;
	w.max_size = 16384;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = 8;
	w.kernels = 1;
	w.can_graph = true;
	w.growth = 2;
	workload_main(&w, argc, argv);
}
