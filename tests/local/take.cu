/*
 * Takes device memory and ends with it: `take BYTES...` allocates and fills each, and
 * says "verified=yes" where all of them could be had.
 */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static int fail(const char *what, cudaError_t error)
{
	fprintf(stderr, "take: %s: %s\n", what, cudaGetErrorString(error));
	return 1;
}

int main(int argc, char **argv)
{
	int last = 0;

	for (int i = 1; i < argc; i++) {
		size_t bytes = strtoull(argv[i], nullptr, 0);
		void *memory;
		cudaError_t error = cudaMalloc(&memory, bytes);

		if (error)
			return fail("cudaMalloc", error);
		error = cudaMemset(memory, 7, bytes);
		if (!error)
			error = cudaMemcpy(&last, memory, 4, cudaMemcpyDeviceToHost);
		if (error)
			return fail("memory", error);
	}
	printf("verified=%s\n", last == 0x07070707 ? "yes" : "no");
	return 0;
}
