/*
 * Functions of the program in the order of a stream: what comes before has been done, what comes
 * after waits, and everything else goes on.
 */
#include "test.h"

#include <atomic>
#include <pthread.h>
#include <unistd.h>

#define LONG_WORK (1u << 16)

static __global__ void set(volatile int *place, int value)
{
	*place = value;
}

static __global__ void add(int *place, int value)
{
	*place += value;
}

static __global__ void copy(int *to, const volatile int *from)
{
	*to = *from;
}

struct fixture {
	cudaStream_t stream, other;
	int *a, *b;   /* on the device */
	int *visible; /* pinned */
	unsigned *scratch;
};

static int value_of(const int *place)
{
	int value;

	CUDA(cudaMemcpy(&value, place, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

/* What the kernel before wrote is seen, what is written is seen by the kernel after. */
static void CUDART_CB double_it(void *arg)
{
	volatile int *place = (int *)arg;

	*place = *place * 2;
}

static void in_order(struct fixture *f)
{
	for (int round = 1; round <= 20; round++) {
		LAUNCH(test_work<<<1, 1, 0, f->stream>>>(f->scratch, LONG_WORK / 16));
		LAUNCH(set<<<1, 1, 0, f->stream>>>(f->visible, round));
		CUDA(cudaLaunchHostFunc(f->stream, double_it, f->visible));
		LAUNCH(copy<<<1, 1, 0, f->stream>>>(f->a, f->visible));
		CUDA(cudaLaunchHostFunc(f->stream, double_it, f->visible));
	}
	CUDA(cudaStreamSynchronize(f->stream));
	EXPECT_EQ(40, value_of(f->a));
	EXPECT_EQ(80, *f->visible);
}

struct gate {
	std::atomic<int> entered, open;
};

static void CUDART_CB pass(void *arg)
{
	struct gate *gate = (struct gate *)arg;

	gate->entered = 1;
	while (!gate->open)
		usleep(100);
}

/* While a function of one stream does not return, another stream is of use, and so is the device. */
static void beside(struct fixture *f)
{
	struct gate gate = {};
	cudaEvent_t event;
	void *memory;

	CUDA(cudaEventCreate(&event));
	CUDA(cudaMemset(f->a, 0, sizeof(int)));
	CUDA(cudaMemset(f->b, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaLaunchHostFunc(f->stream, pass, &gate));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 1));
	CUDA(cudaEventRecord(event, f->stream));
	while (!gate.entered)
		usleep(100);
	EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(f->stream));
	EXPECT_CODE(cudaErrorNotReady, cudaEventQuery(event));
	cudaGetLastError();
	LAUNCH(add<<<1, 1, 0, f->other>>>(f->b, 7));
	CUDA(cudaStreamSynchronize(f->other));
	CUDA(cudaMalloc(&memory, 1000));
	CUDA(cudaMemcpyAsync(f->visible, f->b, sizeof(int), cudaMemcpyDeviceToHost, f->other));
	CUDA(cudaStreamSynchronize(f->other));
	EXPECT_EQ(7, *f->visible);
	/* A stream that waits for the first waits with it. */
	CUDA(cudaStreamWaitEvent(f->other, event, 0));
	LAUNCH(copy<<<1, 1, 0, f->other>>>(f->b, f->a));
	EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(f->other));
	cudaGetLastError();
	gate.open = 1;
	CUDA(cudaStreamSynchronize(f->other));
	EXPECT_EQ(1, value_of(f->b));
	CUDA(cudaFree(memory));
	CUDA(cudaEventDestroy(event));
}

static void CUDART_CB rest(void *arg)
{
	(void)arg;
	usleep(200000);
}

/* More work than anybody has room for waits for a function, and other streams' with it. */
static void much(struct fixture *f)
{
	const int count = 3000;

	CUDA(cudaMemset(f->a, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaLaunchHostFunc(f->stream, rest, NULL));
	for (int i = 0; i < count; i++)
		LAUNCH(add<<<1, 1, 0, f->stream>>>(f->a, 1));
	CUDA(cudaLaunchHostFunc(f->stream, rest, NULL));
	LAUNCH(add<<<1, 1, 0, f->other>>>(f->b, 1));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(count, value_of(f->a));
}

static void *free_it(void *memory)
{
	CUDA(cudaFreeHost(memory));
	return NULL;
}

/* Several threads wait for all work, and so for the function; then each goes on. */
static void from_threads(struct fixture *f)
{
	const int count = 4;
	pthread_t threads[count];
	void *memory;

	CUDA(cudaLaunchHostFunc(f->stream, rest, NULL));
	for (int i = 0; i < count; i++) {
		CUDA(cudaMallocHost(&memory, 4096));
		pthread_create(&threads[i], NULL, free_it, memory);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static std::atomic<int> counted;

static void CUDART_CB count_up(void *arg)
{
	counted += *(int *)arg;
}

static void CUDART_CB called_back(cudaStream_t stream, cudaError_t status, void *arg)
{
	struct fixture *f = (struct fixture *)arg;

	counted = stream == f->stream && status == cudaSuccess ? 1000 : -1;
}

static void callbacks(struct fixture *f)
{
	CUDA(cudaStreamAddCallback(f->stream, called_back, f, 0));
	CUDA(cudaStreamSynchronize(f->stream));
	EXPECT_EQ(1000, counted);
	EXPECT_CODE(cudaErrorInvalidValue, cudaStreamAddCallback(f->stream, NULL, f, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaStreamAddCallback(f->stream, called_back, f, 1));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLaunchHostFunc(f->stream, NULL, f));
	cudaGetLastError();
}

static std::atomic<int> code;

static void CUDART_CB call_cuda(void *arg)
{
	void *memory;

	(void)arg;
	code = cudaMalloc(&memory, 16);
}

static void not_permitted(struct fixture *f)
{
	code = cudaSuccess;
	CUDA(cudaLaunchHostFunc(f->stream, call_cuda, NULL));
	CUDA(cudaStreamSynchronize(f->stream));
	EXPECT_EQ(cudaErrorNotPermitted, code);
}

/* The default stream and created ones wait for each other's functions. */
static void default_stream(struct fixture *f)
{
	cudaStream_t blocking;
	int value = 5;

	CUDA(cudaStreamCreate(&blocking));
	counted = 0;
	CUDA(cudaLaunchHostFunc(blocking, count_up, &value));
	LAUNCH(set<<<1, 1>>>(f->a, 3));
	CUDA(cudaStreamSynchronize(NULL));
	EXPECT_EQ(5, counted);
	CUDA(cudaLaunchHostFunc(NULL, count_up, &value));
	LAUNCH(set<<<1, 1, 0, blocking>>>(f->a, 4));
	CUDA(cudaStreamSynchronize(blocking));
	EXPECT_EQ(10, counted);
	CUDA(cudaLaunchHostFunc(f->stream, count_up, &value));
	CUDA(cudaLaunchHostFunc(blocking, count_up, &value));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(20, counted);
	EXPECT_EQ(4, value_of(f->a));
	CUDA(cudaStreamDestroy(blocking));
}

/* Captured, and as a node that is made by hand. */
static void in_graphs(struct fixture *f)
{
	cudaHostNodeParams params = {}, got = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[2];
	size_t count = 2;
	enum cudaGraphNodeType type;
	int three = 3, four = 4;

	counted = 0;
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeGlobal));
	LAUNCH(set<<<1, 1, 0, f->stream>>>(f->visible, 1));
	CUDA(cudaLaunchHostFunc(f->stream, count_up, &three));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(0, counted);
	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	EXPECT_EQ(2, count);
	CUDA(cudaGraphNodeGetType(nodes[1], &type));
	EXPECT_EQ(cudaGraphNodeTypeHost, type);
	CUDA(cudaGraphHostNodeGetParams(nodes[1], &got));
	EXPECT(got.fn == count_up && got.userData == &three);
	params.fn = count_up;
	params.userData = &four;
	CUDA(cudaGraphAddHostNode(&nodes[0], graph, &nodes[1], 1, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
	EXPECT_EQ(14, counted);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&f.a, sizeof(int)));
	CUDA(cudaMalloc(&f.b, sizeof(int)));
	CUDA(cudaMalloc(&f.scratch, sizeof(unsigned)));
	CUDA(cudaMallocHost(&f.visible, sizeof(int)));
	/* Kernels are loaded at their first launch, which may wait for the device. */
	LAUNCH(add<<<1, 1, 0, f.stream>>>(f.a, 1));
	CUDA(cudaDeviceSynchronize());
	in_order(&f);
	beside(&f);
	much(&f);
	from_threads(&f);
	callbacks(&f);
	not_permitted(&f);
	default_stream(&f);
	in_graphs(&f);
	CUDA(cudaFreeHost(f.visible));
	CUDA(cudaFree(f.a));
	CUDA(cudaFree(f.b));
	return 0;
}
