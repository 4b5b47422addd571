/*
 * Memory: allocating, copying and filling it, and what is known of pointers.
 */
#include "driver.h"

#define BYTES 4096

static void copies(void)
{
	unsigned char in[BYTES], out[BYTES];
	CUdeviceptr a, b;
	CUstream stream;

	for (int i = 0; i < BYTES; i++)
		in[i] = (unsigned char)(i * 7);
	CUDA(cuMemAlloc(&a, BYTES));
	CUDA(cuMemAlloc(&b, BYTES));
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUDA(cuMemcpyHtoD(a, in, BYTES));
	CUDA(cuMemcpyDtoD(b, a, BYTES));
	CUDA(cuMemcpyDtoH(out, b, BYTES));
	EXPECT(!memcmp(in, out, BYTES));
	CUDA(cuCtxSynchronize());
	CUDA(cuMemsetD8Async(a, 1, BYTES, stream));
	CUDA(cuMemsetD16Async(a, 0x203, 4, stream));
	CUDA(cuMemcpyAsync(b, a, BYTES, stream));
	CUDA(cuMemcpyDtoHAsync(out, b, BYTES, stream));
	CUDA(cuStreamSynchronize(stream));
	EXPECT(out[0] == 3 && out[1] == 2 && out[7] == 2 && out[8] == 1 && out[BYTES - 1] == 1);
	CUDA(cuMemsetD2D32(a, 64, 0x01020304, 2, 3));
	CUDA(cuMemcpy((CUdeviceptr)(uintptr_t)out, a, BYTES));
	EXPECT(out[0] == 4 && out[7] == 1 && out[8] == 1 && out[64] == 4 && out[128] == 4 &&
	       out[192] == 1);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a + 1, in, BYTES));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&a, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 1));
	CUDA(cuStreamDestroy(stream));
	CUDA(cuMemFree(a));
	CUDA(cuMemFree(b));
}

static void rectangles(void)
{
	unsigned char in[64], out[64] = "";
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = in,
			      .srcPitch = 16,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .WidthInBytes = 8,
			      .Height = 4};
	CUdeviceptr rows;
	size_t pitch;

	for (int i = 0; i < 64; i++)
		in[i] = (unsigned char)i;
	CUDA(cuMemAllocPitch(&rows, &pitch, 8, 4, 4));
	EXPECT(pitch >= 8);
	copy.dstDevice = rows;
	copy.dstPitch = pitch;
	CUDA(cuMemcpy2D(&copy));
	CUDA(cuMemcpyDtoH(out, rows + pitch, 8));
	EXPECT(!memcmp(out, in + 16, 8));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&rows, &pitch, 8, 4, 3));
	CUDA(cuMemFree(rows));
}

static void pointers(CUcontext context)
{
	unsigned type = 0, managed_type = 0;
	int managed = 0, ordinal = -1;
	CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *places[] = {&type, &ordinal};
	unsigned long long first, second;
	CUdeviceptr a, b, start;
	CUcontext of = NULL;
	void *pinned;
	size_t bytes;

	CUDA(cuMemAlloc(&a, 1000));
	CUDA(cuMemAllocManaged(&b, 1000, CU_MEM_ATTACH_GLOBAL));
	CUDA(cuMemAllocHost(&pinned, 1000));
	CUDA(cuMemGetAddressRange(&start, &bytes, a + 10));
	EXPECT(start == a && bytes == 1000);
	CUDA(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a + 10));
	EXPECT(of == context);
	CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
	EXPECT_EQ(CU_MEMORYTYPE_DEVICE, type);
	CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				   (CUdeviceptr)(uintptr_t)pinned));
	EXPECT_EQ(CU_MEMORYTYPE_HOST, type);
	CUDA(cuPointerGetAttribute(&managed_type, CU_POINTER_ATTRIBUTE_IS_MANAGED, b));
	EXPECT_EQ(1, managed_type);
	CUDA(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a));
	EXPECT_EQ(0, managed);
	CUDA(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
	CUDA(cuMemFree(a));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a));
	CUDA(cuMemAlloc(&a, 1000));
	CUDA(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
	EXPECT(first != second);
	CUDA(cuPointerGetAttributes(2, attributes, places, a));
	EXPECT_EQ(CU_MEMORYTYPE_DEVICE, type);
	EXPECT_EQ(0, ordinal);
	CUDA(cuPointerGetAttributes(2, attributes, places, (CUdeviceptr)(uintptr_t)&ordinal));
	EXPECT_EQ(0, type);
	CUDA(cuMemFree(a));
	CUDA(cuMemFree(b));
	CUDA(cuMemFreeHost(pinned));
}

int main(void)
{
	CUcontext context = test_begin();
	size_t free_bytes, total_bytes;

	CUDA(cuMemGetInfo(&free_bytes, &total_bytes));
	EXPECT(free_bytes && free_bytes <= total_bytes);
	copies();
	rectangles();
	pointers(context);
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
