/*
 * Kernels whose blocks wait for each other.
 */
#include "test.h"

#include <cooperative_groups.h>

#define BLOCK 64

/* Each round, every thread takes what its neighbour in the whole grid had. */
static __global__ void rotate(int *from, int *to, int rounds)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	unsigned rank = (unsigned)grid.thread_rank(), size = (unsigned)grid.size();

	for (int round = 0; round < rounds; round++) {
		int *source = round % 2 ? to : from, *target = round % 2 ? from : to;

		target[rank] = source[(rank + 1) % size];
		grid.sync();
	}
}

/* Blocks that wait without a barrier: each for the one before it. */
static __global__ void relay(int *baton)
{
	if (threadIdx.x)
		return;
	while (atomicAdd(baton, 0) != (int)blockIdx.x)
		;
	atomicAdd(baton, 1);
}

static __global__ void set(int *place, int value)
{
	*place = value;
}

static int blocks_at_once(const void *kernel)
{
	int each, processors;

	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, BLOCK, 0));
	CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	return each * processors;
}

static void rotations(int blocks, int rounds, cudaStream_t stream)
{
	size_t bytes = (size_t)blocks * BLOCK * sizeof(int);
	int count = blocks * BLOCK, *from, *to;
	int *host = (int *)malloc(bytes);
	void *args[] = {&from, &to, &rounds};

	CUDA(cudaMalloc(&from, bytes));
	CUDA(cudaMalloc(&to, bytes));
	for (int i = 0; i < count; i++)
		host[i] = i;
	CUDA(cudaMemcpy(from, host, bytes, cudaMemcpyHostToDevice));
	CUDA(cudaLaunchCooperativeKernel((void *)rotate, dim3(blocks), dim3(BLOCK), args, 0,
					 stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(host, rounds % 2 ? to : from, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < count; i++)
		EXPECT_EQ((i + rounds) % count, host[i]);
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));
	free(host);
}

static void run_relay(int blocks)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	int *baton, value;

	CUDA(cudaMalloc(&baton, sizeof(int)));
	LAUNCH(set<<<1, 1>>>(baton, 0));
	attribute.id = cudaLaunchAttributeCooperative;
	attribute.val.cooperative = 1;
	config.gridDim = dim3(blocks);
	config.blockDim = dim3(BLOCK);
	config.attrs = &attribute;
	config.numAttrs = 1;
	CUDA(cudaLaunchKernelEx(&config, relay, baton));
	CUDA(cudaMemcpy(&value, baton, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(blocks, value);
	CUDA(cudaFree(baton));
}

static void wrong(int blocks)
{
	int *from, *to, rounds = 1;
	void *args[] = {&from, &to, &rounds};

	CUDA(cudaMalloc(&from, sizeof(int)));
	to = from;
	EXPECT_CODE(cudaErrorCooperativeLaunchTooLarge,
		    cudaLaunchCooperativeKernel((void *)rotate, dim3(blocks + 1), dim3(BLOCK),
						args, 0, NULL));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaLaunchCooperativeKernel((void *)rotate, dim3(1), dim3(4096), args, 0,
						NULL));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
	CUDA(cudaFree(from));
}

int main(void)
{
	int yes = 0, blocks = blocks_at_once((void *)rotate);
	cudaStream_t stream;

	CUDA(cudaDeviceGetAttribute(&yes, cudaDevAttrCooperativeLaunch, 0));
	EXPECT_EQ(1, yes);
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	rotations(1, 3, stream);
	rotations(2, 4, stream);
	rotations(blocks < 24 ? blocks : 24, 5, stream);
	run_relay(blocks < 8 ? blocks : 8);
	wrong(blocks);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
