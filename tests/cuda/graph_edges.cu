/*
 * Edges of graphs that say when a kernel may begin: which there can be, that they are told and
 * copied, and that a query without their data is not told half of it.
 */
#include <string.h>

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
/* CUDA takes this one too. */
static const cudaGraphEdgeData launched_only = {
	cudaGraphKernelNodePortLaunchCompletion, 0, cudaGraphDependencyTypeDefault, {0}};

static bool is_like(const cudaGraphEdgeData &a, const cudaGraphEdgeData &b)
{
	return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

/* A kernel that adds @value to *@place, behind @before where that is not NULL. */
static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t before,
				  const cudaGraphEdgeData *edge, int *place, int value)
{
	cudaGraphNodeParams params = {cudaGraphNodeTypeKernel};
	void *args[] = {&place, &value};
	cudaGraphNode_t node;

	params.kernel.func = (void *)add;
	params.kernel.gridDim = params.kernel.blockDim = dim3(1);
	params.kernel.kernelParams = args;
	CUDA(cudaGraphAddNode(&node, graph, before ? &before : NULL, before ? edge : NULL,
			      before ? 1 : 0, &params));
	return node;
}

/* first, early before second, earliest before third, which waits for the first as well. */
struct chain {
	cudaGraph_t graph;
	cudaGraphNode_t nodes[3];
};

static void make(struct chain *chain, int *places)
{
	CUDA(cudaGraphCreate(&chain->graph, 0));
	chain->nodes[0] = add_kernel(chain->graph, NULL, NULL, places, 1);
	chain->nodes[1] = add_kernel(chain->graph, chain->nodes[0], &early, places + 1, 2);
	chain->nodes[2] = add_kernel(chain->graph, NULL, NULL, places + 2, 4);
	CUDA(cudaGraphAddDependencies(chain->graph, &chain->nodes[1], &chain->nodes[2], &earliest,
				      1));
	CUDA(cudaGraphAddDependencies(chain->graph, &chain->nodes[0], &chain->nodes[2], NULL, 1));
}

static const cudaGraphEdgeData *edge_of(const cudaGraphNode_t *from, const cudaGraphEdgeData *data,
					size_t count, cudaGraphNode_t wanted)
{
	for (size_t i = 0; i < count; i++) {
		if (from[i] == wanted)
			return &data[i];
	}
	FAIL("an edge is missing");
	return NULL;
}

static void told(const struct chain *chain)
{
	cudaGraphNode_t from[4], to[4];
	cudaGraphEdgeData data[4];
	size_t count = 4;

	memset(data, 0xff, sizeof(data));
	CUDA(cudaGraphGetEdges(chain->graph, from, to, data, &count));
	EXPECT_EQ(3, count);
	count = 4;
	CUDA(cudaGraphNodeGetDependencies(chain->nodes[2], from, data, &count));
	EXPECT_EQ(2, count);
	EXPECT(is_like(earliest, *edge_of(from, data, count, chain->nodes[1])));
	EXPECT(is_like(ordinary, *edge_of(from, data, count, chain->nodes[0])));
	count = 4;
	CUDA(cudaGraphNodeGetDependentNodes(chain->nodes[0], to, data, &count));
	EXPECT_EQ(2, count);
	EXPECT(is_like(early, *edge_of(to, data, count, chain->nodes[1])));
	EXPECT(is_like(ordinary, *edge_of(to, data, count, chain->nodes[2])));
}

/* How many there are is no secret, but what they are is not told without their data. */
static void lossy(const struct chain *chain)
{
	cudaGraphNode_t from[4], to[4];
	cudaGraphEdgeData data[4];
	size_t count = 0;

	CUDA(cudaGraphGetEdges(chain->graph, NULL, NULL, NULL, &count));
	EXPECT_EQ(3, count);
	CUDA(cudaGraphNodeGetDependencies(chain->nodes[1], NULL, NULL, &count));
	EXPECT_EQ(1, count);
	count = 4;
	EXPECT_CODE(cudaErrorLossyQuery, cudaGraphGetEdges(chain->graph, from, to, NULL, &count));
	count = 4;
	EXPECT_CODE(cudaErrorLossyQuery,
		    cudaGraphNodeGetDependencies(chain->nodes[1], from, NULL, &count));
	count = 4;
	EXPECT_CODE(cudaErrorLossyQuery,
		    cudaGraphNodeGetDependentNodes(chain->nodes[0], to, NULL, &count));
	count = 4;
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphGetEdges(chain->graph, NULL, NULL, data, &count));
	CUDA(cudaGraphNodeGetDependencies(chain->nodes[0], from, NULL, &count));
	EXPECT_EQ(0, count);
	cudaGetLastError();
}

static void launched(const struct chain *chain, int *places)
{
	cudaGraphExec_t exec;
	int values[3];

	CUDA(cudaMemset(places, 0, sizeof(values)));
	CUDA(cudaGraphInstantiate(&exec, chain->graph, 0));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, cudaStreamPerThread));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(values, places, sizeof(values), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(3 << i, values[i]);
	CUDA(cudaGraphExecDestroy(exec));
}

static void copied(const struct chain *chain)
{
	struct chain copy;

	CUDA(cudaGraphClone(&copy.graph, chain->graph));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphNodeFindInClone(&copy.nodes[i], chain->nodes[i], copy.graph));
	told(&copy);
	CUDA(cudaGraphDestroy(copy.graph));
}

/* Between two nodes there is one edge, and it goes whatever the data say. */
static void removed(const struct chain *chain)
{
	const cudaGraphNode_t *nodes = chain->nodes;
	size_t count = 0;

	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphAddDependencies(chain->graph, &nodes[0], &nodes[1], &ordinary, 1));
	CUDA(cudaGraphRemoveDependencies(chain->graph, &nodes[0], &nodes[1], NULL, 1));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphRemoveDependencies(chain->graph, &nodes[0], &nodes[1], NULL, 1));
	CUDA(cudaGraphAddDependencies(chain->graph, &nodes[0], &nodes[1], &launched_only,
				      1));
	CUDA(cudaGraphRemoveDependencies(chain->graph, &nodes[0], &nodes[1], &earliest, 1));
	CUDA(cudaGraphRemoveDependencies(chain->graph, &nodes[0], &nodes[2], &ordinary, 1));
	CUDA(cudaGraphGetEdges(chain->graph, NULL, NULL, NULL, &count));
	EXPECT_EQ(1, count);
	cudaGetLastError();
}

/* What no edge can say, and what only an edge between kernels can. */
static void wrong(const struct chain *chain)
{
	static const cudaGraphEdgeData bad[] = {
		{3, 0, cudaGraphDependencyTypeProgrammatic, {0}},
		{cudaGraphKernelNodePortProgrammatic, 1, cudaGraphDependencyTypeProgrammatic, {0}},
		{cudaGraphKernelNodePortProgrammatic, 0, 2, {0}},
		{cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeDefault, {0}},
		{cudaGraphKernelNodePortDefault, 0, cudaGraphDependencyTypeProgrammatic, {0}},
	};
	const cudaGraphNode_t *nodes = chain->nodes;
	cudaGraphNode_t empty;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddDependencies(chain->graph, &nodes[0],
									    &nodes[1], &bad[i], 1));
	CUDA(cudaGraphAddEmptyNode(&empty, chain->graph, NULL, 0));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphAddDependencies(chain->graph, &nodes[0], &empty, &early, 1));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphAddDependencies(chain->graph, &empty, &nodes[0], &early, 1));
	CUDA(cudaGraphGetEdges(chain->graph, NULL, NULL, NULL, &count));
	EXPECT_EQ(1, count);
	cudaGetLastError();
}

int main(void)
{
	struct chain chain;
	int *places;

	CUDA(cudaMalloc(&places, 3 * sizeof(int)));
	make(&chain, places);
	told(&chain);
	lossy(&chain);
	launched(&chain, places);
	copied(&chain);
	removed(&chain);
	wrong(&chain);
	CUDA(cudaGraphDestroy(chain.graph));
	CUDA(cudaFree(places));
	EXPECT_CODE(cudaSuccess, cudaGetLastError());
	return 0;
}
