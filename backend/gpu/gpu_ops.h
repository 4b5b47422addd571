/*
 * The GPU as a table of operations. Two implementations: fgv_gpu_cuda (NVIDIA's
 * driver, by dlopen, so that one binary starts on any machine) and fgv_gpu_soft (the
 * soft GPU). To add an operation, add a row here and in both.
 *
 * Threads: the dispatcher of the GPU's part of a session, and no other (use() hands it over).
 * Nothing here waits for the GPU: what takes time is queued, and fences say when it is done.
 *
 * Codes are CUDA driver codes. A fault of the GPU is sticky: after it every
 * operation returns its code. Addresses come from the guest, unchecked; the
 * implementation lets the GPU check them. Handles are the implementation's own.
 */
#ifndef FGV_BACKEND_GPU_OPS_H
#define FGV_BACKEND_GPU_OPS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "api/wire.h"
#include "softgpu/ledger.h"
#include "softgpu/seat.h"

struct fgv_gpu_stream; /* NULL: the legacy default stream */
struct fgv_gpu_event;
struct fgv_gpu_array; /* also one with mipmap levels, and a level of one */
struct fgv_gpu_module;
struct fgv_gpu_function;
struct fgv_gpu_fence;
struct fgv_gpu_graph;  /* ready to be launched */
struct fgv_gpu_home;   /* of conditions, which graphs choose by */
struct fgv_gpu_memory; /* without an address */
struct fgv_units;

/* Which device, and how it is opened. */
struct fgv_gpu_config {
	int ordinal;
	/* The soft GPU's. */
	uint64_t soft_memory_bytes;
	struct softgpu_engine soft_engine;
	struct softgpu_purse soft_purse;
	bool soft_is_divided; /* it has FGV_SOFT_UNITS multiprocessors, and others run beside it */
	/* Where open() says why it fails, if it knows more than the code; may be NULL. */
	char *why;
	size_t why_len;
};

/* A managed variable of a module, in memory that the program, the GPU and this process share. */
struct fgv_gpu_placed {
	const char *name;
	void *memory;
	uint64_t bytes;
};

/* The kernel that is to run in parts. */
struct fgv_gpu_slicing {
	struct fgv_gpu_module *module;
	struct fgv_gpu_function *function; /* @name of it */
	const char *name;
	const void *image; /* that it was loaded from */
	size_t len;
};

/* Gets one variable of several. */
typedef void fgv_gpu_each_managed(const char *name, uint64_t bytes, void *arg);

/* What is to be linked. Names and text have a NUL behind them. */
struct fgv_gpu_link_input {
	CUjitInputType type;
	const char *name;
	const void *data;
	size_t len;
};

struct fgv_gpu_link {
	const struct fgv_gpu_link_input *inputs;
	size_t inputs_count;
	const CUjit_option *options; /* whose values are numbers */
	const uint32_t *values;
	size_t options_count; /* FGV_LINK_OPTIONS_MAX at most */
	char *errors, *info;  /* what there is to say, log_len bytes each */
	size_t log_len;
};

/* How a launch groups its blocks. */
struct fgv_gpu_clusters {
	uint32_t size[3]; /* in blocks; 0: as the kernel says */
	bool cooperative; /* all run at once */
	bool any_size;	  /* also more blocks than every GPU has room for */
	CUclusterSchedulingPolicy policy;
};

/* What a node of a graph does. */
enum fgv_gpu_node_kind {
	FGV_GPU_NODE_NOTHING,
	FGV_GPU_NODE_KERNEL,
	FGV_GPU_NODE_COPY,
	FGV_GPU_NODE_FILL,
	FGV_GPU_NODE_CHOICE, /* does those of its bodies that a condition says */
	FGV_GPU_NODE_RECORD, /* of an event, behind what the node waits for; in no body */
	FGV_GPU_NODE_WAIT,   /* for an event, as it was last recorded before the launch; the same */
};

struct fgv_gpu_node {
	enum fgv_gpu_node_kind kind;
	bool is_disabled; /* it keeps its place and does nothing */
	uint32_t before_count;
	const uint32_t
		*before; /* numbers of the nodes that it waits for, all smaller than its own */
	uint32_t inside; /* number + 1 of the choice that it is in, smaller than its own; 0: none */
	uint32_t body;	 /* which of that one's bodies */
	union {
		struct {
			struct fgv_gpu_function *function;
			uint32_t grid[3], block[3], shared_bytes;
			bool in_clusters; /* @how says more than whether it is cooperative */
			struct fgv_gpu_clusters how;
			int priority; /* where it has one of its own, whatever stream is used */
			bool has_priority;
			void **params;
		} kernel;
		CUDA_MEMCPY3D copy; /* @srcDevice and @dstDevice are device memory */
		struct {
			uint64_t address;
			size_t pitch; /* where there are rows */
			uint32_t value;
			unsigned width; /* of an element, 1, 2 or 4 bytes */
			size_t count, rows;
		} fill;
		struct {
			uint64_t condition; /* as home_condition() told it, unchecked */
			CUgraphConditionalNodeType type;
			uint32_t bodies; /* as many as there can be of that type */
		} choice;
		struct fgv_gpu_event *event; /* that is recorded or waited for */
	};
};

/* What things take of the device's memory, in bytes, where that does not depend on more. */
struct fgv_gpu_costs {
	uint64_t granule; /* memory is taken in blocks of so much, on such a boundary */
	uint64_t stream;
	uint64_t event;
	uint64_t texture;
	uint64_t graph;
	uint64_t graph_node; /* of each of its nodes, but for a kernel's arguments */
	uint64_t threads;    /* at most at once; each of them has its local memory */
};

/* What a module takes of it. */
struct fgv_gpu_module_cost {
	uint64_t data; /* variables: the GPU zeroes or copies them when the module is loaded */
	uint64_t code; /* and constants */
};

/* A device that this process has opened; each implementation's struct begins with it. */
struct fgv_gpu {
	const struct fgv_gpu_ops *ops;
	/*
	 * Frees that were put off until the GPU is idle: what they will give back, and the time
	 * that they took in the end, which is the caller's to clear.
	 */
	uint64_t late_bytes;
	uint64_t late_ns;
	/* The caller's to set: what is queued now is a copy that an engine for copies does. */
	bool copies;
	/* The same: memory that is made from now on can be exported. */
	bool exports;
};

struct fgv_gpu_ops {
	const char *name; /* "cuda", "soft" */

	/*
	 * How many devices there are. 0 and a reason in @why where the driver is missing
	 * or finds none. The CUDA driver starts threads and does not survive fork(), so
	 * a process that lives on and forks calls this in a child of its own.
	 */
	int (*count)(char *why, size_t why_len);

	/* Where device @ordinal is on the PCI bus, "" if that can't be told. As count(). */
	void (*place)(int ordinal, char *place, size_t len);

	/* How its multiprocessors can be divided. As count(). */
	void (*divide)(int ordinal, struct fgv_units *units);

	/* Bits of the devices below @count whose memory device @ordinal can reach. As count(). */
	uint32_t (*peers)(int ordinal, int count);

	CUresult (*open)(const struct fgv_gpu_config *config, struct fgv_gpu **gpu);
	void (*close)(struct fgv_gpu *gpu);
	/*
	 * From now on the calling thread is the one that uses @gpu, and none that it used before.
	 * Whoever has opened a GPU uses it.
	 */
	CUresult (*use)(struct fgv_gpu *gpu);
	/*
	 * Before one of several GPUs of a process is closed: all are told to stop, then each is
	 * waited for, and does nothing any more but to be closed.
	 */
	void (*halt)(struct fgv_gpu *gpu, bool waits);
	/*
	 * What @gpu can do with the memory of @peer, another GPU of this process and of the same
	 * kind; and whether its kernels and copies reach it, as of cuCtxEnablePeerAccess().
	 */
	CUresult (*peer_attribute)(struct fgv_gpu *gpu, struct fgv_gpu *peer,
				   CUdevice_P2PAttribute attribute, int *value);
	CUresult (*peer_enable)(struct fgv_gpu *gpu, struct fgv_gpu *peer);
	CUresult (*peer_disable)(struct fgv_gpu *gpu, struct fgv_gpu *peer);
	/*
	 * From now on kernels run on the multiprocessors of @set alone, units of divide(). Nothing
	 * computes meanwhile; where these do not lend (struct fgv_units), once at most, and before
	 * anything else is asked.
	 */
	CUresult (*set_units)(struct fgv_gpu *gpu, uint64_t set);
	/* Fills all but `devices`; memory_bytes is the device's. */
	CUresult (*info)(struct fgv_gpu *gpu, struct fgv_device_info *info);

	CUresult (*mem_alloc)(struct fgv_gpu *gpu, uint64_t bytes, uint64_t *address);
	/*
	 * Waits for nothing: the memory goes after the work queued before. @bytes as allocated;
	 * @charged: what it counts for in late_bytes until then.
	 */
	CUresult (*mem_free)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
			     uint64_t charged);
	/* What was freed, destroyed or unloaded and is still there, goes now. May wait for work. */
	void (*reclaim)(struct fgv_gpu *gpu);
	CUresult (*mem_info)(struct fgv_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes);
	void (*costs)(struct fgv_gpu *gpu, struct fgv_gpu_costs *costs);
	/*
	 * Memory and addresses apart. All sizes and addresses are multiples of the granularity;
	 * what is mapped lies in one reservation, where nothing else is mapped, and whoever unmaps,
	 * frees and releases names what was mapped, reserved and made, when nothing needs it.
	 */
	CUresult (*memory_granularity)(struct fgv_gpu *gpu, CUmemAllocationGranularity_flags option,
				       size_t *bytes);
	/* @alignment: a power of two, or 0 for the usual; @hint: where it would be welcome, or 0.
	 */
	CUresult (*address_reserve)(struct fgv_gpu *gpu, uint64_t bytes, uint64_t alignment,
				    uint64_t hint, uint64_t *address);
	CUresult (*address_free)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
	/* All bytes are zero. */
	CUresult (*memory_create)(struct fgv_gpu *gpu, uint64_t bytes,
				  struct fgv_gpu_memory **memory);
	CUresult (*memory_release)(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory);
	/*
	 * A descriptor of it, by which another process's device of the same kind and place gets the
	 * same memory; it stays until the last process has released it, and no descriptor is open.
	 * @fd stays the caller's. CUDA_ERROR_INVALID_VALUE: it is no memory of @bytes, as far as
	 * that can be told.
	 */
	CUresult (*memory_export)(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory, int *fd);
	CUresult (*memory_import)(struct fgv_gpu *gpu, int fd, uint64_t bytes,
				  struct fgv_gpu_memory **memory);
	/* Nothing may use it there until memory_access() says so. */
	CUresult (*memory_map)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
			       uint64_t offset, struct fgv_gpu_memory *memory);
	CUresult (*memory_access)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
				  CUmemAccess_flags flags);
	/*
	 * Access to what another GPU of the process has mapped, which stays so meanwhile:
	 * memory_access() for one whole mapping, the first time.
	 */
	CUresult (*memory_view)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
				CUmemAccess_flags flags);
	/*
	 * Unmapping, or giving up such access, in two steps: the first is queued behind all work
	 * that there is, and may be NULL; the second comes once a fence behind that has passed, or
	 * the GPU has failed.
	 */
	CUresult (*memory_retire)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
	CUresult (*memory_unmap)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);
	CUresult (*memory_unview)(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes);

	/*
	 * Makes memory of this process fit for copies that are truly asynchronous, and lets
	 * kernels use it at its own address. Before it is taken back no work may use it; what
	 * is queued after host_retire(), which may be NULL, does not find it any more.
	 */
	CUresult (*host_register)(struct fgv_gpu *gpu, void *base, size_t bytes);
	CUresult (*host_retire)(struct fgv_gpu *gpu, void *base);
	CUresult (*host_unregister)(struct fgv_gpu *gpu, void *base);
	/* What one GPU of the process has registered is registered with all of them. */
	bool registers_for_all;

	/* @src may change or go once this returns. At most FGV_DATA_MAX bytes. */
	CUresult (*copy_in)(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
			    struct fgv_gpu_stream *stream);
	/* @src and @dst stay until a fence after it has passed. */
	CUresult (*copy_in_bulk)(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
				 struct fgv_gpu_stream *stream);
	CUresult (*copy_out)(struct fgv_gpu *gpu, void *dst, uint64_t src, size_t bytes,
			     struct fgv_gpu_stream *stream);
	CUresult (*copy_device)(struct fgv_gpu *gpu, uint64_t dst, uint64_t src, size_t bytes,
				struct fgv_gpu_stream *stream);
	/* @count elements of @width (1, 2 or 4) bytes. */
	CUresult (*fill)(struct fgv_gpu *gpu, uint64_t dst, uint32_t value, unsigned width,
			 size_t count, struct fgv_gpu_stream *stream);
	/* The first @width bytes of @height rows, @pitch bytes apart; neither is 0. */
	CUresult (*fill_rows)(struct fgv_gpu *gpu, uint64_t dst, size_t pitch, uint8_t value,
			      size_t width, size_t height, struct fgv_gpu_stream *stream);

	/* 4 or 8 bytes, where @address is a multiple of that; @flags: CUstreamWriteValue_flags. */
	CUresult (*value_write)(struct fgv_gpu *gpu, uint64_t address, uint64_t value,
				unsigned width, unsigned flags, struct fgv_gpu_stream *stream);

	/*
	 * Copies a box between two of device memory, arrays (struct fgv_gpu_array, by the
	 * name of CUarray) and this process's memory. box_in: as copy_in, the source may
	 * change or go once this returns; else this process's memory stays until a fence
	 * has passed. No dimension is 0.
	 */
	CUresult (*box_in)(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			   struct fgv_gpu_stream *stream);
	CUresult (*copy_box)(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			     struct fgv_gpu_stream *stream);

	/* What array_create() would take, or more; *bytes was what its texels take. */
	CUresult (*array_cost)(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			       unsigned levels, uint64_t *bytes);
	/* @levels: 0, or how many mipmap levels it shall have at least one of. */
	CUresult (*array_create)(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
				 unsigned levels, struct fgv_gpu_array **array);
	/* Waits for nothing: it goes after the work queued before. As it was created. */
	CUresult (*array_destroy)(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned levels,
				  uint64_t bytes);
	/* A level of a mipmapped one, which it goes with. */
	CUresult (*array_level)(struct fgv_gpu *gpu, struct fgv_gpu_array *array, unsigned level,
				struct fgv_gpu_array **part);

	/*
	 * Objects of textures and surfaces: the numbers that kernels get. Arrays are struct
	 * fgv_gpu_array by the driver's names for them. @view: of what part of an array, read as
	 * what; NULL: all of it, as it is. Kernels that use one have ended
	 * when it is destroyed, or fault.
	 */
	CUresult (*texture_create)(struct fgv_gpu *gpu, const CUDA_RESOURCE_DESC *resource,
				   const CUDA_TEXTURE_DESC *how,
				   const CUDA_RESOURCE_VIEW_DESC *view, uint64_t *number);
	CUresult (*surface_create)(struct fgv_gpu *gpu, struct fgv_gpu_array *array,
				   uint64_t *number);
	CUresult (*texture_destroy)(struct fgv_gpu *gpu, uint64_t number, bool is_surface);
	/* How many texels of linear memory a texture of one dimension may have. */
	CUresult (*texture_linear_width)(struct fgv_gpu *gpu, CUarray_format format,
					 unsigned channels, size_t *texels);

	/*
	 * Tensor maps, which kernels are given by value: no object stands behind one. Of @shape the
	 * enumerations and the rank are such as there are; the rest is for the driver to judge.
	 */
	CUresult (*tensor_map)(struct fgv_gpu *gpu, const struct fgv_tensor_shape *shape,
			       CUtensorMap *map);
	CUresult (*tensor_map_replace)(struct fgv_gpu *gpu, CUtensorMap *map, uint64_t address);

	/*
	 * What loading @image, with @count variables @placed (see below), would take, or more.
	 * The device is not asked and takes nothing. Where that can't be told, @log says why.
	 */
	CUresult (*module_cost)(struct fgv_gpu *gpu, const void *image, size_t len,
				const struct fgv_gpu_placed *placed, size_t count, char *log,
				size_t log_len, struct fgv_gpu_module_cost *cost);
	/*
	 * @image: fat binary containers one after another, or PTX or machine code by itself;
	 * private memory of this process, with a NUL behind it.
	 * What the compiler has to say against it goes to @log.
	 */
	CUresult (*module_load)(struct fgv_gpu *gpu, const void *image, size_t len, char *log,
				size_t log_len, struct fgv_gpu_module **module);
	/*
	 * The same from the PTX of the image, with managed variables where @placed says, and
	 * their initial values there. CUDA_ERROR_NOT_SUPPORTED where it has machine code alone.
	 */
	CUresult (*module_load_placed)(struct fgv_gpu *gpu, const void *image, size_t len,
				       const struct fgv_gpu_placed *placed, size_t count, char *log,
				       size_t log_len, struct fgv_gpu_module **module);
	/*
	 * Links to a new image for module_load(), for free(). The device takes nothing. Where
	 * @links_late, what is wrong shows when that is loaded.
	 */
	CUresult (*link)(struct fgv_gpu *gpu, const struct fgv_gpu_link *what, void **image,
			 size_t *len);
	bool links_late;
	/* Calls @each with the managed variables that the PTX of the image has for this GPU. */
	CUresult (*module_managed)(struct fgv_gpu *gpu, const void *image, size_t len,
				   fgv_gpu_each_managed *each, void *arg, char *log,
				   size_t log_len);
	/*
	 * PTX, for module_load() and free(), of kernel @function of @module alone, whose launches
	 * do parts of its grid: they have one parameter more, a struct ptx_part (ptx/ptx.h).
	 * Variables are those of @module, which was loaded from @image and stays as long as what is
	 * made of the text. CUDA_ERROR_NOT_SUPPORTED, and why, where it can't be.
	 */
	CUresult (*module_slice)(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what,
				 char **text, char *why, size_t why_len);
	/*
	 * Waits for nothing: it goes after the work queued before. Its functions are gone at once.
	 * @bytes: what it takes.
	 */
	CUresult (*module_unload)(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				  uint64_t bytes);
	CUresult (*module_global)(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				  const char *name, uint64_t *address, uint64_t *bytes);
	CUresult (*module_function)(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				    const char *name, struct fgv_gpu_function **function);
	/* Calls @each with the names of all kernels. */
	CUresult (*module_kernels)(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				   void (*each)(const char *name, void *arg), void *arg);
	/*
	 * Where parameter @index lies in the GPU's parameters, and its size;
	 * CUDA_ERROR_INVALID_VALUE behind the last one.
	 */
	CUresult (*function_param)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				   unsigned index, uint32_t *offset, uint32_t *bytes);
	CUresult (*function_attribute)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				       CUfunction_attribute attribute, int *value);
	CUresult (*launch)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
			   const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			   struct fgv_gpu_stream *stream, void **params);
	/* All blocks run at once; CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE if they can't. */
	CUresult (*launch_cooperative)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				       const uint32_t grid[3], const uint32_t block[3],
				       uint32_t shared_bytes, struct fgv_gpu_stream *stream,
				       void **params);
	/* In clusters. NULL, here and below: the GPU has none. */
	CUresult (*launch_clusters)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				    const uint32_t grid[3], const uint32_t block[3],
				    uint32_t shared_bytes, struct fgv_gpu_stream *stream,
				    const struct fgv_gpu_clusters *how, void **params);
	/* How many clusters of such a launch run at once, and how many blocks one may have. */
	CUresult (*clusters_active)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				    const uint32_t grid[3], const uint32_t block[3],
				    uint32_t shared_bytes, const struct fgv_gpu_clusters *how,
				    int *count);
	CUresult (*clusters_largest)(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				     const uint32_t grid[3], const uint32_t block[3],
				     uint32_t shared_bytes, bool any_size, int *size);

	CUresult (*stream_create)(struct fgv_gpu *gpu, uint32_t flags, int32_t priority,
				  struct fgv_gpu_stream **stream);
	/* Its work is still done, and fences in it stay good. */
	CUresult (*stream_destroy)(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream);
	CUresult (*stream_query)(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream);
	CUresult (*stream_wait_event)(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
				      struct fgv_gpu_event *event);

	CUresult (*event_create)(struct fgv_gpu *gpu, uint32_t flags, struct fgv_gpu_event **event);
	CUresult (*event_destroy)(struct fgv_gpu *gpu, struct fgv_gpu_event *event);
	CUresult (*event_record)(struct fgv_gpu *gpu, struct fgv_gpu_event *event,
				 struct fgv_gpu_stream *stream);
	CUresult (*event_query)(struct fgv_gpu *gpu, struct fgv_gpu_event *event);
	CUresult (*event_elapsed)(struct fgv_gpu *gpu, struct fgv_gpu_event *start,
				  struct fgv_gpu_event *end, float *ms);

	/*
	 * A graph of @count nodes, to be launched as often as wanted: the launches are done one
	 * after another, in whatever streams. @nodes are the caller's, and stay where they are as
	 * long as the graph does.
	 */
	CUresult (*graph_create)(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes,
				 uint32_t count, struct fgv_gpu_graph **graph);
	/*
	 * The same with choices, by conditions of @home, in which there is no other graph. Each of
	 * them must be chosen by, once.
	 */
	CUresult (*graph_create_in)(struct fgv_gpu *gpu, struct fgv_gpu_home *home,
				    const struct fgv_gpu_node *nodes, uint32_t count,
				    struct fgv_gpu_graph **graph);
	CUresult (*home_create)(struct fgv_gpu *gpu, struct fgv_gpu_home **home);
	/* @flags: of CU_GRAPH_COND_ASSIGN_DEFAULT. *@condition: what kernels set it by. */
	CUresult (*home_condition)(struct fgv_gpu *gpu, struct fgv_gpu_home *home, uint32_t value,
				   uint32_t flags, uint64_t *condition);
	/* No graph is in it any more. */
	CUresult (*home_destroy)(struct fgv_gpu *gpu, struct fgv_gpu_home *home);
	/*
	 * Node @number has been changed in place, its edges excepted; what was launched is done as
	 * it was. Where the GPU can't follow, the graph is of no more use, and is made anew.
	 */
	CUresult (*graph_update)(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number);
	CUresult (*graph_launch)(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
				 struct fgv_gpu_stream *stream);
	/* Waits for nothing: what was launched is still done. */
	CUresult (*graph_destroy)(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph);

	/*
	 * A fence passes when what is queued now in a stream (or, with _all, in every
	 * stream) is done. With _computing only streams count in which there is more than what
	 * was queued while gpu->copies. fence_query: CUDA_SUCCESS passed, CUDA_ERROR_NOT_READY not
	 * yet, else the GPU's fault; after either end the fence is put. The answer is the
	 * driver's: nothing that the GPU can write for a guest's kernels decides it.
	 */
	CUresult (*fence)(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
			  struct fgv_gpu_fence **fence);
	CUresult (*fence_all)(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence);
	CUresult (*fence_computing)(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence);
	CUresult (*fence_query)(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence);
	void (*fence_put)(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence);

	/*
	 * Has what kernels printed come out of descriptors 1 and 2 of this process, at least
	 * that of kernels whose end was seen. What is over @room bytes is kept for the next
	 * time, if the GPU can keep it. False: surely nothing came.
	 */
	bool (*print)(struct fgv_gpu *gpu, const size_t room[2]);

	/* In which forms, CUatomicOperationCapability, the link to this machine's memory does it.
	 */
	CUresult (*host_atomics)(struct fgv_gpu *gpu, CUatomicOperation operation,
				 unsigned *capabilities);

	CUresult (*limit_get)(struct fgv_gpu *gpu, CUlimit limit, size_t *value);
	CUresult (*limit_set)(struct fgv_gpu *gpu, CUlimit limit, size_t value);

	/*
	 * A descriptor that becomes readable when work completes after arm(), to sleep on
	 * where nothing but the GPU is waited for; -1: the GPU can only be polled.
	 */
	int (*completion_fd)(struct fgv_gpu *gpu);
	void (*arm)(struct fgv_gpu *gpu);
};

/*
 * Whether kernels on CUDA device @ordinal reach all memory of the process that launched them
 * (HMM, ATS), and not only what was given to the GPU. Where fgv_gpu_cuda.count() has been called.
 */
bool fgv_cuda_reaches_host(int ordinal);

extern const struct fgv_gpu_ops fgv_gpu_cuda;
extern const struct fgv_gpu_ops fgv_gpu_soft;

#endif
