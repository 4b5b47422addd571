/*
 * Virtual memory: addresses and memory apart, mapped here and there, seen by kernels and copies,
 * and what may not be done with it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

/* add(data, count): adds 1 to each u32. */
static const char code[] = ".version 7.0\n"
			   ".target sm_70\n"
			   ".address_size 64\n"
			   ".visible .entry add(.param .u64 data, .param .u32 count)\n"
			   "{\n"
			   "	.reg .pred %p<2>;\n"
			   "	.reg .b32 %r<7>;\n"
			   "	.reg .b64 %rd<4>;\n"
			   "	ld.param.u64 %rd1, [data];\n"
			   "	ld.param.u32 %r1, [count];\n"
			   "	mov.u32 %r2, %ctaid.x;\n"
			   "	mov.u32 %r3, %ntid.x;\n"
			   "	mov.u32 %r4, %tid.x;\n"
			   "	mad.lo.u32 %r5, %r2, %r3, %r4;\n"
			   "	setp.ge.u32 %p1, %r5, %r1;\n"
			   "	@%p1 ret;\n"
			   "	mul.wide.u32 %rd2, %r5, 4;\n"
			   "	add.u64 %rd3, %rd1, %rd2;\n"
			   "	ld.global.u32 %r6, [%rd3];\n"
			   "	add.u32 %r6, %r6, 1;\n"
			   "	st.global.u32 [%rd3], %r6;\n"
			   "	ret;\n"
			   "}\n";

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const CUmemAccessDesc all = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static CUfunction add;
static size_t unit;

static void launch(CUdeviceptr data, unsigned count)
{
	void *args[] = {&data, &count};

	CUDA(cuLaunchKernel(add, (count + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
}

/* Three pieces of memory side by side are one to kernels and copies. */
static void grows(void)
{
	CUmemGenericAllocationHandle handles[3];
	unsigned *data = malloc(3 * unit), count = (unsigned)(3 * unit / 4);
	CUdeviceptr start;
	size_t free_before, free_after, total;

	CUDA(cuMemGetInfo(&free_before, &total));
	CUDA(cuMemAddressReserve(&start, 8 * unit, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		CUDA(cuMemCreate(&handles[i], unit, &prop, 0));
		CUDA(cuMemMap(start + (size_t)i * unit, unit, 0, handles[i], 0));
	}
	CUDA(cuMemGetInfo(&free_after, &total));
	EXPECT(free_before - free_after >= 3 * unit);
	CUDA(cuMemSetAccess(start, 3 * unit, &all, 1));
	for (unsigned i = 0; i < count; i++)
		data[i] = i;
	CUDA(cuMemcpyHtoD(start, data, 3 * unit));
	launch(start, count);
	memset(data, 0, 3 * unit);
	CUDA(cuMemcpyDtoH(data, start, 3 * unit));
	for (unsigned i = 0; i < count; i++)
		EXPECT_EQ((int)(i + 1), (int)data[i]);
	CUDA(cuMemsetD32(start + unit - 8, 7, 4));
	CUDA(cuMemcpyDtoH(data, start + unit - 12, 24));
	EXPECT(data[0] != 7 && data[1] == 7 && data[4] == 7 && data[5] != 7);
	/* The handles may go first, and all be unmapped at once. */
	for (int i = 0; i < 3; i++)
		CUDA(cuMemRelease(handles[i]));
	launch(start, count);
	CUDA(cuMemUnmap(start, 3 * unit));
	CUDA(cuMemAddressFree(start, 8 * unit));
	CUDA(cuMemGetInfo(&free_after, &total));
	EXPECT(free_after + unit > free_before);
	free(data);
}

/* The same memory at two places, and again at another one. */
static void moves(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr one, two;
	unsigned value = 0;

	CUDA(cuMemCreate(&handle, unit, &prop, 0));
	CUDA(cuMemAddressReserve(&one, unit, 0, 0, 0));
	CUDA(cuMemAddressReserve(&two, 4 * unit, 4 * unit, 0, 0));
	EXPECT(two % (4 * unit) == 0);
	CUDA(cuMemMap(one, unit, 0, handle, 0));
	CUDA(cuMemMap(two + unit, unit, 0, handle, 0));
	CUDA(cuMemSetAccess(one, unit, &all, 1));
	CUDA(cuMemSetAccess(two + unit, unit, &all, 1));
	CUDA(cuMemsetD32(one, 41, 1));
	launch(two + unit, 1);
	CUDA(cuMemcpyDtoH(&value, one, 4));
	EXPECT_EQ(42, (int)value);
	CUDA(cuMemUnmap(one, unit));
	CUDA(cuMemUnmap(two + unit, unit));
	CUDA(cuMemMap(two, unit, 0, handle, 0));
	CUDA(cuMemSetAccess(two, unit, &all, 1));
	value = 0;
	CUDA(cuMemcpyDtoH(&value, two, 4));
	EXPECT_EQ(42, (int)value);
	CUDA(cuMemUnmap(two, unit));
	CUDA(cuMemAddressFree(one, unit));
	CUDA(cuMemAddressFree(two, 4 * unit));
	CUDA(cuMemRelease(handle));
}

static void tells(void)
{
	CUmemGenericAllocationHandle handle, again;
	CUmemAllocationProp told;
	unsigned long long flags, start, base, len;
	CUdeviceptr address, mapped;
	unsigned type;
	size_t bytes;

	CUDA(cuMemCreate(&handle, unit, &prop, 0));
	CUDA(cuMemGetAllocationPropertiesFromHandle(&told, handle));
	EXPECT(told.type == prop.type && told.location.type == prop.location.type &&
	       told.requestedHandleTypes == prop.requestedHandleTypes);
	CUDA(cuMemAddressReserve(&address, 2 * unit, 0, 0, 0));
	CUDA(cuMemMap(address + unit, unit, 0, handle, 0));
	mapped = address + unit;
	CUDA(cuMemGetAccess(&flags, &all.location, mapped));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CUDA(cuMemSetAccess(mapped, unit, &all, 1));
	CUDA(cuMemGetAccess(&flags, &all.location, mapped + 5));
	EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUDA(cuMemRetainAllocationHandle(&again, (void *)(mapped + 100)));
	EXPECT(again == handle);
	CUDA(cuMemRelease(again));
	CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
	EXPECT_EQ(CU_MEMORYTYPE_DEVICE, type);
	CUDA(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, mapped));
	CUDA(cuPointerGetAttribute(&len, CU_POINTER_ATTRIBUTE_RANGE_SIZE, mapped));
	EXPECT(start == address && len == 2 * unit);
	CUDA(cuMemGetAddressRange(&base, &bytes, mapped + 9));
	EXPECT(base == mapped && bytes == unit);
	CUDA(cuMemUnmap(mapped, unit));
	CUDA(cuMemAddressFree(address, 2 * unit));
	CUDA(cuMemRelease(handle));
}

/* A descriptor stands for the memory, also where it is all that is left of it. */
static void exports(void)
{
	CUmemGenericAllocationHandle handle, other;
	CUdeviceptr address;
	unsigned value = 0;
	int fd;

	CUDA(cuMemCreate(&handle, unit, &prop, 0));
	CUDA(cuMemAddressReserve(&address, unit, 0, 0, 0));
	CUDA(cuMemMap(address, unit, 0, handle, 0));
	CUDA(cuMemSetAccess(address, unit, &all, 1));
	CUDA(cuMemsetD32(address, 77, 1));
	CUDA(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					  0));
	CUDA(cuMemUnmap(address, unit));
	CUDA(cuMemRelease(handle));
	CUDA(cuMemImportFromShareableHandle(&other, (void *)(uintptr_t)fd,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	EXPECT(close(fd) == 0);
	CUDA(cuMemMap(address, unit, 0, other, 0));
	CUDA(cuMemSetAccess(address, unit, &all, 1));
	CUDA(cuMemcpyDtoH(&value, address, 4));
	EXPECT_EQ(77, (int)value);
	CUDA(cuMemUnmap(address, unit));
	CUDA(cuMemRelease(other));
	CUDA(cuMemAddressFree(address, unit));
}

static void refuses(void)
{
	CUmemAllocationProp bad = prop;
	CUmemGenericAllocationHandle handle, none;
	CUdeviceptr address;
	size_t bytes;

	CUDA(cuMemCreate(&handle, unit, &prop, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, unit + 4096, &prop, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, 0, &prop, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, unit, NULL, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, unit, &prop, 1));
	bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, unit, &bad, 0));
	bad = prop;
	bad.location.id = 99;
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&none, unit, &bad, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, 0, 0, 0, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(NULL, unit, 0, 0, 0));
	CUDA(cuMemAddressReserve(&address, 2 * unit, 0, 0, 0));
	EXPECT_CODE(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(address, 2 * unit, 0, handle, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemMap(address + 2 * unit, unit, 0, handle, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemMap(address, 0, 0, handle, 0));
	CUDA(cuMemMap(address, unit, 0, handle, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemMap(address, unit, 0, handle, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(address, 2 * unit, &all, 1));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(address, unit, &all, 0));
	CUDA(cuMemUnmap(address + unit, unit));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
	CUDA(cuMemUnmap(address, unit));
	CUDA(cuMemUnmap(address, unit));
	CUDA(cuMemAddressFree(address, 2 * unit));
	CUDA(cuMemRelease(handle));
	CUDA(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	EXPECT(bytes % unit == 0);
}

int main(void)
{
	CUmodule module;
	int has_vmem;

	test_begin();
	CUDA(cuDeviceGetAttribute(&has_vmem,
				  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	EXPECT_EQ(1, has_vmem);
	CUDA(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	EXPECT(unit && !(unit & (unit - 1)));
	CUDA(cuModuleLoadData(&module, code));
	CUDA(cuModuleGetFunction(&add, module, "add"));
	grows();
	moves();
	tells();
	exports();
	refuses();
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
