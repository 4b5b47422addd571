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

/* Eight that do next to nothing, so that what is measured is the way to the GPU. */
template <int N> __global__ void one_of_eight(int *at, int much)
{
	if (much < 0)
		at[threadIdx.x] = N;
}

typedef void small(int *at, int much);
static small *const eight[] = {one_of_eight<0>, one_of_eight<1>, one_of_eight<2>, one_of_eight<3>,
			       one_of_eight<4>, one_of_eight<5>, one_of_eight<6>, one_of_eight<7>};

/* The same numbers in each run, and no two launches in a row alike. */
static unsigned next_random(void)
{
	static unsigned state = 1;

	state = state * 1103515245u + 12345u;
	return state >> 8;
}

static void launch_any(int *memory)
{
	unsigned any = next_random();

	eight[any % 8]<<<1 + any / 8 % 4, 32 << any / 32 % 3>>>(memory, (int)(any >> 8));
}

/* Fifty kernels as a step of a program has them; @step: of their arguments. */
static void launch_fifty(int *memory, int step)
{
	for (int i = 0; i < 50; i++)
		eight[i * 5 % 8]<<<1 + i % 4, 64>>>(memory, step * 50 + i);
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

static void measure_waits(int *memory)
{
	measure("launch_sync", "us", samples, [] {
		return measure_each_us(LOOP, [](long) {
			empty<<<1, 1>>>();
			CUDA(cudaDeviceSynchronize());
		});
	});
	measure("launch_sustained", "us", samples,
		[] { return measure_each_us(sustained, [](long) { empty<<<1, 1>>>(); }); });
	measure("launch_any", "us", samples,
		[=] { return measure_each_us(sustained, [=](long) { launch_any(memory); }); });
	measure("launch_fifty_new", "us", samples, [=] {
		return measure_each_us(sustained / 50 + 1,
				       [=](long i) { launch_fifty(memory, (int)i); }) /
		       50;
	});
	measure("launch_fifty_same", "us", samples, [=] {
		return measure_each_us(sustained / 50 + 1, [=](long) { launch_fifty(memory, 1); }) /
		       50;
	});
	measure("sync_idle", "us", samples,
		[] { return measure_each_us(LOOP, [](long) { CUDA(cudaDeviceSynchronize()); }); });
}

int main(int argc, char **argv)
{
	int *memory;

	measure_parse(
		argc, argv, "Measures what launches and synchronizations cost",
		{{"samples", &samples, MEASURE_MAX_SAMPLES, false, "samples of each measurement"},
		 {"sustained", &sustained, 100000000, false,
		  "launches in a row without a synchronization"}});
	measure_print_device();
	CUDA(cudaMalloc(&memory, 4096));
	measure_calls((char *)memory);
	measure_waits(memory);
	CUDA(cudaFree(memory));
	return 0;
}
