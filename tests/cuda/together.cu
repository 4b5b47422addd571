/*
 * As many blocks as a device has at once wait for one another, without a cooperative launch: at a
 * barrier that the program made itself, and each for the block behind it. What they wait with
 * leaves a device no choice but to run all of them.
 */
#include "test.h"

#define THREADS	    64
#define BLOCKS_OF_SM 4
#define ROUNDS	    3

static __device__ void wait_for(volatile unsigned *word, unsigned value)
{
	while (*word < value)
		continue;
	__threadfence();
}

/* Everybody sees in each round what all wrote in the one before. */
static __global__ void rounds(unsigned *arrived, unsigned *values, unsigned *bad)
{
	for (unsigned round = 1; round <= ROUNDS; round++) {
		if (threadIdx.x == 0) {
			values[blockIdx.x] = round;
			__threadfence();
			atomicAdd(arrived, 1);
			wait_for(arrived, round * gridDim.x);
		}
		__syncthreads();
		for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) {
			if (((volatile unsigned *)values)[i] < round)
				atomicAdd(bad, 1);
		}
	}
}

/* From the last block to the first. */
static __global__ void backwards(unsigned *reached)
{
	if (threadIdx.x == 0) {
		if (blockIdx.x + 1 < gridDim.x)
			wait_for(reached + blockIdx.x + 1, 1);
		((volatile unsigned *)reached)[blockIdx.x] =
			1 + (blockIdx.x + 1 < gridDim.x ? reached[blockIdx.x + 1] : 0);
		__threadfence();
	}
}

int main(void)
{
	unsigned *words, *device, bad;
	int sms, fit;
	size_t blocks;

	CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, rounds, THREADS, 0));
	EXPECT(fit >= BLOCKS_OF_SM);
	blocks = (size_t)sms * BLOCKS_OF_SM;
	words = (unsigned *)calloc(blocks, sizeof(*words));
	CUDA(cudaMalloc(&device, (2 + 2 * blocks) * sizeof(*device)));
	CUDA(cudaMemset(device, 0, (2 + 2 * blocks) * sizeof(*device)));
	LAUNCH(rounds<<<(unsigned)blocks, THREADS>>>(device, device + 2, device + 1));
	LAUNCH(backwards<<<(unsigned)blocks, THREADS>>>(device + 2 + blocks));
	CUDA(cudaMemcpy(&bad, device + 1, sizeof(bad), cudaMemcpyDeviceToHost));
	EXPECT_EQ(0, bad);
	CUDA(cudaMemcpy(words, device + 2 + blocks, blocks * sizeof(*words),
			cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < blocks; i++)
		EXPECT_EQ(blocks - i, words[i]);
	free(words);
	return 0;
}
