/*
 * Shared by the files that make the soft GPU a gpu_ops. For backend/gpu/soft*.c only.
 */
#ifndef FGV_BACKEND_GPU_SOFT_INTERNAL_H
#define FGV_BACKEND_GPU_SOFT_INTERNAL_H

#include "backend/gpu/gpu_ops.h"
#include "common/util.h"
#include "softgpu/softgpu.h"

struct soft {
	struct fgv_gpu base;
	struct softgpu *gpu;
	int ordinal;
	uint64_t va_base;
	uint64_t memory_bytes;
	uint64_t used_bytes; /* of it, by this process */
	struct softgpu_purse purse;
	struct fgv_gpu_fence *free_fences;
};

static inline struct softgpu *gpu_of(struct fgv_gpu *gpu)
{
	return ((struct soft *)gpu)->gpu;
}

static inline struct softgpu_stream *stream_of(struct fgv_gpu_stream *stream)
{
	return (struct softgpu_stream *)stream;
}

/* Bytes of memory that neither allocations nor chunks of any process have. */
static inline uint64_t fgv_soft_left(const struct soft *soft)
{
	uint64_t used = soft->purse.ledger ? softgpu_ledger_sum(&soft->purse) : soft->used_bytes;

	return used < soft->memory_bytes ? soft->memory_bytes - used : 0;
}

/* This process has @bytes now. Sequentially consistent: it is stored before the others' are read.
 */
static inline void fgv_soft_count(struct soft *soft, uint64_t bytes)
{
	soft->used_bytes = bytes;
	if (soft->purse.ledger)
		__atomic_store_n(&soft->purse.own->used_bytes, bytes, __ATOMIC_SEQ_CST);
}

static inline void fgv_soft_give(struct soft *soft, uint64_t bytes)
{
	fgv_soft_count(soft, soft->used_bytes - bytes);
}

/* @bytes more, if there are so many. */
static inline bool fgv_soft_take(struct soft *soft, uint64_t bytes)
{
	uint64_t used;

	if (bytes > soft->memory_bytes - fgv_min_u64(soft->used_bytes, soft->memory_bytes))
		return false;
	fgv_soft_count(soft, soft->used_bytes + bytes);
	used = soft->purse.ledger ? softgpu_ledger_sum(&soft->purse) : soft->used_bytes;
	if (used <= soft->memory_bytes)
		return true;
	fgv_soft_give(soft, bytes);
	return false;
}

/* The rows of the table that live in other files. */
CUresult fgv_soft_module_load(struct fgv_gpu *gpu, const void *image, size_t len, char *log,
			      size_t log_len, struct fgv_gpu_module **module);
CUresult fgv_soft_module_load_placed(struct fgv_gpu *gpu, const void *image, size_t len,
				     const struct fgv_gpu_placed *placed, size_t count, char *log,
				     size_t log_len, struct fgv_gpu_module **module);
CUresult fgv_soft_module_slice(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what, char **text,
			       char *why, size_t why_len);
CUresult fgv_soft_module_managed(struct fgv_gpu *gpu, const void *image, size_t len,
				 fgv_gpu_each_managed *each, void *arg, char *log, size_t log_len);
CUresult fgv_soft_box_in(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			 struct fgv_gpu_stream *stream);
CUresult fgv_soft_copy_box(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			   struct fgv_gpu_stream *stream);
CUresult fgv_soft_module_cost(struct fgv_gpu *gpu, const void *image, size_t len,
			      const struct fgv_gpu_placed *placed, size_t count, char *log,
			      size_t log_len, struct fgv_gpu_module_cost *cost);
CUresult fgv_soft_array_cost(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			     unsigned levels, uint64_t *bytes);
CUresult fgv_soft_array_create(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			       unsigned levels, struct fgv_gpu_array **array);
CUresult fgv_soft_array_destroy(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned levels,
				uint64_t bytes);
CUresult fgv_soft_array_level(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned level,
			      struct fgv_gpu_array **part);
CUresult fgv_soft_texture_create(struct fgv_gpu *gpu, const CUDA_RESOURCE_DESC *resource,
				 const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
				 uint64_t *number);
CUresult fgv_soft_surface_create(struct fgv_gpu *gpu, struct fgv_gpu_array *array,
				 uint64_t *number);
CUresult fgv_soft_texture_destroy(struct fgv_gpu *gpu, uint64_t number, bool is_surface);
CUresult fgv_soft_texture_linear_width(struct fgv_gpu *gpu, CUarray_format format,
				       unsigned channels, size_t *texels);
CUresult fgv_soft_graph_create(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes,
			       uint32_t count, struct fgv_gpu_graph **graph);
CUresult fgv_soft_graph_create_in(struct fgv_gpu *gpu, struct fgv_gpu_home *home,
				  const struct fgv_gpu_node *nodes, uint32_t count,
				  struct fgv_gpu_graph **graph);
CUresult fgv_soft_home_create(struct fgv_gpu *gpu, struct fgv_gpu_home **home);
CUresult fgv_soft_home_condition(struct fgv_gpu *gpu, struct fgv_gpu_home *home, uint32_t value,
				 uint32_t flags, uint64_t *condition);
CUresult fgv_soft_home_destroy(struct fgv_gpu *gpu, struct fgv_gpu_home *home);
CUresult fgv_soft_graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number);
CUresult fgv_soft_graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			       struct fgv_gpu_stream *stream);
CUresult fgv_soft_graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph);
CUresult fgv_soft_memory_granularity(struct fgv_gpu *gpu, CUmemAllocationGranularity_flags option,
				     size_t *bytes);
CUresult fgv_soft_address_reserve(struct fgv_gpu *gpu, uint64_t bytes, uint64_t alignment,
				  uint64_t hint, uint64_t *address);
CUresult fgv_soft_address_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
CUresult fgv_soft_memory_create(struct fgv_gpu *gpu, uint64_t bytes,
				struct fgv_gpu_memory **memory);
CUresult fgv_soft_memory_release(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory);
CUresult fgv_soft_memory_export(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory, int *fd);
CUresult fgv_soft_memory_import(struct fgv_gpu *gpu, int fd, uint64_t bytes,
				struct fgv_gpu_memory **memory);
CUresult fgv_soft_memory_map(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
			     struct fgv_gpu_memory *memory);
CUresult fgv_soft_memory_access(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
				CUmemAccess_flags flags);
CUresult fgv_soft_memory_view(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
			      CUmemAccess_flags flags);
CUresult fgv_soft_memory_retire(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
CUresult fgv_soft_memory_unmap(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
CUresult fgv_soft_link(struct fgv_gpu *gpu, const struct fgv_gpu_link *what, void **image,
		       size_t *len);
CUresult fgv_soft_tensor_map(struct fgv_gpu *gpu, const struct fgv_tensor_shape *shape,
			     CUtensorMap *map);
CUresult fgv_soft_tensor_map_replace(struct fgv_gpu *gpu, CUtensorMap *map, uint64_t address);
CUresult fgv_soft_peer_attribute(struct fgv_gpu *gpu, struct fgv_gpu *peer,
				 CUdevice_P2PAttribute attribute, int *value);
CUresult fgv_soft_peer_enable(struct fgv_gpu *gpu, struct fgv_gpu *peer);
CUresult fgv_soft_peer_disable(struct fgv_gpu *gpu, struct fgv_gpu *peer);
CUresult fgv_soft_host_atomics(struct fgv_gpu *gpu, CUatomicOperation operation,
			       unsigned *capabilities);

#endif
