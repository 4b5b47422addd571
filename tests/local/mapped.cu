/*
 * Virtual memory of two devices, by the driver's functions, as libraries for communication take it:
 * each has its own, one is given access to the other's, and what is unmapped meanwhile is waited
 * for. Its first argument is what it does.
 */
#include "../cuda/test.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vector>

#define DRIVER(call)		  EXPECT_EQ((int)CUDA_SUCCESS, (int)(call))
#define DRIVER_CODE(wanted, call) EXPECT_EQ((int)(wanted), (int)(call))

#define FUNCTIONS(X)                                                                               \
	X(cuMemAddressReserve)                                                                     \
	X(cuMemAddressFree)                                                                        \
	X(cuMemCreate)                                                                             \
	X(cuMemRelease)                                                                            \
	X(cuMemMap)                                                                                \
	X(cuMemUnmap)                                                                              \
	X(cuMemSetAccess)                                                                          \
	X(cuMemGetAccess)                                                                          \
	X(cuMemGetAllocationGranularity)                                                           \
	X(cuMemRetainAllocationHandle)                                                             \
	X(cuMemGetAllocationPropertiesFromHandle)                                                  \
	X(cuMemExportToShareableHandle)                                                            \
	X(cuMemImportFromShareableHandle)
#define DECLARE(name) static decltype(&name) name##_p;
FUNCTIONS(DECLARE)

static void find_functions(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	EXPECT(driver != NULL);
#define FIND(name)                                                                                 \
	name##_p = (decltype(&name))dlsym(driver, #name);                                          \
	EXPECT(name##_p != NULL);
	FUNCTIONS(FIND)
}

__global__ void count_up(unsigned *data, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		atomicAdd(&data[i], 1);
}

__global__ void work(unsigned *data, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		atomicAdd(&data[threadIdx.x], 1);
}

static size_t unit;

static CUmemAllocationProp prop_of(int device)
{
	CUmemAllocationProp prop = {};

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	return prop;
}

static CUresult allow(CUdeviceptr address, size_t bytes, int device,
		      CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
{
	CUmemAccessDesc access = {};

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.id = device;
	access.flags = flags;
	return cuMemSetAccess_p(address, bytes, &access, 1);
}

static CUmemGenericAllocationHandle make(int device, size_t bytes)
{
	CUmemAllocationProp prop = prop_of(device);
	CUmemGenericAllocationHandle handle;

	DRIVER(cuMemCreate_p(&handle, bytes, &prop, 0));
	return handle;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes)
{
	CUdeviceptr address;

	DRIVER(cuMemAddressReserve_p(&address, bytes, 0, 0, 0));
	DRIVER(cuMemMap_p(address, bytes, 0, handle, 0));
	return address;
}

static void unmap(CUdeviceptr address, size_t bytes)
{
	DRIVER(cuMemUnmap_p(address, bytes));
	DRIVER(cuMemAddressFree_p(address, bytes));
}

static void launch_on(int device, CUdeviceptr data, unsigned count)
{
	CUDA(cudaSetDevice(device));
	LAUNCH(count_up<<<(count + 127) / 128, 128>>>((unsigned *)data, count));
	CUDA(cudaDeviceSynchronize());
}

static unsigned word_at(CUdeviceptr address)
{
	unsigned word = 0;

	CUDA(cudaMemcpy(&word, (void *)address, sizeof(word), cudaMemcpyDefault));
	return word;
}

/* Each device's is its own, whichever the thread works on when it is made. */
static void each(void)
{
	for (int device = 0; device < 2; device++) {
		size_t before, after, all;
		CUmemGenericAllocationHandle handle, again;
		struct cudaPointerAttributes of;
		CUmemAllocationProp told;
		CUdeviceptr address;

		CUDA(cudaSetDevice(device));
		CUDA(cudaMemGetInfo(&before, &all));
		CUDA(cudaSetDevice(1 - device));
		handle = make(device, 2 * unit);
		DRIVER(cuMemGetAllocationPropertiesFromHandle_p(&told, handle));
		EXPECT_EQ(device, told.location.id);
		address = map(handle, 2 * unit);
		DRIVER(allow(address, 2 * unit, device));
		CUDA(cudaSetDevice(device));
		CUDA(cudaMemGetInfo(&after, &all));
		EXPECT(before - after >= 2 * unit);
		CUDA(cudaPointerGetAttributes(&of, (void *)address));
		EXPECT_EQ(device, of.device);
		CUDA(cudaMemset((void *)address, 0, 2 * unit));
		launch_on(device, address, (unsigned)(2 * unit / 4));
		/* Copies find the device that may. */
		CUDA(cudaSetDevice(1 - device));
		EXPECT_EQ(1, word_at(address + 2 * unit - 4));
		CUDA(cudaMemset((void *)address, 9, 4));
		EXPECT_EQ(0x09090909u, word_at(address));
		DRIVER(cuMemRetainAllocationHandle_p(&again, (void *)(address + unit)));
		EXPECT(again == handle);
		DRIVER(cuMemRelease_p(again));
		DRIVER(cuMemRelease_p(handle));
		unmap(address, 2 * unit);
		DRIVER_CODE(CUDA_ERROR_INVALID_VALUE, cuMemRelease_p(handle));
	}
}

/* Of several pieces side by side, one of each device; all of both are given access at once. */
static void both(void)
{
	CUmemGenericAllocationHandle handles[2] = {make(0, unit), make(1, unit)};
	CUmemAccessDesc access[2] = {};
	CUmemLocation location = {};
	unsigned long long flags;
	CUdeviceptr address;
	void *plain[2];

	location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DRIVER(cuMemAddressReserve_p(&address, 4 * unit, 0, 0, 0));
	for (int i = 0; i < 2; i++) {
		DRIVER(cuMemMap_p(address + i * unit, unit, 0, handles[i], 0));
		access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		access[i].location.id = i;
		access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		CUDA(cudaSetDevice(i));
		CUDA(cudaMalloc(&plain[i], 2 * unit));
	}
	DRIVER(cuMemSetAccess_p(address, 2 * unit, access, 2));
	DRIVER(cuMemSetAccess_p(address, 2 * unit, access, 2));
	for (int i = 0; i < 2; i++) {
		location.id = i;
		DRIVER(cuMemGetAccess_p(&flags, &location, address));
		EXPECT_EQ((int)CU_MEM_ACCESS_FLAGS_PROT_READWRITE, (int)flags);
	}
	CUDA(cudaMemset((void *)address, 0, 2 * unit));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < 2; i++)
		launch_on(i, address, (unsigned)(2 * unit / 4));
	EXPECT_EQ(2, word_at(address));
	EXPECT_EQ(2, word_at(address + 2 * unit - 4));
	/* In the order of a stream of either, with memory of its own. */
	for (int i = 0; i < 2; i++) {
		unsigned *at = (unsigned *)plain[i];

		CUDA(cudaSetDevice(i));
		CUDA(cudaMemsetAsync(at, 0, 2 * unit));
		CUDA(cudaMemcpyAsync(at, (void *)address, 2 * unit, cudaMemcpyDefault));
		LAUNCH(count_up<<<1, 32>>>(at, 32));
		CUDA(cudaMemcpyAsync((void *)address, at, 2 * unit, cudaMemcpyDefault));
		CUDA(cudaDeviceSynchronize());
	}
	EXPECT_EQ(4, word_at(address));
	EXPECT_EQ(2, word_at(address + unit));
	for (int i = 0; i < 2; i++) {
		DRIVER(cuMemRelease_p(handles[i]));
		CUDA(cudaFree(plain[i]));
	}
	DRIVER(cuMemUnmap_p(address, 2 * unit));
	DRIVER(cuMemAddressFree_p(address, 4 * unit));
}

/* Memory of one device at two places, the second of them for the other device alone. */
static void alone(void)
{
	CUmemGenericAllocationHandle handle = make(1, unit), imported;
	CUdeviceptr own = map(handle, unit), far;
	unsigned word;
	int fd = -1;

	DRIVER(allow(own, unit, 1));
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemset((void *)own, 0, unit));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(0));
	DRIVER(cuMemExportToShareableHandle_p(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					      0));
	DRIVER(cuMemImportFromShareableHandle_p(&imported, (void *)(intptr_t)fd,
						CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	DRIVER(cuMemRelease_p(handle));
	far = map(imported, unit);
	DRIVER(allow(far, unit, 0));
	launch_on(0, far, 64);
	CUDA(cudaSetDevice(1));
	EXPECT_EQ(1, word_at(own));
	EXPECT_EQ(1, word_at(far));
	word = 40;
	CUDA(cudaMemcpy((void *)far, &word, sizeof(word), cudaMemcpyDefault));
	launch_on(1, own, 1);
	EXPECT_EQ(41, word_at(far));
	unmap(far, unit);
	EXPECT_EQ(41, word_at(own));
	DRIVER(cuMemRelease_p(imported));
	unmap(own, unit);
}

/* Work of both devices is waited for, and what is mapped next at the place is untouched by it. */
static void unmapped(void)
{
	CUmemGenericAllocationHandle handles[2] = {make(0, unit), make(1, unit)};
	CUdeviceptr address, kept;

	DRIVER(cuMemAddressReserve_p(&address, unit, 0, 0, 0));
	kept = map(handles[0], unit);
	DRIVER(allow(kept, unit, 0));
	for (int round = 0; round < 10; round++) {
		DRIVER(cuMemMap_p(address, unit, 0, handles[0], 0));
		DRIVER(allow(address, unit, 0));
		DRIVER(allow(address, unit, 1));
		CUDA(cudaMemset((void *)address, 0, unit));
		CUDA(cudaDeviceSynchronize());
		for (int i = 0; i < 2; i++) {
			CUDA(cudaSetDevice(i));
			LAUNCH(work<<<1, 32>>>((unsigned *)address, 20000));
		}
		DRIVER(cuMemUnmap_p(address, unit));
		EXPECT_EQ(40000, word_at(kept));
		DRIVER(cuMemMap_p(address, unit, 0, handles[1], 0));
		DRIVER(allow(address, unit, 0));
		CUDA(cudaSetDevice(0));
		CUDA(cudaMemset((void *)address, 0, unit));
		EXPECT_EQ(0, word_at(address));
		DRIVER(cuMemUnmap_p(address, unit));
		EXPECT_EQ(40000, word_at(kept));
	}
	for (int i = 0; i < 2; i++)
		DRIVER(cuMemRelease_p(handles[i]));
	unmap(kept, unit);
	DRIVER(cuMemAddressFree_p(address, unit));
}

/* A device that has no access, or no more, may not touch it. */
static void fault(bool was_allowed)
{
	CUdeviceptr address = map(make(0, unit), unit);

	DRIVER_CODE(CUDA_ERROR_INVALID_DEVICE, allow(address, unit, 2));
	DRIVER_CODE(CUDA_ERROR_INVALID_DEVICE, allow(address, unit, -1));
	DRIVER(allow(address, unit, 0));
	CUDA(cudaMemset((void *)address, 0, unit));
	CUDA(cudaDeviceSynchronize());
	if (was_allowed) {
		DRIVER(allow(address, unit, 1));
		launch_on(1, address, 1);
		DRIVER(allow(address, unit, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
	}
	CUDA(cudaSetDevice(1));
	LAUNCH(count_up<<<1, 1>>>((unsigned *)address, 1));
	EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

/* Where memory may move nobody is given access to another device's. */
static void movable(void)
{
	CUdeviceptr address = map(make(0, unit), unit);

	DRIVER_CODE(CUDA_ERROR_INVALID_DEVICE, allow(address, unit, 1));
	DRIVER(allow(address, unit, 0));
	CUDA(cudaMemset((void *)address, 1, unit));
	CUDA(cudaSetDevice(1));
	EXPECT_EQ(0x01010101u, word_at(address));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	CUmemAllocationProp prop = prop_of(1);

	CUDA(cudaFree(NULL));
	find_functions();
	DRIVER(cuMemGetAllocationGranularity_p(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (!strcmp(what, "each"))
		each();
	else if (!strcmp(what, "both"))
		both();
	else if (!strcmp(what, "alone"))
		alone();
	else if (!strcmp(what, "unmapped"))
		unmapped();
	else if (!strcmp(what, "fault") || !strcmp(what, "taken"))
		fault(!strcmp(what, "taken"));
	else if (!strcmp(what, "movable"))
		movable();
	else
		return 2;
	printf("verified=yes\n");
	return 0;
}
