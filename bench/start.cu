/*
 * What the beginning of a program costs: its first CUDA call, which makes the context, and
 * its first kernel, which loads the module. With --hold it then says so, in a line
 * "held", and does nothing until its standard input ends.
 */
#include "measure.h"

__global__ void empty(void)
{
}

static void hold(void)
{
	printf("held\n");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
}

int main(int argc, char **argv)
{
	long held = 0;
	double start, called, launched;

	measure_parse(argc, argv, "Measures a program's first CUDA call and first kernel",
		      {{"hold", &held, 1, true, "then wait until standard input ends"}});
	start = measure_now_us();
	CUDA(cudaFree(NULL));
	called = measure_now_us();
	empty<<<1, 1>>>();
	CUDA(cudaDeviceSynchronize());
	launched = measure_now_us();
	measure_print_device();
	measure_report("first_call", "ms", {(called - start) * 1e-3});
	measure_report("first_kernel", "ms", {(launched - called) * 1e-3});
	if (held)
		hold();
	return 0;
}
