/*
 * Which jobs there are. The paper names the benchmarks, counts the combinations of arguments and
 * gives bounds for their memory: seven of 1 to 4 GB without lavaMD, ten above that, up to 13 GB,
 * without bfs. Times and the part that kernels have are assumed; blocks are those of the
 * benchmarks' sources at such sizes.
 */
#include "scheduler/sim/jobs_mixes.h"

#include "common/util.h"

#define GIB (1ull << 30)
#define P100                                                                                       \
	{                                                                                          \
		16 * GIB, 56, 32, 64                                                               \
	}
#define V100                                                                                       \
	{                                                                                          \
		16 * GIB, 80, 32, 64                                                               \
	}

const struct jobs_machine jobs_machines[JOBS_MACHINES] = {
	[JOBS_P100] = {"2xP100", {P100, P100}, 2, 10},
	[JOBS_V100] = {"4xV100", {V100, V100, V100, V100}, 4, 16},
};

const struct jobs_mix jobs_mixes[JOBS_MIXES] = {
	{"W1", 16, 1}, {"W2", 16, 2}, {"W3", 16, 3}, {"W4", 16, 5},
	{"W5", 32, 1}, {"W6", 32, 2}, {"W7", 32, 3}, {"W8", 32, 5},
};

/* GiB, seconds on the host and with the GPU, kernels' part, blocks of so many warps, kernels */
static const struct jobs_kind small[] = {
	{"backprop", 1.2, 4, 14, 0.01, 524288, 8, 2},
	{"backprop", 2.4, 6, 20, 0.01, 1048576, 8, 2},
	{"srad-v1", 1.5, 4, 18, 0.04, 131072, 16, 40},
	{"srad-v2", 2.0, 4, 16, 0.03, 262144, 8, 40},
	{"needle", 2.0, 5, 16, 0.02, 1024, 1, 40},
	{"dwt2d", 1.8, 4, 15, 0.01, 280, 6, 40},
	{"bfs", 3.5, 8, 18, 0.01, 65536, 16, 30},
};

static const struct jobs_kind large[] = {
	{"backprop", 4.8, 8, 32, 0.01, 2097152, 8, 2},
	{"backprop", 7.2, 10, 42, 0.01, 3145728, 8, 2},
	{"srad-v1", 4.5, 6, 36, 0.04, 393216, 16, 40},
	{"srad-v1", 6.0, 8, 44, 0.04, 524288, 16, 40},
	{"srad-v2", 6.0, 8, 36, 0.03, 1048576, 8, 40},
	{"srad-v2", 8.0, 9, 44, 0.03, 1048576, 8, 40},
	{"lavaMD", 5.5, 6, 34, 0.05, 125000, 4, 1},
	{"lavaMD", 13.0, 10, 52, 0.05, 300000, 4, 1},
	{"needle", 8.0, 9, 40, 0.02, 2048, 1, 40},
	{"dwt2d", 7.0, 8, 36, 0.01, 560, 6, 40},
};

static const struct jobs_kind *draw(struct engine *random, const struct jobs_kind *kinds,
				    size_t count)
{
	return &kinds[(size_t)(engine_draw(random) * (double)count)];
}

/* Large ones are the mix's part of all, rounded. */
void jobs_mix_draw(const struct jobs_mix *mix, struct engine *random,
		   const struct jobs_kind *jobs[JOBS_MAX])
{
	uint32_t larges = (2 * mix->count * mix->large + mix->large + 1) / (2 * (mix->large + 1));

	for (uint32_t i = 0; i < mix->count; i++)
		jobs[i] = i < larges ? draw(random, large, FGV_ARRAY_LEN(large))
				     : draw(random, small, FGV_ARRAY_LEN(small));
	for (uint32_t i = mix->count - 1; i > 0; i--) {
		uint32_t other = (uint32_t)(engine_draw(random) * (i + 1));
		const struct jobs_kind *job = jobs[i];

		jobs[i] = jobs[other];
		jobs[other] = job;
	}
}
