/*
 * The cheapest way through a wall from top to bottom: each step leads one row down, straight or
 * to one of the neighbouring columns, and costs what the stone there does. One kernel takes some
 * rows at once: a block of threads starts with as many columns more on either side as it takes
 * rows, and loses one on either side in each. What the cheapest way to each column costs after
 * the last row is compared exactly.
 */
#include "workload.h"

#include <algorithm>
#include <utility>
#include <vector>

#define BLOCK	   256
#define ROWS	   16		      /* in one kernel */
#define INNER	   (BLOCK - 2 * ROWS) /* columns of a block that are right at the end */
#define ROUND	   4
#define IMPASSABLE (1 << 30)

/* @wall is at the first of the rows. */
__global__ void descend(int *out, const int *in, const unsigned char *wall, long columns,
			unsigned long long *count)
{
	__shared__ int costs[2][BLOCK];
	int me = threadIdx.x;
	long column = (long)blockIdx.x * INNER + me - ROWS;
	bool inside = column >= 0 && column < columns;
	int cost = inside ? in[column] : IMPASSABLE;

	workload_count(count);
	for (int row = 0; row < ROWS; row++) {
		int *now = costs[row % 2];

		now[me] = cost;
		__syncthreads();
		if (inside)
			cost = wall[row * columns + column] +
			       min(min(now[max(me - 1, 0)], cost), now[min(me + 1, BLOCK - 1)]);
	}
	if (inside && me >= ROWS && me < BLOCK - ROWS)
		out[column] = cost;
}

struct pathfinder : workload {
	std::vector<unsigned char> wall; /* ROUND * ROWS rows */
	unsigned char *device_wall;
	int *start;
	int *costs[2]; /* iteration i writes costs[i % 2] */

	double units() const override
	{
		return (double)size * ROWS;
	}

	void allocate() override
	{
		wall.resize((size_t)size * ROUND * ROWS);
		workload_fill_bytes(wall.data(), wall.size(), 1);
		CUDA(this, cudaMalloc(&device_wall, wall.size()));
		for (int **memory : {&start, &costs[0], &costs[1]})
			CUDA(this, cudaMalloc(memory, size * sizeof(int)));
	}

	void load() override
	{
		CUDA(this,
		     cudaMemcpy(device_wall, wall.data(), wall.size(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(start, 0, size * sizeof(int)));
		for (int *memory : costs)
			CUDA(this, cudaMemset(memory, WORKLOAD_POISON, size * sizeof(int)));
	}

	void step(long i) override
	{
		unsigned blocks = (unsigned)((size + INNER - 1) / INNER);
		const int *from = i % round ? costs[(i + 1) % 2] : start;

		descend<<<blocks, BLOCK>>>(costs[i % 2], from,
					   device_wall + (size_t)(i % round) * ROWS * size, size,
					   count);
		workload_cuda(this, cudaGetLastError(), "launch of descend");
	}

	bool verify() override
	{
		std::vector<int> from(size), to(size), result(size);

		for (long row = 0; row < workload_depth(this) * ROWS; row++) {
			const unsigned char *stones = &wall[row * size];

			for (long c = 0; c < size; c++)
				to[c] = stones[c] + std::min({from[std::max(c - 1, 0L)], from[c],
							      from[std::min(c + 1, size - 1)]});
			std::swap(from, to);
		}
		workload_fetch(this, result, costs[(done - 1) % 2]);
		for (size_t i = 0; i < result.size(); i++)
			if (!workload_same(this, result[i], from[i], i))
				return false;
		return true;
	}

	void release() override
	{
		CUDA(this, cudaFree(device_wall));
		for (int *memory : {start, costs[0], costs[1]})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct pathfinder w = {};

	w.name = "pathfinder";
	w.about = "Finds what the cheapest ways through a wall cost, and checks each of them.";
	w.size_about = "columns of the wall";
	w.units_about = "one stone";
	w.size = 10007;
	w.max_size = 1L << 27;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = ROUND;
	w.kernels = 1;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
