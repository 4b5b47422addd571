/*
 * Variables of a program that live on the device: initial values, copies to and from
 * them with and without offsets, addresses and sizes, and kernels that see the changes.
 */
#include "test.h"

#define COUNT 100

struct pair {
	char tag;
	double value;
};

__device__ int number = 42;
__device__ unsigned char bytes[3] = {1, 2, 3};
static __device__ float table[COUNT];
__constant__ int factors[4] = {2, 3, 5, 7};
__constant__ struct pair pair = {'x', 0.5};
__device__ const char *text = "device text";
__device__ int *pointer_to_number = &number;

namespace inner
{
__device__ long long number = -1;
}

template <typename T> __device__ T of_type = 9;

static __global__ void read_all(long long *seen)
{
	seen[0] = number;
	seen[1] = bytes[0] | bytes[1] << 8 | bytes[2] << 16;
	seen[2] = factors[0] * factors[1] * factors[2] * factors[3];
	seen[3] = pair.tag;
	seen[4] = (long long)(pair.value * 4);
	seen[5] = text[7];
	seen[6] = *pointer_to_number;
	seen[7] = inner::number;
	seen[8] = of_type<short>;
}

static __global__ void write_all(void)
{
	unsigned i = threadIdx.x;

	table[i] = (float)(i * factors[i % 4]);
	if (i == 0) {
		number = 1000;
		inner::number -= 1;
	}
}

static void expect_seen(const long long (&wanted)[9])
{
	long long *device, seen[9];

	CUDA(cudaMalloc(&device, sizeof(seen)));
	LAUNCH(read_all<<<1, 1>>>(device));
	CUDA(cudaMemcpy(seen, device, sizeof(seen), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 9; i++)
		if (seen[i] != wanted[i])
			FAIL("variable %d is %lld, not %lld", i, seen[i], wanted[i]);
	CUDA(cudaFree(device));
}

static void copies(void)
{
	static const int new_factors[4] = {11, 13, 17, 19};
	const struct pair new_pair = {'y', 0.25};
	unsigned char middle = 9, all[3];
	cudaStream_t stream;
	int last = 23;

	CUDA(cudaMemcpyToSymbol(factors, new_factors, sizeof(new_factors)));
	CUDA(cudaMemcpyToSymbol(factors, &last, sizeof(last), 3 * sizeof(last)));
	CUDA(cudaMemcpyToSymbol(bytes, &middle, 1, 1));
	CUDA(cudaMemcpyFromSymbol(all, bytes, sizeof(all)));
	EXPECT(all[0] == 1 && all[1] == 9 && all[2] == 3);
	CUDA(cudaMemcpyFromSymbol(&last, factors, sizeof(last), 2 * sizeof(last)));
	EXPECT_EQ(17, last);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMemcpyToSymbolAsync(pair, &new_pair, sizeof(new_pair), 0, cudaMemcpyHostToDevice,
				     stream));
	CUDA(cudaMemcpyFromSymbolAsync(&last, number, sizeof(last), 0, cudaMemcpyDeviceToHost,
				       stream));
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(42, last);
	CUDA(cudaStreamDestroy(stream));
	expect_seen({42, 0x30901, 11 * 13 * 17 * 23, 'y', 1, 't', 42, -1, 9});
}

static void addresses(void)
{
	void *address;
	size_t size;
	int value;

	CUDA(cudaGetSymbolSize(&size, table));
	EXPECT_EQ(COUNT * sizeof(float), size);
	CUDA(cudaGetSymbolSize(&size, bytes));
	EXPECT_EQ(3, size);
	CUDA(cudaGetSymbolSize(&size, pair));
	EXPECT_EQ(sizeof(struct pair), size);
	CUDA(cudaGetSymbolAddress(&address, number));
	value = 77;
	CUDA(cudaMemcpy(address, &value, sizeof(value), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpyFromSymbol(&value, number, sizeof(value)));
	EXPECT_EQ(77, value);
	CUDA(cudaGetSymbolAddress(&address, factors));
	CUDA(cudaMemcpy(&value, (int *)address + 1, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(13, value);
}

static void kernels_write(void)
{
	static const int factors_now[4] = {11, 13, 17, 23};
	float result[COUNT];
	long long count;
	int value;

	LAUNCH(write_all<<<1, COUNT>>>());
	CUDA(cudaMemcpyFromSymbol(result, table, sizeof(result)));
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ(i * factors_now[i % 4], result[i]);
	CUDA(cudaMemcpyFromSymbol(&value, number, sizeof(value)));
	EXPECT_EQ(1000, value);
	CUDA(cudaMemcpyFromSymbol(&count, inner::number, sizeof(count)));
	EXPECT_EQ(-2, count);
}

int main(void)
{
	expect_seen({42, 0x30201, 210, 'x', 2, 't', 42, -1, 9});
	copies();
	addresses();
	kernels_write();
	return 0;
}
