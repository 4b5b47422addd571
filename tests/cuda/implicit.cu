/*
 * Calls that wait for work that was queued before, though nothing in their names says so: the
 * program sees in its own memory that the kernel is done. And what was asked for after them.
 */
#include "test.h"

#define LONG_CYCLES 20000000

static __device__ int symbol;

static __global__ void finish_late(volatile int *done)
{
	long long start = clock64();

	while (clock64() - start < LONG_CYCLES)
		;
	*done = 1;
}

struct things {
	volatile int *done; /* pinned */
	void *memory, *managed, *pinned, *other, *registered;
	cudaArray_t array, target;
	cudaMipmappedArray_t mipmapped;
};

static const int one = 1;

static cudaError_t free_memory(struct things *things)
{
	return cudaFree(things->memory);
}

static cudaError_t free_managed(struct things *things)
{
	return cudaFree(things->managed);
}

static cudaError_t free_pinned(struct things *things)
{
	return cudaFreeHost(things->pinned);
}

static cudaError_t free_array(struct things *things)
{
	return cudaFreeArray(things->array);
}

static cudaError_t free_mipmapped(struct things *things)
{
	return cudaFreeMipmappedArray(things->mipmapped);
}

static cudaError_t unregister(struct things *things)
{
	return cudaHostUnregister(things->registered);
}

static cudaError_t copy_in(struct things *things)
{
	return cudaMemcpy(things->other, &one, sizeof(one), cudaMemcpyHostToDevice);
}

static cudaError_t copy_to_symbol(struct things *)
{
	return cudaMemcpyToSymbol(symbol, &one, sizeof(one));
}

static cudaError_t copy_to_array(struct things *things)
{
	return cudaMemcpy2DToArray(things->target, 0, 0, &one, sizeof(one), sizeof(one), 1,
				   cudaMemcpyHostToDevice);
}

static void make(struct things *things)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();

	CUDA(cudaMallocHost((void **)&things->done, sizeof(*things->done)));
	CUDA(cudaMalloc(&things->memory, 1000));
	CUDA(cudaMalloc(&things->other, 1000));
	CUDA(cudaMallocManaged(&things->managed, 1000));
	CUDA(cudaMallocHost(&things->pinned, 1000));
	CUDA(cudaMallocArray(&things->array, &format, 16, 16));
	CUDA(cudaMallocArray(&things->target, &format, 16, 16));
	CUDA(cudaMallocMipmappedArray(&things->mipmapped, &format, make_cudaExtent(16, 16, 0), 2));
	things->registered = aligned_alloc(4096, 4096);
	CUDA(cudaHostRegister(things->registered, 4096, cudaHostRegisterDefault));
}

int main(void)
{
	cudaError_t (*const calls[])(struct things * things) = {
		free_memory, free_managed,   free_pinned,   free_array, free_mipmapped,
		unregister,  copy_to_symbol, copy_to_array, copy_in,
	};
	struct things things;
	cudaStream_t stream;
	int value = 0;

	make(&things);
	CUDA(cudaStreamCreate(&stream));
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		*things.done = 0;
		LAUNCH(finish_late<<<1, 1, 0, i % 2 ? stream : NULL>>>(things.done));
		CUDA(calls[i](&things));
		if (!*things.done)
			FAIL("call %u does not wait", i);
	}
	CUDA(cudaMemcpyFromSymbol(&value, symbol, sizeof(value)));
	EXPECT_EQ(1, value);
	CUDA(cudaFree(things.other));
	CUDA(cudaFreeArray(things.target));
	CUDA(cudaFreeHost((void *)things.done));
	free(things.registered);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
