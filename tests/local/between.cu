/*
 * What is between the devices of a program: host memory that all of them see, and work of one that
 * waits for work of another. Its first argument is what it does.
 */
#include "../cuda/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define COUNT  (1u << 14)
#define BYTES  (COUNT * sizeof(unsigned))
#define ROUNDS 40

__global__ void add(unsigned *data, unsigned count, unsigned more)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] += more;
}

__global__ void combine(unsigned *to, const unsigned *from, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		to[i] = 2 * to[i] + from[i];
}

__global__ void await(volatile unsigned *flag)
{
	while (!*flag)
		continue;
}

__global__ void spoil(unsigned *data)
{
	*data = 1;
}

static void expect_all(const unsigned *data, unsigned wanted)
{
	for (unsigned i = 0; i < COUNT; i++)
		EXPECT_EQ(wanted, data[i]);
}

/* Kernels and copies of each device, one after the other, on the same memory. */
static void use_on_all(int count, unsigned *host)
{
	unsigned *data, expected = host[0];

	for (int i = 0; i < count; i++) {
		CUDA(cudaSetDevice(i));
		LAUNCH(add<<<COUNT / 128, 128>>>(host, COUNT, 1u + i));
		CUDA(cudaDeviceSynchronize());
		expected += 1u + i;
		expect_all(host, expected);
		CUDA(cudaMalloc(&data, BYTES));
		CUDA(cudaMemcpyAsync(data, host, BYTES, cudaMemcpyDefault, NULL));
		LAUNCH(add<<<COUNT / 128, 128>>>(data, COUNT, 10));
		CUDA(cudaMemcpyAsync(host, data, BYTES, cudaMemcpyDefault, NULL));
		CUDA(cudaStreamSynchronize(NULL));
		expected += 10;
		expect_all(host, expected);
		CUDA(cudaMemset(host, 0, BYTES));
		CUDA(cudaDeviceSynchronize());
		expect_all(host, 0);
		expected = 0;
		CUDA(cudaFree(data));
	}
}

static void host_memory(int count)
{
	unsigned *pinned, *portable, *managed, *there;
	std::vector<unsigned> own(3 * COUNT);

	for (int i = count - 1; i >= 0; i--) {
		CUDA(cudaSetDevice(i)); /* whichever it is allocated on */
		CUDA(cudaMallocHost(&pinned, BYTES));
		CUDA(cudaHostAlloc(&portable, BYTES, cudaHostAllocPortable));
		CUDA(cudaMallocManaged(&managed, BYTES));
		CUDA(cudaHostRegister(&own[COUNT], BYTES, cudaHostRegisterPortable));
		CUDA(cudaHostGetDevicePointer(&there, &own[COUNT], 0));
		EXPECT(there == &own[COUNT]);
		memset(pinned, 0, BYTES);
		use_on_all(count, pinned);
		use_on_all(count, portable);
		use_on_all(count, managed);
		use_on_all(count, &own[COUNT]);
		CUDA(cudaSetDevice((i + 1) % count)); /* and freed */
		CUDA(cudaHostUnregister(&own[COUNT]));
		CUDA(cudaFree(managed));
		CUDA(cudaFreeHost(portable));
		CUDA(cudaFreeHost(pinned));
		EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(pinned));
		cudaGetLastError();
	}
}

/* What has been freed is gone from the second device, too. */
static void freed(void)
{
	unsigned *pinned;

	CUDA(cudaSetDevice(0));
	CUDA(cudaMallocHost(&pinned, BYTES));
	CUDA(cudaSetDevice(1));
	LAUNCH(spoil<<<1, 1>>>(pinned));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFreeHost(pinned));
	spoil<<<1, 1>>>(pinned);
	EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

/* --- Events ------------------------------------------------------------------ */

struct side {
	unsigned *data;
	cudaStream_t stream;
	cudaEvent_t event;
};

/* Two devices take turns at numbers that only come out right in one order; nobody waits for them.
 */
static void ping_pong(int count)
{
	std::vector<side> sides(count);
	unsigned *shared, expected = 1;

	CUDA(cudaMallocHost(&shared, BYTES));
	for (unsigned i = 0; i < COUNT; i++)
		shared[i] = 1;
	for (int i = 0; i < count; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaStreamCreateWithFlags(&sides[i].stream, cudaStreamNonBlocking));
		CUDA(cudaEventCreateWithFlags(&sides[i].event, cudaEventDisableTiming));
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		int i = (int)(round % (unsigned)count);

		CUDA(cudaSetDevice(i));
		LAUNCH(combine<<<COUNT / 128, 128, 0, sides[i].stream>>>(shared, shared, COUNT));
		LAUNCH(add<<<COUNT / 128, 128, 0, sides[i].stream>>>(shared, COUNT, round));
		CUDA(cudaEventRecord(sides[i].event, sides[i].stream));
		CUDA(cudaStreamWaitEvent(sides[(i + 1) % count].stream, sides[i].event, 0));
		expected = 3 * expected + round;
	}
	CUDA(cudaStreamSynchronize(sides[(ROUNDS - 1) % count].stream));
	expect_all(shared, expected);
	for (int i = 0; i < count; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaStreamDestroy(sides[i].stream));
		CUDA(cudaEventDestroy(sides[i].event));
	}
	CUDA(cudaSetDevice(0));
	CUDA(cudaFreeHost(shared));
}

/*
 * A wait is for what was recorded when it was asked for, holds up its own stream alone, and not
 * what waits for another event of the same device.
 */
static void only_what_it_waits_for(void)
{
	volatile unsigned *flags;
	unsigned *data, value;
	cudaStream_t slow, fast, first, second;
	cudaEvent_t after_slow, after_fast, none;

	CUDA(cudaMallocHost((void **)&flags, 4096));
	flags[0] = 0;
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&after_slow));
	CUDA(cudaEventCreate(&after_fast));
	CUDA(cudaEventCreate(&none));
	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&data, 2 * sizeof(*data)));
	CUDA(cudaMemset(data, 0, 2 * sizeof(*data)));
	CUDA(cudaDeviceSynchronize());

	/* A callback of the program, so that the soft GPU's one engine is free for the other
	 * stream. */
	CUDA(cudaSetDevice(0));
	CUDA(cudaLaunchHostFunc(
		slow,
		[](void *at) {
			while (!*(volatile unsigned *)at)
				continue;
		},
		(void *)flags));
	CUDA(cudaEventRecord(after_slow, slow));
	CUDA(cudaEventRecord(after_fast, fast));
	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamWaitEvent(first, after_slow, 0));
	LAUNCH(spoil<<<1, 1, 0, first>>>(&data[0]));
	CUDA(cudaStreamWaitEvent(second, after_fast, 0));
	CUDA(cudaStreamWaitEvent(second, none, 0)); /* never recorded */
	LAUNCH(spoil<<<1, 1, 0, second>>>(&data[1]));
	CUDA(cudaStreamSynchronize(second));
	EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(first));
	CUDA(cudaMemcpyAsync(&value, &data[0], sizeof(value), cudaMemcpyDeviceToHost, second));
	CUDA(cudaStreamSynchronize(second));
	EXPECT_EQ(0, value);
	flags[0] = 1;
	CUDA(cudaStreamSynchronize(first));
	CUDA(cudaMemcpyAsync(&value, &data[0], sizeof(value), cudaMemcpyDeviceToHost, second));
	CUDA(cudaStreamSynchronize(second));
	EXPECT_EQ(1, value);
	cudaGetLastError();
}

/* More waits at a time than there are ways to tell of them, all for the same slow work. */
static void many_waits(void)
{
	volatile unsigned *flag;
	cudaStream_t from, to;
	cudaEvent_t event;

	CUDA(cudaMallocHost((void **)&flag, 4096));
	*flag = 0;
	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&from));
	CUDA(cudaEventCreate(&event));
	LAUNCH(await<<<1, 1, 0, from>>>(flag));
	CUDA(cudaEventRecord(event, from));
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreate(&to));
	for (int i = 0; i < 100; i++)
		CUDA(cudaStreamWaitEvent(to, event, 0));
	EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(to));
	*flag = 1;
	CUDA(cudaStreamSynchronize(to));
	CUDA(cudaStreamDestroy(to));
	CUDA(cudaSetDevice(1));
	CUDA(cudaDeviceSynchronize());
	cudaGetLastError();
}

static void *take_turns(void *arg)
{
	int device = (int)(intptr_t)arg;
	cudaStream_t here, there;
	cudaEvent_t event;
	unsigned *data;

	CUDA(cudaSetDevice(1 - device));
	CUDA(cudaStreamCreate(&there));
	CUDA(cudaSetDevice(device));
	CUDA(cudaStreamCreate(&here));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaMalloc(&data, BYTES));
	for (int i = 0; i < 50; i++) {
		LAUNCH(add<<<COUNT / 128, 128, 0, here>>>(data, COUNT, 1));
		CUDA(cudaEventRecord(event, here));
		CUDA(cudaStreamWaitEvent(there, event, 0));
		if (i % 10 == 9)
			CUDA(cudaStreamSynchronize(there));
	}
	CUDA(cudaStreamSynchronize(there));
	CUDA(cudaFree(data));
	return NULL;
}

/* Threads in both directions. */
static void threads(void)
{
	pthread_t all[4];

	for (intptr_t i = 0; i < 4; i++)
		EXPECT_EQ(0, pthread_create(&all[i], NULL, take_turns, (void *)(i % 2)));
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, pthread_join(all[i], NULL));
}

/* The work that was waited for has failed: the wait ends, with that. */
static void fault(void)
{
	volatile unsigned *flag;
	cudaStream_t from, to;
	cudaEvent_t event;

	CUDA(cudaMallocHost((void **)&flag, 4096));
	*flag = 0;
	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&to));
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreate(&from));
	CUDA(cudaEventCreate(&event));
	LAUNCH(await<<<1, 1, 0, from>>>(flag));
	spoil<<<1, 1, 0, from>>>((unsigned *)8);
	CUDA(cudaEventRecord(event, from));
	CUDA(cudaStreamWaitEvent(to, event, 0));
	*flag = 1;
	EXPECT_CODE(cudaErrorIllegalAddress, cudaStreamSynchronize(to));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int count = 0;

	CUDA(cudaGetDeviceCount(&count));
	EXPECT(count > 1);
	if (!strcmp(what, "host")) {
		host_memory(count);
	} else if (!strcmp(what, "freed")) {
		freed();
	} else if (!strcmp(what, "events")) {
		ping_pong(count);
		only_what_it_waits_for();
		many_waits();
		threads();
	} else if (!strcmp(what, "fault")) {
		fault();
	} else {
		return 2;
	}
	printf("verified=yes\n");
	return 0;
}
