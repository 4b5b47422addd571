/*
 * Counts in device memory for as long as it is let: `freeze BYTES [BYTES...]` says "ready" after the
 * first round, and one line of each round that it is asked for by a line of input. At the input's end
 * it looks at every word, and says "verified=yes" where each has counted all rounds.
 * Of BYTES:SET only the first SET bytes are set, and nothing counts there.
 */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error = (call);                                                        \
		if (error) {                                                                       \
			fprintf(stderr, "freeze: %s: %s\n", #call, cudaGetErrorString(error));     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct memory {
	unsigned *words;
	size_t count;
};

__global__ void count_up(unsigned *words, size_t count)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		words[i] += i % 251 + 1;
}

static void count_rounds(const std::vector<memory> &all, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		for (const memory &each : all)
			count_up<<<64, 128>>>(each.words, each.count);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

static bool is_right(const memory &memory, unsigned rounds)
{
	std::vector<unsigned> words(memory.count);

	CHECK(cudaMemcpy(words.data(), memory.words, memory.count * sizeof(unsigned),
			 cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < memory.count; i++) {
		if (words[i] != rounds * (unsigned)(i % 251 + 1))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	std::vector<memory> all;
	unsigned rounds = 1, wanted;
	bool right = true;
	char line[64];

	for (int i = 1; i < argc; i++) {
		char *end;
		memory made = {nullptr, strtoull(argv[i], &end, 0) / sizeof(unsigned)};

		CHECK(cudaMalloc(&made.words, made.count * sizeof(unsigned)));
		if (*end == ':') {
			CHECK(cudaMemset(made.words, 1, strtoull(end + 1, nullptr, 0)));
			CHECK(cudaDeviceSynchronize());
			continue;
		}
		CHECK(cudaMemset(made.words, 0, made.count * sizeof(unsigned)));
		all.push_back(made);
	}
	count_rounds(all, 1);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		wanted = (unsigned)strtoul(line, nullptr, 10);
		count_rounds(all, wanted);
		rounds += wanted;
		printf("rounds %u\n", rounds);
		fflush(stdout);
	}
	for (const memory &each : all)
		right &= is_right(each, rounds);
	printf("verified=%s\n", right ? "yes" : "no");
	return !right;
}
