/*
 * A program with several devices, in the manner of one thread for all and of one for each: what
 * each computes, and what goes between them. Its first argument is what it does, its second one how
 * many devices it must find.
 */
#include "../cuda/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define COUNT	   (1u << 16)
#define BYTES	   (COUNT * sizeof(unsigned))
#define LARGE	   (9u << 20) /* more than goes between devices at once */
#define DEVICE_MAX 16

__device__ unsigned bias = 5;
__device__ unsigned waits;

__global__ void add(unsigned *data, unsigned count, unsigned more)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] += more + bias;
}

__global__ void await(volatile unsigned *flag)
{
	while (!*flag)
		continue;
	waits = 1;
}

struct work {
	cudaStream_t stream;
	cudaEvent_t begin, end;
	unsigned *data;
	std::vector<unsigned> host;
};

static int devices(int wanted)
{
	int count = 0;

	CUDA(cudaGetDeviceCount(&count));
	EXPECT_EQ(wanted, count);
	return count;
}

static void describe(int count)
{
	struct cudaDeviceProp all[DEVICE_MAX];
	char bus[2][32];
	int current;

	for (int i = 0; i < count; i++) {
		CUDA(cudaGetDeviceProperties(&all[i], i));
		EXPECT(all[i].multiProcessorCount > 0 && all[i].totalGlobalMem > 0);
		for (int j = 0; j < i; j++)
			EXPECT(memcmp(&all[i].uuid, &all[j].uuid, sizeof(all[i].uuid)) != 0);
		CUDA(cudaSetDevice(i));
		CUDA(cudaGetDevice(&current));
		EXPECT_EQ(i, current);
	}
	CUDA(cudaDeviceGetPCIBusId(bus[0], sizeof(bus[0]), 0));
	CUDA(cudaDeviceGetPCIBusId(bus[1], sizeof(bus[1]), 1));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaSetDevice(count));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaSetDevice(-1));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaGetDeviceProperties(&all[0], count));
	CUDA(cudaGetDevice(&current));
	EXPECT_EQ(count - 1, current);
	cudaGetLastError();
	CUDA(cudaSetDevice(0));
}

/* Each is given its work before the first is waited for. */
static void all_compute(int count)
{
	struct work works[DEVICE_MAX];
	float ms;

	for (int i = 0; i < count; i++) {
		struct work *work = &works[i];

		work->host.assign(COUNT, (unsigned)i);
		CUDA(cudaSetDevice(i));
		CUDA(cudaStreamCreate(&work->stream));
		CUDA(cudaEventCreate(&work->begin));
		CUDA(cudaEventCreate(&work->end));
		CUDA(cudaMalloc(&work->data, BYTES));
		CUDA(cudaMemcpyAsync(work->data, work->host.data(), BYTES, cudaMemcpyHostToDevice,
				     work->stream));
		CUDA(cudaEventRecord(work->begin, work->stream));
		LAUNCH(add<<<COUNT / 128, 128, 0, work->stream>>>(work->data, COUNT, 100u * i));
		CUDA(cudaEventRecord(work->end, work->stream));
	}
	for (int i = 0; i < count; i++) {
		struct work *work = &works[i];
		int of = -1;

		CUDA(cudaSetDevice((i + 1) % count)); /* it need not be the current one */
		CUDA(cudaEventSynchronize(work->end));
		CUDA(cudaEventElapsedTime(&ms, work->begin, work->end));
		CUDA(cudaStreamGetDevice(work->stream, &of));
		EXPECT_EQ(i, of);
		CUDA(cudaMemcpyAsync(work->host.data(), work->data, BYTES, cudaMemcpyDeviceToHost,
				     work->stream));
		CUDA(cudaStreamSynchronize(work->stream));
		for (unsigned j = 0; j < COUNT; j++)
			EXPECT_EQ(101u * i + 5, work->host[j]);
		CUDA(cudaFree(work->data));
		CUDA(cudaEventDestroy(work->begin));
		CUDA(cudaEventDestroy(work->end));
		CUDA(cudaStreamDestroy(work->stream));
	}
	for (int i = 0; i < count; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaDeviceSynchronize());
	}
	CUDA(cudaSetDevice(0));
}

/* A variable is another one on each device. */
static void variables(int count)
{
	unsigned value;

	for (int i = 0; i < count; i++) {
		value = 1000u + i;
		CUDA(cudaSetDevice(i));
		CUDA(cudaMemcpyToSymbol(bias, &value, sizeof(value)));
	}
	for (int i = 0; i < count; i++) {
		unsigned *data;

		CUDA(cudaSetDevice(i));
		CUDA(cudaMemcpyFromSymbol(&value, bias, sizeof(value)));
		EXPECT_EQ(1000u + i, value);
		CUDA(cudaMalloc(&data, sizeof(value)));
		CUDA(cudaMemset(data, 0, sizeof(value)));
		LAUNCH(add<<<1, 1>>>(data, 1, 0));
		CUDA(cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost));
		EXPECT_EQ(1000u + i, value);
		CUDA(cudaFree(data));
		value = 5;
		CUDA(cudaMemcpyToSymbol(bias, &value, sizeof(value)));
	}
	CUDA(cudaSetDevice(0));
}

/* Through the program, unless they are told to reach each other. */
static void copies(int count)
{
	std::vector<unsigned char> host(LARGE), result(LARGE);
	unsigned char *memory[DEVICE_MAX];
	struct cudaPointerAttributes of;

	for (int i = 0; i < count; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMalloc(&memory[i], LARGE));
	}
	CUDA(cudaSetDevice(0));
	CUDA(cudaPointerGetAttributes(&of, memory[1]));
	EXPECT_EQ(1, of.device);
	test_fill(host.data(), LARGE, 3);
	CUDA(cudaMemcpy(memory[0], host.data(), LARGE, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpyPeer(memory[1], 1, memory[0], 0, LARGE));
	CUDA(cudaMemset(memory[0], 0, LARGE));
	/* Of the other device's memory, whichever is current. */
	CUDA(cudaMemcpy(result.data(), memory[1], LARGE, cudaMemcpyDefault));
	EXPECT_EQ(LARGE, test_compare(result.data(), LARGE, 3));
	CUDA(cudaMemset(memory[1], 7, 100));
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemcpyAsync(memory[0], memory[1], LARGE, cudaMemcpyDeviceToDevice, NULL));
	CUDA(cudaMemcpy(result.data(), memory[0], LARGE, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < LARGE; i++)
		EXPECT_EQ(i < 100 ? 7 : host[i], result[i]);
	EXPECT_CODE(cudaErrorInvalidDevice, cudaMemcpyPeer(memory[1], count, memory[0], 0, 1));
	cudaGetLastError();
	for (int i = 0; i < count; i++)
		CUDA(cudaFree(memory[i]));
	CUDA(cudaSetDevice(0));
}

/* What is of one device is not used with another. */
static void mixtures(void)
{
	cudaStream_t stream;
	cudaEvent_t event, other;
	unsigned *data;
	float ms;

	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaMalloc(&data, BYTES));
	CUDA(cudaMemset(data, 0, BYTES));
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaSetDevice(0));
	CUDA(cudaEventCreate(&other));
	add<<<1, 1, 0, stream>>>(data, 1, 1);
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaGetLastError());
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventRecord(other, stream));
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventRecord(event, NULL));
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, other, event));
	CUDA(cudaStreamSynchronize(stream));
	cudaGetLastError();
	CUDA(cudaFree(data));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaEventDestroy(other));
	CUDA(cudaStreamDestroy(stream));
}

static void *compute_on_second(void *)
{
	unsigned *data, value = 0;

	CUDA(cudaSetDevice(1));
	CUDA(cudaMalloc(&data, sizeof(value)));
	for (unsigned i = 0; i < 50; i++) {
		CUDA(cudaMemset(data, 0, sizeof(value)));
		LAUNCH(add<<<1, 1>>>(data, 1, i));
		CUDA(cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost));
		EXPECT_EQ(i + 5, value);
	}
	CUDA(cudaFree(data));
	return NULL;
}

static void *wait_for_first(void *)
{
	CUDA(cudaSetDevice(0));
	CUDA(cudaDeviceSynchronize());
	return NULL;
}

/* The first device is at work until the second one has done its own. */
static void threads(void)
{
	volatile unsigned *flag;
	pthread_t first, second;

	CUDA(cudaSetDevice(0));
	CUDA(cudaMallocHost((void **)&flag, sizeof(*flag)));
	*flag = 0;
	LAUNCH(await<<<1, 1>>>(flag));
	EXPECT_EQ(0, pthread_create(&first, NULL, wait_for_first, NULL));
	EXPECT_EQ(0, pthread_create(&second, NULL, compute_on_second, NULL));
	EXPECT_EQ(0, pthread_join(second, NULL));
	*flag = 1;
	EXPECT_EQ(0, pthread_join(first, NULL));
	CUDA(cudaFreeHost((void *)flag));
}

/* Of 64 MiB on each. */
static void quotas(int count)
{
	size_t free_bytes, all;
	void *memory;

	for (int i = 0; i < count; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMemGetInfo(&free_bytes, &all));
		EXPECT_EQ(64u << 20, all);
		EXPECT(free_bytes > 40u << 20);
		CUDA(cudaMalloc(&memory, 40u << 20));
		EXPECT_CODE(cudaErrorMemoryAllocation, cudaMalloc(&memory, 40u << 20));
	}
	cudaGetLastError();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int count = devices(argc > 2 ? atoi(argv[2]) : 2);

	if (!strcmp(what, "quotas")) {
		quotas(count);
	} else if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "all")) {
		describe(count);
		all_compute(count);
		variables(count);
		copies(count);
		mixtures();
	}
	printf("verified=yes\n");
	return 0;
}
