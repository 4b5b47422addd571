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
#ifndef FGV_CUDA_GRAPH_MEMORY_H
#define FGV_CUDA_GRAPH_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_graph_memory;
struct fgv_lane;

/* New memory of the device, with a reference. */
CUresult fgv_graph_memory_create(struct fgv_lane *lane, uint64_t bytes,
				 struct fgv_graph_memory **memory);
/*
 * Memory for @bytes that a node of @graph frees, with a reference; NULL: none that fits. @may says
 * of that node, with all of it locked, whether it is done by the time.
 */
struct fgv_graph_memory *fgv_graph_memory_reuse(CUgraph graph, uint32_t device, uint64_t bytes,
						bool (*may)(const void *node, void *arg),
						void *arg);
/* What a node of @graph that frees @address frees, with a reference. CUDA_ERROR_INVALID_VALUE. */
CUresult fgv_graph_memory_find(CUgraph graph, uint64_t address, struct fgv_graph_memory **memory);
uint64_t fgv_graph_memory_address(const struct fgv_graph_memory *memory);
uint32_t fgv_graph_memory_device(const struct fgv_graph_memory *memory);

/* NULL is none. What nobody needs any more of a device goes with fgv_graph_memory_sweep(). */
struct fgv_graph_memory *fgv_graph_memory_get(struct fgv_graph_memory *memory);
void fgv_graph_memory_put(struct fgv_graph_memory *memory);
void fgv_graph_memory_sweep(struct fgv_lane *lane);
/* Whether there is anything for that on @device. */
bool fgv_graph_memory_is_idle(uint32_t device);

/* A node of @graph, which the program or a capture makes, is there: it allocates, or frees. */
void fgv_graph_memory_note_alloc(struct fgv_graph_memory *memory, CUgraph graph);
void fgv_graph_memory_note_free(struct fgv_graph_memory *memory, CUgraph graph, const void *node);

/* A stream, and the host's handle of it. */
struct fgv_graph_place {
	CUstream stream;
	uint32_t handle;
};

/* What a node does to memory. */
struct fgv_graph_memory_use {
	struct fgv_graph_memory *memory;
	bool allocates; /* else it frees */
};

/*
 * A launch in @place of nodes that have these @uses, in their order. CUDA_ERROR_INVALID_VALUE if
 * memory is live already, unless @auto_free, or is not, that only another graph can have allocated.
 */
CUresult fgv_graph_memory_launch(const struct fgv_graph_memory_use *uses, uint32_t count,
				 const struct fgv_graph_place *place, bool auto_free);
/* Where the memory was used or freed last; false: nowhere that matters. */
bool fgv_graph_memory_last(const struct fgv_graph_memory *memory, struct fgv_graph_place *place);

/* The program frees it, in @place, or with NULL when all work is done. CUDA_ERROR_INVALID_VALUE. */
CUresult fgv_graph_memory_free(uint64_t address, const struct fgv_graph_place *place);

/* Of the device @ordinal: gives back what is not needed, and counts it as unused. */
CUresult fgv_graph_memory_trim(int ordinal);
/* CUDA_ERROR_INVALID_VALUE: no such attribute; or, to be set, not one of the highest values to 0.
 */
CUresult fgv_graph_memory_get_attribute(int ordinal, CUgraphMem_attribute attribute,
					uint64_t *value);
CUresult fgv_graph_memory_set_attribute(int ordinal, CUgraphMem_attribute attribute,
					const uint64_t *value);

/* Frees all of it on the lane's device; nodes that have to do with it stay, but must not be
 * launched. */
void fgv_graph_memory_drain(struct fgv_lane *lane);

#endif
