/*
 * Device memory: allocation, copies of awkward sizes between odd addresses in every
 * direction, fills, and their order within a stream. Every byte is compared, also those
 * around the range that must not change.
 */
#include "test.h"

#include <vector>

#define KIB  ((size_t)1024)
#define MIB  (KIB * 1024)
#define EDGE 64 /* bytes around a range that must stay as they were */

static const size_t sizes[] = {
	1, 3, 4 * KIB - 1, 4 * KIB, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 5 * MIB + 3};
static const size_t offsets[] = {0, 1, 7};

/* Host to device, device to device, device to host, all at odd places. */
static void round_trip(size_t bytes, size_t from, size_t to, enum cudaMemcpyKind in,
		       enum cudaMemcpyKind between, enum cudaMemcpyKind out)
{
	std::vector<unsigned char> source(bytes + EDGE), result(bytes + 2 * EDGE, 0xa5);
	unsigned seed = (unsigned)(bytes + from * 3 + to * 5);
	char *first, *second;

	CUDA(cudaMalloc(&first, bytes + 2 * EDGE));
	CUDA(cudaMalloc(&second, bytes + 2 * EDGE));
	CUDA(cudaMemset(second, 0x5a, bytes + 2 * EDGE));
	test_fill(source.data() + from, bytes, seed);
	CUDA(cudaMemcpy(first + from, source.data() + from, bytes, in));
	CUDA(cudaMemcpy(second + EDGE + to, first + from, bytes, between));
	CUDA(cudaMemcpy(result.data() + to, second + EDGE + to, bytes, out));
	if (test_compare(result.data() + to, bytes, seed) != bytes)
		FAIL("%zu bytes from +%zu to +%zu: wrong at %zu", bytes, from, to,
		     test_compare(result.data() + to, bytes, seed));
	for (size_t i = 0; i < to; i++)
		EXPECT_EQ(0xa5, result[i]);
	for (size_t i = to + bytes; i < result.size(); i++)
		EXPECT_EQ(0xa5, result[i]);
	CUDA(cudaMemcpy(result.data(), second, EDGE + to, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < EDGE + to; i++)
		EXPECT_EQ(0x5a, result[i]);
	CUDA(cudaMemcpy(result.data(), second + EDGE + to + bytes, EDGE - to,
			cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < EDGE - to; i++)
		EXPECT_EQ(0x5a, result[i]);
	CUDA(cudaFree(second));
	CUDA(cudaFree(first));
}

static void copies(void)
{
	for (size_t bytes : sizes)
		for (size_t from : offsets)
			round_trip(bytes, from, offsets[bytes % 3], cudaMemcpyHostToDevice,
				   cudaMemcpyDeviceToDevice, cudaMemcpyDeviceToHost);
	round_trip(70000, 1, 7, cudaMemcpyDefault, cudaMemcpyDefault, cudaMemcpyDefault);
}

static void host_to_host(void)
{
	unsigned char from[100], to[100] = {};

	test_fill(from, sizeof(from), 1);
	CUDA(cudaMemcpy(to, from, 50, cudaMemcpyHostToHost));
	CUDA(cudaMemcpy(to + 50, from + 50, 50, cudaMemcpyDefault));
	EXPECT_EQ(sizeof(to), test_compare(to, sizeof(to), 1));
}

/* Every value, on ranges that begin and end anywhere. */
static void fills(void)
{
	const size_t space = 1024;
	unsigned char result[space], wanted[space];
	cudaStream_t stream;
	unsigned char *device;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&device, space));
	for (int value = 0; value < 256; value++) {
		size_t begin = value % 9, bytes = 1 + (value * 37) % (space - 16);

		memset(wanted, ~value, space);
		memset(wanted + begin, value, bytes);
		CUDA(cudaMemsetAsync(device, ~value, space, stream));
		/* Only the lowest byte of the value counts. */
		CUDA(cudaMemsetAsync(device + begin, value | 0x1200, bytes, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(result, device, space, cudaMemcpyDeviceToHost));
		if (memcmp(result, wanted, space))
			FAIL("fill with %d: wrong", value);
	}
	CUDA(cudaFree(device));
	CUDA(cudaStreamDestroy(stream));
}

static __global__ void add_one(unsigned char *bytes, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		bytes[i]++;
}

/*
 * A stream is in order: fill, kernel, copies between and out. Pageable memory given to
 * an asynchronous copy may be changed as soon as the call has returned.
 */
static void stream_order(void)
{
	const unsigned bytes = 20000, blocks = (bytes + 255) / 256;
	std::vector<unsigned char> host(bytes), result(bytes);
	unsigned char *a, *b;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&a, bytes));
	CUDA(cudaMalloc(&b, bytes));
	for (int round = 0; round < 20; round++) {
		CUDA(cudaMemsetAsync(a, round, bytes, stream));
		LAUNCH(add_one<<<blocks, 256, 0, stream>>>(a, bytes));
		CUDA(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream));
		memset(host.data(), 100 + round, bytes);
		CUDA(cudaMemcpyAsync(a, host.data(), bytes, cudaMemcpyHostToDevice, stream));
		memset(host.data(), 0, bytes);
		LAUNCH(add_one<<<blocks, 256, 0, stream>>>(a, bytes));
		CUDA(cudaMemcpyAsync(b, a, bytes / 2, cudaMemcpyDeviceToDevice, stream));
		CUDA(cudaMemsetAsync(a, 0, bytes, stream));
		CUDA(cudaMemcpyAsync(result.data(), b, bytes, cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (unsigned i = 0; i < bytes; i++)
			EXPECT_EQ(i < bytes / 2 ? 101 + round : round + 1, result[i]);
	}
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaStreamDestroy(stream));
}

/* Many allocations at once: aligned, apart from each other, each keeps its content. */
static void allocations(void)
{
	const int count = 200;
	std::vector<unsigned char *> memory(count);
	std::vector<unsigned char> host(4096);

	for (int i = 0; i < count; i++) {
		size_t bytes = 1 + (size_t)(i * 131) % 4000;

		CUDA(cudaMalloc(&memory[i], bytes));
		EXPECT_EQ(0, (uintptr_t)memory[i] % 256);
		test_fill(host.data(), bytes, i);
		CUDA(cudaMemcpy(memory[i], host.data(), bytes, cudaMemcpyHostToDevice));
	}
	for (int i = 0; i < count; i++) {
		size_t bytes = 1 + (size_t)(i * 131) % 4000;

		CUDA(cudaMemcpy(host.data(), memory[i], bytes, cudaMemcpyDeviceToHost));
		EXPECT_EQ(bytes, test_compare(host.data(), bytes, i));
		if (i % 2)
			CUDA(cudaFree(memory[i]));
	}
	for (int i = 0; i < count; i += 2)
		CUDA(cudaFree(memory[i]));
}

static void limits(void)
{
	size_t before, during, after, total;
	void *memory;

	CUDA(cudaMemGetInfo(&before, &total));
	EXPECT(total > 0 && before <= total);
	EXPECT_CODE(cudaErrorMemoryAllocation, cudaMalloc(&memory, total + MIB));
	EXPECT_CODE(cudaErrorMemoryAllocation, cudaGetLastError());
	CUDA(cudaMalloc(&memory, 64 * MIB));
	CUDA(cudaMemGetInfo(&during, &total));
	EXPECT(during + 64 * MIB <= before);
	CUDA(cudaFree(memory));
	CUDA(cudaMemGetInfo(&after, &total));
	EXPECT(after >= during + 64 * MIB);
	/* What was freed is there again, more often than it fits at once. */
	for (size_t used = 0; used < 4 * total; used += total / 4) {
		CUDA(cudaMalloc(&memory, total / 4));
		CUDA(cudaFree(memory));
	}
}

int main(void)
{
	copies();
	host_to_host();
	fills();
	stream_order();
	allocations();
	limits();
	return 0;
}
