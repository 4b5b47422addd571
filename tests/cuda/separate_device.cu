/* The second file of the test separate; see separate.cu. */
#include "separate.h"

__device__ int device_variable = 1000;
__constant__ int device_constants[3] = {10, 20, 30};
__managed__ int shared_variable = 4;
static __managed__ int own_variable = 60000;

__device__ int device_function(int value)
{
	return value * 3 + from_main;
}

static __global__ void kernel(int *place)
{
	*place = device_variable + device_constants[2];
	shared_variable += own_variable;
}

void launch_device(int *place)
{
	LAUNCH(kernel<<<1, 1>>>(place));
}
