/*
 * Operations of a warp whose lanes come by different ways: from both arms of a branch, from loops of
 * different lengths, in groups that do the same at once, and where some have exited.
 */
#include "test.h"

#include <cooperative_groups.h>

#define THREADS 128
#define ALL	0xffffffffu

namespace cg = cooperative_groups;

/* Each arm computes; behind them every lane takes its neighbour's. */
static __global__ void both_arms(int *out)
{
	int lane = threadIdx.x % 32, value;

	if (lane % 2)
		value = out[threadIdx.x] * 3 + 1;
	else
		value = out[threadIdx.x] - 7;
	__syncwarp();
	out[threadIdx.x] = __shfl_xor_sync(ALL, value, 1);
}

static int both_arms_wanted(int i)
{
	i ^= 1;
	return i % 2 ? i * 3 + 1 : i - 7;
}

/* The last lane's loop is as long as many thousand of the first's. */
static __global__ void uneven_loops(int *out)
{
	unsigned lane = threadIdx.x % 32, value = (unsigned)out[threadIdx.x];

	for (unsigned round = 0; round < lane * 1000; round++)
		value = value * 5 + round;
	__syncwarp();
	value ^= __shfl_down_sync(ALL, value, 1);
	value += __popc(__ballot_sync(ALL, value & 1));
	out[threadIdx.x] = (int)value;
}

static unsigned looped(int i)
{
	unsigned value = (unsigned)i;

	for (unsigned round = 0; round < i % 32 * 1000u; round++)
		value = value * 5 + round;
	return value;
}

static unsigned exchanged(int i)
{
	return looped(i) ^ looped(i % 32 < 31 ? i + 1 : i);
}

static int uneven_loops_wanted(int i)
{
	int odd = 0;

	for (int k = i & ~31; k < (i & ~31) + 32; k++)
		odd += exchanged(k) & 1;
	return (int)(exchanged(i) + odd);
}

/* Each half of the warp by itself, in an arm of its own, the one more often than the other. */
static __global__ void halves_apart(int *out)
{
	int value = out[threadIdx.x];

	if (threadIdx.x % 32 < 16) {
		value = __shfl_sync(0x0000ffffu, value, 3);
	} else {
		for (int round = 0; round < 3; round++)
			value += __shfl_xor_sync(0xffff0000u, value, 1 << round);
	}
	out[threadIdx.x] = value;
}

static int halves_apart_wanted(int i)
{
	return i % 32 < 16 ? (i & ~31) + 3 : (i & ~7) * 8 + 28;
}

/* Both halves in one call. */
static __global__ void halves_at_once(int *out)
{
	unsigned mask = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
	int value = out[threadIdx.x];
	unsigned same = __match_any_sync(mask, value % 3);

	out[threadIdx.x] = (int)(__ballot_sync(mask, value % 4 == 1) ^ same) +
			   (__all_sync(mask, value % 32 < 16) ? 1 : 0);
}

static int halves_at_once_wanted(int i)
{
	unsigned mask = i % 32 < 16 ? 0x0000ffffu : 0xffff0000u, same = 0;

	for (int k = i & ~15; k < (i & ~15) + 16; k++)
		same |= k % 3 == i % 3 ? 1u << k % 32 : 0;
	return (int)((0x22222222u & mask) ^ same) + (i % 32 < 16);
}

/* A thread that has returned is not waited for. */
static __global__ void some_return(int *out)
{
	int lane = threadIdx.x % 32;

	if (lane % 3 == 2)
		return;
	out[threadIdx.x] = (int)__ballot_sync(ALL, lane % 2) + __shfl_sync(ALL, lane, 4);
}

static int some_return_wanted(int i)
{
	unsigned ballot = 0;

	for (int lane = 0; lane < 32; lane++)
		ballot |= lane % 3 != 2 && lane % 2 ? 1u << lane : 0;
	return i % 32 % 3 == 2 ? i : (int)ballot + 4;
}

/* What one arm leaves in shared memory the other finds behind its own call. */
static __global__ void across_arms(int *out)
{
	__shared__ volatile int words[THREADS];

	if (threadIdx.x % 2) {
		words[threadIdx.x] = out[threadIdx.x] * 2;
		__syncwarp();
		out[threadIdx.x] = words[threadIdx.x - 1];
	} else {
		words[threadIdx.x] = out[threadIdx.x] * 5;
		__syncwarp();
		out[threadIdx.x] = words[threadIdx.x + 1];
	}
}

static int across_arms_wanted(int i)
{
	return i % 2 ? (i - 1) * 5 : (i + 1) * 2;
}

/* One lane waits for another of its own warp, then all go on together. */
static __global__ void one_waits(int *out)
{
	__shared__ volatile int flags[THREADS / 32];
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

	if (lane == 0)
		flags[warp] = 0;
	__syncwarp();
	if (lane == 5) {
		while (!flags[warp])
			;
	} else if (lane == 9) {
		flags[warp] = 1;
		__threadfence_block();
	}
	__syncwarp();
	out[threadIdx.x] = __shfl_xor_sync(ALL, out[threadIdx.x], 7);
}

static int one_waits_wanted(int i)
{
	return i ^ 7;
}

/* Sums and votes of tiles of four sizes. */
template <unsigned size>
static __device__ unsigned tile_result(const cg::thread_block &block, unsigned value)
{
	cg::thread_block_tile<size> tile = cg::tiled_partition<size>(block);
	unsigned sum = value;

	for (unsigned distance = size / 2; distance; distance /= 2)
		sum += tile.shfl_xor(sum, distance);
	tile.sync();
	sum += tile.ballot(value % 2) + tile.shfl(value, 1);
	return sum + (tile.any(value % size == 3) ? 1 : 0) + (tile.all(value < THREADS) ? 1 : 0);
}

static __global__ void tiles(int *out)
{
	cg::thread_block block = cg::this_thread_block();
	unsigned value = (unsigned)out[threadIdx.x];

	out[threadIdx.x] = (int)(tile_result<4>(block, value) + tile_result<8>(block, value) +
				 tile_result<16>(block, value) + tile_result<32>(block, value));
}

static int tiles_wanted(int i)
{
	unsigned result = 0;

	for (int size = 4; size <= 32; size *= 2) {
		unsigned first = (unsigned)(i & ~(size - 1));

		result += size * first + size * (size - 1) / 2;
		result += 0xaaaaaaaau >> (32 - size);
		result += first + 1 + 2;
	}
	return (int)result;
}

/* Lanes that meet in a branch count themselves; the first of each group adds what it found. */
static __global__ void coalesced(int *out)
{
	int value = out[threadIdx.x];

	out[threadIdx.x] = 0;
	__syncthreads();
	if (value % 3 == 0) {
		cg::coalesced_group group = cg::coalesced_threads();
		int sum = 0;

		for (unsigned k = 0; k < group.size(); k++)
			sum += group.shfl(value, k);
		if (group.thread_rank() == 0) {
			atomicAdd(&out[0], sum);
			atomicAdd(&out[1], (int)group.size());
		}
		atomicAdd(&out[2], (int)__popc(group.ballot(1)) == (int)group.size());
	}
}

static int coalesced_wanted(int i)
{
	int wanted[3] = {0, 0, 0};

	for (int k = 0; k < THREADS; k += 3) {
		wanted[0] += k;
		wanted[1]++;
		wanted[2]++;
	}
	return i < 3 ? wanted[i] : 0;
}

/* Groups by a label, which lie across each other in the warp. */
static __global__ void labels(int *out)
{
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
	int value = out[threadIdx.x];
	cg::coalesced_group group = cg::labeled_partition(warp, value % 3);
	cg::coalesced_group pair = cg::binary_partition(warp, value % 32 > 9);
	int last = group.shfl(value, group.size() - 1);

	out[threadIdx.x] = last * 1000 + (int)pair.size() * 100 + (int)group.thread_rank();
}

static int labels_wanted(int i)
{
	int first = i & ~31, last = i, rank = 0;

	for (int k = first; k < first + 32; k++) {
		last = k % 3 == i % 3 ? k : last;
		rank += k < i && k % 3 == i % 3;
	}
	return last * 1000 + (i % 32 > 9 ? 22 : 10) * 100 + rank;
}

static const struct {
	const char *name;
	void (*kernel)(int *out);
	int (*wanted)(int i);
} cases[] = {
	{"both arms", both_arms, both_arms_wanted},
	{"uneven loops", uneven_loops, uneven_loops_wanted},
	{"halves apart", halves_apart, halves_apart_wanted},
	{"halves at once", halves_at_once, halves_at_once_wanted},
	{"some return", some_return, some_return_wanted},
	{"across arms", across_arms, across_arms_wanted},
	{"one waits", one_waits, one_waits_wanted},
	{"tiles", tiles, tiles_wanted},
	{"coalesced", coalesced, coalesced_wanted},
	{"labels", labels, labels_wanted},
};

int main(void)
{
	int *device, host[THREADS];

	CUDA(cudaMalloc(&device, sizeof(host)));
	for (const auto &each : cases) {
		for (int i = 0; i < THREADS; i++)
			host[i] = i;
		CUDA(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
		LAUNCH(each.kernel<<<1, THREADS>>>(device));
		CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
		for (int i = 0; i < THREADS; i++) {
			if (host[i] != each.wanted(i))
				FAIL("%s: thread %d has %d, not %d", each.name, i, host[i],
				     each.wanted(i));
		}
	}
	CUDA(cudaFree(device));
	return 0;
}
