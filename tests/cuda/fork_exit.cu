/*
 * A forked child has no context and says so, and its parent's is unharmed, also by the
 * child's end; and calls while the process ends work or say that CUDA is being unloaded.
 */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

static __device__ int counter;

static __global__ void count(void)
{
	counter++;
}

static bool is_ending(cudaError_t code)
{
	return code == cudaSuccess || code == cudaErrorCudartUnloading;
}

/* Its destructor runs while the process ends; a failure shows in the exit code. */
struct last {
	void *memory = nullptr;

	~last()
	{
		if (memory && (!is_ending(cudaDeviceSynchronize()) || !is_ending(cudaFree(memory))))
			_exit(1);
	}
};

static struct last last;

static void at_exit(void)
{
	int value = 0;
	cudaError_t code = cudaMemcpyFromSymbol(&value, counter, sizeof(value));

	if (!is_ending(code) || (!code && value != 2))
		_exit(1);
}

static int in_child(void)
{
	void *memory;

	if (cudaMalloc(&memory, 16) != cudaErrorInitializationError ||
	    cudaGetLastError() != cudaErrorInitializationError ||
	    cudaDeviceSynchronize() != cudaErrorInitializationError)
		return 1;
	return 0;
}

int main(void)
{
	int value, status;
	pid_t pid;

	LAUNCH(count<<<1, 1>>>());
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMalloc(&last.memory, 1024));
	EXPECT(atexit(at_exit) == 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		_exit(in_child());
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	LAUNCH(count<<<1, 1>>>());
	CUDA(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
	EXPECT_EQ(2, value);
	return 0;
}
