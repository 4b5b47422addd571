/*
 * Forces between charged particles that reach only so far. Space is divided into boxes as
 * wide as the reach; a block of threads has a box, brings one after the other of the boxes
 * around it into shared memory, and adds up what their particles do to its own. The potential
 * falls as a Gaussian does, the more steeply from iteration to iteration, so that the result
 * tells which one was the last. Every force must have been written; all are compared of up to
 * 4,096 particles, and of a random choice of as many beyond.
 */
#include "workload.h"

#include <vector>

#define PARTICLES 128 /* in a box */
#define SAMPLES	  4096

/* Boxes fill a cube of this edge, row by row, as far as they go. */
static int edge_of(long boxes)
{
	int edge = 1;

	while ((long)edge * edge * edge < boxes)
		edge++;
	return edge;
}

/* The box beside @box by @dx, @dy, @dz, or -1. */
__host__ __device__ static int beside(int box, int dx, int dy, int dz, int boxes, int edge)
{
	int x = box % edge + dx, y = box / edge % edge + dy, z = box / edge / edge + dz;
	int other = (z * edge + y) * edge + x;

	if (x < 0 || x >= edge || y < 0 || y >= edge || z < 0 || other >= boxes)
		return -1;
	return other;
}

/* Adds what the particles of a box do, which is @dx, @dy, @dz boxes away, to @force. */
__device__ static void attract(float4 *force, float4 me, const float4 *others, int dx, int dy,
			       int dz, float steepness)
{
	for (int i = 0; i < PARTICLES; i++) {
		float x = me.x - others[i].x - dx;
		float y = me.y - others[i].y - dy;
		float z = me.z - others[i].z - dz;
		float potential = others[i].w * expf(-steepness * (x * x + y * y + z * z));

		force->x += potential * x;
		force->y += potential * y;
		force->z += potential * z;
		force->w += potential;
	}
}

/* Particles are places in their box and a charge, forces come with a potential. */
__global__ void interact(float4 *forces, const float4 *particles, int boxes, int edge,
			 float steepness, unsigned long long *count)
{
	__shared__ float4 others[PARTICLES];
	size_t me = (size_t)blockIdx.x * PARTICLES + threadIdx.x;
	float4 mine = particles[me], force = {};

	workload_count(count);
	for (int i = 0; i < 27; i++) {
		int dx = i % 3 - 1, dy = i / 3 % 3 - 1, dz = i / 9 - 1;
		int box = beside((int)blockIdx.x, dx, dy, dz, boxes, edge);

		if (box < 0)
			continue;
		__syncthreads(); /* the box before has been read */
		others[threadIdx.x] = particles[(size_t)box * PARTICLES + threadIdx.x];
		__syncthreads();
		attract(&force, mine, others, dx, dy, dz, steepness);
	}
	forces[me] = force;
}

struct lavamd : workload {
	std::vector<float> particles;
	float4 *device_particles, *forces;

	double units() const override
	{
		return (double)size * PARTICLES;
	}

	/* Places and charges alike are numbers from 0 to 1. */
	void allocate() override
	{
		particles.resize((size_t)size * PARTICLES * 4);
		workload_fill(particles.data(), particles.size(), 0, 1, 1);
		for (float4 **memory : {&device_particles, &forces})
			CUDA(this, cudaMalloc(memory, particles.size() * sizeof(float)));
	}

	void load() override
	{
		size_t bytes = particles.size() * sizeof(float);

		CUDA(this,
		     cudaMemcpy(device_particles, particles.data(), bytes, cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(forces, WORKLOAD_POISON, bytes));
	}

	static float steepness_of(long depth)
	{
		return 1 + 0.25f * (float)depth;
	}

	void step(long i) override
	{
		interact<<<(unsigned)size, PARTICLES>>>(forces, device_particles, (int)size,
							edge_of(size), steepness_of(i % round + 1),
							count);
		workload_cuda(this, cudaGetLastError(), "launch of interact");
	}

	/* Adds what box @box, @d away, does to particle @me, and the same without signs. */
	void attract_reference(double force[4], double magnitude[4], const float *me, int box,
			       const int d[3]) const
	{
		double steepness = steepness_of(workload_depth(this));

		for (size_t i = 0; i < PARTICLES; i++) {
			const float *other = &particles[((size_t)box * PARTICLES + i) * 4];
			double away[4] = {0, 0, 0, 1}, square = 0, potential;

			for (int axis = 0; axis < 3; axis++) {
				away[axis] = (double)me[axis] - other[axis] - d[axis];
				square += away[axis] * away[axis];
			}
			potential = other[3] * exp(-steepness * square);
			for (int axis = 0; axis < 4; axis++) {
				force[axis] += potential * away[axis];
				magnitude[axis] += potential * fabs(away[axis]);
			}
		}
	}

	/* Thousands of roundings, each of a unit in the last place, mostly cancel out. */
	bool verify_particle(const float *result, size_t index) const
	{
		int box = (int)(index / PARTICLES), edge = edge_of(size);
		double force[4] = {}, magnitude[4] = {};

		for (int i = 0; i < 27; i++) {
			int d[3] = {i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
			int other = beside(box, d[0], d[1], d[2], (int)size, edge);

			if (other >= 0)
				attract_reference(force, magnitude, &particles[index * 4], other,
						  d);
		}
		for (size_t axis = 0; axis < 4; axis++)
			if (!workload_close(this, result[axis], force[axis], 5e-5 * magnitude[axis],
					    index * 4 + axis))
				return false;
		return true;
	}

	bool verify() override
	{
		std::vector<float> result(particles.size());
		size_t amount = (size_t)size * PARTICLES;
		uint64_t dice = 2;

		workload_fetch(this, result, (const float *)forces);
		if (!workload_all_written(this, result.data(), result.size()))
			return false;
		for (size_t i = 0; i < amount && i < SAMPLES; i++) {
			size_t index = workload_sample(i, SAMPLES, amount, &dice);

			if (!verify_particle(&result[index * 4], index))
				return false;
		}
		return true;
	}

	void release() override
	{
		CUDA(this, cudaFree(device_particles));
		CUDA(this, cudaFree(forces));
	}
};

int main(int argc, char **argv)
{
	struct lavamd w = {};

	w.name = "lavamd";
	w.about = "Adds up the forces between particles in neighbouring boxes and checks them.";
	w.size_about = "boxes of 128 particles";
	w.units_about = "the force on one particle";
	w.size = 27;
	w.max_size = 1L << 24;
	w.iterations = 2;
	w.sync_every = 4;
	w.round = 4;
	w.kernels = 1;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
