/*
 * An assertion that fails in a kernel: its message is on standard error when the program has
 * synchronized, which says cudaErrorAssert, and so does every call after it.
 */
#include "test.h"

#undef NDEBUG
#include <assert.h>
#include <string>
#include <unistd.h>

static __global__ void check(const int *values)
{
	assert(values[threadIdx.x] != 7);
}

int main(void)
{
	int values[4] = {1, 2, 3, 4}, *memory, ends[2], saved;
	char text[8192];
	ssize_t len;

	CUDA(cudaMalloc(&memory, sizeof(values)));
	CUDA(cudaMemcpy(memory, values, sizeof(values), cudaMemcpyHostToDevice));
	LAUNCH(check<<<1, 4>>>(memory));
	CUDA(cudaDeviceSynchronize());
	values[2] = 7;
	CUDA(cudaMemcpy(memory, values, sizeof(values), cudaMemcpyHostToDevice));

	fflush(stderr);
	saved = dup(STDERR_FILENO);
	EXPECT(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	LAUNCH(check<<<1, 4>>>(memory));
	EXPECT_CODE(cudaErrorAssert, cudaDeviceSynchronize());
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(ends[1]);
	len = read(ends[0], text, sizeof(text) - 1);
	EXPECT(len > 0);
	text[len] = '\0';
	if (!strstr(text, "assert.cu:") ||
	    !strstr(text,
		    "block: [0,0,0], thread: [2,0,0] Assertion `values[threadIdx.x] != 7` failed."))
		FAIL("no such message: %s", text);
	EXPECT(!strstr(text, "thread: [1,0,0]"));

	EXPECT_CODE(cudaErrorAssert, cudaGetLastError());
	EXPECT_CODE(cudaErrorAssert, cudaDeviceSynchronize());
	EXPECT_CODE(cudaErrorAssert, cudaMalloc(&memory, 16));
	EXPECT_CODE(cudaErrorAssert,
		    cudaMemcpy(values, memory, sizeof(values), cudaMemcpyDeviceToHost));
	return 0;
}
