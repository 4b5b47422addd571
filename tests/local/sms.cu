/*
 * Which multiprocessors kernels run on: `sms COUNT...` launches a kernel for each COUNT, whose
 * blocks fill so many multiprocessors of a soft GPU and stay until a line comes. Says "begun" and
 * the set of multiprocessors, a bit for each, when all of its blocks run, and "ended" when the
 * kernel has. "launched" comes before, and "told" is how many multiprocessors the program is told
 * of.
 */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <cuda_runtime.h>

#define THREADS 1024 /* a soft GPU's multiprocessor has room for two such blocks */
#define EACH	2

struct word {
	unsigned long long sms;
	unsigned running;
	int stop;
};

static void check(cudaError_t error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "sms: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

__global__ void stay(volatile struct word *word)
{
	unsigned sm;

	if (threadIdx.x == 0) {
		asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
		atomicOr_system((unsigned long long *)&word->sms, 1ull << sm);
		__threadfence_system();
		atomicAdd_system((unsigned *)&word->running, 1);
		while (!word->stop)
			;
	}
	__syncthreads();
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void stay_on(volatile struct word *word, unsigned count)
{
	char line[16];

	word->sms = word->running = word->stop = 0;
	stay<<<count * EACH, THREADS>>>((struct word *)word);
	check(cudaGetLastError(), "launch");
	say("launched");
	while (word->running < count * EACH)
		usleep(1000);
	printf("begun %llx\n", word->sms);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
	word->stop = 1;
	check(cudaDeviceSynchronize(), "the kernel");
	say("ended");
}

int main(int argc, char **argv)
{
	struct word *word;
	int told = 0;

	check(cudaHostAlloc(&word, sizeof(*word), cudaHostAllocMapped), "memory");
	check(cudaDeviceGetAttribute(&told, cudaDevAttrMultiProcessorCount, 0), "attribute");
	printf("told %d\n", told);
	for (int i = 1; i < argc; i++)
		stay_on(word, (unsigned)atoi(argv[i]));
	return 0;
}
