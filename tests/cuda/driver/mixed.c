/*
 * The runtime and the driver API in one program: they share contexts, memory, streams and events.
 */
#include "driver.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#define RUNTIME(call) EXPECT_EQ(cudaSuccess, call)

static CUcontext primary;

/* A thread that uses the runtime works in the primary context. */
static void *use(void *unused)
{
	CUcontext context;
	void *memory;

	CUDA(cuCtxGetCurrent(&context));
	EXPECT(!context);
	RUNTIME(cudaMalloc(&memory, 100));
	CUDA(cuCtxGetCurrent(&context));
	EXPECT(context == primary);
	RUNTIME(cudaFree(memory));
	return unused;
}

int main(void)
{
	char in[100], out[100] = "";
	CUcontext context;
	pthread_t thread;
	CUstream stream;
	unsigned flags;
	void *memory;
	int active, count;

	RUNTIME(cudaGetDeviceCount(&count));
	CUDA(cuInit(0));
	CUDA(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT_EQ(0, active);
	RUNTIME(cudaSetDevice(0));
	RUNTIME(cudaMalloc(&memory, sizeof(in)));
	CUDA(cuCtxGetCurrent(&primary));
	CUDA(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT_EQ(1, active);
	CUDA(cuDevicePrimaryCtxRetain(&context, 0));
	EXPECT(context == primary);

	memset(in, 7, sizeof(in));
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUDA(cuMemcpyHtoD((CUdeviceptr)memory, in, sizeof(in)));
	RUNTIME(cudaMemcpyAsync(out, memory, sizeof(out), cudaMemcpyDeviceToHost, stream));
	RUNTIME(cudaStreamSynchronize(stream));
	EXPECT(!memcmp(in, out, sizeof(in)));
	RUNTIME(cudaStreamDestroy(stream));
	EXPECT_EQ(0, pthread_create(&thread, NULL, use, NULL));
	pthread_join(thread, NULL);

	/* The runtime has retained it as well. */
	CUDA(cuDevicePrimaryCtxRelease(0));
	CUDA(cuMemsetD8((CUdeviceptr)memory, 1, sizeof(in)));
	CUDA(cuMemFree((CUdeviceptr)memory));
	return 0;
}
