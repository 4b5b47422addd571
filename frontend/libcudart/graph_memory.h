/*
 * Memory that graphs allocate and free. Its address is the same for every launch, as CUDA says
 * it, so it is taken from the device when the node that allocates it is made, and goes back when
 * no node, of a graph or an executable one, has to do with it any more and no launch has left
 * it allocated. An allocation behind a free of the same graph gets the memory that was freed.
 *
 * Nodes hold references. A launch makes it live; so it stays until it is freed, by a later node
 * of the same launch, by another graph, or by the program.
 *
 * Threads: any. One mutex inside, never held over a call of the host.
 */
#ifndef FGV_LIBCUDART_GRAPH_MEMORY_H
#define FGV_LIBCUDART_GRAPH_MEMORY_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_graph;
struct fgv_graph_memory;
struct fgv_lane;
struct fgv_node;

/* New memory of the device, with a reference. */
cudaError_t fgv_graph_memory_create(struct fgv_lane *lane, uint64_t bytes,
				    struct fgv_graph_memory **memory);
/*
 * Memory that @graph frees before what waits for @before is done, with a reference; NULL: none
 * that fits.
 */
struct fgv_graph_memory *fgv_graph_memory_reuse(struct fgv_graph *graph,
						struct fgv_node *const *before, size_t count,
						uint64_t bytes);
/* What a node of @graph that frees @address frees, with a reference. cudaErrorInvalidValue. */
cudaError_t fgv_graph_memory_find(const struct fgv_graph *graph, uint64_t address,
				  struct fgv_graph_memory **memory);
uint64_t fgv_graph_memory_address(const struct fgv_graph_memory *memory);

/* NULL is none. What nobody needs any more goes with fgv_graph_memory_sweep(). */
struct fgv_graph_memory *fgv_graph_memory_get(struct fgv_graph_memory *memory);
void fgv_graph_memory_put(struct fgv_graph_memory *memory);
void fgv_graph_memory_sweep(struct fgv_lane *lane);

/* @node, of a graph that the program or a capture makes, is there: it may allocate or free. */
void fgv_graph_memory_note(struct fgv_node *node);

/* A stream, and the host's handle of it. */
struct fgv_graph_place {
	cudaStream_t stream;
	uint32_t handle;
};

/*
 * A launch in @place of what @nodes do, in their order. cudaErrorInvalidValue if memory is live
 * already, unless @auto_free, or is not, that only another graph can have allocated.
 */
cudaError_t fgv_graph_memory_launch(struct fgv_node *const *nodes, uint32_t count,
				    const struct fgv_graph_place *place, bool auto_free);
/* Where the memory was used or freed last; false: nowhere that matters. */
bool fgv_graph_memory_last(const struct fgv_graph_memory *memory, struct fgv_graph_place *place);

/* The program frees it, in @place, or with NULL when all work is done. cudaErrorInvalidValue. */
cudaError_t fgv_graph_memory_free(uint64_t address, const struct fgv_graph_place *place);

/* Counts it as unused, but for what is live. */
void fgv_graph_memory_trim(void);
cudaError_t fgv_graph_memory_get_attribute(enum cudaGraphMemAttributeType attribute,
					   uint64_t *value);
/* The highest values start anew. */
cudaError_t fgv_graph_memory_reset_attribute(enum cudaGraphMemAttributeType attribute);

/* Frees all of it; nodes that have to do with it stay, but must not be launched. */
void fgv_graph_memory_drain(struct fgv_lane *lane);

#endif
