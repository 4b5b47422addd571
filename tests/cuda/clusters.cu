/*
 * Blocks in clusters, which reach into each other's shared memory: by a launch's attribute, by
 * the kernel itself, captured, and as nodes. A device without them says so and refuses them.
 */
#include "test.h"

#include <cooperative_groups.h>

/* Older devices don't even know the word. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define IN_PAIRS __cluster_dims__(2, 1, 1)
#else
#define IN_PAIRS
#endif

#define BLOCK	   32
#define BLOCKS_MAX 64

/* Each block leaves what its neighbour in the cluster has in its shared memory. */
static __device__ void ask_neighbour(int *out)
{
#if __CUDA_ARCH__ >= 900
	cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
	__shared__ int mine;
	unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();

	if (!threadIdx.x)
		mine = (int)blockIdx.x * 3;
	cluster.sync();
	if (!threadIdx.x)
		out[blockIdx.x] = *cluster.map_shared_rank(&mine, next);
	cluster.sync();
#else
	out[blockIdx.x] = -1;
#endif
}

static __global__ void neighbours(int *out)
{
	ask_neighbour(out);
}

static __global__ void IN_PAIRS pairs(int *out)
{
	ask_neighbour(out);
}

static void expect_neighbours(int *out, int blocks, int size)
{
	int host[BLOCKS_MAX];

	CUDA(cudaMemcpy(host, out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < blocks; i++)
		EXPECT_EQ((i / size * size + (i + 1) % size) * 3, host[i]);
	CUDA(cudaMemset(out, 0, BLOCKS_MAX * sizeof(int)));
}

static cudaError_t launch(int *out, int blocks, int size, cudaStream_t stream)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = size;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.gridDim = dim3(blocks);
	config.blockDim = dim3(BLOCK);
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	return cudaLaunchKernelEx(&config, neighbours, out);
}

static void test_sizes(int *out)
{
	for (int size = 1; size <= 8; size *= 2) {
		CUDA(launch(out, 24, size, 0));
		expect_neighbours(out, 24, size);
	}
	LAUNCH(pairs<<<10, BLOCK>>>(out));
	expect_neighbours(out, 10, 2);
}

static void test_room(int *out)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	cudaFuncAttributes attributes;
	int largest = 0, active = 0;

	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 4;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.gridDim = dim3(32);
	config.blockDim = dim3(BLOCK);
	config.attrs = &attribute;
	config.numAttrs = 1;
	CUDA(cudaOccupancyMaxActiveClusters(&active, neighbours, &config));
	EXPECT(active > 0);
	CUDA(cudaOccupancyMaxPotentialClusterSize(&largest, neighbours, &config));
	EXPECT(largest == 8);
	EXPECT(launch(out, 32, 16, 0) != cudaSuccess);
	EXPECT(launch(out, 9, 2, 0) != cudaSuccess);
	cudaGetLastError();
	CUDA(cudaFuncSetAttribute(neighbours, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
	CUDA(cudaFuncGetAttributes(&attributes, neighbours));
	EXPECT_EQ(1, attributes.nonPortableClusterSizeAllowed);
	CUDA(cudaOccupancyMaxPotentialClusterSize(&largest, neighbours, &config));
	EXPECT(largest >= 8);
	if (largest >= 16) {
		CUDA(launch(out, 32, 16, 0));
		expect_neighbours(out, 32, 16);
	}
	CUDA(cudaFuncGetAttributes(&attributes, pairs));
	EXPECT_EQ(2, attributes.requiredClusterWidth);
}

static void run(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaGraphExecDestroy(exec));
}

static void test_graphs(int *out)
{
	cudaKernelNodeAttrValue value = {};
	cudaKernelNodeParams params;
	cudaGraphNode_t node;
	cudaStream_t stream;
	cudaGraph_t graph;
	size_t count = 1;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(launch(out, 16, 4, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	run(graph, stream);
	expect_neighbours(out, 16, 4);
	CUDA(cudaGraphGetNodes(graph, &node, &count));
	EXPECT_EQ(1, count);
	CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
	EXPECT_EQ(4, value.clusterDim.x);
	CUDA(cudaGraphKernelNodeGetParams(node, &params));
	EXPECT_EQ(16, params.gridDim.x);
	EXPECT(*(int **)params.kernelParams[0] == out);
	value.clusterDim.x = 8;
	CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
	run(graph, stream);
	expect_neighbours(out, 16, 8);
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
}

int main(void)
{
	int yes = 0, *out;

	CUDA(cudaDeviceGetAttribute(&yes, cudaDevAttrClusterLaunch, 0));
	CUDA(cudaMalloc(&out, BLOCKS_MAX * sizeof(int)));
	CUDA(launch(out, 4, 1, 0));
	CUDA(cudaDeviceSynchronize());
	if (yes) {
		test_sizes(out);
		test_room(out);
		test_graphs(out);
	} else {
		EXPECT(launch(out, 4, 2, 0) != cudaSuccess);
		EXPECT(cudaGetLastError() != cudaSuccess);
	}
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(out));
	return 0;
}
