/*
 * What copies between host and device cost: the time of small ones, and the rate of all
 * sizes, for host memory that is pageable, pinned, or registered.
 */
#include "measure.h"

#include <string>

#define LOOP	   200
#define SMALL	   4
#define BATCH	   (4 << 20) /* bytes that a sample copies at least */
#define PAGE	   4096
#define LARGE	   (16 << 20) /* from which on fewer samples do */
#define LARGE_PART 3

static const struct {
	const char *name;
	size_t bytes;
} sizes[] = {
	{"4KiB", 4 << 10},   {"64KiB", 64 << 10}, {"1MiB", 1 << 20},
	{"16MiB", 16 << 20}, {"64MiB", 64 << 20}, {"512MiB", 512 << 20},
};

static long samples = 9, max_mib = 512;

/* Host memory of one of three kinds. */
struct host_memory {
	const char *name;
	char *(*make)(size_t bytes);
	void (*release)(char *memory);
};

static char *make_pageable(size_t bytes)
{
	char *memory = (char *)aligned_alloc(PAGE, bytes);

	if (!memory) {
		fprintf(stderr, "copy: no %zu bytes of memory\n", bytes);
		exit(1);
	}
	return (char *)memset(memory, 1, bytes);
}

static void release_pageable(char *memory)
{
	free(memory);
}

static char *make_pinned(size_t bytes)
{
	char *memory;

	CUDA(cudaMallocHost(&memory, bytes));
	return (char *)memset(memory, 1, bytes);
}

static void release_pinned(char *memory)
{
	CUDA(cudaFreeHost(memory));
}

static char *make_registered(size_t bytes)
{
	char *memory = make_pageable(bytes);

	CUDA(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
	return memory;
}

static void release_registered(char *memory)
{
	CUDA(cudaHostUnregister(memory));
	free(memory);
}

static const struct host_memory kinds[] = {
	{"pageable", make_pageable, release_pageable},
	{"pinned", make_pinned, release_pinned},
	{"registered", make_registered, release_registered},
};

static double copy_us(char *device, char *host, size_t bytes, bool in, long times)
{
	/* Small copies to the device may return before they are there. */
	return measure_each_us(times, [=](long) {
		CUDA(cudaMemcpy(in ? device : host, in ? host : device, bytes,
				in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
	});
}

static void measure_rate(const char *kind, const char *size, char *device, char *host, size_t bytes,
			 bool in)
{
	std::string name = std::string(kind) + (in ? "_in_" : "_out_") + size;
	long count = bytes >= LARGE ? std::max(samples / LARGE_PART, 1L) : samples;
	long times = std::max(BATCH / (long)bytes, 1L);

	measure(name.c_str(), "GB/s", count,
		[=] { return (double)bytes / copy_us(device, host, bytes, in, times) * 1e-3; });
}

static void measure_kind(const struct host_memory *kind, char *device, size_t max)
{
	char *host = kind->make(max);

	for (const auto &size : sizes) {
		if (size.bytes > max)
			break;
		measure_rate(kind->name, size.name, device, host, size.bytes, true);
		measure_rate(kind->name, size.name, device, host, size.bytes, false);
	}
	kind->release(host);
}

static void measure_small(char *device)
{
	char host[SMALL] = {};

	measure("in_4B", "us", samples, [&] { return copy_us(device, host, SMALL, true, LOOP); });
	measure("out_4B", "us", samples, [&] { return copy_us(device, host, SMALL, false, LOOP); });
}

int main(int argc, char **argv)
{
	size_t max;
	char *device;

	measure_parse(
		argc, argv, "Measures copies between host and device",
		{{"samples", &samples, MEASURE_MAX_SAMPLES, false, "samples of each measurement"},
		 {"max-mib", &max_mib, 512, false, "MiB of the largest copy"}});
	max = (size_t)max_mib << 20;
	measure_print_device();
	CUDA(cudaMalloc(&device, max));
	CUDA(cudaMemset(device, 2, max));
	measure_small(device);
	for (const struct host_memory &kind : kinds)
		measure_kind(&kind, device, max);
	CUDA(cudaFree(device));
	return 0;
}
