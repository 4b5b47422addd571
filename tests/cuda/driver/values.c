/*
 * Values in memory that streams write and wait for.
 */
#include <unistd.h>

#include "driver.h"

static volatile uint32_t *words; /* in memory that the GPU sees */
static CUdeviceptr place;
static CUstream stream, other;

static void writes(void)
{
	CUdeviceptr memory;
	uint64_t got = 0;

	CUDA(cuMemAlloc(&memory, 16));
	CUDA(cuMemsetD32Async(memory, 5, 4, stream));
	CUDA(cuStreamWriteValue32(stream, memory + 4, 77, CU_STREAM_WRITE_VALUE_DEFAULT));
	CUDA(cuStreamWriteValue64(stream, memory + 8, 0x1122334455667788ull,
				  CU_STREAM_WRITE_VALUE_DEFAULT));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuStreamWriteValue64(stream, memory + 8, 1,
					 CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
	CUDA(cuStreamSynchronize(stream));
	CUDA(cuMemcpyDtoH(&got, memory, 8));
	EXPECT(got == (77ull << 32 | 5));
	CUDA(cuMemcpyDtoH(&got, memory + 8, 8));
	EXPECT(got == 0x1122334455667788ull);
	CUDA(cuStreamWriteValue32(stream, place, 3, 0));
	CUDA(cuStreamSynchronize(stream));
	EXPECT_EQ(3, (int)words[0]);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, memory + 2, 1, 0));
	CUDA(cuMemFree(memory));
}

/* Each comparison, of values that meet it and, until then, do not. */
static void waits(void)
{
	static const struct {
		unsigned flags;
		uint32_t value, before, then;
	} list[] = {
		{CU_STREAM_WAIT_VALUE_GEQ, 10, 9, 11},
		{CU_STREAM_WAIT_VALUE_GEQ, 1, 0xfffffff0u, 1},
		{CU_STREAM_WAIT_VALUE_EQ, 7, 8, 7},
		{CU_STREAM_WAIT_VALUE_AND, 12, 3, 4},
		{CU_STREAM_WAIT_VALUE_NOR, 0x0fffffff, 0xf0000000u, 0x70000000u},
	};
	CUdeviceptr memory;
	uint32_t got;

	CUDA(cuMemAlloc(&memory, 4));
	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		words[0] = list[i].before;
		CUDA(cuMemsetD32(memory, 0, 1));
		CUDA(cuStreamWaitValue32(stream, place, list[i].value, list[i].flags));
		CUDA(cuMemsetD32Async(memory, i + 1, 1, stream));
		usleep(2000);
		EXPECT_CODE(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
		words[0] = list[i].then;
		CUDA(cuStreamSynchronize(stream));
		CUDA(cuMemcpyDtoH(&got, memory, 4));
		EXPECT_EQ((int)i + 1, (int)got);
	}
	words[0] = words[1] = 0;
	CUDA(cuStreamWaitValue64(stream, place, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
	words[0] = 1000;
	usleep(2000);
	EXPECT_CODE(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
	words[1] = 1 << 8;
	CUDA(cuStreamSynchronize(stream));
	CUDA(cuMemFree(memory));
}

/* One stream waits for what another writes later, with one call for several operations each. */
static void meets(void)
{
	CUstreamBatchMemOpParams first[2], second[2];
	CUdeviceptr memory;
	uint32_t got = 0;

	memset(first, 0, sizeof(first));
	memset(second, 0, sizeof(second));
	CUDA(cuMemAlloc(&memory, 4));
	words[0] = words[2] = 0;
	first[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	first[0].waitValue.address = place;
	first[0].waitValue.value = 1;
	first[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	first[1].writeValue.address = memory;
	first[1].writeValue.value = 99;
	second[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	second[0].writeValue.address = place + 8;
	second[0].writeValue.value64 = 123;
	second[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	second[1].writeValue.address = place;
	second[1].writeValue.value = 1;
	CUDA(cuStreamBatchMemOp(stream, 2, first, 0));
	CUDA(cuStreamBatchMemOp(other, 2, second, 0));
	CUDA(cuStreamSynchronize(stream));
	EXPECT_EQ(123, (int)words[2]);
	CUDA(cuMemcpyDtoH(&got, memory, 4));
	EXPECT_EQ(99, (int)got);
	second[1].operation = (CUstreamBatchMemOpType)99;
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(other, 2, second, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(other, 2, first, 1));
	CUDA(cuMemFree(memory));
}

/* What waits for the GPU's own memory goes on when another stream's work has changed it. */
static void waits_on_gpu(void)
{
	CUdeviceptr flags;
	uint64_t wide = 0;

	CUDA(cuMemAlloc(&flags, 16));
	CUDA(cuMemsetD32(flags, 0, 4));
	words[4] = 0;
	CUDA(cuStreamWaitValue32(stream, flags, 5, CU_STREAM_WAIT_VALUE_EQ));
	CUDA(cuStreamWriteValue32(stream, place + 16, 1, 0));
	CUDA(cuMemsetD32Async(flags, 4, 1, other));
	CUDA(cuStreamSynchronize(other));
	usleep(2000);
	EXPECT_CODE(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
	EXPECT_EQ(0, (int)words[4]);
	CUDA(cuMemsetD32Async(flags, 5, 1, other));
	CUDA(cuStreamSynchronize(stream));
	EXPECT_EQ(1, (int)words[4]);
	CUDA(cuStreamWaitValue64(stream, flags + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
	CUDA(cuStreamWriteValue64(stream, flags, 9, 0));
	CUDA(cuStreamWriteValue64(other, flags + 8, 1ull << 41, 0));
	CUDA(cuStreamSynchronize(stream));
	CUDA(cuMemcpyDtoH(&wide, flags, sizeof(wide)));
	EXPECT_EQ(9, (int)wide);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuStreamWaitValue32(stream, flags + 2, 5, CU_STREAM_WAIT_VALUE_EQ));
	CUDA(cuMemFree(flags));
}

int main(void)
{
	void *memory;

	test_begin();
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUDA(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	CUDA(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	CUDA(cuMemHostGetDevicePointer(&place, memory, 0));
	words = memory;
	writes();
	waits();
	meets();
	waits_on_gpu();
	CUDA(cuMemFreeHost(memory));
	CUDA(cuStreamDestroy(stream));
	CUDA(cuStreamDestroy(other));
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
