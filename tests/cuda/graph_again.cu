/*
 * Graphs that are made of the same work again and again, each launched and destroyed: by a capture
 * for each step, with other arguments or grids in each, beside another of the same, in other
 * streams, and changed in between.
 */
#include "test.h"

#define STEPS 8
#define NODES 5

static __global__ void step(unsigned *place, unsigned value)
{
	*place = *place * 3 + value;
}

/* Atomic, for graphs that may run side by side. */
static __global__ void add(unsigned *place, unsigned value)
{
	atomicAdd(place, value);
}

/* Before what comes in streams that do not wait for the one that it is done in. */
static void clear(unsigned *place)
{
	CUDA(cudaMemset(place, 0, sizeof(*place)));
	CUDA(cudaDeviceSynchronize());
}

static unsigned read(const unsigned *place)
{
	unsigned value;

	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

/* What NODES steps with @first, one more and so on make of @value. */
static unsigned after(unsigned value, unsigned first)
{
	for (unsigned i = 0; i < NODES; i++)
		value = value * 3 + first + i;
	return value;
}

static cudaGraph_t capture(cudaStream_t stream, unsigned *place, unsigned first)
{
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (unsigned i = 0; i < NODES; i++)
		LAUNCH(step<<<1, 1, 0, stream>>>(place, first + i));
	CUDA(cudaStreamEndCapture(stream, &graph));
	return graph;
}

/* The arguments are the same in so many steps, one after another. */
static void each_step_is_captured(cudaStream_t stream, unsigned *place, unsigned same)
{
	unsigned expected = 0;

	clear(place);
	for (unsigned i = 0; i < STEPS; i++) {
		cudaGraph_t graph = capture(stream, place, i / same);
		cudaGraphExec_t exec;

		CUDA(cudaGraphInstantiate(&exec, graph, 0));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaGraphExecDestroy(exec));
		CUDA(cudaGraphDestroy(graph));
		expected = after(after(expected, i / same), i / same);
	}
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(expected, read(place));
}

static cudaGraph_t one_kernel(cudaGraphNode_t *node, unsigned *place, unsigned value,
			      unsigned blocks)
{
	void *args[] = {&place, &value};
	cudaKernelNodeParams params = {};
	cudaGraph_t graph;

	params.func = (void *)add;
	params.gridDim = dim3(blocks);
	params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(node, graph, NULL, 0, &params));
	return graph;
}

static void launch_once(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphExecDestroy(exec));
}

static void streams_take_turns(cudaStream_t *streams, unsigned *place)
{
	cudaGraphNode_t node;
	cudaGraph_t graph = one_kernel(&node, place, 1, 1);

	clear(place);
	for (int i = 0; i < 4 * STEPS; i++)
		launch_once(graph, streams[i / 2 % 2]);
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(4 * STEPS, (int)read(place));
	CUDA(cudaGraphDestroy(graph));
}

/* None is waited for, and some are launched in another stream than the one before. */
static void grids_grow(cudaStream_t *streams, unsigned *place)
{
	unsigned expected = 0;

	clear(place);
	for (unsigned i = 1; i <= 4 * STEPS; i++) {
		cudaGraphNode_t node;
		cudaGraph_t graph = one_kernel(&node, place, i, i);

		launch_once(graph, streams[i / 3 % 2]);
		CUDA(cudaGraphDestroy(graph));
		expected += i * i;
	}
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(expected, read(place));
}

/* What is changed is one executable graph, and none of those that come after it. */
static void changes_stay_where_they_are(cudaStream_t stream, unsigned *place)
{
	cudaGraphNode_t node;
	cudaGraph_t graph = one_kernel(&node, place, 1, 1);
	unsigned other = 100;
	void *args[] = {&place, &other};
	cudaKernelNodeParams params;

	clear(place);
	CUDA(cudaGraphKernelNodeGetParams(node, &params));
	params.kernelParams = args;
	for (int i = 0; i < STEPS; i++) {
		cudaGraphExec_t changed, same;

		CUDA(cudaGraphInstantiate(&changed, graph, 0));
		CUDA(cudaGraphInstantiate(&same, graph, 0));
		CUDA(cudaGraphExecKernelNodeSetParams(changed, node, &params));
		CUDA(cudaGraphLaunch(changed, stream));
		CUDA(cudaGraphLaunch(same, stream));
		CUDA(cudaGraphExecDestroy(same));
		CUDA(cudaGraphExecDestroy(changed));
	}
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(101 * STEPS, (int)read(place));
	CUDA(cudaGraphDestroy(graph));
}

int main(void)
{
	cudaStream_t streams[2];
	unsigned *place;

	for (cudaStream_t &stream : streams)
		CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&place, sizeof(*place)));
	for (unsigned same : {STEPS, 1, 2})
		each_step_is_captured(streams[0], place, same);
	grids_grow(streams, place);
	streams_take_turns(streams, place);
	changes_stay_where_they_are(streams[1], place);
	return 0;
}
