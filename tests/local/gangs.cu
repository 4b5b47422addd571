/*
 * A collective on two GPUs: in each step a kernel on either computes a little, says its number to
 * the other, and waits for the other's. `gangs steps COUNT [QUEUED]` does so many steps, of which so
 * many are launched at once; `gangs until` goes on until its input ends, and says how many it did.
 * `gangs late` launches on the second GPU only when the first has waited for some time.
 */
#include "../cuda/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUEUED	16u
#define COMPUTE 20000u

struct meeting {
	volatile unsigned value[2][2]; /* by step and GPU */
	volatile unsigned step[2];     /* that each has come to */
};

__global__ void meet(struct meeting *meeting, unsigned *sum, unsigned me, unsigned step,
		     unsigned compute)
{
	unsigned mine = *sum, noise = mine;

	for (unsigned i = 0; i < compute; i++)
		noise = noise * 1664525u + 1013904223u;
	if (noise == 1 && compute == 1)
		mine++;
	meeting->value[step % 2][me] = mine;
	__threadfence_system();
	meeting->step[me] = step;
	while ((int)(meeting->step[1 - me] - step) < 0)
		;
	__threadfence_system();
	*sum = (mine + meeting->value[step % 2][1 - me]) * 1664525u + step;
}

static struct meeting *meeting, *seen[2];
static unsigned *sums[2];
static cudaStream_t streams[2];

static void begin(void)
{
	const unsigned first[2] = {1, 2};

	CUDA(cudaHostAlloc((void **)&meeting, sizeof(*meeting),
			   cudaHostAllocMapped | cudaHostAllocPortable));
	memset((void *)meeting, 0, sizeof(*meeting));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaHostGetDevicePointer((void **)&seen[i], meeting, 0));
		CUDA(cudaMalloc((void **)&sums[i], sizeof(unsigned)));
		CUDA(cudaMemcpy(sums[i], &first[i], sizeof(unsigned), cudaMemcpyHostToDevice));
		CUDA(cudaStreamCreate(&streams[i]));
	}
}

static void launch(int device, unsigned step)
{
	CUDA(cudaSetDevice(device));
	LAUNCH(meet<<<1, 1, 0, streams[device]>>>(seen[device], sums[device], device, step,
						   COMPUTE));
}

static void wait(void)
{
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaStreamSynchronize(streams[i]));
	}
}

/* Both have added up the same, as often. */
static void check(unsigned steps)
{
	unsigned expected = 3 * 1664525u + 1, sum;

	for (unsigned i = 2; i <= steps; i++)
		expected = 2 * expected * 1664525u + i;
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMemcpy(&sum, sums[i], sizeof(sum), cudaMemcpyDeviceToHost));
		EXPECT_EQ(expected, sum);
	}
}

static unsigned go(unsigned from, unsigned count)
{
	for (unsigned step = from + 1; step <= from + count; step++) {
		for (int i = 0; i < 2; i++)
			launch(i, step);
	}
	wait();
	return from + count;
}

static bool is_told_to_end(void)
{
	struct pollfd input = {0, POLLIN, 0};
	char byte;

	return poll(&input, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

static void steps(unsigned count, unsigned queued)
{
	unsigned done = 0;

	while (done < count)
		done = go(done, queued);
	check(done);
}

static void until(void)
{
	unsigned done = 0;

	puts("works");
	fflush(stdout);
	while (!is_told_to_end())
		done = go(done, QUEUED);
	check(done);
	printf("steps=%u\n", done);
}

static void late(void)
{
	for (unsigned step = 1; step <= 4; step++) {
		launch(step % 2, step);
		usleep(20000);
		launch(1 - step % 2, step);
		wait();
	}
	check(4);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned queued = argc > 3 ? (unsigned)atoi(argv[3]) : QUEUED;

	begin();
	if (!strcmp(what, "steps") && argc > 2)
		steps((unsigned)atoi(argv[2]), queued);
	else if (!strcmp(what, "until"))
		until();
	else if (!strcmp(what, "late"))
		late();
	else
		return 2;
	puts("verified=yes");
	return 0;
}
