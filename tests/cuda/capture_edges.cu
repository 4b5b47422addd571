/*
 * Captures whose edges say when a kernel may begin: launches that need not wait, events that a
 * kernel records before it ends, and dependencies that the program sets itself.
 */
#include "test.h"

static __global__ void add(int *place, int value)
{
	*place += value;
}

static const cudaGraphEdgeData ordinary = {0, 0, 0, {0}};
static const cudaGraphEdgeData early = {
	cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeProgrammatic, {0}};
static const cudaGraphEdgeData earliest = {
	cudaGraphKernelNodePortLaunchCompletion, 0, cudaGraphDependencyTypeProgrammatic, {0}};

struct fixture {
	cudaStream_t stream, other;
	cudaEvent_t event, back;
	int *places;
};

static bool is_like(const cudaGraphEdgeData &a, const cudaGraphEdgeData &b)
{
	return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

static void begin(struct fixture *f)
{
	CUDA(cudaMemset(f->places, 0, 4 * sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeRelaxed));
}

static void launch(struct fixture *f, cudaStream_t stream, int index,
		   const cudaLaunchAttribute *attribute)
{
	cudaLaunchAttribute attributes[1];
	cudaLaunchConfig_t config = {};

	config.gridDim = config.blockDim = dim3(1);
	config.stream = stream;
	config.attrs = attributes;
	config.numAttrs = attribute ? 1 : 0;
	if (attribute)
		attributes[0] = *attribute;
	CUDA(cudaLaunchKernelEx(&config, add, f->places + index, 1 << index));
}

static cudaLaunchAttribute may_overtake(int allowed)
{
	cudaLaunchAttribute attribute = {};

	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = allowed;
	return attribute;
}

static cudaLaunchAttribute records(cudaEvent_t event, int at_start)
{
	cudaLaunchAttribute attribute = {};

	attribute.id = cudaLaunchAttributeProgrammaticEvent;
	attribute.val.programmaticEvent.event = event;
	attribute.val.programmaticEvent.triggerAtBlockStart = at_start;
	return attribute;
}

/* Runs the graph, whose kernels have each added to a place of their own, and destroys it. */
static void run(struct fixture *f, cudaGraph_t graph, int kernels)
{
	cudaGraphExec_t exec;
	int values[4];

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaStreamSynchronize(f->stream));
	CUDA(cudaMemcpy(values, f->places, sizeof(values), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(i < kernels ? 1 << i : 0, values[i]);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* How many edges of @graph are like @wanted. */
static int count_edges(cudaGraph_t graph, const cudaGraphEdgeData &wanted)
{
	cudaGraphNode_t from[8], to[8];
	cudaGraphEdgeData data[8];
	size_t count = 8;
	int found = 0;

	CUDA(cudaGraphGetEdges(graph, from, to, data, &count));
	for (size_t i = 0; i < count; i++)
		found += is_like(wanted, data[i]);
	return found;
}

/* Only between kernels, and only where it is asked for. */
static void overtaking(struct fixture *f)
{
	const cudaLaunchAttribute yes = may_overtake(1), no = may_overtake(0);
	cudaGraph_t graph;

	begin(f);
	launch(f, f->stream, 0, &yes);
	launch(f, f->stream, 1, &yes);
	launch(f, f->stream, 2, &no);
	launch(f, f->stream, 3, NULL);
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(1, count_edges(graph, early));
	EXPECT_EQ(2, count_edges(graph, ordinary));
	run(f, graph, 4);
}

/* Another stream goes on where the kernel says, and its own stream behind the kernel. */
static void event(struct fixture *f, int at_start)
{
	const cudaLaunchAttribute attribute = records(f->event, at_start);
	cudaGraph_t graph;

	begin(f);
	launch(f, f->stream, 0, &attribute);
	CUDA(cudaStreamWaitEvent(f->other, f->event, 0));
	launch(f, f->other, 1, NULL);
	launch(f, f->stream, 2, NULL);
	CUDA(cudaEventRecord(f->back, f->other));
	CUDA(cudaStreamWaitEvent(f->stream, f->back, 0));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(1, count_edges(graph, at_start ? earliest : early));
	EXPECT_EQ(1, count_edges(graph, ordinary));
	run(f, graph, 3);
}

static cudaGraphNode_t last_of(cudaStream_t stream)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphNode_t *last;
	size_t count = 0;

	CUDA(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, NULL, &count));
	EXPECT_EQ(1, count);
	return last[0];
}

/* A program that asks for nodes alone is not told that they are waited for in part. */
static void set_by_hand(struct fixture *f)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphEdgeData *edges;
	const cudaGraphNode_t *last;
	cudaGraphNode_t first;
	cudaGraph_t graph;
	size_t count = 0;

	begin(f);
	launch(f, f->stream, 0, NULL);
	first = last_of(f->stream);
	CUDA(cudaStreamUpdateCaptureDependencies(f->stream, &first, &early, 1,
						 cudaStreamSetCaptureDependencies));
	CUDA(cudaStreamGetCaptureInfo(f->stream, &status, NULL, NULL, &last, &edges, &count));
	EXPECT_EQ(1, count);
	EXPECT(last[0] == first && is_like(early, edges[0]));
	EXPECT_CODE(cudaErrorLossyQuery,
		    cudaStreamGetCaptureInfo(f->stream, &status, NULL, NULL, &last, NULL, &count));
	CUDA(cudaStreamGetCaptureInfo(f->stream, &status, NULL, NULL, NULL, NULL, &count));
	cudaGetLastError();
	launch(f, f->stream, 1, NULL);
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(1, count_edges(graph, early));
	EXPECT_EQ(0, count_edges(graph, ordinary));
	run(f, graph, 2);
}

/* Of two ways to wait for a kernel the stricter counts; and what comes need not be a kernel. */
static void merged(struct fixture *f)
{
	const cudaLaunchAttribute yes = may_overtake(1);
	cudaGraphNode_t first;
	cudaGraph_t graph;

	begin(f);
	launch(f, f->stream, 0, NULL);
	first = last_of(f->stream);
	CUDA(cudaStreamUpdateCaptureDependencies(f->stream, &first, &early, 1,
						 cudaStreamSetCaptureDependencies));
	CUDA(cudaStreamUpdateCaptureDependencies(f->stream, &first, NULL, 1,
						 cudaStreamAddCaptureDependencies));
	launch(f, f->stream, 1, NULL);
	first = last_of(f->stream);
	CUDA(cudaStreamUpdateCaptureDependencies(f->stream, &first, &early, 1,
						 cudaStreamAddCaptureDependencies));
	launch(f, f->stream, 2, NULL);
	first = last_of(f->stream);
	CUDA(cudaStreamUpdateCaptureDependencies(f->stream, &first, &earliest, 1,
						 cudaStreamSetCaptureDependencies));
	launch(f, f->stream, 3, &yes);
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(1, count_edges(graph, early));
	EXPECT_EQ(2, count_edges(graph, ordinary));
	run(f, graph, 4);
}

static void before_memset(struct fixture *f)
{
	const cudaLaunchAttribute attribute = records(f->event, 0);
	cudaGraph_t graph;

	begin(f);
	launch(f, f->stream, 0, &attribute);
	CUDA(cudaStreamWaitEvent(f->other, f->event, 0));
	CUDA(cudaMemsetAsync(f->places + 1, 0, sizeof(int), f->other));
	CUDA(cudaEventRecord(f->back, f->other));
	CUDA(cudaStreamWaitEvent(f->stream, f->back, 0));
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	EXPECT_EQ(1, count_edges(graph, early));
	run(f, graph, 1);
}

static void into_graph(struct fixture *f)
{
	cudaGraph_t graph, same;
	cudaGraphNode_t first;
	size_t count = 1;

	begin(f);
	launch(f, f->stream, 0, NULL);
	CUDA(cudaStreamEndCapture(f->stream, &graph));
	CUDA(cudaGraphGetNodes(graph, &first, &count));
	CUDA(cudaStreamBeginCaptureToGraph(f->stream, graph, &first, &earliest, 1,
					   cudaStreamCaptureModeRelaxed));
	launch(f, f->stream, 1, NULL);
	CUDA(cudaStreamEndCapture(f->stream, &same));
	EXPECT(same == graph);
	EXPECT_EQ(1, count_edges(graph, earliest));
	run(f, graph, 2);
}

/* Without a capture the event is an event. */
static void not_captured(struct fixture *f)
{
	const cudaLaunchAttribute attribute = records(f->event, 0);
	int values[2];

	CUDA(cudaMemset(f->places, 0, 4 * sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	launch(f, f->stream, 0, &attribute);
	CUDA(cudaStreamWaitEvent(f->other, f->event, 0));
	launch(f, f->other, 1, NULL);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaEventQuery(f->event));
	CUDA(cudaMemcpy(values, f->places, sizeof(values), cudaMemcpyDeviceToHost));
	EXPECT(values[0] == 1 && values[1] == 2);
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&f.event, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&f.back, cudaEventDisableTiming));
	CUDA(cudaMalloc(&f.places, 4 * sizeof(int)));
	overtaking(&f);
	event(&f, 0);
	event(&f, 1);
	set_by_hand(&f);
	merged(&f);
	before_memset(&f);
	into_graph(&f);
	not_captured(&f);
	CUDA(cudaFree(f.places));
	CUDA(cudaDeviceSynchronize());
	return 0;
}
