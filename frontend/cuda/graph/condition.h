/*
 * Conditions, by which nodes of graphs choose what of them is done.
 *
 * Threads: as graph.h has it.
 */
#ifndef FGV_CUDA_CONDITION_H
#define FGV_CUDA_CONDITION_H

#include <cuda.h>

/*
 * Kernels set it by the number *@condition; one node of @graph, or of a body in it, chooses by it.
 * Launches give it @value if @flags has CU_GRAPH_COND_ASSIGN_DEFAULT. CUDA_ERROR_INVALID_VALUE;
 * CUDA_ERROR_NOT_SUPPORTED in a graph that is a node's; CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult fgv_condition_create(CUgraphConditionalHandle *condition, CUgraph graph, unsigned value,
			      unsigned flags);

#endif
