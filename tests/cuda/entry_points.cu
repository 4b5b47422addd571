/*
 * The driver's functions by their names, as programs with tensor maps ask for them: they work on
 * what the runtime has made, and what there is not is told in the ways that there are.
 */
#include <cuda.h>
#include "test.h"

#define VERSION 12000

template <typename Function> static Function find(const char *name)
{
	cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
	void *found = NULL;

	CUDA(cudaGetDriverEntryPointByVersion(name, &found, VERSION, cudaEnableDefault, &status));
	EXPECT_EQ(cudaDriverEntryPointSuccess, status);
	EXPECT(found != NULL);
	return (Function)found;
}

static void called(void)
{
	auto count_devices = find<CUresult (*)(int *)>("cuDeviceGetCount");
	auto fill = find<CUresult (*)(CUdeviceptr, unsigned char, size_t)>("cuMemsetD8");
	int devices = 0, from_driver = 0;
	unsigned char *memory, byte = 0;

	CUDA(cudaGetDeviceCount(&devices));
	EXPECT_EQ(CUDA_SUCCESS, count_devices(&from_driver));
	EXPECT_EQ(devices, from_driver);
	CUDA(cudaMalloc(&memory, 256));
	EXPECT_EQ(CUDA_SUCCESS, fill((CUdeviceptr)memory, 0x5a, 256));
	CUDA(cudaMemcpy(&byte, memory + 255, 1, cudaMemcpyDeviceToHost));
	EXPECT_EQ(0x5a, byte);
	CUDA(cudaFree(memory));
	find<void *>("cuTensorMapEncodeTiled");
}

static void not_there(void)
{
	cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
	void *found = &status;

	CUDA(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &found, VERSION,
					      cudaEnableDefault, &status));
	EXPECT_EQ(cudaDriverEntryPointSymbolNotFound, status);
	EXPECT(found == NULL);
	/* Of CUDA 12.0. */
	CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 11000,
					      cudaEnableDefault, &status));
	EXPECT_EQ(cudaDriverEntryPointVersionNotSufficent, status);
	EXPECT(found == NULL);
	EXPECT_CODE(cudaErrorInvalidValue,
		     cudaGetDriverEntryPointByVersion("cuInit", NULL, VERSION, cudaEnableDefault,
						      &status));
	EXPECT_CODE(cudaErrorInvalidValue,
		     cudaGetDriverEntryPointByVersion("cuInit", &found, VERSION, 77, &status));
}

int main(void)
{
	called();
	not_there();
	return 0;
}
