/*
 * Pinned memory: allocation, copies that the program does not wait for, kernels that
 * use it, what a pointer points to, and the codes of wrong uses.
 */
#include "test.h"

#include <vector>

#define KIB ((size_t)1024)

static __global__ void add_one(unsigned char *bytes, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		bytes[i]++;
}

static __global__ void sum_into(const unsigned *values, unsigned count, unsigned *sum)
{
	for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
		atomicAdd(sum, values[i]);
}

/* In and out at odd places, each byte compared, while the program does not wait in between. */
static void copies(void)
{
	const size_t sizes[] = {1, 4095, 64 * KIB, 64 * KIB + 1, 700 * KIB + 3};

	for (size_t bytes : sizes) {
		unsigned char *in, *out, *device;

		CUDA(cudaMallocHost(&in, bytes + 7));
		CUDA(cudaHostAlloc(&out, bytes + 7, cudaHostAllocPortable));
		CUDA(cudaMalloc(&device, bytes));
		test_fill(in + 3, bytes, (unsigned)bytes);
		memset(out, 0xa5, bytes + 7);
		CUDA(cudaMemcpyAsync(device, in + 3, bytes, cudaMemcpyHostToDevice));
		CUDA(cudaMemcpyAsync(out + 5, device, bytes, cudaMemcpyDeviceToHost));
		CUDA(cudaDeviceSynchronize());
		EXPECT_EQ(bytes, test_compare(out + 5, bytes, (unsigned)bytes));
		EXPECT_EQ(0xa5, out[4]);
		EXPECT_EQ(0xa5, out[bytes + 5]);
		CUDA(cudaFreeHost(in));
		CUDA(cudaFreeHost(out));
		CUDA(cudaFree(device));
	}
}

/* What cudaMemcpy() has returned from may be changed, and is there. */
static void synchronous(void)
{
	const size_t sizes[] = {100, 200 * KIB};
	unsigned char *pinned, *device;
	std::vector<unsigned char> host(200 * KIB);

	CUDA(cudaMallocHost(&pinned, 200 * KIB));
	CUDA(cudaMalloc(&device, 200 * KIB));
	for (size_t bytes : sizes) {
		for (unsigned round = 0; round < 8; round++) {
			test_fill(pinned, bytes, round);
			CUDA(cudaMemcpy(device, pinned, bytes, cudaMemcpyHostToDevice));
			memset(pinned, 0, bytes);
			CUDA(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
			EXPECT_EQ(bytes, test_compare(host.data(), bytes, round));
			CUDA(cudaMemcpy(pinned, device, bytes, cudaMemcpyDefault));
			EXPECT_EQ(bytes, test_compare(pinned, bytes, round));
			CUDA(cudaMemcpy(pinned, host.data(), bytes, cudaMemcpyHostToHost));
			CUDA(cudaMemset(pinned, 7, bytes));
			EXPECT_EQ(7, pinned[bytes - 1]);
			CUDA(cudaMemcpy(host.data(), pinned, bytes, cudaMemcpyDefault));
			EXPECT_EQ(7, host[bytes - 1]);
		}
	}
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(device));
}

/* A copy out is behind the kernel, and the kernel behind the copy in. */
static void order(void)
{
	const unsigned bytes = 100000;
	unsigned char *in, *out, *device;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocHost(&in, bytes));
	CUDA(cudaMallocHost(&out, bytes));
	CUDA(cudaMalloc(&device, bytes));
	for (int round = 0; round < 10; round++) {
		memset(in, round, bytes);
		CUDA(cudaMemcpyAsync(device, in, bytes, cudaMemcpyHostToDevice, stream));
		LAUNCH(add_one<<<(bytes + 255) / 256, 256, 0, stream>>>(device, bytes));
		CUDA(cudaMemcpyAsync(out, device, bytes, cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (unsigned i = 0; i < bytes; i += 97)
			EXPECT_EQ(round + 1, out[i]);
	}
	CUDA(cudaFreeHost(in));
	CUDA(cudaFreeHost(out));
	CUDA(cudaFree(device));
	CUDA(cudaStreamDestroy(stream));
}

/* Under unified addressing a kernel takes the program's own pointer. */
static void mapped(void)
{
	const unsigned count = 3000;
	unsigned *values, *device_values, *sum, flags = 0, expected = 0;

	CUDA(cudaHostAlloc(&values, count * sizeof(*values),
			   cudaHostAllocMapped | cudaHostAllocWriteCombined));
	CUDA(cudaMallocHost(&sum, sizeof(*sum)));
	CUDA(cudaHostGetDevicePointer(&device_values, values, 0));
	EXPECT(device_values == values);
	CUDA(cudaHostGetDevicePointer(&device_values, values + 5, 0));
	EXPECT(device_values == values + 5);
	CUDA(cudaHostGetFlags(&flags, values));
	EXPECT_EQ(cudaHostAllocMapped | cudaHostAllocWriteCombined,
		  flags & (cudaHostAllocMapped | cudaHostAllocWriteCombined));
	for (unsigned i = 0; i < count; i++)
		expected += values[i] = i * 3;
	*sum = 0;
	LAUNCH(sum_into<<<1, 256>>>(values, count, sum));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(expected, *sum);
	CUDA(cudaFreeHost(values));
	CUDA(cudaFreeHost(sum));
}

/* Freeing waits for what still uses it: what comes into its place stays as it is. */
static void freed_at_work(void)
{
	for (int round = 0; round < 20; round++) {
		unsigned *pinned, *again;

		CUDA(cudaMallocHost(&pinned, 64 * KIB));
		*pinned = 1;
		LAUNCH(test_work<<<1, 1>>>(pinned, 20000));
		CUDA(cudaFreeHost(pinned));
		CUDA(cudaMallocHost(&again, 64 * KIB));
		*again = 5;
		CUDA(cudaDeviceSynchronize());
		EXPECT_EQ(5, *again);
		CUDA(cudaFreeHost(again));
	}
}

static void attributes(void)
{
	struct cudaPointerAttributes got;
	char *pinned, *device, own;

	CUDA(cudaMallocHost(&pinned, 100));
	CUDA(cudaMalloc(&device, 100));
	CUDA(cudaPointerGetAttributes(&got, pinned + 10));
	EXPECT_EQ(cudaMemoryTypeHost, got.type);
	EXPECT(got.hostPointer == pinned + 10 && got.devicePointer == pinned + 10);
	CUDA(cudaPointerGetAttributes(&got, device + 10));
	EXPECT_EQ(cudaMemoryTypeDevice, got.type);
	EXPECT_EQ(0, got.device);
	EXPECT(got.devicePointer == device + 10 && got.hostPointer == NULL);
	CUDA(cudaPointerGetAttributes(&got, &own));
	EXPECT_EQ(cudaMemoryTypeUnregistered, got.type);
	EXPECT(got.devicePointer == NULL);
	EXPECT_CODE(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, pinned));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(device));
	cudaGetLastError();
}

static void wrong_uses(void)
{
	char *pinned, *device, own[16];
	unsigned flags;
	void *other;

	CUDA(cudaMallocHost(&pinned, 4 * KIB));
	CUDA(cudaMalloc(&device, 64 * KIB));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostAlloc(&other, 16, 0x80));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocHost((void **)NULL, 16));
	EXPECT_CODE(cudaErrorMemoryAllocation, cudaMallocHost(&other, (size_t)1 << 50));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(own));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(device));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(pinned + 16));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFree(pinned));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostGetDevicePointer(&other, own, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostGetDevicePointer(&other, pinned, 1));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostGetFlags(&flags, own));
	/* 4 KiB are pinned. */
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy(device, pinned, 64 * KIB, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy(pinned, device, 64 * KIB, cudaMemcpyDeviceToHost));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpyAsync(device + 60 * KIB, pinned, 5 * KIB, cudaMemcpyHostToDevice));
	CUDA(cudaFreeHost(NULL));
	CUDA(cudaFreeHost(pinned));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(pinned));
	CUDA(cudaFree(device));
	cudaGetLastError();
}

int main(void)
{
	copies();
	synchronous();
	order();
	mapped();
	freed_at_work();
	attributes();
	wrong_uses();
	CUDA(cudaDeviceSynchronize());
	return 0;
}
