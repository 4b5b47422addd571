/*
 * CUDA before main() and after it: constructors and destructors of global objects call
 * the runtime.
 */
#include "test.h"

static __global__ void add(int *place, int value)
{
	*place += value;
}

struct early {
	int *place;

	early()
	{
		CUDA(cudaMalloc(&place, sizeof(*place)));
		CUDA(cudaMemset(place, 0, sizeof(*place)));
		LAUNCH(add<<<1, 1>>>(place, 5));
	}

	/* At the end the runtime may already be going down, which it says by this code. */
	~early()
	{
		cudaError_t code = cudaFree(place);

		if (code != cudaErrorCudartUnloading)
			CUDA(code);
	}
};

static struct early early;

int main(void)
{
	int value = 0;

	LAUNCH(add<<<1, 1>>>(early.place, 6));
	CUDA(cudaMemcpy(&value, early.place, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(11, value);
	return 0;
}
