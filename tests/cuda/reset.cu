/*
 * cudaDeviceReset: what the program had on the device is gone, limits are as they were at
 * first, and everything may be made anew.
 */
#include "test.h"

__device__ int counter = 3;
__managed__ int shared_counter = 30;

static __global__ void read_texture(cudaTextureObject_t texture, float *out)
{
	*out = tex1Dfetch<float>(texture, 2);
	counter++;
	shared_counter++;
}

static cudaTextureObject_t make_texture(float *memory)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;

	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<float>();
	resource.res.linear.sizeInBytes = 4 * sizeof(float);
	how.readMode = cudaReadModeElementType;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	return texture;
}

/* All of it is left as it is, for the reset. */
static void use(float value)
{
	float values[4] = {0, 0, value, 0}, result, *memory;
	cudaStream_t stream;
	cudaEvent_t event;
	cudaArray_t array;
	int count;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();

	CUDA(cudaMalloc(&memory, sizeof(values)));
	CUDA(cudaMemcpy(memory, values, sizeof(values), cudaMemcpyHostToDevice));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaMallocArray(&array, &desc, 16, 16));
	LAUNCH(read_texture<<<1, 1, 0, stream>>>(make_texture(memory), memory));
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaMemcpy(&result, memory, sizeof(result), cudaMemcpyDeviceToHost));
	EXPECT(result == value);
	CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
	EXPECT_EQ(4, count);
}

int main(void)
{
	size_t before, limit;

	CUDA(cudaDeviceGetLimit(&before, cudaLimitPrintfFifoSize));
	use(2.5f);
	EXPECT_EQ(31, shared_counter);
	CUDA(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, before * 2));
	CUDA(cudaDeviceReset());
	CUDA(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
	EXPECT_EQ(before, limit);
	use(-1);
	CUDA(cudaDeviceReset());
	CUDA(cudaDeviceReset());
	return 0;
}
