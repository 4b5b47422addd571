/*
 * Memory that graphs allocate and free: by hand and captured, left allocated by a launch, freed
 * by the program, by another graph, by the next launch; and what can't be done with such graphs.
 */
#include "test.h"

#define COUNT 1000
#define BYTES (COUNT * sizeof(int))

static __global__ void fill(int *values, int value)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < COUNT)
		values[i] = value + (int)i;
}

static __global__ void add(int *to, const int *from)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < COUNT)
		to[i] += from[i];
}

struct fixture {
	cudaStream_t stream, other;
	cudaEvent_t event;
	int *sum; /* on the device */
};

static cudaGraphNode_t add_alloc(cudaGraph_t graph, const cudaGraphNode_t *before, int **memory)
{
	cudaMemAllocNodeParams params = {};
	cudaGraphNode_t node;

	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.bytesize = BYTES;
	CUDA(cudaGraphAddMemAllocNode(&node, graph, before, before ? 1 : 0, &params));
	EXPECT(params.dptr);
	*memory = (int *)params.dptr;
	return node;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t before, void *kernel,
				  void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = kernel;
	params.gridDim = dim3((COUNT + 127) / 128);
	params.blockDim = dim3(128);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, &before, 1, &params));
	return node;
}

static cudaGraphNode_t add_fill(cudaGraph_t graph, cudaGraphNode_t before, int *memory, int value)
{
	void *args[] = {&memory, &value};

	return add_kernel(graph, before, (void *)fill, args);
}

static cudaGraphNode_t add_sum(struct fixture *f, cudaGraph_t graph, cudaGraphNode_t before,
			       int *memory)
{
	void *args[] = {&f->sum, &memory};

	return add_kernel(graph, before, (void *)add, args);
}

static void launch(cudaGraphExec_t exec, cudaStream_t stream)
{
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
}

/* The sum is @factor for each index, and @more. */
static void expect_sum(struct fixture *f, int factor, int more)
{
	static int host[COUNT];

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(host, f->sum, BYTES, cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ(factor * i + more, host[i]);
	CUDA(cudaMemset(f->sum, 0, BYTES));
	CUDA(cudaDeviceSynchronize());
}

/* Two allocations, one behind the free of the other; as often as the graph is launched. */
static void by_hand(struct fixture *f)
{
	cudaMemAllocNodeParams params;
	cudaGraphNode_t nodes[6];
	enum cudaGraphNodeType type;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int *a, *b;
	void *freed;

	CUDA(cudaGraphCreate(&graph, 0));
	nodes[0] = add_alloc(graph, NULL, &a);
	nodes[1] = add_fill(graph, nodes[0], a, 10);
	nodes[2] = add_sum(f, graph, nodes[1], a);
	CUDA(cudaGraphAddMemFreeNode(&nodes[3], graph, &nodes[2], 1, a));
	nodes[4] = add_alloc(graph, &nodes[3], &b);
	nodes[5] = add_fill(graph, nodes[4], b, 200);
	nodes[5] = add_sum(f, graph, nodes[5], b);
	CUDA(cudaGraphAddMemFreeNode(&nodes[5], graph, &nodes[5], 1, b));
	CUDA(cudaGraphNodeGetType(nodes[4], &type));
	EXPECT_EQ(cudaGraphNodeTypeMemAlloc, type);
	CUDA(cudaGraphNodeGetType(nodes[5], &type));
	EXPECT_EQ(cudaGraphNodeTypeMemFree, type);
	CUDA(cudaGraphMemAllocNodeGetParams(nodes[4], &params));
	EXPECT(params.dptr == b);
	EXPECT_EQ(BYTES, params.bytesize);
	CUDA(cudaGraphMemFreeNodeGetParams(nodes[3], &freed));
	EXPECT(freed == a);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, i % 2 ? f->other : f->stream));
	expect_sum(f, 6, 3 * (10 + 200));
	CUDA(cudaGraphExecDestroy(exec));
}

/* A graph that fills memory with @value, and leaves it allocated. */
static cudaGraph_t make_leaving(int value, int **memory)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	node = add_alloc(graph, NULL, memory);
	add_fill(graph, node, *memory, value);
	return graph;
}

static void left_allocated(struct fixture *f)
{
	cudaGraphExec_t exec, freeing;
	cudaGraph_t graph, other;
	cudaGraphNode_t node;
	int *memory;

	graph = make_leaving(5, &memory);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, f->stream));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphLaunch(exec, f->stream));
	cudaGetLastError();
	/* Freed in another stream, which waits for its turn, and the next launch for it. */
	CUDA(cudaEventRecord(f->event, f->stream));
	CUDA(cudaStreamWaitEvent(f->other, f->event, 0));
	LAUNCH(add<<<(COUNT + 127) / 128, 128, 0, f->other>>>(f->sum, memory));
	CUDA(cudaFreeAsync(memory, f->other));
	CUDA(cudaEventRecord(f->event, f->other));
	CUDA(cudaStreamWaitEvent(f->stream, f->event, 0));
	launch(exec, f->stream);
	expect_sum(f, 1, 5);
	CUDA(cudaFree(memory));
	/* By another graph. */
	CUDA(cudaGraphCreate(&other, 0));
	CUDA(cudaGraphAddMemFreeNode(&node, other, NULL, 0, memory));
	CUDA(cudaGraphInstantiate(&freeing, other, 0));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaGraphLaunch(exec, f->stream));
		LAUNCH(add<<<(COUNT + 127) / 128, 128, 0, f->stream>>>(f->sum, memory));
		CUDA(cudaGraphLaunch(freeing, f->stream));
	}
	expect_sum(f, 2, 10);
	CUDA(cudaGraphExecDestroy(freeing));
	CUDA(cudaGraphDestroy(other));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* Each launch frees what the last one left; what the last of all left outlives the graph. */
static void auto_free(struct fixture *f)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int *memory;

	graph = make_leaving(7, &memory);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	LAUNCH(add<<<(COUNT + 127) / 128, 128, 0, f->stream>>>(f->sum, memory));
	expect_sum(f, 1, 7);
	CUDA(cudaFree(memory));
}

static void captured(struct fixture *f)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaGraphNode_t nodes[12];
	enum cudaGraphNodeType type;
	size_t count = 12, allocs = 0;
	int *memory[3];

	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 3; i++) {
		CUDA(cudaMallocAsync(&memory[i], BYTES, f->stream));
		LAUNCH(fill<<<(COUNT + 127) / 128, 128, 0, f->stream>>>(memory[i], i));
		LAUNCH(add<<<(COUNT + 127) / 128, 128, 0, f->stream>>>(f->sum, memory[i]));
		if (i < 2)
			CUDA(cudaFreeAsync(memory[i], f->stream));
	}
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	EXPECT_EQ(11, count);
	for (size_t i = 0; i < count; i++) {
		CUDA(cudaGraphNodeGetType(nodes[i], &type));
		allocs += type == cudaGraphNodeTypeMemAlloc;
	}
	EXPECT_EQ(3, allocs);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaFreeAsync(memory[2], f->stream));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
	CUDA(cudaFree(memory[2]));
	expect_sum(f, 6, 2 * (0 + 1 + 2));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* A graph that allocates can be part of another only if it is given away. */
static void in_child(struct fixture *f)
{
	struct cudaGraphNodeParams params = {};
	cudaGraphExec_t exec;
	cudaGraph_t inner, outer;
	cudaGraphNode_t node;
	int *memory;

	CUDA(cudaGraphCreate(&inner, 0));
	node = add_alloc(inner, NULL, &memory);
	node = add_sum(f, inner, add_fill(inner, node, memory, 3), memory);
	CUDA(cudaGraphAddMemFreeNode(&node, inner, &node, 1, memory));
	CUDA(cudaGraphCreate(&outer, 0));
	EXPECT(cudaGraphAddChildGraphNode(&node, outer, NULL, 0, inner) != cudaSuccess);
	cudaGetLastError();
	params.type = cudaGraphNodeTypeGraph;
	params.graph.graph = inner;
	params.graph.ownership = cudaGraphChildGraphOwnershipMove;
	CUDA(cudaGraphAddNode(&node, outer, NULL, NULL, 0, &params));
	EXPECT(cudaGraphInstantiate(&exec, inner, 0) != cudaSuccess);
	cudaGetLastError();
	CUDA(cudaGraphInstantiate(&exec, outer, 0));
	for (int i = 0; i < 2; i++)
		launch(exec, f->stream);
	expect_sum(f, 2, 6);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(outer));
}

static uint64_t attribute(enum cudaGraphMemAttributeType which)
{
	uint64_t value = 1;

	CUDA(cudaDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

static void how_much(struct fixture *f)
{
	uint64_t none = 0;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int *memory;

	CUDA(cudaDeviceGraphMemTrim(0));
	EXPECT_EQ(0, attribute(cudaGraphMemAttrUsedMemCurrent));
	CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &none));
	CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &none));
	graph = make_leaving(7, &memory);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT_EQ(0, attribute(cudaGraphMemAttrUsedMemCurrent));
	launch(exec, f->stream);
	EXPECT(attribute(cudaGraphMemAttrUsedMemCurrent) >= BYTES);
	EXPECT(attribute(cudaGraphMemAttrUsedMemHigh) >= BYTES);
	EXPECT(attribute(cudaGraphMemAttrReservedMemCurrent) >= BYTES);
	EXPECT(attribute(cudaGraphMemAttrReservedMemHigh) >= BYTES);
	CUDA(cudaDeviceGraphMemTrim(0));
	EXPECT(attribute(cudaGraphMemAttrUsedMemCurrent) >= BYTES);
	CUDA(cudaFree(memory));
	CUDA(cudaDeviceGraphMemTrim(0));
	EXPECT_EQ(0, attribute(cudaGraphMemAttrUsedMemCurrent));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	EXPECT_CODE(cudaErrorInvalidDevice,
		    cudaDeviceGetGraphMemAttribute(99, cudaGraphMemAttrUsedMemHigh, &none));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceGraphMemTrim(99));
	cudaGetLastError();
}

/* CUDA says which of these fail; not always, with which code. */
static void wrong(struct fixture *f)
{
	cudaGraph_t graph, other, copy;
	cudaGraphNode_t alloc, node, from;
	cudaGraphExec_t exec, second;
	int *memory;
	char own[16];

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&other, 0));
	alloc = add_alloc(graph, NULL, &memory);
	from = add_fill(graph, alloc, memory, 1);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&node, graph, &from, 1, own));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&node, graph, &from, 1, f->sum));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&node, graph, &from, 1, NULL));
	CUDA(cudaGraphAddMemFreeNode(&node, graph, &from, 1, memory));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&node, graph, &node, 1, memory));
	EXPECT(cudaGraphAddMemFreeNode(&node, other, NULL, 0, memory) != cudaSuccess);
	EXPECT(cudaGraphClone(&copy, graph) != cudaSuccess);
	EXPECT(cudaGraphDestroyNode(from) != cudaSuccess);
	EXPECT(cudaGraphRemoveDependencies(graph, &alloc, &from, NULL, 1) != cudaSuccess);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess);
	launch(exec, f->stream);
	EXPECT(cudaFree(memory) != cudaSuccess);
	cudaGetLastError();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(other));
	EXPECT_CODE(cudaSuccess, cudaGetLastError());
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&f.event));
	CUDA(cudaMalloc(&f.sum, BYTES));
	CUDA(cudaMemset(f.sum, 0, BYTES));
	CUDA(cudaDeviceSynchronize());
	by_hand(&f);
	left_allocated(&f);
	auto_free(&f);
	captured(&f);
	in_child(&f);
	how_much(&f);
	wrong(&f);
	CUDA(cudaFree(f.sum));
	CUDA(cudaDeviceSynchronize());
	return 0;
}
