/*
 * Works over all of its device memory again and again. `sweep BYTES` says "ready" after the first
 * pass; a line of input "SECONDS" begins the others, and for each 50 ms there comes a line "NS PASSES":
 * the monotonic clock, and how many passes were done by then. At the end every word is looked at:
 * "verified=yes" where each has been through all passes once. `sweep BYTES managed` takes managed
 * memory. `sweep leave BYTES` has all of the device's memory but so much, until its input ends.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <time.h>
#include <vector>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error = (call);                                                        \
		if (error) {                                                                       \
			fprintf(stderr, "sweep: %s: %s\n", #call, cudaGetErrorString(error));      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* A pass takes each word to the next number of a sequence that only this many passes lead to. */
#define FACTOR	  1664525u
#define ADDEND	  1013904223u
#define PART	  (size_t(1) << 30) /* of one kernel */
#define LINE_NS	  50000000
#define QUEUED	  2 /* passes ahead of the one that is waited for */
#define LEAVE_MIN (size_t(16) << 20)

struct memory {
	uint32_t *words;
	size_t count;
};

__device__ static uint32_t first_of(size_t i, uint32_t number)
{
	return (uint32_t)i * 2654435761u + number;
}

__global__ void begin(uint32_t *words, size_t count, uint32_t number)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		words[i] = first_of(i, number);
}

__global__ void pass(uint32_t *words, size_t count)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		words[i] = words[i] * FACTOR + ADDEND;
}

/* Words that @factor and @addend, which stand for all passes, do not make of the first ones. */
__global__ void look(const uint32_t *words, size_t count, uint32_t number, uint32_t factor,
		     uint32_t addend, unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x) {
		if (words[i] != first_of(i, number) * factor + addend)
			atomicAdd(wrong, 1ull);
	}
}

static unsigned blocks_of(const memory &memory)
{
	size_t wanted = memory.count / 4096 + 1;

	return wanted < 4096 ? (unsigned)wanted : 4096;
}

static uint64_t now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static std::vector<memory> allocate(size_t bytes, bool is_managed)
{
	std::vector<memory> all;

	while (bytes) {
		size_t part = bytes < PART ? bytes : PART;
		memory made = {nullptr, part / sizeof(uint32_t)};

		if (is_managed)
			CHECK(cudaMallocManaged(&made.words, part));
		else
			CHECK(cudaMalloc(&made.words, part));
		begin<<<blocks_of(made), 256>>>(made.words, made.count, (uint32_t)all.size());
		all.push_back(made);
		bytes -= part;
	}
	return all;
}

static void sweep(const std::vector<memory> &all)
{
	for (const memory &each : all)
		pass<<<blocks_of(each), 256>>>(each.words, each.count);
	CHECK(cudaGetLastError());
}

/* Passes for @seconds, all of them done at the end: how many. */
static uint64_t run(const std::vector<memory> &all, double seconds)
{
	uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), said_ns = 0, done = 0, now;
	cudaEvent_t events[QUEUED];
	uint64_t queued = 0;

	for (cudaEvent_t &each : events)
		CHECK(cudaEventCreateWithFlags(&each, cudaEventDisableTiming));
	do {
		for (; queued < done + QUEUED; queued++) {
			sweep(all);
			CHECK(cudaEventRecord(events[queued % QUEUED]));
		}
		CHECK(cudaEventSynchronize(events[done % QUEUED]));
		done++;
		now = now_ns();
		if (now - said_ns < LINE_NS && now < end_ns)
			continue;
		printf("%llu %llu\n", (unsigned long long)now, (unsigned long long)done);
		said_ns = now;
	} while (now < end_ns);
	CHECK(cudaDeviceSynchronize());
	return queued;
}

static bool is_right(const std::vector<memory> &all, uint64_t passes)
{
	uint32_t factor = 1, addend = 0, number = 0;
	unsigned long long *wrong, found;

	for (uint64_t i = 0; i < passes; i++) {
		factor *= FACTOR;
		addend = addend * FACTOR + ADDEND;
	}
	CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	for (const memory &each : all)
		look<<<blocks_of(each), 256>>>(each.words, each.count, number++, factor, addend,
					       wrong);
	CHECK(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
	if (found)
		fprintf(stderr, "sweep: %llu words are wrong after %llu passes\n", found,
			(unsigned long long)passes);
	return !found;
}

static int leave(size_t bytes)
{
	size_t part = PART, free, all;
	void *taken;
	char line[8];

	CHECK(cudaMemGetInfo(&free, &all));
	while (part >= LEAVE_MIN && free > bytes) {
		if (part > free - bytes || cudaMalloc(&taken, part) != cudaSuccess)
			part /= 2;
		CHECK(cudaMemGetInfo(&free, &all));
	}
	printf("leaves %zu\n", free);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		continue;
	return 0;
}

int main(int argc, char **argv)
{
	std::vector<memory> all;
	char line[64];
	bool right;

	if (argc < 2)
		return 2;
	if (argc == 3 && !strcmp(argv[1], "leave"))
		return leave(strtoull(argv[2], nullptr, 0));
	all = allocate(strtoull(argv[1], nullptr, 0), argc > 2 && !strcmp(argv[2], "managed"));
	sweep(all);
	CHECK(cudaDeviceSynchronize());
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	right = is_right(all, 1 + run(all, strtod(line, nullptr)));
	printf("verified=%s\n", right ? "yes" : "no");
	return !right;
}
