/*
 * A kernel writes where no memory is. The next synchronization says so, and from then on
 * so does every call that needs the device, from every thread, however often the last
 * error is asked for; calls that need no device go on.
 */
#include "test.h"

#include <thread>

static __global__ void write_to(int *address)
{
	*address = 1;
}

static __global__ void nothing(void)
{
}

static void everything_fails(int *memory, cudaStream_t stream)
{
	int value = 0;
	void *more;

	EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	EXPECT_CODE(cudaErrorIllegalAddress, cudaStreamSynchronize(stream));
	EXPECT_CODE(cudaErrorIllegalAddress,
		    cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_CODE(cudaErrorIllegalAddress, cudaMalloc(&more, 1024));
	EXPECT_CODE(cudaErrorIllegalAddress, cudaGetLastError());
	nothing<<<1, 1>>>();
	EXPECT_CODE(cudaErrorIllegalAddress, cudaGetLastError());
	EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

int main(void)
{
	cudaStream_t stream;
	int *memory, device, count;

	CUDA(cudaMalloc(&memory, sizeof(*memory)));
	CUDA(cudaStreamCreate(&stream));
	LAUNCH(write_to<<<1, 1>>>(memory));
	CUDA(cudaDeviceSynchronize());
	/* The first page is never mapped; the launch itself is in order. */
	LAUNCH(write_to<<<1, 1, 0, stream>>>((int *)0x10));
	EXPECT_CODE(cudaErrorIllegalAddress, cudaStreamSynchronize(stream));
	EXPECT_CODE(cudaErrorIllegalAddress, cudaGetLastError());
	everything_fails(memory, stream);
	std::thread(everything_fails, memory, stream).join();
	everything_fails(memory, stream);
	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaGetDevice(&device));
	return 0;
}
