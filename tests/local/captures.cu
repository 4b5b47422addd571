/*
 * Graphs of each of two devices: captured, made by hand, with memory and choices of their own,
 * changed and launched again; and what no graph can be. Its first argument is what it does.
 */
#include "../cuda/test.h"

#include <stdio.h>
#include <string.h>
#include <vector>

#define COUNT 1024u
#define BYTES (COUNT * sizeof(unsigned))

__device__ unsigned bias = 3;

__global__ void add(unsigned *data, unsigned more)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < COUNT)
		data[i] += more + bias;
}

__global__ void count_down(unsigned *rounds, cudaGraphConditionalHandle condition)
{
	cudaGraphSetConditional(condition, --*rounds > 0);
}

static void set(void *word)
{
	++*(unsigned *)word;
}

/* What a test has of one device. */
struct place {
	int device;
	cudaStream_t stream, other;
	cudaEvent_t fork, join;
	unsigned *data, *copy;
	unsigned called;
};

static struct place make_place(int device)
{
	struct place place = {};

	place.device = device;
	CUDA(cudaSetDevice(device));
	CUDA(cudaStreamCreate(&place.stream));
	CUDA(cudaStreamCreateWithFlags(&place.other, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&place.fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&place.join, cudaEventDisableTiming));
	CUDA(cudaMalloc(&place.data, BYTES));
	CUDA(cudaMalloc(&place.copy, BYTES));
	CUDA(cudaMemset(place.data, 0, BYTES));
	CUDA(cudaDeviceSynchronize());
	return place;
}

/* Each word of the data is doubled by way of the other stream, after 3 + @more was added. */
static void begin(struct place *place)
{
	CUDA(cudaSetDevice(place->device));
	CUDA(cudaStreamBeginCapture(place->stream, cudaStreamCaptureModeRelaxed));
}

static void put(struct place *place, unsigned more)
{
	CUDA(cudaSetDevice(place->device));
	LAUNCH(add<<<COUNT / 128, 128, 0, place->stream>>>(place->data, more));
	CUDA(cudaEventRecord(place->fork, place->stream));
	CUDA(cudaStreamWaitEvent(place->other, place->fork, 0));
	CUDA(cudaMemcpyAsync(place->copy, place->data, BYTES, cudaMemcpyDeviceToDevice,
			     place->other));
	CUDA(cudaMemsetAsync(place->copy, 0, 4, place->other));
	CUDA(cudaEventRecord(place->join, place->other));
	CUDA(cudaLaunchHostFunc(place->stream, set, &place->called));
	CUDA(cudaStreamWaitEvent(place->stream, place->join, 0));
}

static cudaGraph_t end(struct place *place)
{
	cudaGraph_t graph;

	CUDA(cudaStreamEndCapture(place->stream, &graph));
	return graph;
}

static void expect_words(struct place *place, const unsigned *from, unsigned first, unsigned rest)
{
	std::vector<unsigned> host(COUNT);

	CUDA(cudaSetDevice(place->device));
	CUDA(cudaStreamSynchronize(place->stream));
	CUDA(cudaMemcpy(host.data(), from, BYTES, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < COUNT; i++)
		EXPECT_EQ(i ? rest : first, host[i]);
}

/* Captures of both devices at once, whose streams and events may have the same numbers. */
static void both(void)
{
	struct place places[2] = {make_place(0), make_place(1)};
	cudaGraph_t graphs[2], again;
	cudaGraphExec_t execs[2];
	cudaGraphExecUpdateResultInfo info;
	cudaStreamCaptureStatus status;

	begin(&places[1]);
	CUDA(cudaStreamIsCapturing(places[0].stream, &status));
	EXPECT_EQ(cudaStreamCaptureStatusNone, status);
	begin(&places[0]);
	put(&places[1], 20);
	put(&places[0], 10);
	for (int i = 0; i < 2; i++) {
		graphs[i] = end(&places[i]);
		CUDA(cudaGraphInstantiate(&execs[i], graphs[i], 0));
	}
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(1 - i)); /* the stream says where */
		CUDA(cudaGraphLaunch(execs[i], places[i].stream));
		CUDA(cudaGraphLaunch(execs[i], places[i].stream));
	}
	for (unsigned i = 0; i < 2; i++) {
		expect_words(&places[i], places[i].data, 2 * (13 + 10 * i), 2 * (13 + 10 * i));
		expect_words(&places[i], places[i].copy, 0, 2 * (13 + 10 * i));
		EXPECT_EQ(2, places[i].called);
	}
	/* To what another graph does; of another device it is none. */
	begin(&places[1]);
	put(&places[1], 100);
	again = end(&places[1]);
	CUDA(cudaGraphExecUpdate(execs[1], again, &info));
	EXPECT_CODE(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(execs[0], again, &info));
	CUDA(cudaGraphLaunch(execs[1], places[1].other));
	CUDA(cudaStreamSynchronize(places[1].other));
	expect_words(&places[1], places[1].data, 46 + 103, 46 + 103);
	/* A reset of one leaves the other as it is. */
	CUDA(cudaSetDevice(1));
	CUDA(cudaDeviceReset());
	CUDA(cudaGraphLaunch(execs[0], places[0].stream));
	expect_words(&places[0], places[0].data, 39, 39);
	for (int i = 0; i < 2; i++) {
		CUDA(cudaGraphExecDestroy(execs[i]));
		CUDA(cudaGraphDestroy(graphs[i]));
	}
	CUDA(cudaGraphDestroy(again));
}

/* Alike on both, again and again: what is kept of one is not taken for the other. */
static void again(void)
{
	struct place places[2] = {make_place(0), make_place(1)};
	unsigned sums[2] = {};

	for (unsigned round = 0; round < 40; round++) {
		unsigned i = round / 2 % 2, more = round % 5;
		cudaGraphExec_t exec;
		cudaGraph_t graph;

		begin(&places[i]);
		for (int j = 0; j < 3; j++)
			LAUNCH(add<<<COUNT / 128, 128, 0, places[i].stream>>>(places[i].data,
									      more));
		graph = end(&places[i]);
		CUDA(cudaGraphInstantiate(&exec, graph, 0));
		CUDA(cudaGraphLaunch(exec, places[i].stream));
		sums[i] += 3 * (more + 3);
		CUDA(cudaGraphExecDestroy(exec));
		CUDA(cudaGraphDestroy(graph));
	}
	for (int i = 0; i < 2; i++)
		expect_words(&places[i], places[i].data, sums[i], sums[i]);
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, unsigned *data, unsigned more,
				  const cudaGraphNode_t *before)
{
	struct cudaKernelNodeParams params = {};
	void *args[] = {&data, &more};
	cudaGraphNode_t node;

	params.func = (void *)add;
	params.gridDim = dim3(COUNT / 128);
	params.blockDim = dim3(128);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, before, before ? 1 : 0, &params));
	return node;
}

/* By hand, on the second device. */
static void by_hand(void)
{
	struct place place = make_place(1);
	struct cudaKernelNodeParams told;
	cudaGraph_t graph, clone, parent;
	cudaGraphNode_t first, second, child;
	cudaGraphExec_t exec;
	unsigned more = 50;
	void *args[] = {&place.data, &more};

	CUDA(cudaGraphCreate(&graph, 0));
	first = add_kernel(graph, place.data, 1, NULL);
	CUDA(cudaGraphAddMemcpyNode1D(&second, graph, &first, 1, place.copy, place.data, BYTES,
				      cudaMemcpyDeviceToDevice));
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphKernelNodeGetParams(first, &told));
	EXPECT(told.func == (void *)add && *(unsigned *)told.kernelParams[1] == 1);
	CUDA(cudaGraphCreate(&parent, 0));
	CUDA(cudaGraphAddChildGraphNode(&child, parent, NULL, 0, clone));
	add_kernel(parent, place.data, 6, &child);
	CUDA(cudaSetDevice(0));
	CUDA(cudaGraphKernelNodeGetParams(first, &told));
	EXPECT(told.func == (void *)add && *(unsigned *)told.kernelParams[1] == 1);
	CUDA(cudaGraphInstantiate(&exec, parent, 0));
	CUDA(cudaGraphLaunch(exec, place.stream));
	expect_words(&place, place.copy, 4, 4);
	expect_words(&place, place.data, 13, 13);
	CUDA(cudaGraphExecDestroy(exec));

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	told.kernelParams = args;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, first, &told));
	CUDA(cudaGraphLaunch(exec, place.stream));
	expect_words(&place, place.data, 13 + 53, 13 + 53);
	/* From another device a node's kernel would be another one. */
	CUDA(cudaSetDevice(0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, first, &told));
	CUDA(cudaGraphExecDestroy(exec));
	cudaGetLastError();
}

static uint64_t graph_bytes(int device, enum cudaGraphMemAttributeType attribute)
{
	uint64_t bytes;

	CUDA(cudaDeviceGetGraphMemAttribute(device, attribute, &bytes));
	return bytes;
}

/* A graph's memory is on its device, and counted there. */
static void memory(void)
{
	struct place place = make_place(1);
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	unsigned *made;

	begin(&place);
	CUDA(cudaMallocAsync(&made, BYTES, place.stream));
	CUDA(cudaMemsetAsync(made, 0, BYTES, place.stream));
	LAUNCH(add<<<COUNT / 128, 128, 0, place.stream>>>(made, 4));
	CUDA(cudaMemcpyAsync(place.data, made, BYTES, cudaMemcpyDeviceToDevice, place.stream));
	CUDA(cudaFreeAsync(made, place.stream));
	graph = end(&place);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, place.stream));
	expect_words(&place, place.data, 7, 7);
	EXPECT_EQ(0, graph_bytes(0, cudaGraphMemAttrReservedMemCurrent));
	EXPECT(graph_bytes(1, cudaGraphMemAttrReservedMemCurrent) >= BYTES);
	CUDA(cudaSetDevice(0));
	CUDA(cudaDeviceGraphMemTrim(0));
	EXPECT(graph_bytes(1, cudaGraphMemAttrReservedMemCurrent) >= BYTES);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	EXPECT_EQ(0, graph_bytes(1, cudaGraphMemAttrReservedMemCurrent));
}

/* A body runs as often as a kernel of that device says. */
static void choice(void)
{
	struct place place = make_place(1);
	struct cudaGraphNodeParams params = {};
	struct cudaKernelNodeParams kernel = {};
	cudaGraphConditionalHandle condition;
	cudaGraph_t graph, body;
	cudaGraphNode_t node, first;
	cudaGraphExec_t exec;
	unsigned *rounds, value = 5;
	void *args[] = {&rounds, &condition};

	CUDA(cudaMalloc(&rounds, sizeof(*rounds)));
	CUDA(cudaMemcpy(rounds, &value, sizeof(value), cudaMemcpyHostToDevice));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault));
	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = condition;
	params.conditional.type = cudaGraphCondTypeWhile;
	params.conditional.size = 1;
	CUDA(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	body = params.conditional.phGraph_out[0];
	first = add_kernel(body, place.data, 7, NULL);
	kernel.func = (void *)count_down;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, body, &first, 1, &kernel));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, place.stream));
	expect_words(&place, place.data, 50, 50);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* Graphs are of one device, and are launched there. */
static void refusals(void)
{
	struct place places[2] = {make_place(0), make_place(1)};
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	begin(&places[1]);
	put(&places[1], 1);
	EXPECT_CODE(cudaErrorNotSupported,
		    cudaStreamWaitEvent(places[0].stream, places[1].fork, 0));
	CUDA(cudaEventRecord(places[0].fork, places[0].stream));
	EXPECT_CODE(cudaErrorNotSupported,
		    cudaStreamWaitEvent(places[1].stream, places[0].fork, 0));
	graph = end(&places[1]);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT_CODE(cudaErrorNotSupported, cudaGraphLaunch(exec, places[0].stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaSetDevice(0));
	add_kernel(graph, places[0].data, 1, NULL);
	EXPECT_CODE(cudaErrorNotSupported, cudaGraphInstantiate(&exec, graph, 0));
	cudaGetLastError();
	expect_words(&places[0], places[0].data, 0, 0);
	expect_words(&places[1], places[1].data, 0, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "both"))
		both();
	else if (!strcmp(what, "again"))
		again();
	else if (!strcmp(what, "by hand"))
		by_hand();
	else if (!strcmp(what, "memory"))
		memory();
	else if (!strcmp(what, "choice"))
		choice();
	else if (!strcmp(what, "refusals"))
		refusals();
	else
		return 2;
	printf("verified=yes\n");
	return 0;
}
