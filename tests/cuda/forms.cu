/*
 * One program, built with its fat binary in different forms: not compressed, LZ4,
 * Zstandard for all of it, PTX alone, PTX for two architectures. Makefile.inc makes them.
 */
#include "test.h"

#define COUNT 256

/* Large enough to be worth compressing. */
static __device__ const int squares[16] = {0,  1,  4,	9,   16,  25,  36,  49,
					   64, 81, 100, 121, 144, 169, 196, 225};

static __global__ void sum_of_squares(int *sums)
{
	__shared__ int parts[COUNT];
	unsigned i = threadIdx.x;

	parts[i] = squares[(i + blockIdx.x) % 16];
	__syncthreads();
	for (unsigned step = COUNT / 2; step > 0; step /= 2) {
		if (i < step)
			parts[i] += parts[i + step];
		__syncthreads();
	}
	if (i == 0)
		sums[blockIdx.x] = parts[0] + (int)blockIdx.x;
}

int main(void)
{
	int *sums, result[10];

	CUDA(cudaMalloc(&sums, sizeof(result)));
	LAUNCH(sum_of_squares<<<10, COUNT>>>(sums));
	CUDA(cudaMemcpy(result, sums, sizeof(result), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(COUNT / 16 * 1240 + i, result[i]);
	CUDA(cudaFree(sums));
	return 0;
}
