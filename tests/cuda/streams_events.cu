/*
 * Streams and events: what a stream, an event and the default stream put in order, and
 * what becomes of work whose stream or event is destroyed while it is pending.
 */
#include "test.h"

#define LONG_WORK (1u << 16)

static __global__ void set(int *place, int value)
{
	*place = value;
}

static __global__ void copy(int *to, const int *from)
{
	*to = *from;
}

/* Takes long enough that what does not wait for it comes first. */
static __global__ void set_late(int *place, int value, unsigned rounds)
{
	unsigned x = value;

	for (unsigned i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	*place = x == 0 ? -1 : value; /* x is not; the compiler does not know */
}

struct fixture {
	cudaStream_t first, second;
	int *source, *target; /* on the device */
};

static void reset(struct fixture *f)
{
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemset(f->source, 0, sizeof(int)));
	CUDA(cudaMemset(f->target, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize());
}

static int target(struct fixture *f)
{
	int value;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&value, f->target, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static void wait_event(struct fixture *f)
{
	cudaEvent_t event;

	reset(f);
	CUDA(cudaEventCreate(&event));
	/* Never recorded: nothing to wait for. */
	CUDA(cudaStreamWaitEvent(f->second, event, 0));
	LAUNCH(set_late<<<1, 1, 0, f->first>>>(f->source, 5, LONG_WORK));
	CUDA(cudaEventRecord(event, f->first));
	CUDA(cudaStreamWaitEvent(f->second, event, 0));
	LAUNCH(copy<<<1, 1, 0, f->second>>>(f->target, f->source));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaStreamSynchronize(f->second));
	EXPECT_EQ(5, target(f));
}

/* A wait is for what the event held at that moment, not for a later record. */
static void record_again(struct fixture *f)
{
	cudaEvent_t event;

	reset(f);
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (int round = 1; round <= 20; round++) {
		LAUNCH(set_late<<<1, 1, 0, f->first>>>(f->source, round, LONG_WORK / 64));
		CUDA(cudaEventRecord(event, f->first));
		CUDA(cudaStreamWaitEvent(f->second, event, 0));
		LAUNCH(copy<<<1, 1, 0, f->second>>>(f->target, f->source));
		CUDA(cudaEventRecord(event, f->second));
		CUDA(cudaStreamWaitEvent(f->first, event, 0));
		if (round % 5 == 0) {
			CUDA(cudaEventSynchronize(event));
			EXPECT_EQ(round, target(f));
		}
	}
	CUDA(cudaEventDestroy(event));
}

/* The default stream waits for created streams, and they for it. */
static void default_stream(struct fixture *f)
{
	cudaStream_t blocking;

	reset(f);
	CUDA(cudaStreamCreate(&blocking));
	LAUNCH(set_late<<<1, 1, 0, blocking>>>(f->source, 7, LONG_WORK));
	LAUNCH(copy<<<1, 1>>>(f->target, f->source));
	CUDA(cudaStreamSynchronize(NULL));
	EXPECT_EQ(7, target(f));
	LAUNCH(set_late<<<1, 1>>>(f->source, 8, LONG_WORK));
	LAUNCH(copy<<<1, 1, 0, blocking>>>(f->target, f->source));
	CUDA(cudaStreamSynchronize(blocking));
	EXPECT_EQ(8, target(f));
	CUDA(cudaStreamDestroy(blocking));
}

static void elapsed(struct fixture *f)
{
	cudaEvent_t start, end;
	float ms = -1, back = 1;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&end));
	CUDA(cudaEventRecord(start, f->first));
	LAUNCH(set_late<<<1, 1, 0, f->first>>>(f->source, 1, LONG_WORK));
	CUDA(cudaEventRecord(end, f->first));
	CUDA(cudaEventSynchronize(end));
	CUDA(cudaEventQuery(start));
	CUDA(cudaEventQuery(end));
	CUDA(cudaEventElapsedTime(&ms, start, end));
	CUDA(cudaEventElapsedTime(&back, end, start));
	if (!(ms > 0 && ms < 60000) || !(back < 0))
		FAIL("%f ms forth, %f ms back", ms, back);
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(end));
}

/* Queries answer not ready or done, and done once the stream was waited for. */
static void queries(struct fixture *f)
{
	cudaEvent_t event;
	cudaError_t code;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
	LAUNCH(set_late<<<1, 1, 0, f->first>>>(f->source, 1, LONG_WORK));
	CUDA(cudaEventRecord(event, f->first));
	do {
		code = cudaEventQuery(event);
	} while (code == cudaErrorNotReady);
	CUDA(code);
	do {
		code = cudaStreamQuery(f->first);
	} while (code == cudaErrorNotReady);
	CUDA(code);
	CUDA(cudaStreamQuery(NULL));
	CUDA(cudaEventDestroy(event));
}

/* The work of a destroyed stream is still done. */
static void destroy_pending(struct fixture *f)
{
	cudaStream_t stream;
	cudaEvent_t event;

	reset(f);
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&event));
	LAUNCH(set_late<<<1, 1, 0, stream>>>(f->source, 9, LONG_WORK));
	LAUNCH(copy<<<1, 1, 0, stream>>>(f->target, f->source));
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaEventDestroy(event));
	EXPECT_EQ(9, target(f));
}

/* Handles come and go, more than are ever there at once. */
static void many(struct fixture *f)
{
	const int rounds = 300, at_once = 10;
	cudaStream_t streams[at_once];
	cudaEvent_t events[at_once];

	reset(f);
	for (int i = 0; i < rounds; i++) {
		int place = i % at_once;

		if (i >= at_once) {
			CUDA(cudaEventSynchronize(events[place]));
			CUDA(cudaEventDestroy(events[place]));
			CUDA(cudaStreamDestroy(streams[place]));
		}
		CUDA(cudaStreamCreateWithFlags(&streams[place], cudaStreamNonBlocking));
		CUDA(cudaEventCreate(&events[place]));
		if (i)
			CUDA(cudaStreamWaitEvent(streams[place], events[(i - 1) % at_once], 0));
		LAUNCH(set<<<1, 1, 0, streams[place]>>>(f->target, i));
		CUDA(cudaEventRecord(events[place], streams[place]));
	}
	EXPECT_EQ(rounds - 1, target(f));
	for (int place = 0; place < at_once; place++) {
		CUDA(cudaEventDestroy(events[place]));
		CUDA(cudaStreamDestroy(streams[place]));
	}
}

static void special_handles(struct fixture *f)
{
	reset(f);
	LAUNCH(set_late<<<1, 1, 0, cudaStreamLegacy>>>(f->source, 3, LONG_WORK / 16));
	LAUNCH(copy<<<1, 1, 0, cudaStreamLegacy>>>(f->target, f->source));
	CUDA(cudaStreamSynchronize(cudaStreamLegacy));
	EXPECT_EQ(3, target(f));
	LAUNCH(set<<<1, 1, 0, cudaStreamPerThread>>>(f->target, 4));
	CUDA(cudaStreamSynchronize(cudaStreamPerThread));
	EXPECT_EQ(4, target(f));
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.first, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&f.second, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&f.source, sizeof(int)));
	CUDA(cudaMalloc(&f.target, sizeof(int)));
	wait_event(&f);
	record_again(&f);
	default_stream(&f);
	elapsed(&f);
	queries(&f);
	destroy_pending(&f);
	many(&f);
	special_handles(&f);
	CUDA(cudaFree(f.source));
	CUDA(cudaFree(f.target));
	CUDA(cudaStreamDestroy(f.first));
	CUDA(cudaStreamDestroy(f.second));
	return 0;
}
