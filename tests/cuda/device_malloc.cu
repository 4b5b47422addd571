/*
 * Kernels allocate and free: what is allocated is aligned, each thread's own, lasts
 * until it is freed, by another kernel too; and memory that was freed can be had again.
 */
#include "test.h"

#define THREADS 64
#define ROUNDS	200

static __global__ void fill_own(int **pointers, unsigned *bad)
{
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned count = id % 7 + 1;
	int *mine = (int *)malloc(count * sizeof(int));

	pointers[id] = mine;
	if (!mine || (size_t)mine % 16) {
		atomicAdd(bad, 1);
		return;
	}
	for (unsigned i = 0; i < count; i++)
		mine[i] = (int)(id * 100 + i);
}

static __global__ void check_and_free(int **pointers, unsigned *bad)
{
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < id % 7 + 1; i++) {
		if (pointers[id][i] != (int)(id * 100 + i))
			atomicAdd(bad, 1);
	}
	free(pointers[id]);
}

/* Takes more of the heap in all than there is. */
static __global__ void again_and_again(size_t bytes, unsigned *bad)
{
	for (int i = 0; i < ROUNDS; i++) {
		char *p = (char *)malloc(bytes);

		if (!p) {
			atomicAdd(bad, 1);
			continue;
		}
		p[0] = p[bytes - 1] = 1;
		free(p);
	}
}

static __global__ void too_much(size_t bytes, unsigned *bad)
{
	if (malloc(bytes))
		atomicAdd(bad, 1);
	free(NULL);
}

int main(void)
{
	unsigned *bad, count;
	int **pointers;
	size_t heap;

	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 4 * 1024 * 1024));
	CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
	EXPECT(heap >= 4 * 1024 * 1024);
	CUDA(cudaMalloc(&bad, sizeof(*bad)));
	CUDA(cudaMalloc(&pointers, 2 * THREADS * sizeof(*pointers)));
	CUDA(cudaMemset(bad, 0, sizeof(*bad)));
	LAUNCH(fill_own<<<2, THREADS>>>(pointers, bad));
	LAUNCH(check_and_free<<<2, THREADS>>>(pointers, bad));
	LAUNCH(again_and_again<<<1, 1>>>(heap / 8, bad));
	LAUNCH(too_much<<<1, 1>>>(2 * heap, bad));
	CUDA(cudaMemcpy(&count, bad, sizeof(count), cudaMemcpyDeviceToHost));
	EXPECT_EQ(0, count);
	/* It has been used. */
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 * heap));
	return 0;
}
