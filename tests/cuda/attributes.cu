/*
 * Attributes of streams and of kernel nodes, what a stream says of itself, and nodes that copy
 * to and from variables.
 */
#include "test.h"

#include <cooperative_groups.h>

#define BLOCK 64
#define COUNT (2 * BLOCK)

static __device__ int variable[4];

/* Each thread takes what its neighbour in the whole grid had, so often. */
static __global__ void rotate(int *from, int *to, int rounds)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	unsigned rank = (unsigned)grid.thread_rank(), size = (unsigned)grid.size();

	for (int round = 0; round < rounds; round++) {
		int *source = round % 2 ? to : from, *target = round % 2 ? from : to;

		target[rank] = source[(rank + 1) % size];
		grid.sync();
	}
}

static __global__ void twice(int *values)
{
	values[threadIdx.x] *= 2;
}

static cudaStreamAttrValue get(cudaStream_t stream, cudaStreamAttrID id)
{
	cudaStreamAttrValue value = {};

	CUDA(cudaStreamGetAttribute(stream, id, &value));
	return value;
}

static cudaAccessPolicyWindow window_of(void *memory, size_t bytes)
{
	cudaAccessPolicyWindow window = {};

	window.base_ptr = memory;
	window.num_bytes = bytes;
	window.hitRatio = 1;
	window.hitProp = cudaAccessPropertyPersisting;
	window.missProp = cudaAccessPropertyStreaming;
	return window;
}

static void of_streams(int *memory)
{
	const size_t bytes = COUNT * sizeof(int);
	cudaStreamAttrValue value = {};
	cudaStream_t stream, other;

	CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
	CUDA(cudaStreamCreate(&other));
	EXPECT_EQ(0,
		  get(stream, cudaStreamAttributeAccessPolicyWindow).accessPolicyWindow.num_bytes);
	EXPECT_EQ(-1, get(stream, cudaStreamAttributePriority).priority);
	value.accessPolicyWindow = window_of(memory, bytes);
	CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
	value = get(stream, cudaStreamAttributeAccessPolicyWindow);
	EXPECT(value.accessPolicyWindow.base_ptr == memory);
	EXPECT_EQ(cudaAccessPropertyPersisting, value.accessPolicyWindow.hitProp);
	EXPECT_EQ(cudaAccessPropertyStreaming, value.accessPolicyWindow.missProp);
	value.syncPolicy = cudaSyncPolicyYield;
	CUDA(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
	EXPECT_EQ(cudaSyncPolicyYield,
		  get(stream, cudaStreamAttributeSynchronizationPolicy).syncPolicy);
	CUDA(cudaStreamCopyAttributes(other, stream));
	EXPECT(get(other, cudaStreamAttributeAccessPolicyWindow).accessPolicyWindow.base_ptr ==
	       memory);
	LAUNCH(twice<<<1, COUNT, 0, stream>>>(memory));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaCtxResetPersistingL2Cache());

	value.accessPolicyWindow = window_of(memory, bytes);
	value.accessPolicyWindow.missProp = cudaAccessPropertyPersisting;
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaStreamSetAttribute(stream, cudaLaunchAttributeCooperative, &value));
	cudaGetLastError();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(other));
}

static unsigned long long id_of(cudaStream_t stream)
{
	unsigned long long id = 0;

	CUDA(cudaStreamGetId(stream, &id));
	return id;
}

static void names(void)
{
	cudaStream_t a, b;
	int device = -1;

	CUDA(cudaStreamCreate(&a));
	CUDA(cudaStreamCreate(&b));
	EXPECT(id_of(a) != id_of(b));
	EXPECT(id_of(a) != id_of(NULL));
	EXPECT_EQ(id_of(a), id_of(a));
	EXPECT_EQ(id_of(NULL), id_of(cudaStreamLegacy));
	CUDA(cudaStreamGetDevice(a, &device));
	EXPECT_EQ(0, device);
	EXPECT_CODE(cudaErrorInvalidValue, cudaStreamGetId(a, NULL));
	cudaGetLastError();
	CUDA(cudaStreamDestroy(a));
	CUDA(cudaStreamDestroy(b));
}

static cudaKernelNodeAttrValue get(cudaGraphNode_t node, cudaKernelNodeAttrID id)
{
	cudaKernelNodeAttrValue value = {};

	CUDA(cudaGraphKernelNodeGetAttribute(node, id, &value));
	return value;
}

/* A node stays cooperative when it is given other parameters. */
static void of_nodes(int *from, int *to)
{
	cudaKernelNodeParams params = {};
	cudaKernelNodeAttrValue value = {};
	int rounds = 5, host[COUNT];
	void *args[] = {&from, &to, &rounds};
	cudaGraphNode_t node, copy, empty;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	CUDA(cudaMemcpy(from, host, sizeof(host), cudaMemcpyHostToDevice));
	CUDA(cudaGraphCreate(&graph, 0));
	params.func = (void *)rotate;
	params.gridDim = dim3(COUNT / BLOCK);
	params.blockDim = dim3(BLOCK);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	EXPECT_EQ(0, get(node, cudaKernelNodeAttributeCooperative).cooperative);
	value.cooperative = 1;
	CUDA(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeCooperative, &value));
	rounds = 2;
	CUDA(cudaGraphKernelNodeSetParams(node, &params));
	EXPECT_EQ(1, get(node, cudaKernelNodeAttributeCooperative).cooperative);
	CUDA(cudaGraphAddKernelNode(&copy, graph, &node, 1, &params));
	CUDA(cudaGraphKernelNodeCopyAttributes(copy, node));
	EXPECT_EQ(1, get(copy, cudaKernelNodeAttributeCooperative).cooperative);
	value.accessPolicyWindow = window_of(from, sizeof(host));
	CUDA(cudaGraphKernelNodeSetAttribute(copy, cudaKernelNodeAttributeAccessPolicyWindow,
					     &value));
	EXPECT(get(copy, cudaKernelNodeAttributeAccessPolicyWindow).accessPolicyWindow.base_ptr ==
	       from);
	CUDA(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
	EXPECT(cudaGraphKernelNodeGetAttribute(empty, cudaKernelNodeAttributeCooperative, &value) !=
	       cudaSuccess);
	cudaGetLastError();
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, NULL));
	rounds = 4;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, copy, &params));
	CUDA(cudaGraphLaunch(exec, NULL));
	CUDA(cudaMemcpy(host, from, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ((i + 2 + 2 + 2 + 4) % COUNT, host[i]);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* What a capture makes of a cooperative launch. */
static void captured(int *from, int *to)
{
	int rounds = 2;
	void *args[] = {&from, &to, &rounds};
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphNode_t node;
	size_t count = 1;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaLaunchCooperativeKernel((void *)rotate, dim3(2), dim3(BLOCK), args, 0, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, &node, &count));
	EXPECT_EQ(1, get(node, cudaKernelNodeAttributeCooperative).cooperative);
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
}

static cudaGraphNode_t only_node(cudaGraph_t graph)
{
	cudaGraphNode_t node;
	size_t count = 1;

	CUDA(cudaGraphGetNodes(graph, &node, &count));
	EXPECT_EQ(1, count);
	return node;
}

/* A captured kernel has its stream's priority, unless the launch says another. */
static void captured_priorities(int *values)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	cudaGraph_t graph;

	config.gridDim = dim3(1);
	config.blockDim = dim3(COUNT);
	CUDA(cudaStreamCreateWithPriority(&config.stream, cudaStreamNonBlocking, -2));
	for (int numbers = 0; numbers < 2; numbers++) {
		attribute.id = cudaLaunchAttributePriority;
		attribute.val.priority = -1;
		config.attrs = &attribute;
		config.numAttrs = (unsigned)numbers;
		CUDA(cudaStreamBeginCapture(config.stream, cudaStreamCaptureModeGlobal));
		CUDA(cudaLaunchKernelEx(&config, twice, values));
		CUDA(cudaStreamEndCapture(config.stream, &graph));
		EXPECT_EQ(numbers ? -1 : -2,
			  get(only_node(graph), cudaKernelNodeAttributePriority).priority);
		CUDA(cudaGraphDestroy(graph));
	}
	CUDA(cudaStreamDestroy(config.stream));
}

/* The same is done with them and without, also where they change. */
static void priorities(int *values)
{
	cudaKernelNodeParams params = {};
	cudaKernelNodeAttrValue value = {};
	void *args[] = {&values};
	cudaGraphExecUpdateResultInfo info;
	cudaGraphNode_t first, second;
	cudaGraphExec_t exec;
	unsigned long long flags;
	cudaGraph_t graph;
	int host[COUNT];

	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	CUDA(cudaMemcpy(values, host, sizeof(host), cudaMemcpyHostToDevice));
	params.func = (void *)twice;
	params.gridDim = dim3(1);
	params.blockDim = dim3(COUNT);
	params.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(&first, graph, NULL, 0, &params));
	CUDA(cudaGraphAddKernelNode(&second, graph, &first, 1, &params));
	EXPECT_EQ(0, get(first, cudaKernelNodeAttributePriority).priority);
	value.priority = -3;
	CUDA(cudaGraphKernelNodeSetAttribute(first, cudaKernelNodeAttributePriority, &value));
	EXPECT_EQ(-3, get(first, cudaKernelNodeAttributePriority).priority);
	EXPECT_EQ(0, get(second, cudaKernelNodeAttributePriority).priority);
	CUDA(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
	CUDA(cudaGraphExecGetFlags(exec, &flags));
	EXPECT_EQ(0, flags);
	CUDA(cudaGraphLaunch(exec, NULL));
	CUDA(cudaGraphKernelNodeCopyAttributes(second, first));
	EXPECT_EQ(-3, get(second, cudaKernelNodeAttributePriority).priority);
	/* It may be refused: then the executable graph is as it was. */
	if (cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess)
		cudaGetLastError();
	CUDA(cudaGraphLaunch(exec, NULL));
	CUDA(cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ(16 * i, host[i]);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void symbols(void)
{
	int in[2] = {11, 22}, out[2] = {0, 0};
	cudaGraphNode_t nodes[2];
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemcpyNodeToSymbol(&nodes[0], graph, NULL, 0, variable, in, sizeof(in),
					    sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaGraphAddMemcpyNodeFromSymbol(&nodes[1], graph, nodes, 1, out, variable,
					      sizeof(out), sizeof(int), cudaMemcpyDeviceToHost));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, NULL));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(11, out[0]);
	EXPECT_EQ(22, out[1]);
	CUDA(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, nodes[0], variable, in, sizeof(int),
						      2 * sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaGraphLaunch(exec, NULL));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(11, out[0]);
	EXPECT_EQ(11, out[1]);
	EXPECT_CODE(cudaErrorInvalidSymbol,
		    cudaGraphAddMemcpyNodeToSymbol(&nodes[1], graph, NULL, 0, out, in, sizeof(in),
						   0, cudaMemcpyHostToDevice));
	cudaGetLastError();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main(void)
{
	int *from, *to;

	CUDA(cudaMalloc(&from, COUNT * sizeof(int)));
	CUDA(cudaMalloc(&to, COUNT * sizeof(int)));
	CUDA(cudaMemset(from, 0, COUNT * sizeof(int)));
	of_streams(from);
	names();
	of_nodes(from, to);
	captured(from, to);
	captured_priorities(from);
	priorities(from);
	symbols();
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));
	CUDA(cudaDeviceSynchronize());
	return 0;
}
