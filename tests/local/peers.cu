/*
 * Devices that reach each other's memory: what enabling it says, kernels and copies of one device
 * with the memory of another one, and what is a fault. Its first argument is what it does.
 */
#include "../cuda/test.h"

#include <stdio.h>
#include <string.h>
#include <vector>

#define COUNT  (1u << 16)
#define BYTES  (COUNT * sizeof(unsigned))
#define LARGE  (9u << 20) /* more than goes between devices at once */
#define STRIDE (LARGE / 128 / sizeof(unsigned))

__device__ unsigned variable = 40;

__global__ void twice(unsigned *to, const unsigned *from, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		to[i] = 2 * from[i];
}

__global__ void count_up(unsigned *counter)
{
	atomicAdd(counter, 1);
}

__global__ void work_until(volatile unsigned *data, volatile unsigned *flag)
{
	data[threadIdx.x * STRIDE] = 1;
	__syncthreads();
	flag[1] = 1;
	while (!flag[0])
		data[threadIdx.x * STRIDE]++;
}

static void enable(int device, int peer)
{
	CUDA(cudaSetDevice(device));
	CUDA(cudaDeviceEnablePeerAccess(peer, 0));
}

static void codes(void)
{
	int can = -1, value = -1;

	for (int i = 0; i < 2; i++) {
		CUDA(cudaDeviceCanAccessPeer(&can, i, 1 - i));
		EXPECT_EQ(1, can);
		CUDA(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, i, 1 - i));
		EXPECT_EQ(1, value);
		CUDA(cudaDeviceCanAccessPeer(&can, i, i));
		EXPECT_EQ(0, can);
	}
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 2));
	CUDA(cudaSetDevice(0));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(2, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
	EXPECT_CODE(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	EXPECT_CODE(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
	enable(0, 1);
	EXPECT_CODE(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
	/* One way is not the other. */
	CUDA(cudaSetDevice(1));
	EXPECT_CODE(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(0));
	CUDA(cudaSetDevice(0));
	CUDA(cudaDeviceDisablePeerAccess(1));
	EXPECT_CODE(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	enable(0, 1);
	CUDA(cudaDeviceReset());
	EXPECT_CODE(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	enable(0, 1);
	CUDA(cudaDeviceDisablePeerAccess(1));
	cudaGetLastError();
}

/* To and fro, each kernel with the memory of both. */
static void kernels(void)
{
	unsigned *memory[2], *counter, value;
	std::vector<unsigned> host(COUNT);

	for (int i = 0; i < 2; i++) {
		enable(i, 1 - i);
		CUDA(cudaMalloc(&memory[i], BYTES));
	}
	for (unsigned i = 0; i < COUNT; i++)
		host[i] = i;
	CUDA(cudaMemcpy(memory[0], host.data(), BYTES, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(memory[1], memory[0], BYTES, cudaMemcpyDefault));
	for (int round = 0; round < 4; round++) {
		int device = round % 2;

		CUDA(cudaSetDevice(device));
		LAUNCH(twice<<<COUNT / 128, 128>>>(memory[1 - device], memory[device], COUNT));
		CUDA(cudaDeviceSynchronize());
	}
	CUDA(cudaMemcpy(host.data(), memory[0], BYTES, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < COUNT; i++)
		EXPECT_EQ(16 * i, host[i]);

	/* Both at once; and each device has its own variable. */
	CUDA(cudaMalloc(&counter, sizeof(*counter)));
	CUDA(cudaMemset(counter, 0, sizeof(*counter)));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		LAUNCH(count_up<<<100, 64>>>(counter));
	}
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaDeviceSynchronize());
	}
	CUDA(cudaMemcpy(&value, counter, sizeof(value), cudaMemcpyDefault));
	EXPECT_EQ(12800, value);
	/* NVIDIA's driver lets kernels reach variables of modules on some machines, on others not. */
	value = 42;
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemcpyToSymbol(variable, &value, sizeof(value)));
	CUDA(cudaSetDevice(0));
	CUDA(cudaMemcpyFromSymbol(&value, variable, sizeof(value)));
	EXPECT_EQ(40, value);
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemcpyFromSymbol(&value, variable, sizeof(value)));
	EXPECT_EQ(42, value);
}

/* In the order of the stream, also where the program does not wait. */
static void copies(void)
{
	std::vector<unsigned char> host(LARGE), result(LARGE);
	unsigned char *memory[2];
	cudaStream_t stream;

	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMalloc(&memory[i], LARGE));
	}
	enable(1, 0);
	CUDA(cudaStreamCreate(&stream));
	test_fill(host.data(), LARGE, 5);
	CUDA(cudaMemcpyAsync(memory[1], host.data(), LARGE, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, LARGE, stream));
	CUDA(cudaMemsetAsync(memory[1], 0, LARGE, stream));
	CUDA(cudaMemcpyPeerAsync(memory[1], 1, memory[0], 0, LARGE / 2, stream));
	CUDA(cudaMemcpyAsync(result.data(), memory[1], LARGE, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < LARGE; i++)
		EXPECT_EQ(i < LARGE / 2 ? host[i] : 0, result[i]);
	CUDA(cudaMemcpy(result.data(), memory[0], LARGE, cudaMemcpyDeviceToHost));
	EXPECT_EQ(LARGE, test_compare(result.data(), LARGE, 5));
	/* By the stream of a device that does not reach the other one. */
	CUDA(cudaSetDevice(0));
	CUDA(cudaMemset(memory[0], 7, LARGE));
	CUDA(cudaMemcpyPeer(memory[1], 1, memory[0], 0, LARGE));
	/* And behind work of the other device. */
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemset(memory[1], 9, 1000));
	CUDA(cudaMemcpyPeer(memory[0], 0, memory[1], 1, LARGE));
	CUDA(cudaMemcpy(result.data(), memory[0], LARGE, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < LARGE; i++)
		EXPECT_EQ(i < 1000 ? 9 : 7, result[i]);
}

/* A kernel of device 1, which may not reach device 0, or no more. */
static void fault(bool was_enabled)
{
	unsigned *data, value = 3;

	CUDA(cudaSetDevice(0));
	CUDA(cudaMalloc(&data, sizeof(*data)));
	CUDA(cudaMemcpy(data, &value, sizeof(value), cudaMemcpyHostToDevice));
	CUDA(cudaDeviceSynchronize()); /* such a copy may return before it is done */
	CUDA(cudaSetDevice(1));
	if (was_enabled) {
		CUDA(cudaDeviceEnablePeerAccess(0, 0));
		LAUNCH(count_up<<<1, 1>>>(data));
		CUDA(cudaDeviceDisablePeerAccess(0));
	}
	LAUNCH(count_up<<<1, 1>>>(data));
	EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	CUDA(cudaSetDevice(0));
	CUDA(cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT_EQ(was_enabled ? 4 : 3, value);
}

/*
 * Memory is freed while a kernel of another device uses it, and comes back for another purpose when
 * that has ended. (Not for real GPUs, where the kernel may fault.)
 */
static void freed(void)
{
	std::vector<unsigned> host(COUNT);
	volatile unsigned *flag;
	unsigned *data, *next;

	CUDA(cudaMallocHost((void **)&flag, 4096));
	for (int round = 0; round < 20; round++) {
		flag[0] = flag[1] = 0;
		CUDA(cudaSetDevice(0));
		CUDA(cudaMalloc(&data, LARGE));
		CUDA(cudaSetDevice(1));
		if (!round)
			CUDA(cudaDeviceEnablePeerAccess(0, 0));
		LAUNCH(work_until<<<1, 128>>>(data, flag));
		while (!flag[1])
			continue;
		CUDA(cudaSetDevice(0));
		CUDA(cudaFree(data));
		CUDA(cudaMalloc(&next, BYTES));
		CUDA(cudaMemset(next, 0, BYTES));
		flag[0] = 1;
		CUDA(cudaMemcpy(host.data(), next, BYTES, cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < COUNT; i++)
			EXPECT_EQ(0, host[i]);
		CUDA(cudaSetDevice(1));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaFree(next));
	}
	CUDA(cudaFreeHost((void *)flag));
}

/* Where memory may move nobody reaches it; copies find their way. */
static void movable(void)
{
	std::vector<unsigned char> host(LARGE), result(LARGE);
	unsigned char *memory[2];
	int can = -1;

	CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
	EXPECT_EQ(0, can);
	CUDA(cudaSetDevice(0));
	EXPECT_CODE(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(1, 0));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMalloc(&memory[i], LARGE));
	}
	test_fill(host.data(), LARGE, 6);
	CUDA(cudaMemcpy(memory[1], host.data(), LARGE, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpyPeer(memory[0], 0, memory[1], 1, LARGE));
	CUDA(cudaMemcpy(result.data(), memory[0], LARGE, cudaMemcpyDeviceToHost));
	EXPECT_EQ(LARGE, test_compare(result.data(), LARGE, 6));
	cudaGetLastError();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "codes"))
		codes();
	else if (!strcmp(what, "kernels"))
		kernels();
	else if (!strcmp(what, "copies"))
		copies();
	else if (!strcmp(what, "fault") || !strcmp(what, "disabled"))
		fault(!strcmp(what, "disabled"));
	else if (!strcmp(what, "freed"))
		freed();
	else if (!strcmp(what, "movable"))
		movable();
	else
		return 2;
	printf("verified=yes\n");
	return 0;
}
