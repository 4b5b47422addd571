/*
 * Calls one of CUDA's operations again and again, for bench instructions to count what the
 * library does for it. An ordinary CUDA program.
 *
 * usage: operations OPERATION COUNT [ROUNDS]     one line of key=value words, with what COUNT
 * calls have cost in the best of the rounds (counter.h); status 1: a call failed; 2: what it knows
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "counter.h"

#define CUDA(call) check((call), #call)

static void check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "operations: %s: %s\n", call, cudaGetErrorString(error));
	exit(1);
}

__global__ void empty(void)
{
}

__global__ void with_params(char *pointer, int number, float real, double precise)
{
	if (number > 0)
		*pointer = (char)(real + precise);
}

static char *device;
static int word;

static void launch(int)
{
	empty<<<1, 1>>>();
}

static void launch_params(int i)
{
	with_params<<<1, 1>>>(device, -i, 1.0f, 2.0);
}

static void launch_sync(int)
{
	empty<<<1, 1>>>();
	CUDA(cudaDeviceSynchronize());
}

static void sync_idle(int)
{
	CUDA(cudaDeviceSynchronize());
}

static void copy_in(int)
{
	CUDA(cudaMemcpy(device, &word, sizeof(word), cudaMemcpyHostToDevice));
}

static void copy_out(int)
{
	CUDA(cudaMemcpy(&word, device, sizeof(word), cudaMemcpyDeviceToHost));
}

static void malloc_free(int)
{
	void *memory;

	CUDA(cudaMalloc(&memory, 1 << 20));
	CUDA(cudaFree(memory));
}

#define NODES 100

static const cudaKernelNodeParams *kernel_of(int number)
{
	static cudaKernelNodeParams params;
	static char *pointer;
	static int argument;
	static float real = 1.0f;
	static double precise = 2.0;
	static void *args[] = {&pointer, &argument, &real, &precise};

	pointer = device;
	argument = number;
	params.func = (void *)with_params;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	return &params;
}

/* A chain of kernels, which get @number. */
static cudaGraph_t make_graph(int number, cudaGraphNode_t *last)
{
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	for (int i = 0; i < NODES; i++) {
		cudaGraphNode_t before = *last;

		CUDA(cudaGraphAddKernelNode(last, graph, &before, i > 0, kernel_of(number)));
	}
	return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void graph_again_100(int)
{
	static cudaGraphNode_t last;
	static cudaGraph_t graph = make_graph(0, &last);

	CUDA(cudaGraphExecDestroy(instantiate(graph)));
}

/* One edge comes or goes each time, so that no shape comes again in 256 times. */
static void graph_100(int i)
{
	static cudaGraphNode_t last, nodes[NODES];
	static cudaGraph_t graph = make_graph(0, &last);
	static bool is_there[8];
	size_t count = NODES;
	int edge = __builtin_ctz(i + 1) % 8;

	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	if (is_there[edge])
		CUDA(cudaGraphRemoveDependencies(graph, nodes, &nodes[2 + edge], NULL, 1));
	else
		CUDA(cudaGraphAddDependencies(graph, nodes, &nodes[2 + edge], NULL, 1));
	is_there[edge] = !is_there[edge];
	CUDA(cudaGraphExecDestroy(instantiate(graph)));
}

static void graph_alike_100(int i)
{
	static cudaGraphNode_t last;
	static cudaGraph_t graph = make_graph(0, &last);
	cudaGraphExec_t exec;

	CUDA(cudaGraphKernelNodeSetParams(last, kernel_of(i)));
	exec = instantiate(graph);
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaGraphExecDestroy(exec));
}

static void graph_update_100(int i)
{
	static cudaGraphNode_t last;
	static cudaGraph_t graphs[] = {make_graph(0, &last), make_graph(1, &last)};
	static cudaGraphExec_t exec = instantiate(graphs[0]);
	cudaGraphExecUpdateResultInfo info;

	CUDA(cudaGraphExecUpdate(exec, graphs[(i + 1) % 2], &info));
	CUDA(cudaGraphLaunch(exec, 0));
}

static const struct operation {
	const char *name;
	void (*run)(int i);
} operations[] = {
	{"launch", launch},
	{"launch_params", launch_params},
	{"launch_sync", launch_sync},
	{"sync_idle", sync_idle},
	{"copy_in_4B", copy_in},
	{"copy_out_4B", copy_out},
	{"malloc_free", malloc_free},
	{"graph_100", graph_100},
	{"graph_alike_100", graph_alike_100},
	{"graph_again_100", graph_again_100},
	{"graph_update_100", graph_update_100},
};

static void run(const struct operation &operation, int count, int rounds)
{
	struct counter counter = counter_open();
	unsigned long long least = ~0ull;

	CUDA(cudaMalloc(&device, 256));
	while (rounds-- > 0) {
		unsigned long long before = counter_read(&counter);

		for (int i = 0; i < count; i++)
			operation.run(i);
		least = std::min(least, counter_since(&counter, before));
		CUDA(cudaDeviceSynchronize());
	}
	CUDA(cudaGetLastError());
	printf("operation=%s count=%d unit=%s spent=%llu\n", operation.name, count, counter.unit,
	       least);
}

int main(int argc, char **argv)
{
	int count = argc == 3 || argc == 4 ? atoi(argv[2]) : 0;
	int rounds = argc == 4 ? atoi(argv[3]) : 1;

	for (const struct operation &operation : operations) {
		if (count <= 0 || rounds <= 0 || strcmp(argv[1], operation.name))
			continue;
		run(operation, count, rounds);
		return 0;
	}
	fprintf(stderr, "usage: operations OPERATION COUNT [ROUNDS], of:");
	for (const struct operation &operation : operations)
		fprintf(stderr, " %s", operation.name);
	fprintf(stderr, "\n");
	return 2;
}
