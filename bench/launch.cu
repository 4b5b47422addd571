/* What launches and synchronizations cost. */
#include "measure.h"

#define BATCH 32 /* launches that fit in any queue, so that the call alone is measured */
#define LOOP  200

static long samples = 21, sustained = 10000;

__global__ void empty(void)
{
}

__global__ void with_params(char *pointer, int number, float real, double precise)
{
	if (number > 0)
		*pointer = (char)(real + precise);
}

/* Microseconds that the caller spends in @launch(), while the GPU need not be done. */
template <typename Launch> static double call_us(Launch launch)
{
	double start, end;

	CUDA(cudaDeviceSynchronize());
	start = measure_now_us();
	for (int i = 0; i < BATCH; i++)
		launch(i);
	end = measure_now_us();
	CUDA(cudaDeviceSynchronize());
	return (end - start) / BATCH;
}

static void measure_calls(char *memory)
{
	measure("launch_call", "us", samples,
		[] { return call_us([](int) { empty<<<1, 1>>>(); }); });
	measure("launch_call_params", "us", samples, [=] {
		return call_us([=](int i) { with_params<<<1, 1>>>(memory, -i, 1.0f, 2.0); });
	});
}

static void measure_waits(void)
{
	measure("launch_sync", "us", samples, [] {
		return measure_each_us(LOOP, [](long) {
			empty<<<1, 1>>>();
			CUDA(cudaDeviceSynchronize());
		});
	});
	measure("launch_sustained", "us", samples,
		[] { return measure_each_us(sustained, [](long) { empty<<<1, 1>>>(); }); });
	measure("sync_idle", "us", samples,
		[] { return measure_each_us(LOOP, [](long) { CUDA(cudaDeviceSynchronize()); }); });
}

int main(int argc, char **argv)
{
	char *memory;

	measure_parse(
		argc, argv, "Measures what launches and synchronizations cost",
		{{"samples", &samples, MEASURE_MAX_SAMPLES, false, "samples of each measurement"},
		 {"sustained", &sustained, 100000000, false,
		  "launches in a row without a synchronization"}});
	measure_print_device();
	CUDA(cudaMalloc(&memory, 1));
	measure_calls(memory);
	measure_waits();
	CUDA(cudaFree(memory));
	return 0;
}
