/*
 * Graphs of kernels, functions and copies from and to pageable memory, whatever waits for whatever:
 * each node finds what the nodes before it have done in the same launch, and no older.
 */
#include <cstdint>
#include <cstdlib>

#include "test.h"

#define GRAPHS	 24
#define NODES	 32
#define BEFORE	 3
#define LAUNCHES 3

enum kind { KERNEL, FUNCTION, COPY_IN, COPY_OUT };

/* What nodes leave: kernels in both, functions in pinned, copies in their own. */
struct cells {
	uint32_t round; /* of the launch */
	uint32_t values[NODES];
};

struct node {
	enum kind kind;
	int before[BEFORE], count;
	int self;
	struct graph *graph;
};

static struct graph {
	struct node nodes[NODES];
	struct cells *pinned, *device;
	struct cells in, out; /* pageable */
} shared;

struct deps {
	const uint32_t *values[BEFORE]; /* NULL: cannot be seen from there */
};

static __host__ __device__ uint32_t mix(uint32_t hash, uint32_t value)
{
	hash = (hash ^ value) * 0x9e3779b1u;
	return hash ^ (hash >> 15);
}

static __global__ void compute(struct cells *pinned, struct cells *device, int self,
			       struct deps deps)
{
	uint32_t hash = mix(pinned->round, self);

	for (int i = 0; i < BEFORE; i++)
		hash = deps.values[i] ? mix(hash, *deps.values[i]) : hash;
	device->values[self] = hash;
	pinned->values[self] = hash;
}

/* Where a kernel or a function finds what @node has left. */
static const uint32_t *seen_from(const struct graph *graph, int node, enum kind kind)
{
	switch (graph->nodes[node].kind) {
	case KERNEL:
	case FUNCTION:
		return &graph->pinned->values[node];
	case COPY_IN:
		return kind == KERNEL ? &graph->device->values[node] : NULL;
	case COPY_OUT:
		return kind == FUNCTION ? &graph->out.values[node] : NULL;
	}
	return NULL;
}

static void compute_here(void *data)
{
	const struct node *node = (const struct node *)data;
	struct graph *graph = node->graph;
	volatile struct cells *pinned = graph->pinned;
	uint32_t hash = mix(pinned->round, node->self);

	for (int i = 0; i < node->count; i++) {
		const volatile uint32_t *value = seen_from(graph, node->before[i], FUNCTION);

		hash = value ? mix(hash, *value) : hash;
	}
	pinned->values[node->self] = hash;
}

/* What each node must have left. */
static uint32_t expected(const struct graph *graph, const uint32_t *values, int self)
{
	const struct node *node = &graph->nodes[self];
	uint32_t hash = mix(graph->pinned->round, self);

	if (node->kind == COPY_IN)
		return graph->in.values[self];
	if (node->kind == COPY_OUT)
		return values[node->before[0]];
	for (int i = 0; i < node->count; i++) {
		if (seen_from(graph, node->before[i], node->kind))
			hash = mix(hash, values[node->before[i]]);
	}
	return hash;
}

static uint32_t left_by(const struct graph *graph, const struct cells *device, int self)
{
	switch (graph->nodes[self].kind) {
	case COPY_IN:
		return device->values[self];
	case COPY_OUT:
		return graph->out.values[self];
	default:
		return graph->pinned->values[self];
	}
}

static void choose(struct graph *graph, int self, int kinds)
{
	struct node *node = &graph->nodes[self];

	node->kind = (enum kind)(rand() % kinds);
	node->count = 0;
	node->self = self;
	node->graph = graph;
	/* Different ones, of those that there are. */
	for (int from = self - 1 - rand() % 4; from >= 0 && node->count < BEFORE;
	     from -= 1 + rand() % 5)
		node->before[node->count++] = from;
	if (node->kind == COPY_OUT &&
	    (!node->count || (graph->nodes[node->before[0]].kind != KERNEL &&
			      graph->nodes[node->before[0]].kind != COPY_IN)))
		node->kind = KERNEL;
}

static cudaGraphNode_t add(cudaGraph_t to, struct graph *graph, int self,
			   const cudaGraphNode_t *before)
{
	struct node *node = &graph->nodes[self];
	struct deps deps = {};
	void *args[] = {&graph->pinned, &graph->device, &self, &deps};
	cudaKernelNodeParams kernel = {};
	cudaHostNodeParams function = {compute_here, node};
	cudaGraphNode_t made;

	switch (node->kind) {
	case KERNEL:
		for (int i = 0; i < node->count; i++)
			deps.values[i] = seen_from(graph, node->before[i], KERNEL);
		kernel.func = (void *)compute;
		kernel.gridDim = kernel.blockDim = dim3(1);
		kernel.kernelParams = args;
		CUDA(cudaGraphAddKernelNode(&made, to, before, node->count, &kernel));
		break;
	case FUNCTION:
		CUDA(cudaGraphAddHostNode(&made, to, before, node->count, &function));
		break;
	case COPY_IN:
		CUDA(cudaGraphAddMemcpyNode1D(&made, to, before, node->count,
					      &graph->device->values[self], &graph->in.values[self],
					      4, cudaMemcpyHostToDevice));
		break;
	case COPY_OUT:
		CUDA(cudaGraphAddMemcpyNode1D(
			&made, to, before, node->count, &graph->out.values[self],
			&graph->device->values[node->before[0]], 4, cudaMemcpyDeviceToHost));
		break;
	}
	return made;
}

static void make(cudaGraph_t to, struct graph *graph, int kinds)
{
	cudaGraphNode_t made[NODES], before[BEFORE];

	for (int i = 0; i < NODES; i++) {
		choose(graph, i, kinds);
		for (int at = 0; at < graph->nodes[i].count; at++)
			before[at] = made[graph->nodes[i].before[at]];
		made[i] = add(to, graph, i, before);
	}
}

static void launch(cudaGraphExec_t exec, cudaStream_t stream, struct graph *graph, uint32_t round)
{
	struct cells device;
	uint32_t values[NODES];

	graph->pinned->round = round;
	for (int i = 0; i < NODES; i++)
		graph->in.values[i] = mix(round, 1000 + i);
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(&device, graph->device, sizeof(device), cudaMemcpyDeviceToHost));
	for (int i = 0; i < NODES; i++) {
		values[i] = expected(graph, values, i);
		EXPECT_EQ(values[i], left_by(graph, &device, i));
	}
}

/* Of kernels and functions, copies in as well, or all; as it is, or as a child graph. */
static void check(cudaStream_t stream, int number)
{
	static uint32_t round;
	cudaGraph_t graph, outer;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	make(graph, &shared, 2 + number % 3);
	if (number % 2) {
		CUDA(cudaGraphCreate(&outer, 0));
		CUDA(cudaGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
		CUDA(cudaGraphDestroy(graph));
		graph = outer;
	}
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < LAUNCHES; i++)
		launch(exec, stream, &shared, ++round);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main(void)
{
	cudaStream_t stream;

	srand(17);
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&shared.pinned, sizeof(struct cells)));
	CUDA(cudaMalloc(&shared.device, sizeof(struct cells)));
	for (int i = 0; i < GRAPHS; i++)
		check(stream, i);
	CUDA(cudaFree(shared.device));
	CUDA(cudaFreeHost(shared.pinned));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
