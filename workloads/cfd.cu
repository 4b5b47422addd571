/*
 * Flow of a gas: the Euler equations by finite volumes on an unstructured mesh, each cell
 * having four faces, whose neighbours and normals it looks up. The cells are those of a
 * diamond's lattice, which goes on at the other side of its cube. One iteration is one step of
 * time, as far as each cell may go by itself, by Runge and Kutta's method: three times the
 * flux through all faces (Rusanov, 1961) and the states that come of it. All cells are
 * compared; what flows through one face is the same function on both sides, by floats on
 * the device, by doubles on the processor.
 */
#include "workload.h"

#include <vector>

#define BLOCK	  256
#define FACES	  4
#define STAGES	  3
#define VARIABLES 5
#define GAMMA	  1.4f
#define COURANT	  0.5f

/* The state of a cell, and what changes it; of volume, area, and length the unit is the mesh's. */
template <typename real> struct gas {
	real density, momentum[3], energy;
};

struct __align__(16) face
{
	int neighbour;
	float normal[3]; /* from the cell, of length 1 */
};

template <typename real>
__host__ __device__ static real along(const struct face &f, const struct gas<real> &g)
{
	return (f.normal[0] * g.momentum[0] + f.normal[1] * g.momentum[1] +
		f.normal[2] * g.momentum[2]) /
	       g.density;
}

template <typename real> __host__ __device__ static real pressure_of(const struct gas<real> &g)
{
	real square = g.momentum[0] * g.momentum[0] + g.momentum[1] * g.momentum[1] +
		      g.momentum[2] * g.momentum[2];

	return (GAMMA - 1) * (g.energy - square / (2 * g.density));
}

/* How fast anything gets through a face out of a cell. */
template <typename real>
__host__ __device__ static real speed_of(const struct face &f, const struct gas<real> &g)
{
	return std::abs(along(f, g)) + std::sqrt(GAMMA * pressure_of(g) / g.density);
}

/* Adds to @sum what comes in through a face from @there. */
template <typename real>
__host__ __device__ static void add_flux(struct gas<real> *sum, const struct face &f,
					 const struct gas<real> &here,
					 const struct gas<real> &there)
{
	real out = along(f, here) / 2, in = along(f, there) / 2;
	real pressure_here = pressure_of(here), pressure_there = pressure_of(there);
	real pressure = (pressure_here + pressure_there) / 2;
	real mixing = fmax(speed_of(f, here), speed_of(f, there)) / 2;

	sum->density +=
		mixing * (there.density - here.density) - out * here.density - in * there.density;
	for (int i = 0; i < 3; i++)
		sum->momentum[i] += mixing * (there.momentum[i] - here.momentum[i]) -
				    out * here.momentum[i] - in * there.momentum[i] -
				    pressure * f.normal[i];
	sum->energy += mixing * (there.energy - here.energy) - out * (here.energy + pressure_here) -
		       in * (there.energy + pressure_there);
}

/* A cell's state some time later. */
template <typename real>
__host__ __device__ static struct gas<real> advance(const struct gas<real> &from,
						    const struct gas<real> &flux, real time) {
	return {from.density + time * flux.density,
		{from.momentum[0] + time * flux.momentum[0],
		 from.momentum[1] + time *flux.momentum[1],
		 from.momentum[2] + time *flux.momentum[2]},
		from.energy + time *flux.energy};
}

/* On the device, each variable of all cells has an array of its own, one behind another. */
__device__ static struct gas<float>
get(const float *cells, int amount, int i) {
	const float *cell = cells + i;
	size_t stride = amount;

	return {cell[0], {cell[stride], cell[2 * stride], cell[3 * stride]}, cell[4 * stride]};
}

__device__ static void
put(float *cells, int amount, int i, const struct gas<float> &g)
{
	float *cell = cells + i;
	size_t stride = amount;

	cell[0] = g.density;
	cell[stride] = g.momentum[0];
	cell[2 * stride] = g.momentum[1];
	cell[3 * stride] = g.momentum[2];
	cell[4 * stride] = g.energy;
}

/* How long a step each cell may take. */
__global__ void find_times(float *times, const float *cells, const struct face *faces, int amount,
			   unsigned long long *count)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;
	float speeds = 0;

	workload_count(count);
	if (i >= amount)
		return;

	struct gas<float> here = get(cells, amount, i);

	for (int f = 0; f < FACES; f++)
		speeds += speed_of(faces[(size_t)f * amount + i], here);
	times[i] = COURANT / speeds;
}

__global__ void find_fluxes(float *fluxes, const float *cells, const struct face *faces, int amount,
			    unsigned long long *count)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;
	struct gas<float> flux = {
	};

	workload_count(count);
	if (i >= amount)
		return;

	struct gas<float> here = get(cells, amount, i);

	for (int f = 0; f < FACES; f++) {
		struct face face = faces[(size_t)f * amount + i];

		add_flux(&flux, face, here, get(cells, amount, face.neighbour));
	}
	put(fluxes, amount, i, flux);
}

__global__ void step_time(float *out, const float *in, const float *fluxes, const float *times,
			  int amount, float part, unsigned long long *count)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;

	workload_count(count);
	if (i < amount)
		put(out, amount, i,
		    advance(get(in, amount, i), get(fluxes, amount, i), part * times[i]));
}

/* The part of the whole step that a stage takes. */
static float part_of(int stage)
{
	return 1 / (float)(STAGES - stage);
}

/* The same on the processor. */
struct reference {
	std::vector<struct gas<double>> now, before, fluxes;
	std::vector<double> times;

	void find_flux(const std::vector<struct face> &faces, size_t i)
	{
		fluxes[i] = {};
		for (size_t f = i; f < faces.size(); f += now.size())
			add_flux(&fluxes[i], faces[f], now[i], now[faces[f].neighbour]);
	}

	void step(const std::vector<struct face> &faces)
	{
		before = now;
		for (size_t i = 0; i < now.size(); i++) {
			double speeds = 0;

			for (size_t f = i; f < faces.size(); f += now.size())
				speeds += speed_of(faces[f], now[i]);
			times[i] = COURANT / speeds;
		}
		for (int stage = 0; stage < STAGES; stage++) {
			for (size_t i = 0; i < now.size(); i++)
				find_flux(faces, i);
			for (size_t i = 0; i < now.size(); i++)
				now[i] = advance(before[i], fluxes[i],
						 (double)part_of(stage) * times[i]);
		}
	}
};

struct cfd : workload {
	std::vector<float> cells;
	std::vector<struct face> faces;
	float *start, *fluxes, *times;
	float *states[2]; /* iteration i writes states[i % 2] */
	struct face *device_faces;

	/* A diamond's lattice has two cells at each point. */
	int amount() const
	{
		return (int)(2 * size * size * size);
	}

	double units() const override
	{
		return amount();
	}

	/* @side: the first or second cell of a point, whose neighbours are those of the other. */
	void connect(long x, long y, long z, int side)
	{
		static const signed char towards[FACES][3] = {
			{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
		long points = size * size * size, near = side ? 1 : size - 1;
		size_t cell = (size_t)(side * points + (z * size + y) * size + x);

		for (int f = 0; f < FACES; f++) {
			long column = (x + (f == 1 ? near : 0)) % size;
			long row = (y + (f == 2 ? near : 0)) % size;
			long layer = (z + (f == 3 ? near : 0)) % size;
			struct face *face = &faces[(size_t)f * amount() + cell];

			face->neighbour =
				(int)((1 - side) * points + (layer * size + row) * size + column);
			for (int axis = 0; axis < 3; axis++)
				face->normal[axis] =
					(float)(towards[f][axis] / sqrt(3)) * (side ? -1.0f : 1.0f);
		}
	}

	/* Gas at rest on the whole, with disturbances of up to a fifth in each cell. */
	void fill_cells()
	{
		size_t n = amount();

		cells.resize(VARIABLES * n);
		workload_fill(&cells[0], n, 1.0f, 1.2f, 1);
		workload_fill(&cells[n], 3 * n, -0.2f, 0.2f, 2);
		workload_fill(&cells[4 * n], n, 2.5f, 3.0f, 3);
	}

	void allocate() override
	{
		size_t bytes = (size_t)amount() * sizeof(float);

		fill_cells();
		faces.resize((size_t)FACES * amount());
		for (long i = 0; i < amount() / 2; i++)
			for (int side = 0; side < 2; side++)
				connect(i % size, i / size % size, i / size / size, side);
		for (float **memory : {&start, &fluxes, &states[0], &states[1]})
			CUDA(this, cudaMalloc(memory, VARIABLES * bytes));
		CUDA(this, cudaMalloc(&times, bytes));
		CUDA(this, cudaMalloc(&device_faces, faces.size() * sizeof(faces[0])));
	}

	void load() override
	{
		size_t bytes = cells.size() * sizeof(float);

		CUDA(this, cudaMemcpy(start, cells.data(), bytes, cudaMemcpyHostToDevice));
		CUDA(this, cudaMemcpy(device_faces, faces.data(), faces.size() * sizeof(faces[0]),
				      cudaMemcpyHostToDevice));
		for (float *memory : {fluxes, states[0], states[1]})
			CUDA(this, cudaMemset(memory, WORKLOAD_POISON, bytes));
		CUDA(this, cudaMemset(times, WORKLOAD_POISON, bytes / VARIABLES));
	}

	void step(long i) override
	{
		unsigned blocks = (unsigned)((amount() + BLOCK - 1) / BLOCK);
		const float *from = i % round ? states[(i + 1) % 2] : start;
		const float *now = from;

		find_times<<<blocks, BLOCK, 0, stream>>>(times, from, device_faces, amount(),
							 count);
		workload_cuda(this, cudaGetLastError(), "launch of find_times");
		for (int stage = 0; stage < STAGES; stage++) {
			find_fluxes<<<blocks, BLOCK, 0, stream>>>(fluxes, now, device_faces,
								  amount(), count);
			workload_cuda(this, cudaGetLastError(), "launch of find_fluxes");
			now = states[i % 2];
			step_time<<<blocks, BLOCK, 0, stream>>>(states[i % 2], from, fluxes, times,
								amount(), part_of(stage), count);
			workload_cuda(this, cudaGetLastError(), "launch of step_time");
		}
	}

	struct reference reference() const
	{
		struct reference r = {};
		size_t n = amount();

		r.now.resize(n);
		r.fluxes.resize(n);
		r.times.resize(n);
		for (size_t i = 0; i < n; i++)
			r.now[i] = {cells[i],
				    {cells[n + i], cells[2 * n + i], cells[3 * n + i]},
				    cells[4 * n + i]};
		for (long i = 0; i < workload_depth(this); i++)
			r.step(faces);
		return r;
	}

	bool verify() override
	{
		struct reference r = reference();
		std::vector<float> result(cells.size());
		size_t n = amount();

		workload_fetch(this, result, (const float *)states[(done - 1) % 2]);
		for (size_t i = 0; i < result.size(); i++) {
			const struct gas<double> &g = r.now[i % n];
			double right[VARIABLES] = {g.density, g.momentum[0], g.momentum[1],
						   g.momentum[2], g.energy};

			if (!workload_close(this, result[i], right[i / n], 1e-5, i))
				return false;
		}
		return true;
	}

	void release() override
	{
		for (float *memory : {start, fluxes, times, states[0], states[1]})
			CUDA(this, cudaFree(memory));
		CUDA(this, cudaFree(device_faces));
	}
};

int main(int argc, char **argv)
{
	struct cfd w = {};

	w.name = "cfd";
	w.about = "Lets a disturbed gas flow through a mesh and checks the state of every cell.";
	w.size_about = "points along an edge of the mesh, with two cells each";
	w.units_about = "one step of time for one cell";
	w.size = 15;
	w.max_size = 256;
	w.iterations = 4;
	w.sync_every = 4;
	w.round = 2;
	w.kernels = 1 + 2 * STAGES;
	w.can_graph = true;
	w.growth = 3;
	workload_main(&w, argc, argv);
}
