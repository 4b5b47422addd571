/*
 * A program that tries to have more of a GPU than its VM may, each word in a way of its own, and
 * one that suffers from it. It knows nothing of FairGV. tests/gpu/hostile/hostile.py starts it.
 *
 *	globals BYTES		modules with a variable of BYTES, until one is refused
 *	local BYTES		a kernel whose threads have BYTES of local memory each
 *	arrays LAYERS		arrays of LAYERS layers of 512 texels, until one is refused
 *	streams, events		until one is refused, or there are MANY
 *	graphs			200 of 1,000 kernels
 *	limits STEPS		a limit raised, and lowered in STEPS by a byte; then memory
 *	fragments BYTES		allocations of BYTES, of which one in each 2 MiB stays; then memory
 *	memory			memory, until it is refused
 *	chunks BYTES		memory of BYTES without an address, until it is refused
 *	one BYTES		one allocation
 *	storm SECONDS BYTES	modules with a variable of BYTES, loaded and unloaded
 *	churn SECONDS BYTES	allocations of BYTES, made and freed
 *	pins SECONDS BYTES	memory of BYTES, pinned and given back
 *	spawn SECONDS		streams, made and destroyed
 *	neighbour SECONDS BLOCKS TURNS	kernels, eight at a time
 *	free			what is free of the device
 *
 * When it has what it could get it says so in a line, "done COUNT STATUS", and keeps it until its
 * standard input ends. Words with SECONDS end by themselves: "did COUNT SECONDS". They say "begun"
 * when they begin.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#define MANY	   5000
#define MANY_TRIES 2000000
#define BLOCK	   (2ull << 20)

static double now()
{
	timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int hold(unsigned long long count, cudaError_t status)
{
	printf("done %llu %s\n", count, cudaGetErrorName(status));
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	return 0;
}

static int report(unsigned long long count, double seconds)
{
	printf("did %llu %.6f\n", count, seconds);
	return 0;
}

/* --- Modules -------------------------------------------------------------------- */

static const char head[] = ".version 7.0\n.target sm_75\n.address_size 64\n";

static cudaError_t load(const std::string &text, cudaLibrary_t *library)
{
	return cudaLibraryLoadData(library, text.c_str(), NULL, NULL, 0, NULL, NULL, 0);
}

static std::string text_with_variable(unsigned long long bytes)
{
	return head + std::string(".visible .global .align 16 .b8 big[") + std::to_string(bytes) +
	       "];\n.visible .entry nothing()\n{\n\tret;\n}\n";
}

/* A library may be loaded when it is first used. */
static cudaError_t load_variable(const std::string &text, cudaLibrary_t *library)
{
	cudaError_t status = load(text, library);
	size_t size;
	void *big;

	if (status != cudaSuccess)
		return status;
	return cudaLibraryGetGlobal(&big, &size, *library, "big");
}

static int globals(unsigned long long bytes)
{
	std::string text = text_with_variable(bytes);
	unsigned long long count = 0;
	cudaLibrary_t library;
	cudaError_t status;

	while ((status = load_variable(text, &library)) == cudaSuccess && count < MANY)
		count++;
	return hold(count, status);
}

/* Does something over and over; @turn says whether it went well. */
template <typename Turn> static int storm_of(double seconds, Turn turn)
{
	unsigned long long count = 0;
	double begun;

	cudaFree(NULL);
	printf("begun\n");
	fflush(stdout);
	begun = now();
	while (now() - begun < seconds)
		count += turn();
	return report(count, now() - begun);
}

static int storm(double seconds, unsigned long long bytes)
{
	std::string text = text_with_variable(bytes);

	return storm_of(seconds, [&] {
		cudaLibrary_t library = NULL;
		bool is_loaded = load_variable(text, &library) == cudaSuccess;

		if (library)
			cudaLibraryUnload(library);
		return is_loaded;
	});
}

static int local(unsigned long long bytes)
{
	std::string size = std::to_string(bytes), last = std::to_string(bytes - 4);
	std::string text = head + std::string(".visible .entry deep()\n{\n"
					      "\t.local .align 4 .b8 mine[") +
			   size + "];\n\t.reg .pred %p<2>;\n\t.reg .b64 %rd<4>;\n"
				  "\t.reg .b32 %r<3>;\n\tmov.u64 %rd1, mine;\n"
				  "\tmov.u32 %r1, %tid.x;\n\tst.local.u32 [%rd1], %r1;\n"
				  "\tst.local.u32 [%rd1+" +
			   last + /* an address that is not known, or nothing of it would stay */
			   "], %r1;\n\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.u64 %rd3, %rd1, %rd2;\n"
			   "\tld.local.u32 %r2, [%rd3];\n\tsetp.eq.u32 %p1, %r2, 305419896;\n"
			   "\t@%p1 st.global.u32 [%rd2], %r2;\n\tret;\n}\n";
	cudaLibrary_t library;
	cudaKernel_t kernel;
	cudaError_t status = load(text, &library);

	if (status == cudaSuccess)
		status = cudaLibraryGetKernel(&kernel, library, "deep");
	if (status == cudaSuccess)
		status = cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), NULL, 0, 0);
	if (status == cudaSuccess)
		status = cudaDeviceSynchronize();
	return hold(status == cudaSuccess, status);
}

/* --- Memory --------------------------------------------------------------------- */

static unsigned long long take_memory(cudaError_t *status)
{
	unsigned long long taken = 0;
	size_t bytes = 1ull << 30;
	void *memory;

	do {
		while ((*status = cudaMalloc(&memory, bytes)) == cudaSuccess)
			taken += bytes;
		bytes /= 2;
	} while (bytes >= BLOCK);
	return taken;
}

static int memory()
{
	cudaError_t status;
	unsigned long long taken = take_memory(&status);

	return hold(taken, status);
}

/* The runtime has no names for these. */
static int chunks(unsigned long long bytes)
{
	auto create = (decltype(&cuMemCreate))dlsym(dlopen("libcuda.so.1", RTLD_NOW),
						    "cuMemCreate");
	unsigned long long count = 0;
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle handle;
	CUresult status = CUDA_ERROR_NOT_FOUND;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	cudaFree(NULL);
	while (create && (status = create(&handle, bytes, &prop, 0)) == CUDA_SUCCESS)
		count++;
	return hold(count, (cudaError_t)status);
}

static int one(unsigned long long bytes)
{
	void *made;
	cudaError_t status = cudaMalloc(&made, bytes);

	return hold(status == cudaSuccess, status);
}

static int limits(unsigned long long steps)
{
	cudaError_t status;
	unsigned long long taken;
	size_t before;

	cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize);
	if (cudaDeviceSetLimit(cudaLimitMallocHeapSize, before + steps + 1) == cudaSuccess) {
		for (unsigned long long i = 0; i < steps; i++)
			cudaDeviceSetLimit(cudaLimitMallocHeapSize, before + steps - i);
	}
	taken = take_memory(&status);
	return hold(taken, status);
}

static int fragments(unsigned long long bytes)
{
	std::vector<char *> blocks;
	unsigned long long block = 0;
	cudaError_t status = cudaSuccess;

	for (int i = 0; i < MANY_TRIES; i++) {
		void *made;

		status = cudaMalloc(&made, bytes);
		if (status != cudaSuccess)
			break;
		blocks.push_back((char *)made);
	}
	for (char *at : blocks) {
		if ((unsigned long long)at / BLOCK == block)
			cudaFree(at);
		block = (unsigned long long)at / BLOCK;
	}
	cudaGetLastError();
	return hold(take_memory(&status), status);
}

static int churn(double seconds, unsigned long long bytes)
{
	return storm_of(seconds, [&] {
		void *made;

		return cudaMalloc(&made, bytes) == cudaSuccess && cudaFree(made) == cudaSuccess;
	});
}

static int pins(double seconds, unsigned long long bytes)
{
	return storm_of(seconds, [&] {
		void *made;

		return cudaMallocHost(&made, bytes) == cudaSuccess &&
		       cudaFreeHost(made) == cudaSuccess;
	});
}

static int spawn(double seconds)
{
	return storm_of(seconds, [] {
		cudaStream_t stream;

		return cudaStreamCreate(&stream) == cudaSuccess &&
		       cudaStreamDestroy(stream) == cudaSuccess;
	});
}

static int arrays(int layers)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	unsigned long long count = 0;
	cudaError_t status;
	cudaArray_t array;

	while ((status = cudaMalloc3DArray(&array, &format, make_cudaExtent(512, 1, layers),
					   cudaArrayLayered)) == cudaSuccess &&
	       count < MANY)
		count++;
	return hold(count, status);
}

static int streams()
{
	unsigned long long count = 0;
	cudaError_t status;
	cudaStream_t stream;

	while ((status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) ==
		       cudaSuccess &&
	       count < MANY)
		count++;
	return hold(count, status);
}

static int events()
{
	unsigned long long count = 0;
	cudaError_t status;
	cudaEvent_t event;

	while ((status = cudaEventCreate(&event)) == cudaSuccess && count < 20 * MANY)
		count++;
	return hold(count, status);
}

/* Graphs of 1,000 kernels, each with its arguments, that have been launched. */
__global__ void nothing(int)
{
}

static cudaError_t make_graph()
{
	cudaGraphNode_t node, *before = nullptr;
	cudaGraphExec_t ready;
	cudaGraph_t graph;
	cudaError_t status = cudaGraphCreate(&graph, 0);

	for (int i = 0; i < 1000 && status == cudaSuccess; i++) {
		void *args[] = {&i};
		cudaKernelNodeParams params = {};

		params.func = (void *)nothing;
		params.gridDim = params.blockDim = dim3(1);
		params.kernelParams = args;
		status = cudaGraphAddKernelNode(&node, graph, before, before ? 1 : 0, &params);
		before = &node;
	}
	if (status == cudaSuccess)
		status = cudaGraphInstantiate(&ready, graph, 0);
	cudaGraphDestroy(graph);
	return status == cudaSuccess ? cudaGraphLaunch(ready, 0) : status;
}

static int graphs()
{
	unsigned long long count = 0;
	cudaError_t status = cudaSuccess;

	while (count < 200 && (status = make_graph()) == cudaSuccess)
		count++;
	cudaDeviceSynchronize();
	return hold(count, status);
}

/* --- The neighbour ---------------------------------------------------------------- */

__global__ void work(float *out, int turns)
{
	float value = threadIdx.x;

	for (int i = 0; i < turns; i++)
		value = value * 0.999f + 1.0f;
	if (value == -1.0f)
		*out = value;
}

static int neighbour(double seconds, int blocks, int turns)
{
	unsigned long long count = 0;
	double begun;
	float *out;

	if (cudaMalloc(&out, sizeof(*out)) != cudaSuccess)
		return 1;
	work<<<blocks, 256>>>(out, turns);
	if (cudaDeviceSynchronize() != cudaSuccess)
		return 1;
	printf("begun\n");
	fflush(stdout);
	begun = now();
	while (now() - begun < seconds) {
		for (int i = 0; i < 8; i++)
			work<<<blocks, 256>>>(out, turns);
		if (cudaDeviceSynchronize() != cudaSuccess)
			return 1;
		count += 8;
	}
	return report(count, now() - begun);
}

static int say_free()
{
	size_t free_bytes, total_bytes;

	if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
		return 1;
	printf("free %zu %zu\n", free_bytes, total_bytes);
	return 0;
}

int main(int argc, char **argv)
{
	std::string word = argc > 1 ? argv[1] : "";
	double first = argc > 2 ? atof(argv[2]) : 0;
	double second = argc > 3 ? atof(argv[3]) : 0;

	if (word == "globals")
		return globals((unsigned long long)first);
	if (word == "local")
		return local((unsigned long long)first);
	if (word == "arrays")
		return arrays((int)first);
	if (word == "streams")
		return streams();
	if (word == "events")
		return events();
	if (word == "graphs")
		return graphs();
	if (word == "limits")
		return limits((unsigned long long)first);
	if (word == "fragments")
		return fragments((unsigned long long)first);
	if (word == "memory")
		return memory();
	if (word == "chunks")
		return chunks((unsigned long long)first);
	if (word == "one")
		return one((unsigned long long)first);
	if (word == "storm")
		return storm(first, (unsigned long long)second);
	if (word == "churn")
		return churn(first, (unsigned long long)second);
	if (word == "pins")
		return pins(first, (unsigned long long)second);
	if (word == "spawn")
		return spawn(first);
	if (word == "neighbour")
		return neighbour(first, (int)second, argc > 4 ? atoi(argv[4]) : 1);
	if (word == "free")
		return say_free();
	fprintf(stderr, "usage: hostile WORD [NUMBER...]; see its source\n");
	return 2;
}
