/*
 * Managed memory: the program and kernels use it by one pointer, it is copied like memory of
 * either, and advice about it is checked and remembered. The codes of wrong uses.
 */
#include "test.h"

#include <vector>

#define KIB ((size_t)1024)

static const struct cudaMemLocation device_0 = {cudaMemLocationTypeDevice, 0};
static const struct cudaMemLocation host_memory = {cudaMemLocationTypeHost, 0};

struct node {
	struct node *next;
	int value;
};

static __global__ void add_along(struct node *node, int more)
{
	for (; node; node = node->next)
		node->value += more;
}

static __global__ void add_one(unsigned char *bytes, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		bytes[i]++;
}

/* Pointers inside it mean the same on both sides. */
static void list(void)
{
	struct node *nodes;

	CUDA(cudaMallocManaged(&nodes, 100 * sizeof(*nodes)));
	for (int i = 0; i < 100; i++)
		nodes[i] = {i < 99 ? &nodes[i + 1] : NULL, i};
	for (int round = 1; round <= 3; round++) {
		LAUNCH(add_along<<<1, 1>>>(nodes, 1000));
		CUDA(cudaDeviceSynchronize());
		for (int i = 0; i < 100; i++)
			EXPECT_EQ(i + 1000 * round + round - 1, nodes[i].value++);
	}
	CUDA(cudaFree(nodes));
}

/* Between all kinds of memory; what has been copied is there when the call returns. */
static void copies(void)
{
	const size_t sizes[] = {1000, 200 * KIB};

	for (size_t bytes : sizes) {
		std::vector<unsigned char> host(bytes);
		unsigned char *managed, *other, *device, *pinned;

		CUDA(cudaMallocManaged(&managed, bytes));
		CUDA(cudaMallocManaged(&other, bytes, cudaMemAttachHost));
		CUDA(cudaMalloc(&device, bytes));
		CUDA(cudaMallocHost(&pinned, bytes));
		test_fill(host.data(), bytes, 1);
		CUDA(cudaMemcpy(managed, host.data(), bytes, cudaMemcpyHostToDevice));
		EXPECT_EQ(bytes, test_compare(managed, bytes, 1));
		LAUNCH(add_one<<<(unsigned)(bytes + 255) / 256, 256>>>(managed, (unsigned)bytes));
		CUDA(cudaMemcpy(device, managed, bytes, cudaMemcpyDefault));
		CUDA(cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice));
		for (size_t i = 0; i < bytes; i++)
			EXPECT_EQ((unsigned char)(test_byte(i, 1) + 1), other[i]);
		CUDA(cudaMemset(managed, 9, bytes));
		EXPECT_EQ(9, managed[bytes - 1]);
		CUDA(cudaMemcpy(managed, other, bytes, cudaMemcpyDefault));
		CUDA(cudaMemcpy(pinned, managed, bytes, cudaMemcpyDeviceToHost));
		EXPECT(!memcmp(pinned, other, bytes));
		CUDA(cudaMemcpyAsync(host.data(), managed, bytes, cudaMemcpyDefault));
		CUDA(cudaDeviceSynchronize());
		EXPECT(!memcmp(host.data(), other, bytes));
		CUDA(cudaFree(managed));
		CUDA(cudaFree(other));
		CUDA(cudaFree(device));
		CUDA(cudaFreeHost(pinned));
	}
}

static int range_attribute(enum cudaMemRangeAttribute attribute, const void *memory, size_t bytes)
{
	int value = 12345;

	CUDA(cudaMemRangeGetAttribute(&value, sizeof(value), attribute, memory, bytes));
	return value;
}

/* Only where the device and the processor may use it at the same time. */
static void advice(void)
{
	const size_t bytes = 512 * KIB;
	int who[3], concurrent;
	char *memory;

	CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	if (!concurrent)
		return;
	CUDA(cudaMallocManaged(&memory, bytes));
	EXPECT_EQ(0, range_attribute(cudaMemRangeAttributeReadMostly, memory, bytes));
	EXPECT_EQ(cudaInvalidDeviceId,
		  range_attribute(cudaMemRangeAttributePreferredLocation, memory, bytes));
	CUDA(cudaMemAdvise(memory, bytes, cudaMemAdviseSetReadMostly, device_0));
	EXPECT_EQ(1, range_attribute(cudaMemRangeAttributeReadMostly, memory, bytes));
	CUDA(cudaMemAdvise(memory, bytes / 2, cudaMemAdviseUnsetReadMostly, device_0));
	EXPECT_EQ(0, range_attribute(cudaMemRangeAttributeReadMostly, memory, bytes));
	EXPECT_EQ(1,
		  range_attribute(cudaMemRangeAttributeReadMostly, memory + bytes / 2, bytes / 2));
	CUDA(cudaMemAdvise(memory, bytes, cudaMemAdviseUnsetReadMostly, device_0));
	CUDA(cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, host_memory));
	EXPECT_EQ(cudaCpuDeviceId,
		  range_attribute(cudaMemRangeAttributePreferredLocation, memory, bytes));
	EXPECT_EQ(cudaMemLocationTypeHost,
		  range_attribute(cudaMemRangeAttributePreferredLocationType, memory, bytes));
	CUDA(cudaMemAdvise(memory, bytes, cudaMemAdviseSetAccessedBy, device_0));
	CUDA(cudaMemRangeGetAttribute(who, sizeof(who), cudaMemRangeAttributeAccessedBy, memory,
				      bytes));
	EXPECT_EQ(0, who[0]);
	EXPECT_EQ(cudaInvalidDeviceId, who[1]);
	CUDA(cudaMemPrefetchAsync(memory, bytes, device_0, 0, NULL));
	EXPECT_EQ(0, range_attribute(cudaMemRangeAttributeLastPrefetchLocation, memory, bytes));
	CUDA(cudaMemPrefetchAsync(memory, bytes, host_memory, 0, NULL));
	CUDA(cudaDeviceSynchronize());
	memset(memory, 1, bytes);
	CUDA(cudaFree(memory));
}

static void attributes(void)
{
	struct cudaPointerAttributes got;
	struct cudaDeviceProp properties;
	char *memory;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	EXPECT(properties.managedMemory);
	CUDA(cudaMallocManaged(&memory, 100));
	CUDA(cudaPointerGetAttributes(&got, memory + 10));
	EXPECT_EQ(cudaMemoryTypeManaged, got.type);
	EXPECT(got.hostPointer == memory + 10 && got.devicePointer == memory + 10);
	CUDA(cudaStreamAttachMemAsync(NULL, memory, 0, cudaMemAttachGlobal));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(memory));
}

static void wrong_uses(void)
{
	const struct cudaMemLocation no_device = {cudaMemLocationTypeDevice, 99};
	char *memory, *device;
	int value;
	void *other;

	CUDA(cudaMallocManaged(&memory, 4 * KIB));
	CUDA(cudaMalloc(&device, 64 * KIB));
	CUDA(cudaMallocManaged(&other, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocManaged(&other, 16, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocManaged(&other, 16, cudaMemAttachSingle));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocManaged((void **)NULL, 16));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFree(memory + 16));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(memory));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(memory, device, 64 * KIB, cudaMemcpyDefault));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemAdvise(device, 16, cudaMemAdviseSetReadMostly, device_0));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemAdvise(memory, 16, (enum cudaMemoryAdvise)77, device_0));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemAdvise(memory, 16, cudaMemAdviseSetPreferredLocation, no_device));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaMemPrefetchAsync(memory, 16, no_device, 0, NULL));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemPrefetchAsync(device, 16, device_0, 0, NULL));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemPrefetchAsync(memory, 0, device_0, 0, NULL));
	EXPECT_CODE(
		cudaErrorInvalidValue,
		cudaMemRangeGetAttribute(&value, 2, cudaMemRangeAttributeReadMostly, memory, 16));
	CUDA(cudaFree(memory));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFree(memory));
	CUDA(cudaFree(device));
	cudaGetLastError();
}

int main(void)
{
	list();
	copies();
	advice();
	attributes();
	wrong_uses();
	CUDA(cudaDeviceSynchronize());
	return 0;
}
