/*
 * Kernels in different streams run side by side: each of a ring of kernels waits for the one behind
 * it, so that none ends unless all run.
 */
#include "test.h"

#define KERNELS_MAX 4
#define ROUNDS	    100

/* Takes a baton from one place, and hands it on to another, so many times. */
static __global__ void relay(volatile int *mine, volatile int *next, int first)
{
	for (int round = 1; round <= ROUNDS; round++) {
		if (first)
			*next = round;
		while (*mine < round)
			continue;
		__threadfence();
		if (!first)
			*next = round;
	}
}

/* Each of @kernels has a stream; the first may be the default one. */
static void run_ring(int kernels, const cudaStream_t *streams)
{
	int *places, last[KERNELS_MAX];

	CUDA(cudaMalloc(&places, kernels * sizeof(int)));
	CUDA(cudaMemset(places, 0, kernels * sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < kernels; i++)
		relay<<<1, 1, 0, streams[i]>>>(places + i, places + (i + 1) % kernels, i == 0);
	CUDA(cudaGetLastError());
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(last, places, kernels * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < kernels; i++)
		EXPECT(last[i] == ROUNDS);
	CUDA(cudaFree(places));
}

int main(void)
{
	cudaStream_t streams[KERNELS_MAX], mixed[KERNELS_MAX];
	int sms, concurrent, kernels;

	CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentKernels, 0));
	EXPECT(concurrent);
	kernels = sms < KERNELS_MAX ? sms : KERNELS_MAX;
	for (int i = 0; i < kernels; i++) {
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		mixed[i] = i ? streams[i] : 0;
	}
	for (int times = 0; times < 10; times++) {
		run_ring(kernels, streams);
		run_ring(kernels, mixed);
	}
	for (int i = 0; i < kernels; i++)
		CUDA(cudaStreamDestroy(streams[i]));
	return 0;
}
