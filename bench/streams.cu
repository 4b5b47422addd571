/*
 * What a program gets of the GPU's own concurrency: kernels of one block in many streams, which
 * run side by side, and a copy beside a kernel. Kernels count clock cycles, so one that is kept
 * from running takes longer.
 */
#include "measure.h"
#include "spin.h"

#define STREAMS_MAX 32

static long samples = 5, max_us = 100000, copy_mib = 256;
static cudaStream_t streams[STREAMS_MAX];
static double cycles_per_us;

static double side_by_side_us(int count, long kernel_us)
{
	long long cycles = (long long)((double)kernel_us * cycles_per_us);

	return measure_each_us(1, [=](long) {
		for (int i = 0; i < count; i++)
			spin<<<1, 32, 0, streams[i]>>>(cycles);
	});
}

static void measure_streams(void)
{
	const long lengths_us[] = {30, 460, 4500, 18000, 100000};
	const int counts[] = {1, 8, STREAMS_MAX};
	char name[64];

	for (long us : lengths_us) {
		for (int count : counts) {
			if (us > max_us)
				continue;
			snprintf(name, sizeof(name), "streams_%d_%ldus", count, us);
			measure(name, "us", samples, [=] { return side_by_side_us(count, us); });
		}
	}
}

/* A kernel that takes about as long as the copy beside it. */
static void measure_copy(void)
{
	size_t bytes = (size_t)copy_mib << 20;
	void *host, *device;
	long kernel_us;

	CUDA(cudaMallocHost(&host, bytes));
	CUDA(cudaMalloc(&device, bytes));
	auto copy = [=](long) {
		CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, streams[1]));
	};
	measure_each_us(1, copy);
	kernel_us = (long)measure_each_us(1, copy);
	measure("copy_alone", "us", samples, [=] { return measure_each_us(1, copy); });
	measure("copy_beside_kernel", "us", samples, [=] {
		return measure_each_us(1, [=](long) {
			spin<<<1, 32, 0, streams[0]>>>(
				(long long)((double)kernel_us * cycles_per_us));
			copy(0);
		});
	});
	CUDA(cudaFree(device));
	CUDA(cudaFreeHost(host));
}

int main(int argc, char **argv)
{
	measure_parse(argc, argv, "Measures what runs side by side",
		      {{"samples", &samples, MEASURE_MAX_SAMPLES, false,
			"samples of each measurement"},
		       {"max-us", &max_us, 100000, false, "the longest kernels"},
		       {"copy-mib", &copy_mib, 1024, false, "what is copied"}});
	measure_print_device();
	for (cudaStream_t &stream : streams)
		CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	cycles_per_us = calibrate();
	measure_streams();
	measure_copy();
	return 0;
}
