/*
 * Nodes that allocate and free memory (memory/graph_memory.h). They have nothing to post: what a
 * launch of them changes is known here.
 */
#ifndef FGV_CUDA_GRAPH_ALLOC_H
#define FGV_CUDA_GRAPH_ALLOC_H

#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/memory/graph_memory.h"

/* What a new node of @graph does that waits for @before and allocates memory, or frees it. */
CUresult fgv_alloc_make(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params, struct fgv_work *work);
CUresult fgv_alloc_make_free(const struct fgv_graph *graph, CUdeviceptr address,
			     struct fgv_work *work);

/*
 * Memory that @graph frees before what waits for @before is done, with a reference; NULL: none
 * that fits.
 */
struct fgv_graph_memory *fgv_alloc_reuse(struct fgv_graph *graph, struct fgv_node *const *before,
					 size_t count, uint32_t device, uint64_t bytes);

/*
 * The work of a node that allocates or frees @memory, whose reference becomes the work's, or is
 * given back with a failure.
 */
CUresult fgv_alloc_work(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params,
			struct fgv_graph_memory *memory, struct fgv_work *work);
CUresult fgv_alloc_work_free(CUdeviceptr address, struct fgv_graph_memory *memory,
			     struct fgv_work *work);

#endif
