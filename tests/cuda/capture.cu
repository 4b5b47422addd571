/*
 * Capturing streams: what becomes a node and what waits for what, capture across streams, and
 * the codes of what a capture does not allow.
 */
#include "test.h"

#include <pthread.h>

static __global__ void add(int *place, int value)
{
	*place += value;
}

static __global__ void multiply(int *place, int value)
{
	*place *= value;
}

static __global__ void sum(int *to, const int *a, const int *b)
{
	*to = *a + *b;
}

struct fixture {
	cudaStream_t stream, other;
	cudaEvent_t event, back;
	int *a, *b; /* on the device */
};

static int value_of(const int *place)
{
	int value;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static void reset(struct fixture *f)
{
	CUDA(cudaMemset(f->a, 0, sizeof(int)));
	CUDA(cudaMemset(f->b, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize());
}

static size_t count_nodes(cudaGraph_t graph)
{
	size_t count = 0;

	CUDA(cudaGraphGetNodes(graph, NULL, &count));
	return count;
}

static size_t count_edges(cudaGraph_t graph)
{
	size_t count = 0;

	CUDA(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
	return count;
}

static enum cudaStreamCaptureStatus status(cudaStream_t stream)
{
	enum cudaStreamCaptureStatus status;

	CUDA(cudaStreamIsCapturing(stream, &status));
	return status;
}

/* Runs @graph @times times, and destroys it. */
static void run(struct fixture *f, cudaGraph_t graph, int times)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	for (int i = 0; i < times; i++)
		CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
	CUDA(cudaGraphExecDestroy(exec));
}

/* Nothing is done while it is captured, all of it with each launch. */
static void straight(struct fixture *f)
{
	cudaGraph_t graph;

	reset(f);
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->stream));
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_EQ(cudaStreamCaptureStatusActive, status(f->stream));
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->other));
	for (int i = 1; i <= 3; i++) {
		LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, i));
		LAUNCH(multiply<<<1, 1, 0, f->stream>>>(f->a, 2));
	}
	CUDA(cudaMemcpyAsync(f->b, f->a, sizeof(int), cudaMemcpyDeviceToDevice, f->stream));
	CUDA(cudaMemsetAsync(f->a, 0, sizeof(int), f->stream));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->stream));
	EXPECT_EQ(8, count_nodes(graph));
	EXPECT_EQ(7, count_edges(graph));
	EXPECT_EQ(0, value_of(f->b));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 5));
	run(f, graph, 1);
	EXPECT_EQ(62, value_of(f->b));
	EXPECT_EQ(0, value_of(f->a));
}

/* What the host's memory holds when the graph is launched is copied, not what it held before. */
static void host_memory(struct fixture *f)
{
	const size_t count = 100000;
	static int in[100000], out[100000];
	int *device;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaMalloc(&device, sizeof(in)));
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(device, in, sizeof(in), cudaMemcpyHostToDevice, f->stream));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(device + count - 1, 1));
	CUDA(cudaMemcpyAsync(out, device, sizeof(out), cudaMemcpyDeviceToHost, f->stream));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 1; round <= 3; round++) {
		for (size_t i = 0; i < count; i++)
			in[i] = round * (int)i;
		CUDA(cudaGraphLaunch(exec, f->stream));
		CUDA(cudaStreamSynchronize(f->stream));
		EXPECT_EQ(round * 7, out[7]);
		EXPECT_EQ(round * ((int)count - 1) + 1, out[count - 1]);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(device));
}

/* A stream that waits for a captured event takes part, until it is joined again. */
static void across(struct fixture *f)
{
	cudaGraph_t graph, seen;
	enum cudaStreamCaptureStatus state;
	unsigned long long id = 0, other_id = 1;
	const cudaGraphNode_t *last;
	size_t count;

	reset(f);
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 3));
	CUDA(cudaEventRecord(f->event, f->stream));
	CUDA(cudaStreamWaitEvent(f->other, f->event, 0));
	EXPECT_EQ(cudaStreamCaptureStatusActive, status(f->other));
	LAUNCH(multiply<<<1, 1, 0, f->stream>>>(f->a, 10));
	LAUNCH(add<<<1, 1, 0, f->other>>>(f->b, 4));
	CUDA(cudaEventRecord(f->back, f->other));
	CUDA(cudaStreamWaitEvent(f->stream, f->back, 0));
	CUDA(cudaStreamGetCaptureInfo(f->stream, &state, &id, &seen, &last, NULL, &count));
	EXPECT_EQ(cudaStreamCaptureStatusActive, state);
	EXPECT_EQ(2, count);
	CUDA(cudaStreamGetCaptureInfo(f->other, &state, &other_id, NULL, NULL, NULL, NULL));
	EXPECT_EQ(id, other_id);
	LAUNCH(sum<<<1, 1, 0, f->stream>>>(f->b, f->a, f->b));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT(graph == seen);
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->other));
	EXPECT_EQ(4, count_nodes(graph));
	EXPECT_EQ(4, count_edges(graph));
	run(f, graph, 1);
	EXPECT_EQ(34, value_of(f->b));
	/* An ordinary event again. */
	CUDA(cudaEventRecord(f->event, f->stream));
	CUDA(cudaEventSynchronize(f->event));
}

/* A stream that took part may be gone when the capture ends. */
static void stream_gone(struct fixture *f)
{
	cudaStream_t stream;
	cudaGraph_t graph;

	reset(f);
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaEventRecord(f->event, f->stream));
	CUDA(cudaStreamWaitEvent(stream, f->event, 0));
	LAUNCH(add<<<1, 1, 0, stream>>>(f->a, 3));
	CUDA(cudaEventRecord(f->back, stream));
	CUDA(cudaStreamWaitEvent(f->stream, f->back, 0));
	CUDA(cudaStreamDestroy(stream));
	LAUNCH(multiply<<<1, 1, 0, f->stream>>>(f->a, 2));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	run(f, graph, 1);
	EXPECT_EQ(6, value_of(f->a));
	CUDA(cudaEventRecord(f->event, f->stream));
	CUDA(cudaEventRecord(f->back, f->stream));
	CUDA(cudaDeviceSynchronize());
}

/* Ends a capture that has been broken. */
static void end_broken(struct fixture *f)
{
	cudaGraph_t graph = (cudaGraph_t)1;

	EXPECT_EQ(cudaStreamCaptureStatusInvalidated, status(f->stream));
	EXPECT_CODE(cudaErrorStreamCaptureInvalidated,
		    cudaMemsetAsync(f->a, 0, sizeof(int), f->stream));
	EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(f->stream, &graph));
	EXPECT(!graph);
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->stream));
	cudaGetLastError();
}

static void not_allowed(struct fixture *f)
{
	cudaStream_t blocking;
	cudaGraph_t graph;
	void *memory;

	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(f->stream));
	end_broken(f);
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(f->stream));
	end_broken(f);
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 16));
	end_broken(f);
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
	EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
	end_broken(f);

	/* What is captured relaxed does not mind. */
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaMalloc(&memory, 16));
	CUDA(cudaStreamSynchronize(f->other));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(0, count_nodes(graph));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(memory));

	/* The legacy stream would have to wait for a stream that is being captured. */
	CUDA(cudaStreamCreate(&blocking));
	CUDA(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
	EXPECT_CODE(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(f->a, 0, sizeof(int), NULL));
	EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &graph));
	CUDA(cudaStreamDestroy(blocking));
	cudaGetLastError();
}

static void wrong_order(struct fixture *f)
{
	cudaGraph_t graph;

	EXPECT_CODE(cudaErrorStreamCaptureUnsupported,
		    cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorIllegalState, cudaStreamEndCapture(f->stream, &graph));
	EXPECT_CODE(cudaErrorInvalidValue, cudaStreamIsCapturing(f->stream, NULL));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaStreamBeginCapture(f->stream, (cudaStreamCaptureMode)17));
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorIllegalState,
		    cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	CUDA(cudaGraphDestroy(graph));
	cudaGetLastError();

	/* Work of another stream that the first does not wait for. */
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaEventRecord(f->event, f->stream));
	CUDA(cudaStreamWaitEvent(f->other, f->event, 0));
	LAUNCH(add<<<1, 1, 0, f->other>>>(f->b, 4));
	EXPECT_CODE(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->stream));
	EXPECT_EQ(cudaStreamCaptureStatusNone, status(f->other));

	/* An event of outside, and two captures. */
	CUDA(cudaEventRecord(f->event, f->other));
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(f->stream, f->event, 0));
	end_broken(f);
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaStreamBeginCapture(f->other, cudaStreamCaptureModeRelaxed));
	CUDA(cudaEventRecord(f->event, f->other));
	EXPECT_CODE(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(f->stream, f->event, 0));
	cudaStreamEndCapture(f->stream, &graph);
	cudaStreamEndCapture(f->other, &graph);
	cudaGetLastError();
	CUDA(cudaEventRecord(f->event, f->other));
	CUDA(cudaDeviceSynchronize());
}

/* Another thread may go on with its own work beside a capture of this thread alone. */
static void *work_beside(void *arg)
{
	void *memory;

	(void)arg;
	CUDA(cudaMalloc(&memory, 16));
	CUDA(cudaFree(memory));
	return NULL;
}

static void threads(struct fixture *f)
{
	cudaGraph_t graph;
	pthread_t thread;

	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
	pthread_create(&thread, NULL, work_beside, NULL);
	pthread_join(thread, NULL);
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 1));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(1, count_nodes(graph));
	CUDA(cudaGraphDestroy(graph));
}

/* More nodes for a graph that there is; but a capture can't be given one that is ready to run. */
static void into_graph(struct fixture *f)
{
	cudaGraph_t graph, same;
	cudaGraphNode_t first;
	cudaGraphExec_t exec;
	size_t count = 1;

	reset(f);
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 2));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	CUDA(cudaGraphGetNodes(graph, &first, &count));
	EXPECT_EQ(1, count);
	CUDA(cudaStreamBeginCaptureToGraph(f->stream, graph, &first, NULL, 1,
					   cudaStreamCaptureModeGlobal));
	LAUNCH(multiply<<<1, 1, 0, f->stream>>>(f->a, 7));
	CUDA(cudaStreamEndCapture(f->stream, &same));
	EXPECT(same == graph);
	EXPECT_EQ(2, count_nodes(graph));
	EXPECT_EQ(1, count_edges(graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));

	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaGraphLaunch(exec, f->stream));
	EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(f->stream, &same));
	CUDA(cudaGraphExecDestroy(exec));
	run(f, graph, 2);
	EXPECT_EQ(((0 + 2) * 7 + 2) * 7, value_of(f->a));
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&f.event));
	CUDA(cudaEventCreate(&f.back));
	CUDA(cudaMalloc(&f.a, sizeof(int)));
	CUDA(cudaMalloc(&f.b, sizeof(int)));
	straight(&f);
	host_memory(&f);
	across(&f);
	stream_gone(&f);
	not_allowed(&f);
	wrong_order(&f);
	threads(&f);
	into_graph(&f);
	CUDA(cudaFree(f.a));
	CUDA(cudaFree(f.b));
	CUDA(cudaDeviceSynchronize());
	return 0;
}
