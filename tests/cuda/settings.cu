/*
 * Limits, preferences, names and choices: what a program sets and asks for that changes no
 * result.
 */
#include "test.h"

static __device__ int variable = 3;

static __global__ void recognizable(int *to)
{
	*to = variable;
	variable = 4;
}

static void limits(void)
{
	size_t value, before;

	CUDA(cudaDeviceGetLimit(&before, cudaLimitStackSize));
	EXPECT(before >= 1024);
	CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	CUDA(cudaDeviceGetLimit(&value, cudaLimitStackSize));
	EXPECT(value >= 4096);
	CUDA(cudaDeviceSetLimit(cudaLimitStackSize, before));
	CUDA(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 * 1024 * 1024));
	CUDA(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize));
	EXPECT(value >= 2 * 1024 * 1024);
	CUDA(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
	EXPECT(value >= 1024 * 1024);
	CUDA(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 64));
	CUDA(cudaDeviceGetLimit(&value, cudaLimitMaxL2FetchGranularity));
	EXPECT(value <= 128);
	CUDA(cudaDeviceGetLimit(&value, cudaLimitPersistingL2CacheSize));
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetLimit(NULL, cudaLimitStackSize));
	cudaGetLastError();
}

static void preferences(void)
{
	enum cudaFuncCache cache;

	CUDA(cudaFuncSetCacheConfig(recognizable, cudaFuncCachePreferL1));
	CUDA(cudaFuncSetCacheConfig(recognizable, cudaFuncCachePreferNone));
	CUDA(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
	CUDA(cudaDeviceGetCacheConfig(&cache));
	EXPECT_EQ(cudaFuncCachePreferNone, cache);
	CUDA(cudaCtxResetPersistingL2Cache());
}

static void devices(void)
{
	struct cudaDeviceProp properties;
	int device = -1, count, first = 0;
	char place[64];

	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaDeviceGetPCIBusId(place, sizeof(place), 0));
	CUDA(cudaDeviceGetByPCIBusId(&device, place));
	EXPECT_EQ(0, device);
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&device, "ffff:fe:1e.0"));
	CUDA(cudaGetDeviceProperties(&properties, 0));
	device = -1;
	CUDA(cudaChooseDevice(&device, &properties));
	EXPECT(device >= 0 && device < count);
	CUDA(cudaSetValidDevices(&first, 1));
	cudaGetLastError();
}

static void functions(void)
{
	const char *name = NULL;
	cudaFunction_t function = NULL;
	size_t bytes = 0;

	CUDA(cudaFuncGetName(&name, (const void *)recognizable));
	EXPECT(name && strstr(name, "recognizable"));
	CUDA(cudaGetFuncBySymbol(&function, (const void *)recognizable));
	EXPECT(function != NULL);
	CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, (const void *)recognizable, 1, 128));
	EXPECT(bytes > 0);
}

/* What the program had on the device is gone, and all begins anew. */
static void reset(void)
{
	int *memory, value;

	CUDA(cudaMalloc(&memory, sizeof(*memory)));
	LAUNCH(recognizable<<<1, 1>>>(memory));
	CUDA(cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(3, value);
	CUDA(cudaMemcpyFromSymbol(&value, variable, sizeof(value)));
	EXPECT_EQ(4, value);
	CUDA(cudaDeviceReset());
	CUDA(cudaMemcpyFromSymbol(&value, variable, sizeof(value)));
	EXPECT_EQ(3, value);
	CUDA(cudaMalloc(&memory, sizeof(*memory)));
	LAUNCH(recognizable<<<1, 1>>>(memory));
	CUDA(cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(3, value);
	CUDA(cudaDeviceReset());
	CUDA(cudaDeviceReset());
	CUDA(cudaFree(NULL));
}

int main(void)
{
	limits();
	preferences();
	devices();
	functions();
	reset();
	return 0;
}
