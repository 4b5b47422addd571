/*
 * Batches: many copies by one call, and prefetching and discarding many ranges of managed
 * memory, with the wrong uses of each.
 */
#include "test.h"

#define COPIES 5
#define BYTES  1000

static void test_copies(cudaStream_t stream)
{
	cudaMemcpyAttributes attributes[2] = {};
	size_t sizes[COPIES], begins[2] = {0, 3};
	const void *sources[COPIES];
	void *targets[COPIES];
	unsigned char in[BYTES], *device, *pinned, out[BYTES];

	CUDA(cudaMalloc(&device, 2 * BYTES));
	CUDA(cudaMallocHost(&pinned, BYTES));
	test_fill(in, BYTES, 1);
	for (int i = 0; i < COPIES; i++) {
		sizes[i] = BYTES / COPIES;
		sources[i] = in + i * sizes[i];
		targets[i] = device + i * sizes[i];
	}
	attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	attributes[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
	CUDA(cudaMemcpyBatchAsync(targets, sources, sizes, COPIES, attributes, begins, 2, stream));
	for (int i = 0; i < COPIES; i++) {
		sources[i] = device + i * sizes[i];
		targets[i] = pinned + i * sizes[i];
	}
	CUDA(cudaMemcpyBatchAsync(targets, sources, sizes, COPIES, attributes, begins, 1, stream));
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(BYTES, test_compare(pinned, BYTES, 1));
	CUDA(cudaMemcpy(out, device, BYTES, cudaMemcpyDeviceToHost));
	EXPECT_EQ(BYTES, test_compare(out, BYTES, 1));

	begins[0] = 1;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpyBatchAsync(targets, sources, sizes, COPIES,
								attributes, begins, 1, stream));
	begins[0] = 0;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpyBatchAsync(targets, sources, sizes, COPIES,
								attributes, begins, 0, stream));
	cudaGetLastError();
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(device));
}

static void test_managed(cudaStream_t stream)
{
	struct cudaMemLocation places[2] = {};
	size_t sizes[2] = {65536, 65536}, begins[2] = {0, 1};
	void *memory[2];
	int concurrent;

	CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	if (!concurrent)
		return;
	places[0].type = cudaMemLocationTypeDevice;
	places[1].type = cudaMemLocationTypeHost;
	for (int i = 0; i < 2; i++)
		CUDA(cudaMallocManaged(&memory[i], sizes[i]));
	memset(memory[1], 7, sizes[1]);
	CUDA(cudaMemPrefetchBatchAsync(memory, sizes, 2, places, begins, 2, 0, stream));
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(7, ((unsigned char *)memory[1])[65535]);
	CUDA(cudaMemDiscardBatchAsync(memory, sizes, 2, 0, stream));
	CUDA(cudaMemDiscardAndPrefetchBatchAsync(memory, sizes, 2, places, begins, 2, 0, stream));
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemPrefetchBatchAsync(memory, sizes, 2, places, begins, 2, 1, stream));
	cudaGetLastError();
	for (int i = 0; i < 2; i++)
		CUDA(cudaFree(memory[i]));
}

int main(void)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	test_copies(stream);
	test_managed(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
