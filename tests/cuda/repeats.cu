/*
 * Loops of kernels whose order and arguments decide the result, with the same arguments, with new
 * ones and with a few sets by turns, broken off anywhere by what else a program does: the value
 * that they leave is that of the same steps on the host.
 */
#include "test.h"

#define LOOP  50
#define TURNS 60

/* Three operations of which no two commute. */
template <int WHICH> static __host__ __device__ uint32_t step(uint32_t value, uint32_t by)
{
	if (WHICH == 0)
		return value * 2654435761u + by;
	return WHICH == 1 ? (value ^ by) + (value >> 7) : (value << 5 | value >> 27) - by;
}

template <int WHICH> static __global__ void kernel(uint32_t *value, uint32_t by)
{
	*value = step<WHICH>(*value, by);
}

static uint32_t *device, expected;
static cudaStream_t streams[2];
static cudaEvent_t event;

static uint32_t next_random(void)
{
	static uint32_t state = 1;

	state = state * 1103515245u + 12345u;
	return state >> 8;
}

static void put(unsigned which, uint32_t by, cudaStream_t stream)
{
	switch (which % 3) {
	case 0:
		LAUNCH(kernel<0><<<1, 1, 0, stream>>>(device, by));
		expected = step<0>(expected, by);
		break;
	case 1:
		LAUNCH(kernel<1><<<1, 1, 0, stream>>>(device, by));
		expected = step<1>(expected, by);
		break;
	default:
		LAUNCH(kernel<2><<<1, 1, 0, stream>>>(device, by));
		expected = step<2>(expected, by);
	}
}

/* Something else, with which nothing in @stream may change places. */
static void interrupt(unsigned how, cudaStream_t stream)
{
	switch (how % 5) {
	case 0:
		CUDA(cudaStreamSynchronize(stream));
		break;
	case 1:
		CUDA(cudaEventRecord(event, stream));
		CUDA(cudaStreamWaitEvent(streams[1], event, 0));
		put(how, how, streams[1]);
		CUDA(cudaEventRecord(event, streams[1]));
		CUDA(cudaStreamWaitEvent(stream, event, 0));
		break;
	case 2:
		CUDA(cudaMemsetAsync(device, 7, sizeof(*device), stream));
		expected = 0x07070707;
		break;
	case 3:
		CUDA(cudaMemcpyAsync(device + 1, device, sizeof(*device), cudaMemcpyDeviceToDevice,
				     stream));
		break;
	default:
		put(how, how, stream);
	}
}

static void check(void)
{
	uint32_t got;

	CUDA(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT_EQ(expected, got);
}

/* @sets: how many sets of arguments there are; 0: each turn has its own. */
static void run(unsigned length, unsigned sets, bool interrupts, cudaStream_t stream)
{
	for (unsigned turn = 0; turn < TURNS; turn++) {
		uint32_t set = sets ? turn % sets : turn;
		unsigned at =
			interrupts && next_random() % 4 == 0 ? next_random() % length : length;

		for (unsigned i = 0; i < length; i++) {
			if (i == at)
				interrupt(next_random(), stream);
			put(i * 5 % 8, set * length + i, stream);
		}
	}
	check();
}

int main(void)
{
	CUDA(cudaMalloc(&device, 2 * sizeof(*device)));
	CUDA(cudaMemset(device, 0, sizeof(*device)));
	for (cudaStream_t &stream : streams)
		CUDA(cudaStreamCreate(&stream));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	/* cudaMemset() of the device's memory is not ordered before other streams. */
	CUDA(cudaDeviceSynchronize());
	for (unsigned sets = 0; sets < 4; sets++) {
		run(LOOP, sets, false, streams[0]);
		run(LOOP, sets, true, streams[0]);
		run(140, sets, true, streams[0]);
		run(1 + sets, sets, false, streams[0]);
	}
	CUDA(cudaDeviceSynchronize());
	run(LOOP, 1, true, NULL);
	CUDA(cudaEventDestroy(event));
	for (cudaStream_t stream : streams)
		CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(device));
	return 0;
}
