/*
 * Two processes work on the same memory in turns, and each waits for the other's events alone. Says
 * "shared", or that memory is not shared here.
 */
#include "test.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS  (1u << 20)
#define ROUNDS 6

/* What the one needs of the other. */
struct offer {
	int is_shared;
	cudaIpcMemHandle_t memory; /* the first process's */
	cudaIpcEventHandle_t event;
};

static __global__ void step(unsigned *words, unsigned factor, unsigned number)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < WORDS)
		words[i] = words[i] * factor + number;
}

static void say(int to, const void *what, size_t bytes)
{
	EXPECT(write(to, what, bytes) == (ssize_t)bytes);
}

static void hear(int from, void *what, size_t bytes)
{
	EXPECT(read(from, what, bytes) == (ssize_t)bytes);
}

static void make_events(struct offer *offer, cudaEvent_t *own)
{
	CUDA(cudaEventCreateWithFlags(own, cudaEventDisableTiming | cudaEventInterprocess));
	CUDA(cudaIpcGetEventHandle(&offer->event, *own));
}

/* One round: behind @other's work, and known to it before it is told so. */
static void work(unsigned *words, unsigned factor, unsigned number, cudaStream_t stream,
		 cudaEvent_t own, cudaEvent_t other)
{
	static unsigned *scratch;

	if (!scratch) {
		CUDA(cudaMalloc(&scratch, sizeof(*scratch)));
		CUDA(cudaMemset(scratch, 0, sizeof(*scratch)));
	}
	CUDA(cudaStreamWaitEvent(stream, other, 0));
	LAUNCH(test_work<<<1, 1, 0, stream>>>(scratch, 20000));
	LAUNCH(step<<<WORDS / 256, 256, 0, stream>>>(words, factor, number));
	CUDA(cudaEventRecord(own, stream));
}

static int second(int first)
{
	struct offer theirs, ours = {};
	cudaEvent_t own, other;
	cudaStream_t stream;
	unsigned *words;
	char turn;

	hear(first, &theirs, sizeof(theirs));
	if (!theirs.is_shared)
		return 0;
	CUDA(cudaIpcOpenMemHandle((void **)&words, theirs.memory, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenEventHandle(&other, theirs.event));
	make_events(&ours, &own);
	say(first, &ours, sizeof(ours));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (unsigned i = 0; i < ROUNDS; i++) {
		hear(first, &turn, 1);
		work(words, 3, i, stream, own, other);
		say(first, &turn, 1);
	}
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaEventQuery(other));
	CUDA(cudaIpcCloseMemHandle(words));
	CUDA(cudaEventDestroy(other));
	CUDA(cudaEventDestroy(own));
	return 0;
}

/* Whether memory is shared at all, which only a GPU or a system may lack. */
static bool offer_memory(struct offer *offer, unsigned **words)
{
	cudaError_t error;

	CUDA(cudaMalloc(words, WORDS * sizeof(**words)));
	CUDA(cudaMemset(*words, 0, WORDS * sizeof(**words)));
	CUDA(cudaDeviceSynchronize());
	error = cudaIpcGetMemHandle(&offer->memory, *words);
	EXPECT(error == cudaSuccess || error == cudaErrorNotSupported);
	cudaGetLastError();
	offer->is_shared = error == cudaSuccess;
	return offer->is_shared;
}

static void check(const unsigned *words)
{
	unsigned *found = (unsigned *)malloc(WORDS * sizeof(*found)), wanted = 0;

	for (unsigned i = 0; i < ROUNDS; i++)
		wanted = (wanted * 5 + 100 + i) * 3 + i;
	CUDA(cudaMemcpy(found, words, WORDS * sizeof(*found), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < WORDS; i++)
		EXPECT_EQ(wanted, found[i]);
	free(found);
}

static void share(int second, const struct offer *offer, cudaEvent_t own, unsigned *words)
{
	cudaEvent_t other;
	cudaStream_t stream;
	struct offer theirs;
	char turn = 0;

	say(second, offer, sizeof(*offer));
	hear(second, &theirs, sizeof(theirs));
	CUDA(cudaIpcOpenEventHandle(&other, theirs.event));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (unsigned i = 0; i < ROUNDS; i++) {
		work(words, 5, 100 + i, stream, own, other);
		say(second, &turn, 1);
		hear(second, &turn, 1);
	}
	CUDA(cudaEventSynchronize(other));
	check(words);
	CUDA(cudaEventDestroy(other));
}

int main(void)
{
	struct offer offer = {};
	int pair[2], status;
	cudaEvent_t own;
	unsigned *words;
	pid_t pid;

	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		return second(pair[1]);
	if (offer_memory(&offer, &words)) {
		make_events(&offer, &own);
		share(pair[0], &offer, own, words);
		CUDA(cudaEventDestroy(own));
		puts("shared");
	} else {
		say(pair[0], &offer, sizeof(offer));
		puts("memory is not shared here");
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	CUDA(cudaFree(words));
	return 0;
}
