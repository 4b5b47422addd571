/*
 * Graphs that record events and wait for them, in order with what streams do and behind functions
 * that have not returned, graphs that copy from and to arrays, and copies of graphs, each of which
 * is changed alone.
 */
#include <atomic>

#include "test.h"

#define WIDTH  16
#define HEIGHT 4

static __global__ void set_late(int *word, int value, int rounds)
{
	int waste = value;

	for (int i = 0; i < rounds; i++)
		waste = waste * 1664525 + 1013904223;
	*word = waste == 12345 ? waste : value;
}

static __global__ void copy_word(int *to, const int *from)
{
	*to = *from;
}

struct fixture {
	cudaStream_t stream, other;
	int *words; /* on the device */
};

static int word(struct fixture *f, int number)
{
	int value;

	CUDA(cudaMemcpy(&value, f->words + number, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static cudaGraphNode_t add_copy(cudaGraph_t graph, const cudaGraphNode_t *before, int *to,
				int *from)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;
	void *args[] = {&to, &from};

	params.func = (void *)copy_word;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, before, before != NULL, &params));
	return node;
}

/* Around a kernel; one of them becomes another event, which is recorded from then on. */
static void records(struct fixture *f)
{
	cudaEvent_t start, end, later;
	cudaGraphNode_t nodes[3];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	float ms;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&end));
	CUDA(cudaEventCreate(&later));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEventRecordNode(&nodes[0], graph, NULL, 0, start));
	nodes[1] = add_copy(graph, nodes, f->words + 1, f->words);
	CUDA(cudaGraphAddEventRecordNode(&nodes[2], graph, &nodes[1], 1, end));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	LAUNCH(set_late<<<1, 1, 0, f->stream>>>(f->words, 5, 1000));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaEventSynchronize(end));
	CUDA(cudaEventElapsedTime(&ms, start, end));
	EXPECT(ms >= 0);
	EXPECT_EQ(5, word(f, 1));
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, later));
	cudaGetLastError();
	CUDA(cudaGraphExecEventRecordNodeSetEvent(exec, nodes[2], later));
	LAUNCH(set_late<<<1, 1, 0, f->stream>>>(f->words, 6, 1000));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaEventSynchronize(later));
	EXPECT_EQ(6, word(f, 1));
	CUDA(cudaEventElapsedTime(&ms, start, later));
	EXPECT(ms >= 0);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(end));
	CUDA(cudaEventDestroy(later));
}

/* For what another stream has recorded before each launch. */
static void waits(struct fixture *f)
{
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaEvent_t event;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEventWaitNode(&node, graph, NULL, 0, event));
	node = add_copy(graph, &node, f->words + 2, f->words);
	add_copy(graph, &node, f->words + 3, f->words + 2);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 4; i++) {
		LAUNCH(set_late<<<1, 1, 0, f->other>>>(f->words, 10 + i, 100000));
		CUDA(cudaEventRecord(event, f->other));
		CUDA(cudaGraphLaunch(exec, f->stream));
		CUDA(cudaStreamSynchronize(f->stream));
		EXPECT_EQ(10 + i, word(f, 3));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(event));
}

static void wait_for_flag(void *data)
{
	while (!((std::atomic<int> *)data)->load())
		continue;
}

/*
 * A graph behind a function that has not returned records nothing yet, and a wait for its event
 * waits for the function; a graph that waits for an event that is not recorded yet does, too.
 */
static void functions(struct fixture *f)
{
	static std::atomic<int> flag;
	cudaEvent_t recorded;
	cudaGraphNode_t node;
	cudaGraphExec_t exec, second;
	cudaGraph_t graph, waiter;

	CUDA(cudaEventCreateWithFlags(&recorded, cudaEventDisableTiming));
	CUDA(cudaGraphCreate(&graph, 0));
	node = add_copy(graph, NULL, f->words + 4, f->words);
	CUDA(cudaGraphAddEventRecordNode(&node, graph, &node, 1, recorded));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphCreate(&waiter, 0));
	CUDA(cudaGraphAddEventWaitNode(&node, waiter, NULL, 0, recorded));
	node = add_copy(waiter, &node, f->words + 5, f->words + 4);
	CUDA(cudaGraphInstantiate(&second, waiter, 0));
	for (int i = 0; i < 3; i++) {
		flag = 0;
		LAUNCH(set_late<<<1, 1, 0, f->stream>>>(f->words, 20 + i, 1000));
		CUDA(cudaLaunchHostFunc(f->stream, wait_for_flag, &flag));
		CUDA(cudaGraphLaunch(exec, f->stream));
		CUDA(cudaGraphLaunch(second, f->other));
		EXPECT_CODE(cudaErrorNotReady, cudaEventQuery(recorded));
		EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(f->other));
		flag = 1;
		CUDA(cudaEventSynchronize(recorded));
		CUDA(cudaStreamSynchronize(f->other));
		EXPECT_EQ(20 + i, word(f, 4));
		EXPECT_EQ(20 + i, word(f, 5));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphExecDestroy(second));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(waiter));
	CUDA(cudaEventDestroy(recorded));
}

static cudaMemcpy3DParms box(const cudaPitchedPtr *from, cudaArray_t from_array,
			     const cudaPitchedPtr *to, cudaArray_t to_array)
{
	cudaMemcpy3DParms params = {};

	if (from)
		params.srcPtr = *from;
	if (to)
		params.dstPtr = *to;
	params.srcArray = from_array;
	params.dstArray = to_array;
	params.extent = from && to ? make_cudaExtent(WIDTH * sizeof(int), HEIGHT, 1)
				   : make_cudaExtent(WIDTH, HEIGHT, 1);
	params.kind = cudaMemcpyDeviceToDevice;
	return params;
}

/* From linear memory to an array, from there to another, and back. */
static void arrays(struct fixture *f)
{
	const size_t pitch = WIDTH * sizeof(int);
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	int values[HEIGHT][WIDTH], got[HEIGHT][WIDTH];
	cudaPitchedPtr linear[2];
	cudaArray_t made[2];
	cudaMemcpy3DParms params;
	cudaGraphNode_t nodes[3];
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	for (int i = 0; i < 2; i++)
		CUDA(cudaMallocArray(&made[i], &format, WIDTH, HEIGHT));
	for (int i = 0; i < 2; i++) {
		void *memory;

		CUDA(cudaMalloc(&memory, sizeof(values)));
		linear[i] = make_cudaPitchedPtr(memory, pitch, WIDTH, HEIGHT);
	}
	CUDA(cudaGraphCreate(&graph, 0));
	params = box(&linear[0], NULL, NULL, made[0]);
	CUDA(cudaGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &params));
	params = box(NULL, made[0], NULL, made[1]);
	CUDA(cudaGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &params));
	params = box(NULL, made[1], &linear[1], NULL);
	CUDA(cudaGraphAddMemcpyNode(&nodes[2], graph, nodes + 1, 1, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		test_fill(values, sizeof(values), round);
		CUDA(cudaMemcpy(linear[0].ptr, values, sizeof(values), cudaMemcpyHostToDevice));
		CUDA(cudaGraphLaunch(exec, f->stream));
		CUDA(cudaStreamSynchronize(f->stream));
		CUDA(cudaMemcpy(got, linear[1].ptr, sizeof(got), cudaMemcpyDeviceToHost));
		EXPECT_EQ(sizeof(got), test_compare(got, sizeof(got), round));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	for (int i = 0; i < 2; i++)
		CUDA(cudaFreeArray(made[i]));
	for (int i = 0; i < 2; i++)
		CUDA(cudaFree(linear[i].ptr));
}

/* --- Copies ----------------------------------------------------------------------- */

static void launch(struct fixture *f, cudaGraphExec_t exec, int value)
{
	CUDA(cudaMemsetAsync(f->words, 0, 8 * sizeof(int), f->stream));
	LAUNCH(set_late<<<1, 1, 0, f->stream>>>(f->words, value, 1));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
}

/* What is ready to be launched does what its graph did, whatever becomes of that. */
static void is_apart(struct fixture *f, cudaGraph_t graph, cudaGraphNode_t node)
{
	cudaGraphExecUpdateResultInfo info;
	cudaKernelNodeParams params;
	cudaGraphExec_t exec;
	int **to;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphKernelNodeGetParams(node, &params));
	to = (int **)params.kernelParams[0];
	*to = f->words + 5;
	launch(f, exec, 3);
	EXPECT_EQ(3, word(f, 1));
	EXPECT_EQ(0, word(f, 5));
	CUDA(cudaGraphKernelNodeSetParams(node, &params));
	launch(f, exec, 4);
	EXPECT_EQ(4, word(f, 1));
	EXPECT_EQ(0, word(f, 5));
	CUDA(cudaGraphExecUpdate(exec, graph, &info));
	launch(f, exec, 5);
	EXPECT_EQ(0, word(f, 1));
	EXPECT_EQ(5, word(f, 5));
	CUDA(cudaGraphExecDestroy(exec));
}

/* A clone gets a node and an edge more than its original, loses a node, and outlives it. */
static void copies(struct fixture *f)
{
	cudaGraphNode_t nodes[3], cloned[4];
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	nodes[0] = add_copy(graph, NULL, f->words + 1, f->words);
	nodes[1] = add_copy(graph, &nodes[0], f->words + 2, f->words + 1);
	nodes[2] = add_copy(graph, &nodes[1], f->words + 3, f->words + 2);
	CUDA(cudaGraphClone(&clone, graph));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphNodeFindInClone(&cloned[i], nodes[i], clone));
	is_apart(f, graph, nodes[0]);
	CUDA(cudaGraphDestroy(graph));
	cloned[3] = add_copy(clone, NULL, f->words + 4, f->words);
	CUDA(cudaGraphAddDependencies(clone, &cloned[3], &cloned[1], NULL, 1));
	CUDA(cudaGraphAddDependencies(clone, &cloned[0], &cloned[3], NULL, 1));
	CUDA(cudaGraphDestroyNode(cloned[2]));
	CUDA(cudaGraphInstantiate(&exec, clone, 0));
	CUDA(cudaGraphDestroy(clone));
	launch(f, exec, 6);
	EXPECT_EQ(6, word(f, 1));
	EXPECT_EQ(6, word(f, 2));
	EXPECT_EQ(0, word(f, 3));
	EXPECT_EQ(6, word(f, 4));
	CUDA(cudaGraphExecDestroy(exec));
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&f.words, 8 * sizeof(int)));
	records(&f);
	waits(&f);
	functions(&f);
	arrays(&f);
	copies(&f);
	CUDA(cudaFree(f.words));
	CUDA(cudaStreamDestroy(f.stream));
	CUDA(cudaStreamDestroy(f.other));
	return 0;
}
