/*
 * What graphs cost: launches of graphs of several sizes, of kernels that do nothing or something,
 * in a chain or in branches; the call alone; instantiating and changing them.
 */
#include "measure.h"
#include "spin.h"

#define CALLS	    32 /* launches that fit in any queue, so that the call alone is measured */
#define BRANCHES    8
#define BRANCH	    10
#define BRANCH_US   46
#define WORK_US	    1.7
#define MADE	    4	  /* graphs in a loop that makes them */
#define NODES_TIMED 20000 /* in a loop of launches */

static long samples = 11, max_nodes = 1000;
static double cycles_per_us;

static cudaKernelNodeParams kernel_of(long long *cycles)
{
	static void *args[1];
	cudaKernelNodeParams params = {};

	args[0] = cycles;
	params.func = (void *)spin;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	return params;
}

/* So many kernels of @cycles, each behind the one that is @width before it. */
static cudaGraph_t make_graph_of(std::vector<cudaGraphNode_t> &nodes, long count, long width,
				 long long cycles)
{
	cudaKernelNodeParams params = kernel_of(&cycles);
	cudaGraph_t graph;

	nodes.resize((size_t)count);
	CUDA(cudaGraphCreate(&graph, 0));
	for (long i = 0; i < count; i++)
		CUDA(cudaGraphAddKernelNode(&nodes[i], graph, i < width ? NULL : &nodes[i - width],
					    i >= width, &params));
	return graph;
}

static cudaGraph_t make_graph(std::vector<cudaGraphNode_t> &nodes, long count, long width,
			      double kernel_us)
{
	return make_graph_of(nodes, count, width, (long long)(kernel_us * cycles_per_us));
}

static double launch_us(cudaGraphExec_t exec, cudaStream_t stream, long count)
{
	return measure_each_us(std::max(NODES_TIMED / count, 3L),
			       [=](long) { CUDA(cudaGraphLaunch(exec, stream)); });
}

static double call_us(cudaGraphExec_t exec, cudaStream_t stream)
{
	double start, end;

	CUDA(cudaDeviceSynchronize());
	start = measure_now_us();
	for (int i = 0; i < CALLS; i++)
		CUDA(cudaGraphLaunch(exec, stream));
	end = measure_now_us();
	CUDA(cudaDeviceSynchronize());
	return (end - start) / CALLS;
}

static void measure_chain(cudaStream_t stream, const char *kind, long count, double kernel_us)
{
	std::vector<cudaGraphNode_t> nodes;
	cudaGraph_t graph = make_graph(nodes, count, 1, kernel_us);
	cudaGraphExec_t exec;
	char name[64];

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	snprintf(name, sizeof(name), "graph_%s_%ld", kind, count);
	measure(name, "us", samples, [=] { return launch_us(exec, stream, count); });
	if (kernel_us == 0) {
		snprintf(name, sizeof(name), "graph_call_%ld", count);
		measure(name, "us", samples, [=] { return call_us(exec, stream); });
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void measure_branches(cudaStream_t stream)
{
	std::vector<cudaGraphNode_t> nodes;
	cudaGraph_t graph = make_graph(nodes, BRANCHES * BRANCH, BRANCHES, BRANCH_US);
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	measure("graph_branches", "us", samples, [=] {
		return measure_each_us(5, [=](long) { CUDA(cudaGraphLaunch(exec, stream)); });
	});
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* From the calls of a program to the graph's end, as where a program captures what it repeats. */
static void measure_capture(cudaStream_t stream, long count)
{
	char name[64];

	snprintf(name, sizeof(name), "graph_capture_%ld", count);
	measure(name, "us", samples, [=] {
		return measure_each_us(MADE, [=](long) {
			cudaGraph_t graph;
			cudaGraphExec_t made;

			CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
			for (long i = 0; i < count; i++)
				spin<<<1, 1, 0, stream>>>(0);
			CUDA(cudaStreamEndCapture(stream, &graph));
			CUDA(cudaGraphInstantiate(&made, graph, 0));
			CUDA(cudaGraphLaunch(made, stream));
			CUDA(cudaGraphExecDestroy(made));
			CUDA(cudaGraphDestroy(graph));
		});
	});
}

/* A graph's only life. */
static void live(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t made;

	CUDA(cudaGraphInstantiate(&made, graph, 0));
	CUDA(cudaGraphLaunch(made, stream));
	CUDA(cudaGraphExecDestroy(made));
}

/* Between nodes that are in a chain anyway: others each time, for 256 times. */
static void add_edges(cudaGraph_t graph, const std::vector<cudaGraphNode_t> &nodes)
{
	static unsigned times;
	unsigned bits = times++;

	for (size_t i = 2; i < 10; i++, bits >>= 1) {
		if (bits & 1)
			CUDA(cudaGraphAddDependencies(graph, &nodes[0], &nodes[i], NULL, 1));
	}
}

/*
 * Of graphs that were never there before: each has other arguments, with which it does nothing, and
 * may have edges of its own.
 */
static double first_us(cudaStream_t stream, long count, bool is_shape_new)
{
	static long long cycles;
	cudaGraph_t graphs[MADE];
	double us;

	for (cudaGraph_t &graph : graphs) {
		std::vector<cudaGraphNode_t> nodes;

		graph = make_graph_of(nodes, count, 1, --cycles);
		if (is_shape_new)
			add_edges(graph, nodes);
	}
	us = measure_each_us(MADE, [&](long i) { live(graphs[i], stream); });
	for (cudaGraph_t graph : graphs)
		CUDA(cudaGraphDestroy(graph));
	return us;
}

/* With the launch that they are for, and their end: what is put off until then counts. */
static void measure_making(cudaStream_t stream, long count)
{
	std::vector<cudaGraphNode_t> nodes, others;
	cudaGraph_t graph = make_graph(nodes, count, 1, 0);
	cudaGraph_t graph_other = make_graph(others, count, 1, 0.1);
	cudaGraph_t both[] = {graph, graph_other};
	cudaGraphExec_t exec;
	char name[64];

	snprintf(name, sizeof(name), "graph_instantiate_%ld", count);
	measure(name, "us", samples,
		[=] { return measure_each_us(MADE, [&](long) { live(graph, stream); }); });
	snprintf(name, sizeof(name), "graph_first_%ld", count);
	measure(name, "us", samples, [=] { return first_us(stream, count, false); });
	snprintf(name, sizeof(name), "graph_shape_%ld", count);
	measure(name, "us", samples, [=] { return first_us(stream, count, true); });
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	snprintf(name, sizeof(name), "graph_update_%ld", count);
	measure(name, "us", samples, [&] {
		return measure_each_us(4, [&](long i) {
			cudaGraphExecUpdateResultInfo info;

			CUDA(cudaGraphExecUpdate(exec, both[(i + 1) % 2], &info));
			CUDA(cudaGraphLaunch(exec, stream));
		});
	});
	snprintf(name, sizeof(name), "graph_set_params_%ld", count);
	measure(name, "us", samples, [&] {
		return measure_each_us(20, [&](long i) {
			long long cycles = i;
			cudaKernelNodeParams params = kernel_of(&cycles);

			CUDA(cudaGraphExecKernelNodeSetParams(exec, nodes[i % count], &params));
			CUDA(cudaGraphLaunch(exec, stream));
		});
	});
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(graph_other));
}

int main(int argc, char **argv)
{
	cudaStream_t stream;

	measure_parse(
		argc, argv, "Measures what graphs cost",
		{{"samples", &samples, MEASURE_MAX_SAMPLES, false, "samples of each measurement"},
		 {"max-nodes", &max_nodes, 1000, false, "nodes of the largest graph"}});
	measure_print_device();
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	cycles_per_us = calibrate();
	for (long count = 10; count <= max_nodes; count *= 10) {
		measure_chain(stream, "empty", count, 0);
		measure_chain(stream, "work", count, WORK_US);
		measure_capture(stream, count);
		measure_making(stream, count);
	}
	measure_branches(stream);
	return 0;
}
