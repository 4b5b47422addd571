/*
 * Memory of the program's own that is registered: it keeps what is in it and around it, copies
 * and kernels use it, and it is the program's as before when it is unregistered. The codes
 * of wrong uses.
 */
#include "test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define KIB ((size_t)1024)

static unsigned char in_program[20000];

static __global__ void add_one(unsigned char *bytes, unsigned count)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		bytes[i]++;
}

/* @around bytes on both sides of [@memory, @memory + @bytes) must stay as they are. */
static void use(unsigned char *memory, size_t bytes, size_t around)
{
	unsigned char *device, *seen;

	CUDA(cudaMalloc(&device, bytes));
	test_fill(memory - around, bytes + 2 * around, 3);
	CUDA(cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable));
	EXPECT_EQ(bytes + 2 * around, test_compare(memory - around, bytes + 2 * around, 3));
	CUDA(cudaHostGetDevicePointer(&seen, memory, 0));
	CUDA(cudaMemcpyAsync(device, memory, bytes, cudaMemcpyHostToDevice));
	LAUNCH(add_one<<<(unsigned)(bytes + 255) / 256, 256>>>(seen, (unsigned)bytes));
	CUDA(cudaDeviceSynchronize());
	for (size_t i = 0; i < bytes; i++)
		EXPECT_EQ((unsigned char)(test_byte(i + around, 3) + 1), memory[i]);
	CUDA(cudaMemcpyAsync(memory, device, bytes, cudaMemcpyDeviceToHost));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(bytes + 2 * around, test_compare(memory - around, bytes + 2 * around, 3));
	CUDA(cudaHostUnregister(memory));
	EXPECT_EQ(bytes + 2 * around, test_compare(memory - around, bytes + 2 * around, 3));
	memset(memory, 0, bytes);
	CUDA(cudaFree(device));
}

static void kinds_of_memory(void)
{
	std::vector<unsigned char> heap(300 * KIB), small(3000);
	unsigned char *pages = (unsigned char *)mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	use(heap.data() + 100, 290 * KIB, 100);
	use(small.data() + 50, 2900, 50);
	use(pages, 64 * KIB, 0);
	use(in_program + 1000, 18000, 1000);
	EXPECT(!munmap(pages, 64 * KIB));
}

static void attributes(void)
{
	std::vector<unsigned char> memory(10000);
	struct cudaPointerAttributes got;

	CUDA(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault));
	CUDA(cudaPointerGetAttributes(&got, memory.data() + 5));
	EXPECT_EQ(cudaMemoryTypeHost, got.type);
	EXPECT(got.hostPointer == memory.data() + 5);
	CUDA(cudaHostUnregister(memory.data()));
	CUDA(cudaPointerGetAttributes(&got, memory.data() + 5));
	EXPECT_EQ(cudaMemoryTypeUnregistered, got.type);
}

/* A forked child has the memory as its own. */
static void forks(void)
{
	std::vector<unsigned char> memory(100000, 7);
	int status;
	pid_t child;

	CUDA(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault));
	child = fork();
	if (!child) {
		bool right = memory[0] == 7 && memory[99999] == 7;

		memset(memory.data(), 8, memory.size());
		_exit(right ? 0 : 1);
	}
	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (unsigned char byte : memory)
		EXPECT_EQ(7, byte);
	CUDA(cudaHostUnregister(memory.data()));
}

static void wrong_uses(void)
{
	std::vector<unsigned char> memory(64 * KIB);
	unsigned char *p = memory.data();
	void *nothing = mmap(NULL, 64 * KIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(!munmap(nothing, 64 * KIB));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostRegister(NULL, 16, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostRegister(p, 0, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostRegister(p, 16, 0x80));
	EXPECT_CODE(cudaErrorInvalidValue, cudaHostRegister(nothing, 64 * KIB, 0));
	EXPECT_CODE(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(p));
	CUDA(cudaHostRegister(p, memory.size(), 0));
	EXPECT_CODE(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p, memory.size(), 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(p));
	CUDA(cudaHostUnregister(p));
	EXPECT_CODE(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(p));
	cudaGetLastError();
}

int main(void)
{
	kinds_of_memory();
	attributes();
	forks();
	wrong_uses();
	CUDA(cudaDeviceSynchronize());
	return 0;
}
