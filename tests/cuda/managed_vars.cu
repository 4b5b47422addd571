/*
 * Managed variables: the program and kernels use them by name, each sees what the other has
 * written, and they are managed memory to all that asks for it.
 */
#include "test.h"

#define COUNT 300

struct node {
	int value;
	struct node *next;
};

__managed__ int counter = 5;
__managed__ double factors[4] = {0.5, 2, -3};
__managed__ unsigned char bytes[3][5] = {{1, 2}, {3}};
__managed__ struct node *list;
static __managed__ float hidden = 1.5f;
__device__ __managed__ int numbers[COUNT];
__device__ int plain = 11;

static __global__ void add(int much)
{
	atomicAdd(&counter, much);
	numbers[threadIdx.x] += (int)threadIdx.x + plain;
}

static __global__ void walk(int *sum)
{
	*sum = 0;
	for (const struct node *at = list; at; at = at->next)
		*sum += at->value;
	hidden *= (float)factors[1];
	bytes[2][4] = (unsigned char)(bytes[0][1] + bytes[1][0]);
}

static __global__ void take_address(int **place)
{
	int *own = &numbers[7];

	*place = own;
}

/* The program may be the first to use them. */
static void test_initial_values(void)
{
	EXPECT_EQ(5, counter);
	EXPECT(factors[0] == 0.5 && factors[1] == 2 && factors[2] == -3 && factors[3] == 0);
	EXPECT(bytes[0][1] == 2 && bytes[1][0] == 3 && bytes[2][4] == 0);
	EXPECT(!list && hidden == 1.5f && numbers[COUNT - 1] == 0);
}

static void test_both_sides(void)
{
	counter = 100;
	numbers[3] = 1000;
	LAUNCH(add<<<1, 32>>>(2));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(100 + 64, counter);
	EXPECT_EQ(1000 + 3 + 11, numbers[3]);
	EXPECT_EQ(31 + 11, numbers[31]);
	counter++;
	LAUNCH(add<<<1, 1>>>(1));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(100 + 64 + 2, counter);
}

static void test_structures(void)
{
	struct node *second;
	int *sum;

	CUDA(cudaMallocManaged(&list, sizeof(*list)));
	CUDA(cudaMallocManaged(&second, sizeof(*second)));
	CUDA(cudaMallocManaged(&sum, sizeof(*sum)));
	*second = {40, NULL};
	*list = {2, second};
	LAUNCH(walk<<<1, 1>>>(sum));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(42, *sum);
	EXPECT(hidden == 3.0f);
	EXPECT_EQ(5, bytes[2][4]);
	CUDA(cudaFree(second));
	CUDA(cudaFree(list));
	CUDA(cudaFree(sum));
}

static void test_pointers(void)
{
	struct cudaPointerAttributes attributes;
	int **place;

	CUDA(cudaPointerGetAttributes(&attributes, &numbers[1]));
	EXPECT_EQ(cudaMemoryTypeManaged, attributes.type);
	CUDA(cudaMallocManaged(&place, sizeof(*place)));
	LAUNCH(take_address<<<1, 1>>>(place));
	CUDA(cudaDeviceSynchronize());
	EXPECT(*place == &numbers[7]);
	CUDA(cudaFree(place));
	EXPECT(cudaFree(&counter) != cudaSuccess);
	cudaGetLastError();
	EXPECT(counter > 0);
}

static void test_copies(void)
{
	int some[COUNT], *device;

	for (int i = 0; i < COUNT; i++)
		some[i] = i * i;
	CUDA(cudaMalloc(&device, sizeof(some)));
	CUDA(cudaMemcpy(numbers, some, sizeof(some), cudaMemcpyDefault));
	EXPECT_EQ(17 * 17, numbers[17]);
	CUDA(cudaMemcpy(device, numbers, sizeof(some), cudaMemcpyDefault));
	CUDA(cudaMemset(numbers, 0, sizeof(some)));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(0, numbers[17]);
	CUDA(cudaMemcpy(numbers, device, sizeof(some), cudaMemcpyDefault));
	EXPECT_EQ(299 * 299, numbers[299]);
	CUDA(cudaFree(device));
}

int main(void)
{
	test_initial_values();
	test_both_sides();
	test_structures();
	test_pointers();
	test_copies();
	return 0;
}
