/*
 * Shared by the files of the CUDA implementation: the device, its streams, and how
 * work is announced to them. For backend/gpu/cuda*.c only.
 */
#ifndef FGV_BACKEND_GPU_CUDA_INTERNAL_H
#define FGV_BACKEND_GPU_CUDA_INTERNAL_H

#include "backend/gpu/cuda_driver.h"
#include "backend/gpu/gpu_ops.h"

/* What a fence waits for in one stream; see cuda_fence.c. */
struct fence_part;

struct fgv_gpu_stream {
	CUstream handle;	  /* NULL: the legacy default stream */
	bool is_blocking;	  /* waits for the legacy stream, and it for this one */
	bool is_busy;		  /* something was queued since it was last seen empty */
	bool is_computing;	  /* so was something else than copies of base.copies */
	struct fence_part *loose; /* fences with nothing queued behind them */
	struct fgv_gpu_stream *next, *previous;
};

/* An event of the pool; shared by all fences at the same place in a stream. */
struct pooled_event {
	CUevent handle;
	unsigned refs;
	struct pooled_event *next;
};

enum garbage_kind { GARBAGE_MEMORY, GARBAGE_MODULE, GARBAGE_ARRAY, GARBAGE_MIPMAPPED };

/* What is to be freed when the GPU is idle. */
struct garbage {
	enum garbage_kind kind;
	uint64_t what;	/* an address, or the driver's handle */
	uint64_t bytes; /* of base.late_bytes */
	struct garbage *next;
};

struct cuda {
	struct fgv_gpu base;
	const struct fgv_cuda_driver *driver;
	CUdevice device;
	CUcontext context;
	CUgreenCtx green;	      /* that the context is of; NULL: it has all multiprocessors */
	struct fgv_gpu_stream legacy; /* head of the ring of streams */
	struct pooled_event *free_events;
	struct garbage *garbage;
	unsigned garbage_count;
	bool prints; /* there was code that may print */
};

static inline struct cuda *cuda_of(struct fgv_gpu *gpu)
{
	return (struct cuda *)gpu;
}

static inline struct fgv_gpu_stream *stream_of(struct cuda *cuda, struct fgv_gpu_stream *stream)
{
	return stream ? stream : &cuda->legacy;
}

/*
 * Call before anything is queued in @stream: fences that are there get an event
 * now, as "the stream is empty" will no longer tell that they have passed.
 */
CUresult fgv_cuda_before_work(struct cuda *cuda, struct fgv_gpu_stream *stream);

/* CUDA_SUCCESS, and not busy any more, if @stream is empty. */
CUresult fgv_cuda_stream_query(struct cuda *cuda, struct fgv_gpu_stream *stream);

/*
 * Calls for what waits for the GPU inside the driver: freeing memory and arrays, unloading
 * modules. They are put off until the GPU is idle; fgv_cuda_collect() looks whether it
 * is, _now() does them in any case, and then may wait.
 */
CUresult fgv_cuda_discard(struct cuda *cuda, enum garbage_kind kind, uint64_t what, uint64_t bytes);
void fgv_cuda_collect(struct cuda *cuda);
void fgv_cuda_collect_now(struct cuda *cuda);

/*
 * Text that kernels print: whether a module does, and calls for where something was seen to be
 * done, a stream empty or an event past.
 */
void fgv_cuda_note_image(struct cuda *cuda, const void *image, size_t len);
void fgv_cuda_flush_stream(struct cuda *cuda, CUstream stream);
void fgv_cuda_flush_event(struct cuda *cuda, CUevent event);

/* The GPU's compute capability, as 90. */
unsigned fgv_cuda_sm(struct cuda *cuda);

/* Lets a kernel have so much dynamic shared memory; and clusters of such a size. */
CUresult fgv_cuda_allow_shared(struct cuda *cuda, struct fgv_gpu_function *function,
			       uint32_t shared_bytes);
CUresult fgv_cuda_allow_clusters(struct cuda *cuda, struct fgv_gpu_function *function,
				 uint32_t shared_bytes, bool any_size);

/* The rows of the table that live in other files. */
void fgv_cuda_divide(int ordinal, struct fgv_units *units);
uint32_t fgv_cuda_peers(int ordinal, int count);
CUresult fgv_cuda_set_units(struct fgv_gpu *gpu, uint64_t set);
CUresult fgv_cuda_stream_create(struct fgv_gpu *gpu, uint32_t flags, int32_t priority,
				struct fgv_gpu_stream **stream);
CUresult fgv_cuda_stream_destroy(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream);
CUresult fgv_cuda_fence(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
			struct fgv_gpu_fence **fence);
CUresult fgv_cuda_fence_all(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence);
CUresult fgv_cuda_fence_computing(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence);
CUresult fgv_cuda_fence_query(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence);
void fgv_cuda_fence_put(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence);
CUresult fgv_cuda_module_load(struct fgv_gpu *gpu, const void *image, size_t len, char *log,
			      size_t log_len, struct fgv_gpu_module **module);
CUresult fgv_cuda_module_slice(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what, char **text,
			       char *why, size_t why_len);
CUresult fgv_cuda_module_load_placed(struct fgv_gpu *gpu, const void *image, size_t len,
				     const struct fgv_gpu_placed *placed, size_t count, char *log,
				     size_t log_len, struct fgv_gpu_module **module);
CUresult fgv_cuda_module_managed(struct fgv_gpu *gpu, const void *image, size_t len,
				 fgv_gpu_each_managed *each, void *arg, char *log, size_t log_len);
CUresult fgv_cuda_module_kernels(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				 void (*each)(const char *name, void *arg), void *arg);
CUresult fgv_cuda_launch_clusters(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				  const uint32_t grid[3], const uint32_t block[3],
				  uint32_t shared_bytes, struct fgv_gpu_stream *stream,
				  const struct fgv_gpu_clusters *how, void **params);
CUresult fgv_cuda_clusters_active(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				  const uint32_t grid[3], const uint32_t block[3],
				  uint32_t shared_bytes, const struct fgv_gpu_clusters *how,
				  int *count);
CUresult fgv_cuda_clusters_largest(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				   const uint32_t grid[3], const uint32_t block[3],
				   uint32_t shared_bytes, bool any_size, int *size);
bool fgv_cuda_print(struct fgv_gpu *gpu, const size_t room[2]);

void fgv_cuda_costs(struct fgv_gpu *gpu, struct fgv_gpu_costs *costs);
CUresult fgv_cuda_array_cost(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			     unsigned levels, uint64_t *bytes);
CUresult fgv_cuda_module_cost(struct fgv_gpu *gpu, const void *image, size_t len,
			      const struct fgv_gpu_placed *placed, size_t count, char *log,
			      size_t log_len, struct fgv_gpu_module_cost *cost);
CUresult fgv_cuda_copy_box(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			   struct fgv_gpu_stream *stream);
CUresult fgv_cuda_array_create(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			       unsigned levels, struct fgv_gpu_array **array);
CUresult fgv_cuda_array_destroy(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned levels,
				uint64_t bytes);
CUresult fgv_cuda_array_level(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned level,
			      struct fgv_gpu_array **part);
CUresult fgv_cuda_texture_create(struct fgv_gpu *gpu, const CUDA_RESOURCE_DESC *resource,
				 const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
				 uint64_t *number);
CUresult fgv_cuda_surface_create(struct fgv_gpu *gpu, struct fgv_gpu_array *array,
				 uint64_t *number);
CUresult fgv_cuda_texture_destroy(struct fgv_gpu *gpu, uint64_t number, bool is_surface);
CUresult fgv_cuda_texture_linear_width(struct fgv_gpu *gpu, CUarray_format format,
				       unsigned channels, size_t *texels);
CUresult fgv_cuda_graph_create(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes,
			       uint32_t count, struct fgv_gpu_graph **graph);
CUresult fgv_cuda_graph_create_in(struct fgv_gpu *gpu, struct fgv_gpu_home *home,
				  const struct fgv_gpu_node *nodes, uint32_t count,
				  struct fgv_gpu_graph **graph);
CUresult fgv_cuda_home_create(struct fgv_gpu *gpu, struct fgv_gpu_home **home);
CUresult fgv_cuda_home_condition(struct fgv_gpu *gpu, struct fgv_gpu_home *home, uint32_t value,
				 uint32_t flags, uint64_t *condition);
CUresult fgv_cuda_home_destroy(struct fgv_gpu *gpu, struct fgv_gpu_home *home);
CUresult fgv_cuda_graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number);
CUresult fgv_cuda_graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			       struct fgv_gpu_stream *stream);
CUresult fgv_cuda_graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph);
CUresult fgv_cuda_memory_granularity(struct fgv_gpu *gpu, CUmemAllocationGranularity_flags option,
				     size_t *bytes);
CUresult fgv_cuda_address_reserve(struct fgv_gpu *gpu, uint64_t bytes, uint64_t alignment,
				  uint64_t hint, uint64_t *address);
CUresult fgv_cuda_address_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
CUresult fgv_cuda_memory_create(struct fgv_gpu *gpu, uint64_t bytes,
				struct fgv_gpu_memory **memory);
CUresult fgv_cuda_memory_release(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory);
CUresult fgv_cuda_memory_export(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory, int *fd);
CUresult fgv_cuda_memory_import(struct fgv_gpu *gpu, int fd, uint64_t bytes,
				struct fgv_gpu_memory **memory);
CUresult fgv_cuda_memory_map(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
			     struct fgv_gpu_memory *memory);
CUresult fgv_cuda_memory_access(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
				CUmemAccess_flags flags);
CUresult fgv_cuda_memory_unview(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
CUresult fgv_cuda_memory_unmap(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
CUresult fgv_cuda_link(struct fgv_gpu *gpu, const struct fgv_gpu_link *what, void **image,
		       size_t *len);
CUresult fgv_cuda_tensor_map(struct fgv_gpu *gpu, const struct fgv_tensor_shape *shape,
			     CUtensorMap *map);
CUresult fgv_cuda_tensor_map_replace(struct fgv_gpu *gpu, CUtensorMap *map, uint64_t address);
CUresult fgv_cuda_peer_attribute(struct fgv_gpu *gpu, struct fgv_gpu *peer,
				 CUdevice_P2PAttribute attribute, int *value);
CUresult fgv_cuda_peer_enable(struct fgv_gpu *gpu, struct fgv_gpu *peer);
CUresult fgv_cuda_peer_disable(struct fgv_gpu *gpu, struct fgv_gpu *peer);
CUresult fgv_cuda_host_atomics(struct fgv_gpu *gpu, CUatomicOperation operation,
			       unsigned *capabilities);

#endif
