/*
 * A thread that is blocked in a synchronization holds up no other. While one thread
 * waits for a long kernel, another makes calls that need nothing from that kernel, and
 * all of them must return before the wait does. What counts is the order, not the
 * time: where the kernel was too short for the calls, it is made longer, up to a limit
 * that only a runtime reaches in which the calls wait for the kernel.
 */
#include "test.h"

#include <atomic>
#include <thread>
#include <unistd.h>

#define CALLS	   200
#define FIRST_WORK (1u << 14)
#define LAST_WORK  (1u << 28)

struct scene {
	cudaStream_t slow, quick;
	cudaEvent_t slow_done;
	unsigned *value;
	unsigned *other_value;
	std::atomic<bool> waiting, returned;
};

enum waiting_for { STREAM, EVENT, DEVICE, WAYS };
static const char *const way_names[] = {"stream", "event", "device"};

static void block(struct scene *s, enum waiting_for what)
{
	s->waiting = true;
	switch (what) {
	case STREAM:
		CUDA(cudaStreamSynchronize(s->slow));
		break;
	case EVENT:
		CUDA(cudaEventSynchronize(s->slow_done));
		break;
	default:
		CUDA(cudaDeviceSynchronize());
		break;
	}
	s->returned = true;
}

/* None of these waits for a kernel; one call in eight adds work to another stream. */
static void one_call(struct scene *s, int turn)
{
	size_t free, total;
	cudaError_t error;

	switch (turn % 4) {
	case 0:
		CUDA(cudaMemGetInfo(&free, &total));
		break;
	case 1:
		error = cudaStreamQuery(s->slow);
		if (error != cudaErrorNotReady)
			CUDA(error);
		break;
	case 2:
		error = cudaEventQuery(s->slow_done);
		if (error != cudaErrorNotReady)
			CUDA(error);
		break;
	default:
		if (turn % 8 == 3)
			LAUNCH(test_work<<<1, 1, 0, s->quick>>>(s->other_value, 1));
		else
			CUDA(cudaGetLastError());
		break;
	}
}

/* The number of calls that returned while the other thread waited. */
static int calls_during_wait(struct scene *s, enum waiting_for what, unsigned work)
{
	int calls = 0;

	s->waiting = s->returned = false;
	LAUNCH(test_work<<<1, 1, 0, s->slow>>>(s->value, work));
	CUDA(cudaEventRecord(s->slow_done, s->slow));
	std::thread thread(block, s, what);

	while (!s->waiting)
		std::this_thread::yield();
	usleep(2000); /* so that it is in the call; if it is not, the test is only weaker */
	while (calls < CALLS) {
		one_call(s, calls);
		if (s->returned)
			break;
		calls++;
	}
	thread.join();
	CUDA(cudaDeviceSynchronize());
	return calls;
}

static void blocked(struct scene *s, enum waiting_for what)
{
	int calls = 0;

	for (unsigned work = FIRST_WORK; work <= LAST_WORK; work *= 4) {
		calls = calls_during_wait(s, what, work);
		if (calls == CALLS)
			return;
		/* Three seconds or so on the slowest of devices is long for these calls. */
		if (work > FIRST_WORK * 256 && calls < 8)
			break;
	}
	FAIL("only %d of %d calls returned while a thread waited for the %s", calls, CALLS,
	     way_names[what]);
}

int main(void)
{
	struct scene s = {};

	CUDA(cudaStreamCreateWithFlags(&s.slow, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&s.quick, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&s.slow_done, cudaEventDisableTiming));
	CUDA(cudaMalloc(&s.value, sizeof(*s.value)));
	CUDA(cudaMalloc(&s.other_value, sizeof(*s.other_value)));
	CUDA(cudaMemset(s.value, 0, sizeof(*s.value)));
	CUDA(cudaMemset(s.other_value, 0, sizeof(*s.other_value)));
	/* Both streams once, so that nothing is made or loaded while a thread waits. */
	LAUNCH(test_work<<<1, 1, 0, s.slow>>>(s.value, 1));
	LAUNCH(test_work<<<1, 1, 0, s.quick>>>(s.other_value, 1));
	CUDA(cudaDeviceSynchronize());
	for (int what = STREAM; what < WAYS; what++)
		blocked(&s, (enum waiting_for)what);
	CUDA(cudaEventDestroy(s.slow_done));
	CUDA(cudaStreamDestroy(s.slow));
	CUDA(cudaStreamDestroy(s.quick));
	return 0;
}
