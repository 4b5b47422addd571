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

static cudaMemcpy3DOperand at(void *ptr, size_t row, size_t layer)
{
	cudaMemcpy3DOperand operand = {};

	operand.type = cudaMemcpyOperandTypePointer;
	operand.op.ptr.ptr = ptr;
	operand.op.ptr.rowLength = row;
	operand.op.ptr.layerHeight = layer;
	return operand;
}

static cudaMemcpy3DOperand in(cudaArray_t array, size_t x, size_t y)
{
	cudaMemcpy3DOperand operand = {};

	operand.type = cudaMemcpyOperandTypeArray;
	operand.op.array.array = array;
	operand.op.array.offset.x = x;
	operand.op.array.offset.y = y;
	return operand;
}

/* Two boxes to the device, one of them into an array, and both back. */
static void test_boxes(cudaStream_t stream)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaMemcpy3DBatchOp ops[2] = {};
	int in_ints[6 * 10], out_ints[4 * 5], *device;
	unsigned char in_bytes[3 * 8 * 16], out_bytes[3 * 4 * 5];
	unsigned char *box;
	cudaArray_t array;

	test_fill(in_bytes, sizeof(in_bytes), 2);
	for (int i = 0; i < 60; i++)
		in_ints[i] = i * 11;
	CUDA(cudaMalloc(&box, sizeof(in_bytes)));
	CUDA(cudaMalloc(&device, sizeof(in_ints)));
	CUDA(cudaMallocArray(&array, &desc, 12, 8, 0));
	for (int i = 0; i < 2; i++)
		ops[i].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	ops[0].src = at(in_bytes, 16, 8);
	ops[0].dst = at(box, 6, 5);
	ops[0].extent = make_cudaExtent(5, 4, 3);
	ops[1].src = at(in_ints, 10, 0);
	ops[1].dst = in(array, 2, 1);
	ops[1].extent = make_cudaExtent(10, 6, 1);
	CUDA(cudaMemcpy3DBatchAsync(2, ops, 0, stream));
	ops[0].src = at(box, 6, 5);
	ops[0].dst = at(out_bytes, 0, 0);
	ops[1].src = in(array, 3, 2);
	ops[1].dst = at(device, 0, 0);
	ops[1].extent = make_cudaExtent(4, 5, 1);
	CUDA(cudaMemcpy3DBatchAsync(2, ops, 0, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(out_ints, device, sizeof(out_ints), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 60; i++)
		EXPECT_EQ(in_bytes[i / 20 * 128 + i / 5 % 4 * 16 + i % 5], out_bytes[i]);
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(in_ints[(i / 4 + 1) * 10 + i % 4 + 1], out_ints[i]);

	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(2, ops, 1, stream));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(0, ops, 0, stream));
	ops[1].srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(2, ops, 0, stream));
	cudaGetLastError();
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(device));
	CUDA(cudaFree(box));
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
	test_boxes(stream);
	test_managed(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
