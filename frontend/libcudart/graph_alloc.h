/*
 * Nodes that allocate and free memory.
 */
#ifndef FGV_LIBCUDART_GRAPH_ALLOC_H
#define FGV_LIBCUDART_GRAPH_ALLOC_H

#include "frontend/libcudart/graph.h"
#include "frontend/libcudart/graph_memory.h"

/* What a new node of @graph does that waits for @before and allocates memory, or frees it. */
cudaError_t fgv_alloc_make(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			   const struct cudaMemAllocNodeParamsV2 *params, struct fgv_work *work);
cudaError_t fgv_alloc_make_free(const struct fgv_graph *graph, const void *address,
				struct fgv_work *work);

/* A node for the stream that is being captured on @lane. */
cudaError_t fgv_alloc_capture(struct fgv_lane *lane, uint64_t bytes, uint64_t *address);
cudaError_t fgv_alloc_capture_free(struct fgv_lane *lane, uint64_t address);

#endif
