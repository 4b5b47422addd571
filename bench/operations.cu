/*
 * Calls one of CUDA's operations again and again, for bench instructions to count what the
 * library does for it. An ordinary CUDA program.
 *
 * usage: operations OPERATION COUNT     status 1: a call failed; 2: what it knows
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call) check((call), #call)

static void check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "operations: %s: %s\n", call, cudaGetErrorString(error));
	exit(1);
}

__global__ void empty(void)
{
}

__global__ void with_params(char *pointer, int number, float real, double precise)
{
	if (number > 0)
		*pointer = (char)(real + precise);
}

static char *device;
static int word;

static void launch(int)
{
	empty<<<1, 1>>>();
}

static void launch_params(int i)
{
	with_params<<<1, 1>>>(device, -i, 1.0f, 2.0);
}

static void launch_sync(int)
{
	empty<<<1, 1>>>();
	CUDA(cudaDeviceSynchronize());
}

static void sync_idle(int)
{
	CUDA(cudaDeviceSynchronize());
}

static void copy_in(int)
{
	CUDA(cudaMemcpy(device, &word, sizeof(word), cudaMemcpyHostToDevice));
}

static void copy_out(int)
{
	CUDA(cudaMemcpy(&word, device, sizeof(word), cudaMemcpyDeviceToHost));
}

static void malloc_free(int)
{
	void *memory;

	CUDA(cudaMalloc(&memory, 1 << 20));
	CUDA(cudaFree(memory));
}

static const struct operation {
	const char *name;
	void (*run)(int i);
} operations[] = {
	{"launch", launch},	      {"launch_params", launch_params},
	{"launch_sync", launch_sync}, {"sync_idle", sync_idle},
	{"copy_in_4B", copy_in},      {"copy_out_4B", copy_out},
	{"malloc_free", malloc_free},
};

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;

	for (const struct operation &operation : operations) {
		if (count <= 0 || strcmp(argv[1], operation.name))
			continue;
		CUDA(cudaMalloc(&device, 256));
		for (int i = 0; i < count; i++)
			operation.run(i);
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaGetLastError());
		return 0;
	}
	fprintf(stderr, "usage: operations OPERATION COUNT, of:");
	for (const struct operation &operation : operations)
		fprintf(stderr, " %s", operation.name);
	fprintf(stderr, "\n");
	return 2;
}
