/*
 * Chains of kernels, for the tests of graphs that the host builds.
 */
#ifndef CORE_CHAIN_H
#define CORE_CHAIN_H

#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/exec.h"
#include "frontend/cuda/graph/graph.h"
#include "frontend/cuda/graph/node.h"
#include "frontend/cuda/module/library.h"
#include "tests/unit/frontend/cuda/test_core.h"

#define MANY 2000 /* whose text takes several messages */

static CUgraphNode nodes[MANY];
static CUkernel kernel;
static CUlibrary library; /* that it is in */

static inline CUgraph new_graph(void)
{
	CUgraph graph;

	EXPECT(fgv_graph_create(&graph, 0), CUDA_SUCCESS);
	return graph;
}

static inline void load_kernel(void)
{
	EXPECT(fgv_library_load_data(&library, &container), CUDA_SUCCESS);
	EXPECT(fgv_library_get_kernel(&kernel, library, "add"), CUDA_SUCCESS);
}

/* The kernel's first argument is @value; the parameters are good until the next call. */
static inline CUgraphNodeParams *kernel_of(uint64_t value)
{
	static uint64_t a;
	static uint32_t b;
	static uint8_t c;
	static void *args[] = {&a, &b, &c};
	static CUgraphNodeParams params;

	a = value;
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL};
	params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.kern = kernel,
						     .gridDimX = 1,
						     .gridDimY = 1,
						     .gridDimZ = 1,
						     .blockDimX = 1,
						     .blockDimY = 1,
						     .blockDimZ = 1,
						     .kernelParams = args};
	return &params;
}

/* A chain of kernels, whose arguments are 0, 1 and so on. */
static inline CUgraph new_chain(unsigned count)
{
	CUgraph graph = new_graph();

	for (unsigned i = 0; i < count; i++)
		EXPECT(fgv_node_add(&nodes[i], graph, i ? &nodes[i - 1] : NULL, NULL, i > 0,
				    kernel_of(i)),
		       CUDA_SUCCESS);
	return graph;
}

static inline CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec;

	EXPECT(fgv_exec_create(&exec, graph, 0), CUDA_SUCCESS);
	return exec;
}

static inline void launch(CUgraphExec exec)
{
	EXPECT(fgv_exec_launch(exec, NULL), CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	host_seen();
}

static inline uint64_t requests(int op)
{
	return HOST_GET(requests[op]);
}

static inline uint64_t argument(uint64_t number)
{
	uint64_t value;

	memcpy(&value, host.launches[number].args, sizeof(value));
	return value;
}

#endif
