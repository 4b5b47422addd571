/*
 * Large copies of pageable memory: several host threads at once, each in a stream of its own,
 * with sizes that no piece divides. What an asynchronous copy was given may be changed, and what
 * it filled is there, as soon as the call has returned; a kernel before and after sees that the
 * copies are in the order of their stream.
 */
#include "test.h"

#include <thread>
#include <vector>

#define THREADS 4
#define ROUNDS	3

static __global__ void invert(unsigned char *bytes, size_t count)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
		bytes[i] = ~bytes[i];
}

static void expect_inverted(std::vector<unsigned char> &bytes, unsigned seed, int line)
{
	for (unsigned char &byte : bytes)
		byte = (unsigned char)~byte;
	if (test_compare(bytes.data(), bytes.size(), seed) != bytes.size())
		FAIL("line %d, seed %u: wrong at %zu of %zu", line, seed,
		     test_compare(bytes.data(), bytes.size(), seed), bytes.size());
}

static void copy_rows(size_t bytes, unsigned seed)
{
	std::vector<unsigned char> from(bytes), to(bytes);
	unsigned char *device;
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&device, bytes));
	for (int round = 0; round < ROUNDS; round++) {
		test_fill(from.data(), bytes, seed + round);
		CUDA(cudaMemsetAsync(device, 0, bytes, stream));
		CUDA(cudaMemcpyAsync(device, from.data(), bytes, cudaMemcpyHostToDevice, stream));
		memset(from.data(), 0, bytes);
		LAUNCH(invert<<<8, 64, 0, stream>>>(device, bytes));
		CUDA(cudaMemcpyAsync(to.data(), device, bytes, cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		expect_inverted(to, seed + round, __LINE__);
	}
	CUDA(cudaFree(device));
	CUDA(cudaStreamDestroy(stream));
}

/* Rows with gaps, which stay as they are, in both memories. */
static void copy_box(size_t width, size_t height, unsigned seed)
{
	const size_t host_pitch = width + 24;
	std::vector<unsigned char> from(host_pitch * height), to(host_pitch * height, 0xee);
	unsigned char *device;
	size_t pitch;

	CUDA(cudaMallocPitch(&device, &pitch, width, height));
	test_fill(from.data(), from.size(), seed);
	CUDA(cudaMemcpy2D(device, pitch, from.data(), host_pitch, width, height,
			  cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2D(to.data(), host_pitch, device, pitch, width, height,
			  cudaMemcpyDeviceToHost));
	for (size_t y = 0; y < height; y++) {
		if (memcmp(&to[y * host_pitch], &from[y * host_pitch], width))
			FAIL("row %zu of %zu: wrong", y, height);
		for (size_t x = width; x < host_pitch; x++)
			EXPECT_EQ(0xee, to[y * host_pitch + x]);
	}
	CUDA(cudaFree(device));
}

static void run(unsigned self)
{
	copy_rows(((size_t)1 << 20) + 333333 * self + self, self * ROUNDS);
	copy_box(1000 + self, 2000, self);
}

int main(void)
{
	std::vector<std::thread> threads;

	for (unsigned i = 0; i < THREADS; i++)
		threads.emplace_back(run, i);
	for (std::thread &thread : threads)
		thread.join();
	copy_rows(((size_t)9 << 20) + 1, 7);
	copy_box(((size_t)3 << 20) + 5, 2, 9);
	return 0;
}
