/*
 * What a kernel does wrong, and with which code the context is lost; and wrong calls after
 * which it is not. Every fault is a program of its own, which this one starts: the
 * context of a process does not come back.
 */
#include "test.h"

#undef NDEBUG
#include <assert.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)4 << 20)

static __global__ void write_int(int *at)
{
	*(volatile int *)at = 1;
}

static __global__ void read_int(const int *at, int *to)
{
	*to = *(const volatile int *)at;
}

static __global__ void trap(void)
{
	asm volatile("trap;");
}

static __global__ void fail(int value)
{
	assert(value == 0);
}

/* One thread of many is enough, whatever the others do. */
static __global__ void one_of_many(int **pointers)
{
	*pointers[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

static void launch_many(int *memory)
{
	int *host[256], **pointers;

	for (int i = 0; i < 256; i++)
		host[i] = i == 200 ? (int *)8 : memory;
	CUDA(cudaMalloc(&pointers, sizeof(host)));
	CUDA(cudaMemcpy(pointers, host, sizeof(host), cudaMemcpyHostToDevice));
	LAUNCH(one_of_many<<<4, 64>>>(pointers));
}

static cudaError_t do_wrong(const char *what, int *memory)
{
	if (!strcmp(what, "write")) {
		LAUNCH(write_int<<<1, 1>>>((int *)16));
		return cudaErrorIllegalAddress;
	}
	if (!strcmp(what, "read")) {
		LAUNCH(read_int<<<1, 1>>>((const int *)16, memory));
		return cudaErrorIllegalAddress;
	}
	if (!strcmp(what, "many")) {
		launch_many(memory);
		return cudaErrorIllegalAddress;
	}
	if (!strcmp(what, "misaligned")) {
		LAUNCH(write_int<<<1, 1>>>((int *)((char *)memory + 2)));
		return cudaErrorMisalignedAddress;
	}
	if (!strcmp(what, "trap")) {
		LAUNCH(trap<<<1, 1>>>());
		return cudaErrorLaunchFailure;
	}
	/* What it says is nothing to whoever runs the tests. */
	EXPECT(freopen("/dev/null", "w", stderr));
	LAUNCH(fail<<<1, 1>>>(1));
	return cudaErrorAssert;
}

/* In a process of its own: the code, from every call that needs the device, from then on. */
static int lose_context(const char *what)
{
	int value = 0, *memory, *more, count;
	cudaStream_t stream;
	cudaError_t wanted;

	CUDA(cudaMalloc(&memory, 64));
	CUDA(cudaStreamCreate(&stream));
	wanted = do_wrong(what, memory);
	EXPECT_CODE(wanted, cudaDeviceSynchronize());
	EXPECT_CODE(wanted, cudaPeekAtLastError());
	EXPECT_CODE(wanted, cudaGetLastError());
	for (int i = 0; i < 2; i++) {
		EXPECT_CODE(wanted, cudaMalloc(&more, 64));
		EXPECT_CODE(wanted, cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost));
		EXPECT_CODE(wanted, cudaStreamSynchronize(stream));
		EXPECT_CODE(wanted, cudaStreamQuery(stream));
		write_int<<<1, 1, 0, stream>>>(memory);
		EXPECT_CODE(wanted, cudaGetLastError());
		EXPECT_CODE(wanted, cudaDeviceSynchronize());
	}
	CUDA(cudaGetDeviceCount(&count));
	return 0;
}

static void run_fault(char *self, const char *what)
{
	pid_t pid = fork();
	int status;

	EXPECT(pid >= 0);
	if (!pid) {
		execl(self, self, what, (char *)NULL);
		_exit(127);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		FAIL("fault \"%s\": status 0x%x", what, status);
}

/* Copies and fills that reach beyond what was allocated are refused, and harm nothing. */
static void beyond(void)
{
	char *device, *host = (char *)calloc(1, 3 * BYTES);

	CUDA(cudaMalloc(&device, BYTES));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy(device, host, 3 * BYTES, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy(host, device, 3 * BYTES, cudaMemcpyDeviceToHost));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemset(device, 1, 3 * BYTES));
	cudaGetLastError();
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemset(device, 7, BYTES));
	CUDA(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
	EXPECT_EQ(7, host[0]);
	EXPECT_EQ(7, host[BYTES - 1]);
	CUDA(cudaFree(device));
	free(host);
}

/* The process from which the faults were started has a context that never was at fault. */
int main(int argc, char **argv)
{
	static const char *const faults[] = {"write",	   "read", "many",
					     "misaligned", "trap", "assert"};
	char self[4096];
	ssize_t len;

	if (argc == 2)
		return lose_context(argv[1]);
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	EXPECT(len > 0);
	self[len] = '\0';
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		run_fault(self, faults[i]);
	beyond();
	return 0;
}
