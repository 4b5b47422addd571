/*
 * What it costs to get memory and to give it back. A driver takes device memory in
 * blocks, and keeps a block of which something is in use: so small ones are measured
 * twice, alone and beside another.
 */
#include "measure.h"

#define LOOP   100
#define BESIDE 1024

static long samples = 21;

static void malloc_free(size_t bytes)
{
	void *memory;

	CUDA(cudaMalloc(&memory, bytes));
	CUDA(cudaFree(memory));
}

static double malloc_free_us(size_t bytes)
{
	return measure_each_us(LOOP, [=](long) { malloc_free(bytes); });
}

static double malloc_free_beside_us(size_t bytes)
{
	void *beside;
	double us;

	CUDA(cudaMalloc(&beside, BESIDE));
	us = malloc_free_us(bytes);
	CUDA(cudaFree(beside));
	return us;
}

static double malloc_async_us(size_t bytes)
{
	return measure_each_us(LOOP, [=](long) {
		void *memory;

		CUDA(cudaMallocAsync(&memory, bytes, 0));
		CUDA(cudaFreeAsync(memory, 0));
	});
}

static double malloc_host_us(size_t bytes)
{
	return measure_each_us(LOOP, [=](long) {
		void *memory;

		CUDA(cudaMallocHost(&memory, bytes));
		CUDA(cudaFreeHost(memory));
	});
}

static const struct {
	const char *name;
	double (*sample)(size_t bytes);
	size_t bytes;
} measurements[] = {
	{"malloc_free_256B", malloc_free_us, 256},
	{"malloc_free_256B_beside", malloc_free_beside_us, 256},
	{"malloc_free_1MiB", malloc_free_us, 1 << 20},
	{"malloc_free_1MiB_beside", malloc_free_beside_us, 1 << 20},
	{"malloc_free_64MiB", malloc_free_us, 64 << 20},
	{"malloc_async_256B", malloc_async_us, 256},
	{"malloc_async_1MiB", malloc_async_us, 1 << 20},
	{"malloc_host_1MiB", malloc_host_us, 1 << 20},
};

int main(int argc, char **argv)
{
	measure_parse(
		argc, argv, "Measures getting memory and giving it back",
		{{"samples", &samples, MEASURE_MAX_SAMPLES, false, "samples of each measurement"}});
	measure_print_device();
	for (const auto &m : measurements)
		measure(m.name, "us", samples, [&] { return m.sample(m.bytes); });
	return 0;
}
