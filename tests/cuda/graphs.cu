/*
 * Graphs made by hand: nodes of every kind, what waits for what, copies, updates, and the codes
 * of wrong uses.
 */
#include "test.h"

static __global__ void add(int *place, int value)
{
	*place += value;
}

static __global__ void multiply(int *place, int value)
{
	*place *= value;
}

struct fixture {
	cudaStream_t stream;
	int *a, *b; /* on the device */
};

static int value_of(const int *place)
{
	int value;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static void set(int *place, int value)
{
	CUDA(cudaMemcpy(place, &value, sizeof(value), cudaMemcpyHostToDevice));
	CUDA(cudaDeviceSynchronize());
}

/* A kernel of one thread, which gets @place and @value. */
struct call {
	cudaKernelNodeParams params;
	int *place;
	int value;
	void *args[2];
};

static void prepare(struct call *call, void *kernel, int *place, int value)
{
	call->params = cudaKernelNodeParams();
	call->place = place;
	call->value = value;
	call->args[0] = &call->place;
	call->args[1] = &call->value;
	call->params.func = kernel;
	call->params.gridDim = dim3(1);
	call->params.blockDim = dim3(1);
	call->params.kernelParams = call->args;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
				  void *kernel, int *place, int value)
{
	struct call call;
	cudaGraphNode_t node;

	prepare(&call, kernel, place, value);
	CUDA(cudaGraphAddKernelNode(&node, graph, before, count, &call.params));
	/* The arguments have been copied. */
	call.value = -1000;
	return node;
}

static void launch(struct fixture *f, cudaGraphExec_t exec)
{
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
}

/* Made in an order in which they can't be done. */
static void edges(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[4], from[8], to[8];
	size_t count = 8;

	CUDA(cudaGraphCreate(&graph, 0));
	nodes[2] = add_kernel(graph, NULL, 0, (void *)add, f->a, 5);
	nodes[1] = add_kernel(graph, NULL, 0, (void *)multiply, f->a, 3);
	nodes[0] = add_kernel(graph, NULL, 0, (void *)add, f->a, 1);
	CUDA(cudaGraphAddEmptyNode(&nodes[3], graph, &nodes[2], 1));
	CUDA(cudaGraphAddDependencies(graph, nodes, nodes + 1, NULL, 2));
	CUDA(cudaGraphGetEdges(graph, from, to, NULL, &count));
	EXPECT_EQ(3, count);
	count = 8;
	CUDA(cudaGraphGetRootNodes(graph, from, &count));
	EXPECT_EQ(1, count);
	EXPECT(from[0] == nodes[0]);
	count = 8;
	CUDA(cudaGraphNodeGetDependencies(nodes[2], from, NULL, &count));
	EXPECT_EQ(1, count);
	EXPECT(from[0] == nodes[1]);
	CUDA(cudaGraphNodeGetDependentNodes(nodes[2], NULL, NULL, &count));
	EXPECT_EQ(1, count);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	set(f->a, 10);
	launch(f, exec);
	EXPECT_EQ((10 + 1) * 3 + 5, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void memory_nodes(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[4];
	cudaMemsetParams fill = {}, got = {};
	cudaMemcpy3DParms copy = {};
	enum cudaGraphNodeType type;
	int in[16], out[16];
	int *device;

	CUDA(cudaMalloc(&device, 2 * sizeof(in)));
	for (int i = 0; i < 16; i++)
		in[i] = i * i;
	CUDA(cudaGraphCreate(&graph, 0));
	fill.dst = device;
	fill.value = 0x01020304;
	fill.elementSize = 4;
	fill.width = 16;
	fill.height = 1;
	CUDA(cudaGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill));
	CUDA(cudaGraphAddMemcpyNode1D(&nodes[1], graph, nodes, 1, device + 16, in, sizeof(in),
				      cudaMemcpyHostToDevice));
	CUDA(cudaGraphAddMemcpyNode1D(&nodes[2], graph, nodes + 1, 1, device + 8, device + 16,
				      8 * sizeof(int), cudaMemcpyDeviceToDevice));
	copy.srcPtr = make_cudaPitchedPtr(device, sizeof(out), 16, 1);
	copy.dstPtr = make_cudaPitchedPtr(out, sizeof(out), 16, 1);
	copy.extent = make_cudaExtent(sizeof(out), 1, 1);
	copy.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaGraphAddMemcpyNode(&nodes[3], graph, nodes + 2, 1, &copy));
	CUDA(cudaGraphMemsetNodeGetParams(nodes[0], &got));
	EXPECT_EQ(0x01020304, got.value);
	EXPECT_EQ(16, got.width);
	CUDA(cudaGraphNodeGetType(nodes[3], &type));
	EXPECT_EQ(cudaGraphNodeTypeMemcpy, type);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	launch(f, exec);
	EXPECT_EQ(0x01020304, out[7]);
	EXPECT_EQ(49, out[15]);
	in[7] = -7;
	fill.value = 6;
	CUDA(cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &fill));
	launch(f, exec);
	EXPECT_EQ(6, out[7]);
	EXPECT_EQ(-7, out[15]);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(device));
}

/* New parameters for what is instantiated leave the graph as it was, and the other way round. */
static void parameters(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec, second;
	cudaGraphNode_t node;
	cudaKernelNodeParams got = {};
	struct call call;

	CUDA(cudaGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, 0, (void *)add, f->a, 2);
	CUDA(cudaGraphKernelNodeGetParams(node, &got));
	EXPECT(got.func == (void *)add);
	EXPECT_EQ(1, got.blockDim.x);
	EXPECT_EQ(2, *(int *)got.kernelParams[1]);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	prepare(&call, (void *)multiply, f->a, 9);
	CUDA(cudaGraphExecKernelNodeSetParams(exec, node, &call.params));
	set(f->a, 1);
	launch(f, exec);
	EXPECT_EQ(9, value_of(f->a));
	CUDA(cudaGraphInstantiate(&second, graph, 0));
	launch(f, second);
	EXPECT_EQ(11, value_of(f->a));
	CUDA(cudaGraphKernelNodeSetParams(node, &call.params));
	launch(f, second);
	EXPECT_EQ(13, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphExecDestroy(second));
	CUDA(cudaGraphDestroy(graph));
}

static void update(struct fixture *f)
{
	cudaGraph_t graph, other, longer;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaGraphExecUpdateResultInfo info;

	CUDA(cudaGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, 0, (void *)add, f->a, 2);
	add_kernel(graph, &node, 1, (void *)multiply, f->a, 2);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphCreate(&other, 0));
	node = add_kernel(other, NULL, 0, (void *)add, f->a, 3);
	add_kernel(other, &node, 1, (void *)multiply, f->a, 5);
	CUDA(cudaGraphExecUpdate(exec, other, &info));
	EXPECT_EQ(cudaGraphExecUpdateSuccess, info.result);
	set(f->a, 0);
	launch(f, exec);
	EXPECT_EQ(15, value_of(f->a));
	CUDA(cudaGraphClone(&longer, other));
	add_kernel(longer, NULL, 0, (void *)add, f->b, 3);
	EXPECT_CODE(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, longer, &info));
	EXPECT_EQ(cudaGraphExecUpdateErrorTopologyChanged, info.result);
	cudaGetLastError();
	launch(f, exec);
	EXPECT_EQ(90, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(longer));
	CUDA(cudaGraphDestroy(other));
	CUDA(cudaGraphDestroy(graph));
}

static void children(struct fixture *f)
{
	cudaGraph_t inner, outer, clone;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[3], found;
	size_t count;

	CUDA(cudaGraphCreate(&inner, 0));
	nodes[0] = add_kernel(inner, NULL, 0, (void *)add, f->a, 1);
	add_kernel(inner, nodes, 1, (void *)multiply, f->a, 2);
	CUDA(cudaGraphCreate(&outer, 0));
	nodes[0] = add_kernel(outer, NULL, 0, (void *)multiply, f->a, 10);
	CUDA(cudaGraphAddChildGraphNode(&nodes[1], outer, nodes, 1, inner));
	nodes[2] = add_kernel(outer, nodes + 1, 1, (void *)add, f->a, 7);
	/* The node has a copy of its own. */
	CUDA(cudaGraphDestroy(inner));
	CUDA(cudaGraphChildGraphNodeGetGraph(nodes[1], &inner));
	CUDA(cudaGraphGetNodes(inner, NULL, &count));
	EXPECT_EQ(2, count);
	CUDA(cudaGraphClone(&clone, outer));
	CUDA(cudaGraphNodeFindInClone(&found, nodes[2], clone));
	EXPECT(found != nodes[2]);
	CUDA(cudaGraphDestroyNode(found));
	CUDA(cudaGraphGetNodes(clone, NULL, &count));
	EXPECT_EQ(2, count);
	CUDA(cudaGraphInstantiate(&exec, outer, 0));
	set(f->a, 3);
	launch(f, exec);
	EXPECT_EQ((3 * 10 + 1) * 2 + 7, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphInstantiate(&exec, clone, 0));
	set(f->a, 3);
	launch(f, exec);
	EXPECT_EQ((3 * 10 + 1) * 2, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(clone));
	CUDA(cudaGraphDestroy(outer));
}

/* Launches follow each other, also from stream to stream, and work goes on around them. */
static void launches(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaStream_t other;

	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, 0, (void *)multiply, f->a, 2);
	add_kernel(graph, &node, 1, (void *)add, f->a, 1);
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphUpload(exec, f->stream));
	set(f->a, 0);
	for (int i = 0; i < 10; i++)
		CUDA(cudaGraphLaunch(exec, i % 2 ? other : f->stream));
	CUDA(cudaStreamSynchronize(other));
	EXPECT_EQ(1023, value_of(f->a));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, -1000));
	CUDA(cudaGraphLaunch(exec, f->stream));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 100));
	/* What was launched needs neither. */
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	EXPECT_EQ(147, value_of(f->a));
	CUDA(cudaStreamDestroy(other));
}

static void events(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaEvent_t event, got;
	cudaStream_t other;

	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, 0, (void *)add, f->a, 6);
	CUDA(cudaGraphAddEventRecordNode(&node, graph, &node, 1, event));
	CUDA(cudaGraphEventRecordNodeGetEvent(node, &got));
	EXPECT(got == event);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	set(f->a, 0);
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamWaitEvent(other, event, 0));
	LAUNCH(multiply<<<1, 1, 0, other>>>(f->a, 7));
	CUDA(cudaStreamSynchronize(other));
	EXPECT_EQ(42, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaStreamDestroy(other));
}

static void any_node(struct fixture *f)
{
	struct cudaGraphNodeParams params = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[2];
	int value = 4;
	void *args[] = {&f->a, &value};

	CUDA(cudaGraphCreate(&graph, 0));
	params.type = cudaGraphNodeTypeKernel;
	params.kernel.func = (void *)add;
	params.kernel.gridDim = dim3(1);
	params.kernel.blockDim = dim3(1);
	params.kernel.kernelParams = args;
	CUDA(cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &params));
	params.kernel.func = (void *)multiply;
	CUDA(cudaGraphAddNode(&nodes[1], graph, nodes, NULL, 1, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	set(f->a, 2);
	launch(f, exec);
	EXPECT_EQ(24, value_of(f->a));
	CUDA(cudaGraphNodeSetEnabled(exec, nodes[1], 0));
	launch(f, exec);
	EXPECT_EQ(28, value_of(f->a));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void wrong(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[2], node;
	struct call call;

	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphCreate(NULL, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphCreate(&graph, 1));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, NULL, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphLaunch(NULL, f->stream));
	CUDA(cudaGraphCreate(&graph, 0));
	nodes[0] = add_kernel(graph, NULL, 0, (void *)add, f->a, 1);
	nodes[1] = add_kernel(graph, nodes, 1, (void *)add, f->a, 1);
	prepare(&call, (void *)add, f->a, 1);
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphAddKernelNode(&node, graph, NULL, 1, &call.params));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
	call.params.blockDim = dim3(4096);
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphAddKernelNode(&node, graph, NULL, 0, &call.params));
	/* A circle is found out when the graph is instantiated, if not before. */
	if (cudaGraphAddDependencies(graph, &nodes[1], &nodes[0], NULL, 1) == cudaSuccess)
		EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
	cudaGetLastError();
	CUDA(cudaGraphDestroy(graph));
	EXPECT_CODE(cudaSuccess, cudaGetLastError());
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&f.a, sizeof(int)));
	CUDA(cudaMalloc(&f.b, sizeof(int)));
	edges(&f);
	memory_nodes(&f);
	parameters(&f);
	update(&f);
	children(&f);
	launches(&f);
	events(&f);
	any_node(&f);
	wrong(&f);
	CUDA(cudaFree(f.a));
	CUDA(cudaFree(f.b));
	CUDA(cudaStreamDestroy(f.stream));
	return 0;
}
