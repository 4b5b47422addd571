/*
 * Eight host threads hand one stream around: whoever holds the baton launches a kernel
 * that appends the round's number to a list, and passes the baton once the launch has
 * returned. The list must be in the order of the rounds, on a created stream and on
 * the default stream.
 */
#include "test.h"

#include <semaphore.h>
#include <thread>
#include <vector>

#define THREADS 8
#define ROUNDS	10000

static __device__ unsigned appended;
static __device__ unsigned list[ROUNDS];

static __global__ void append(unsigned round)
{
	unsigned place = appended++;

	if (place < ROUNDS)
		list[place] = round;
}

struct relay {
	cudaStream_t stream;
	unsigned round; /* owned by whoever holds the baton */
	sem_t baton[THREADS];
};

/* Not in turn, so that every thread follows on every other. */
static unsigned next_runner(unsigned round)
{
	return (round * 2654435761u >> 16) % THREADS;
}

static void run(struct relay *relay, unsigned self)
{
	for (;;) {
		sem_wait(&relay->baton[self]);
		unsigned round = relay->round;

		if (round == ROUNDS) {
			/* Over: this ends the next thread, and that its next. */
			sem_post(&relay->baton[(self + 1) % THREADS]);
			return;
		}
		LAUNCH(append<<<1, 1, 0, relay->stream>>>(round));
		relay->round++;
		sem_post(&relay->baton[next_runner(round)]);
	}
}

static void check_list(const char *what)
{
	static unsigned result[ROUNDS];
	unsigned count;

	CUDA(cudaMemcpyFromSymbol(&count, appended, sizeof(count)));
	CUDA(cudaMemcpyFromSymbol(result, list, sizeof(result)));
	EXPECT_EQ(ROUNDS, count);
	for (unsigned i = 0; i < ROUNDS; i++)
		if (result[i] != i)
			FAIL("%s: place %u has round %u", what, i, result[i]);
}

static void relay_on(cudaStream_t stream, const char *what)
{
	struct relay relay = {};
	std::vector<std::thread> threads;
	unsigned zero = 0;

	CUDA(cudaMemcpyToSymbol(appended, &zero, sizeof(zero)));
	relay.stream = stream;
	for (unsigned i = 0; i < THREADS; i++)
		sem_init(&relay.baton[i], 0, 0);
	for (unsigned i = 0; i < THREADS; i++)
		threads.emplace_back(run, &relay, i);
	sem_post(&relay.baton[0]);
	for (std::thread &thread : threads)
		thread.join();
	CUDA(cudaStreamSynchronize(stream));
	check_list(what);
	for (unsigned i = 0; i < THREADS; i++)
		sem_destroy(&relay.baton[i]);
}

int main(void)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	relay_on(stream, "created stream");
	relay_on(NULL, "default stream");
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
