/* The second file of the test modules; see modules.cu. */
#include "modules.h"

static __device__ int shared_name = 2;

static __global__ void kernel(int *place)
{
	*place = *place * 10 + shared_name;
}

void other_launch(int *place)
{
	LAUNCH(kernel<<<1, 1>>>(place));
}

int other_variable(void)
{
	int value;

	CUDA(cudaMemcpyFromSymbol(&value, shared_name, sizeof(value)));
	return value;
}
