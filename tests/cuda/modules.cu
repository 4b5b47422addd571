/*
 * A program of two files, each with a fat binary of its own: kernels and variables of
 * the same names are two, and either file's kernels work on the other's memory. The
 * second file is modules_other.cu.
 */
#include "modules.h"

static __device__ int shared_name = 1;

static __global__ void kernel(int *place)
{
	*place = *place * 10 + shared_name;
}

/* Not launched by anyone: a module is more than the kernels that are used. */
__global__ void never_launched(int *place)
{
	*place = -1;
}

int main(void)
{
	int value = 0, *place;

	CUDA(cudaMalloc(&place, sizeof(*place)));
	CUDA(cudaMemset(place, 0, sizeof(*place)));
	LAUNCH(kernel<<<1, 1>>>(place));
	other_launch(place);
	CUDA(cudaMemcpyFromSymbol(&value, shared_name, sizeof(value)));
	EXPECT_EQ(1, value);
	value = 3;
	CUDA(cudaMemcpyToSymbol(shared_name, &value, sizeof(value)));
	EXPECT_EQ(2, other_variable());
	LAUNCH(kernel<<<1, 1>>>(place));
	other_launch(place);
	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(1232, value);
	CUDA(cudaFree(place));
	return 0;
}
