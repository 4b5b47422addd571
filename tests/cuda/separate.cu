/*
 * Separate compilation (nvcc -rdc=true): a kernel here calls a function and reads
 * variables that separate_device.cu defines, managed ones too, and launches follow from both
 * files.
 */
#include "separate.h"

__device__ int from_main = 100;
static __managed__ int own_variable = 1;

static __global__ void kernel(int *place)
{
	*place = device_function(*place) + device_variable + device_constants[1];
	shared_variable *= 10;
}

int main(void)
{
	int value = 7, *place;

	CUDA(cudaMalloc(&place, sizeof(*place)));
	CUDA(cudaMemcpy(place, &value, sizeof(value), cudaMemcpyHostToDevice));
	LAUNCH(kernel<<<1, 1>>>(place));
	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(7 * 3 + 100 + 1000 + 20, value);
	value = 5000;
	CUDA(cudaMemcpyToSymbol(device_variable, &value, sizeof(value)));
	launch_device(place);
	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(5000 + 30, value);
	EXPECT_EQ(4 * 10 + 60000, shared_variable);
	EXPECT_EQ(1, own_variable);
	CUDA(cudaFree(place));
	return 0;
}
