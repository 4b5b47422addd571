/*
 * Global alignment of pairs of sequences (Needleman and Wunsch, 1970). The score of the best
 * alignment of two beginnings follows from those of three shorter ones, so the tiles of the
 * matrix of scores are computed diagonal by diagonal: many kernels, one after the other, for an
 * iteration. A tile is a warp's, a lane takes a row, a column behind the lane above it. Each
 * iteration has another price for a gap, so that the result tells which was the last. What
 * remains of a matrix is the last row and column of each tile; those of the last 256 pairs are
 * compared, exactly.
 */
#include "workload.h"

#include <algorithm>
#include <vector>

#define TILE	  32 /* rows, columns and lanes */
#define TILES	  4  /* along a sequence */
#define LENGTH	  (TILES * TILE)
#define SAMPLES	  256
#define MATCH	  5
#define MISMATCH  (-4)
#define ALL_LANES 0xffffffffu

/* Scores along the edges of one pair's tiles. */
struct edges {
	int bottom[TILES][LENGTH]; /* of each row of tiles: its last row */
	int right[TILES][LENGTH];  /* of each column of tiles: its last column */
};

#define SCORES (sizeof(struct edges) / sizeof(int))

/* The scores above and to the left of the matrix are those of gaps alone. */
__device__ static int score_above(const struct edges *e, int tile_row, int column, int gap)
{
	if (tile_row == 0)
		return -gap * (column + 1);
	return column < 0 ? -gap * tile_row * TILE : e->bottom[tile_row - 1][column];
}

__device__ static int score_left(const struct edges *e, int tile_column, int row, int gap)
{
	return tile_column == 0 ? -gap * (row + 1) : e->right[tile_column - 1][row];
}

/* A block for each pair, and for each of the tiles on the diagonal, from tile row @top down. */
__global__ void align(struct edges *edges, const unsigned char *first, const unsigned char *second,
		      int diagonal, int top, int gap, unsigned long long *count)
{
	struct edges *e = &edges[blockIdx.x];
	int tile_row = top + blockIdx.y, tile_column = diagonal - tile_row, lane = threadIdx.x;
	int row = tile_row * TILE + lane, from = tile_column * TILE;
	int letter = first[(size_t)blockIdx.x * LENGTH + row];
	int letters = second[(size_t)blockIdx.x * LENGTH + from + lane];
	int above_tile = score_above(e, tile_row, from + lane, gap);
	int here = score_left(e, tile_column, row, gap);
	int before = __shfl_up_sync(ALL_LANES, here, 1); /* above and to the left */

	workload_count(count);
	if (lane == 0)
		before = score_above(e, tile_row, from - 1, gap);
	for (int step = 0; step < 2 * TILE - 1; step++) {
		int column = step - lane;
		int other = __shfl_sync(ALL_LANES, letters, column & (TILE - 1));
		int above = __shfl_up_sync(ALL_LANES, here, 1);
		int edge = __shfl_sync(ALL_LANES, above_tile, step & (TILE - 1));

		if (column < 0 || column >= TILE)
			continue;
		if (lane == 0)
			above = edge;
		here = max(before + (letter == other ? MATCH : MISMATCH), max(above, here) - gap);
		before = above;
		if (lane == TILE - 1)
			e->bottom[tile_row][from + column] = here;
	}
	e->right[tile_column][row] = here;
}

struct nw : workload {
	std::vector<unsigned char> first, second;
	unsigned char *device_first, *device_second;
	struct edges *edges;

	double units() const override
	{
		return (double)size * LENGTH * LENGTH;
	}

	/* The second of a pair is the first with a piece left out and some letters changed. */
	void allocate() override
	{
		uint64_t dice = 2;

		first.resize((size_t)size * LENGTH);
		second.resize(first.size());
		workload_fill_bytes(first.data(), first.size(), 1);
		for (unsigned char &letter : first)
			letter &= 3;
		for (size_t i = 0; i < second.size(); i++) {
			uint64_t random = workload_random(&dice);
			size_t gap = i % LENGTH > LENGTH / 2 ? i / LENGTH % (LENGTH / 4) : 0;

			second[i] = random % 8 ? first[std::min(i + gap, i | (LENGTH - 1))]
					       : random >> 62;
		}
		CUDA(this, cudaMalloc(&device_first, first.size()));
		CUDA(this, cudaMalloc(&device_second, second.size()));
		CUDA(this, cudaMalloc(&edges, size * sizeof(*edges)));
	}

	void load() override
	{
		CUDA(this,
		     cudaMemcpy(device_first, first.data(), first.size(), cudaMemcpyHostToDevice));
		CUDA(this, cudaMemcpy(device_second, second.data(), second.size(),
				      cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(edges, WORKLOAD_POISON, size * sizeof(*edges)));
	}

	static int gap_of(long depth)
	{
		return 3 + (int)depth;
	}

	void step(long i) override
	{
		for (int diagonal = 0; diagonal < 2 * TILES - 1; diagonal++) {
			int top = std::max(0, diagonal - (TILES - 1));
			int bottom = std::min(diagonal, TILES - 1);
			dim3 grid((unsigned)size, (unsigned)(bottom - top + 1));

			align<<<grid, TILE>>>(edges, device_first, device_second, diagonal, top,
					      gap_of(i % round + 1), count);
			workload_cuda(this, cudaGetLastError(), "launch of align");
		}
	}

	void reference(struct edges *e, size_t pair, int gap) const
	{
		int scores[LENGTH + 1];

		for (int column = 0; column <= LENGTH; column++)
			scores[column] = -gap * column;
		for (int row = 0; row < LENGTH; row++) {
			int before = scores[0];

			scores[0] -= gap;
			for (int column = 0; column < LENGTH; column++) {
				bool same = first[pair * LENGTH + row] ==
					    second[pair * LENGTH + column];
				int above = scores[column + 1];

				scores[column + 1] = std::max({before + (same ? MATCH : MISMATCH),
							       above - gap, scores[column] - gap});
				before = above;
				if (column % TILE == TILE - 1)
					e->right[column / TILE][row] = scores[column + 1];
			}
			if (row % TILE == TILE - 1)
				std::copy_n(&scores[1], LENGTH, e->bottom[row / TILE]);
		}
	}

	bool verify_pair(const struct edges &e, size_t pair) const
	{
		int right[SCORES], found[SCORES];
		struct edges r;

		reference(&r, pair, gap_of(workload_depth(this)));
		memcpy(right, &r, sizeof(r));
		memcpy(found, &e, sizeof(e));
		for (size_t i = 0; i < SCORES; i++)
			if (!workload_same(this, found[i], right[i], pair * SCORES + i))
				return false;
		return true;
	}

	bool verify() override
	{
		std::vector<struct edges> result(std::min<long>(size, SAMPLES));
		size_t from = (size_t)size - result.size();

		workload_fetch(this, result, edges + from);
		for (size_t i = 0; i < result.size(); i++)
			if (!verify_pair(result[i], from + i))
				return false;
		return true;
	}

	void release() override
	{
		CUDA(this, cudaFree(device_first));
		CUDA(this, cudaFree(device_second));
		CUDA(this, cudaFree(edges));
	}
};

int main(int argc, char **argv)
{
	struct nw w = {};

	w.name = "nw";
	w.about = "Aligns pairs of random sequences in the best way and checks the scores.";
	w.size_about = "pairs of sequences, each of 128 letters";
	w.units_about = "one score of a matrix";
	w.size = 100;
	w.max_size = 1L << 24;
	w.iterations = 4;
	w.sync_every = 32;
	w.round = 4;
	w.kernels = 2 * TILES - 1;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
