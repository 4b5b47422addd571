/*
 * The soft GPU: a CUDA device made of processor time. It runs PTX, and behaves
 * as a GPU does: calls that queue work return at once, streams and events order
 * it, memory is limited and bounds-checked, a fault in a kernel is sticky. The
 * processes that opened a device have it in turns, first come first served:
 * kernels of one run at a time, side by side where they fit.
 *
 * Codes: functions return CUDA driver codes (CUresult); CUDA_SUCCESS is 0. Once
 * a kernel has faulted, every function that touches the device returns that
 * fault's code (CUDA_ERROR_ILLEGAL_ADDRESS, ...) until the process ends.
 *
 * Threads: one thread of the process calls these functions (the dispatcher).
 * The soft GPU has threads of its own: executors, which take queued commands in
 * order, and workers, which share the blocks of kernels with them. Submission
 * order is a correct order for all streams, since an event can be waited for
 * only after it was recorded; so any number of streams may share a queue.
 */
#ifndef FGV_SOFTGPU_H
#define FGV_SOFTGPU_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/seat.h"

struct softgpu;
struct softgpu_module;
struct softgpu_function;
struct softgpu_stream;
struct softgpu_event;
struct softgpu_array;
struct softgpu_chunk; /* memory without an address */

struct softgpu_config {
	int ordinal;	       /* device number, shown in the name and the PCI id */
	uint64_t va_base;      /* device addresses start here, the same in every process */
	uint64_t memory_bytes; /* device memory; addresses are in [va_base, va_base + this) */
	uint64_t va_bytes;     /* behind those, up to va_base + this, there is room to map; or 0 */
	unsigned workers;      /* threads that run blocks, 0: one per available processor */
	uint64_t room_bytes;   /* that blocks may run in at once, 0: as many as are usual */
	struct softgpu_engine engine; /* stays the caller's */
	uint64_t long_kernel_ns;      /* one that runs for longer is logged, once; 0: 10 s */
};

CUresult softgpu_create(const struct softgpu_config *config, struct softgpu **gpu);
void softgpu_destroy(struct softgpu *gpu);

/*
 * Kernels that begin from now on run on the multiprocessors of @set alone, of the lowest 64; 0: on
 * all. Those that the device does not have are left out.
 */
void softgpu_set_units(struct softgpu *gpu, uint64_t set);

/*
 * Kernels and copies of @gpu reach the memory of @peer, another one of this process, from now on;
 * and no more. Numbers of devices (config.ordinal) are less than SOFTGPU_PEERS and differ.
 * CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
 * CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: it is the same one, or has such a number.
 *
 * What is freed at @peer waits for the kernels and copies of @gpu that have begun before. Copies
 * that have not begun then, and whose memory is gone when they do, are a fault.
 */
#define SOFTGPU_PEERS 16
CUresult softgpu_peer_enable(struct softgpu *gpu, struct softgpu *peer);
CUresult softgpu_peer_disable(struct softgpu *gpu, struct softgpu *peer);

/*
 * Before one of several that reach each other is destroyed: all of them are told to stop, then each
 * is waited for, and does nothing any more.
 */
void softgpu_stop(struct softgpu *gpu);
void softgpu_halt(struct softgpu *gpu);

const char *softgpu_name(const struct softgpu *gpu);
/* CUDA_ERROR_INVALID_VALUE for an attribute that the soft GPU does not know. */
CUresult softgpu_attribute(const struct softgpu *gpu, CUdevice_attribute attribute, int *value);

/*
 * Addresses are aligned to SOFTGPU_GRANULE bytes and zero is never one. An allocation takes
 * whole ones of these and no more.
 */
#define SOFTGPU_GRANULE 512u
CUresult softgpu_mem_alloc(struct softgpu *gpu, uint64_t bytes, uint64_t *address);
/* Waits for nothing: the memory goes once the work queued before it is done. */
CUresult softgpu_mem_free(struct softgpu *gpu, uint64_t address);
/* Lets kernels and copies use [base, base + bytes) of this process (pinned memory). */
CUresult softgpu_host_register(struct softgpu *gpu, void *base, size_t bytes);
/*
 * Before memory is taken back that work may still use: nothing new may name it, and what is queued
 * from now on does not find it. Then softgpu_host_unregister() comes as softgpu_unmap() does.
 */
CUresult softgpu_host_retire(struct softgpu *gpu, void *base);
/*
 * No work uses it any more; after a fault, when blocks of that kernel may still run, this waits
 * for their next turn, in which they stop. So the memory may go afterwards.
 */
CUresult softgpu_host_unregister(struct softgpu *gpu, void *base);

/*
 * Memory and addresses apart: chunks of memory, which are zero, and their parts mapped at addresses
 * that are reserved. Sizes, offsets and addresses are multiples of SOFTGPU_CHUNK_GRANULE; that all
 * lies where it should is the caller's affair.
 *
 * Kernels and copies see a mapping from softgpu_show() on until it is retired, and retiring is
 * queued as a free is: nothing new may name the addresses from then on. softgpu_unmap() comes once that command is done, or is due, as after a
 * fault: otherwise it would wait for all that was queued before.
 */
#define SOFTGPU_CHUNK_GRANULE (2ull << 20)
CUresult softgpu_reserve(struct softgpu *gpu, uint64_t bytes, uint64_t alignment, uint64_t hint,
			 uint64_t *address);
void softgpu_unreserve(struct softgpu *gpu, uint64_t address);
CUresult softgpu_chunk_create(struct softgpu *gpu, uint64_t bytes, struct softgpu_chunk **chunk);
/*
 * One that other processes may have, too, by its file, which stays its own; and one of another
 * process. CUDA_ERROR_INVALID_VALUE: that is no such file.
 */
CUresult softgpu_chunk_create_file(struct softgpu *gpu, uint64_t bytes,
				   struct softgpu_chunk **chunk);
CUresult softgpu_chunk_import(struct softgpu *gpu, int fd, uint64_t bytes,
			      struct softgpu_chunk **chunk);
int softgpu_chunk_file(struct softgpu_chunk *chunk);
/* What is mapped of it stays. */
void softgpu_chunk_destroy(struct softgpu *gpu, struct softgpu_chunk *chunk);
CUresult softgpu_map(struct softgpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
		     struct softgpu_chunk *chunk);
/*
 * @gpu sees what another device of this process has mapped there, which stays mapped meanwhile. It
 * is retired and unmapped, here alone, as a mapping is.
 */
CUresult softgpu_view(struct softgpu *gpu, uint64_t address, uint64_t bytes);
/* All mappings from @address on for @bytes. */
CUresult softgpu_show(struct softgpu *gpu, uint64_t address, uint64_t bytes);
CUresult softgpu_retire(struct softgpu *gpu, uint64_t address);
void softgpu_unmap(struct softgpu *gpu, uint64_t address);

/*
 * A module from the text of @count PTX images (linked as one program where there
 * are several; each NUL-terminated, copied). On CUDA_ERROR_INVALID_PTX and
 * CUDA_ERROR_UNSUPPORTED_PTX_VERSION, @log says what and in which line; an
 * instruction that the soft GPU lacks is named there. CUDA_ERROR_OUT_OF_MEMORY: or it takes more
 * host memory than a text of its length, or than all modules together, may; @log says so.
 */
CUresult softgpu_module_load(struct softgpu *gpu, const char *const *ptx, size_t count, char *log,
			     size_t log_len, struct softgpu_module **module);
void softgpu_module_unload(struct softgpu *gpu, struct softgpu_module *module);
/* Device memory that its variables take. */
uint64_t softgpu_module_bytes(const struct softgpu_module *module);
/* CUDA_ERROR_NOT_FOUND where the module has no such kernel or variable. */
CUresult softgpu_module_function(struct softgpu_module *module, const char *name,
				 struct softgpu_function **function);
CUresult softgpu_module_global(struct softgpu_module *module, const char *name, uint64_t *address,
			       size_t *bytes);
/* Calls @each with the names of all kernels. */
void softgpu_module_kernels(const struct softgpu_module *module,
			    void (*each)(const char *name, void *arg), void *arg);

struct softgpu_function_info {
	unsigned param_count;
	const uint32_t *param_sizes;   /* bytes each; lives as long as the module */
	const uint32_t *param_offsets; /* where each lies among the parameters; the same */
	int attributes[CU_FUNC_ATTRIBUTE_MAX];
};
const struct softgpu_function_info *softgpu_function_info(const struct softgpu_function *function);

/*
 * Streams run beside each other as far as the device's queues do. One copies from host memory to
 * the device, one copies back; the others compute, and a stream has the one of them that the fewest
 * others have. Each does one thing at a time, in the order of submission. What copies within the
 * device, and copies of small data that were kept, belong to computing.
 *
 * Kernels that run side by side share the multiprocessors: a kernel begins as soon as one of them
 * is free, and gets more as long as there are blocks for them.
 *
 * NULL as a stream is the legacy default stream, which waits for streams that are @is_blocking, and
 * they for it.
 */
CUresult softgpu_stream_create(struct softgpu *gpu, bool is_blocking,
			       struct softgpu_stream **stream);
CUresult softgpu_stream_destroy(struct softgpu *gpu, struct softgpu_stream *stream);
/* CUDA_SUCCESS: all that was queued is done; CUDA_ERROR_NOT_READY: not yet. */
CUresult softgpu_stream_query(struct softgpu *gpu, struct softgpu_stream *stream);

/* CUDA_SUCCESS, or the fault that the device has had. */
CUresult softgpu_fault(const struct softgpu *gpu);

/* A point in the work, as the number of a command of each queue. */
#define SOFTGPU_QUEUES 10

struct softgpu_point {
	uint64_t numbers[SOFTGPU_QUEUES];
};

/* What is queued now: in @stream, in all, and all but copies between host and device. */
struct softgpu_point softgpu_point_of(const struct softgpu *gpu,
				      const struct softgpu_stream *stream);
struct softgpu_point softgpu_point_of_all(const struct softgpu *gpu);
struct softgpu_point softgpu_point_of_computing(const struct softgpu *gpu);
/* Whether it is done: as softgpu_stream_query(). And the same for all that was ever queued. */
CUresult softgpu_point_query(const struct softgpu *gpu, const struct softgpu_point *point);
CUresult softgpu_query(const struct softgpu *gpu);

CUresult softgpu_event_create(struct softgpu *gpu, struct softgpu_event **event);
void softgpu_event_destroy(struct softgpu *gpu, struct softgpu_event *event);
CUresult softgpu_event_record(struct softgpu *gpu, struct softgpu_event *event,
			      struct softgpu_stream *stream);
CUresult softgpu_event_query(struct softgpu *gpu, struct softgpu_event *event);
CUresult softgpu_event_elapsed(struct softgpu *gpu, struct softgpu_event *start,
			       struct softgpu_event *end, float *ms);
CUresult softgpu_stream_wait_event(struct softgpu *gpu, struct softgpu_stream *stream,
				   struct softgpu_event *event);

/*
 * Queues a kernel. @args: one pointer per parameter, as for cuLaunchKernel; the
 * values are copied before return. Checks grid, block and shared memory against
 * the device's and the function's limits.
 */
CUresult softgpu_launch(struct softgpu *gpu, struct softgpu_function *function,
			const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			struct softgpu_stream *stream, void *const *args);

/*
 * The same for a kernel whose blocks may wait for each other: they take turns.
 * CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE for more blocks than the device has room for.
 */
CUresult softgpu_launch_cooperative(struct softgpu *gpu, struct softgpu_function *function,
				    const uint32_t grid[3], const uint32_t block[3],
				    uint32_t shared_bytes, struct softgpu_stream *stream,
				    void *const *args);

/*
 * Queues a copy or a fill. The engine is not needed for these. Device addresses
 * are checked when queued (CUDA_ERROR_INVALID_VALUE where they are not inside one
 * allocation or registered range); host memory must stay until it is done.
 */
CUresult softgpu_copy_htod(struct softgpu *gpu, uint64_t dst, const void *src, size_t bytes,
			   struct softgpu_stream *stream);
/* The same for small data: @src is copied before return and may go at once. */
CUresult softgpu_copy_htod_inline(struct softgpu *gpu, uint64_t dst, const void *src, size_t bytes,
				  struct softgpu_stream *stream);
CUresult softgpu_copy_dtoh(struct softgpu *gpu, void *dst, uint64_t src, size_t bytes,
			   struct softgpu_stream *stream);
/* Of which one may be a peer's. */
CUresult softgpu_copy_dtod(struct softgpu *gpu, uint64_t dst, uint64_t src, size_t bytes,
			   struct softgpu_stream *stream);
/* @rows rows of @row_elements elements of @width (1, 2 or 4) bytes, @pitch bytes apart. */
CUresult softgpu_fill(struct softgpu *gpu, uint64_t dst, size_t pitch, uint32_t value,
		      unsigned width, size_t row_elements, size_t rows,
		      struct softgpu_stream *stream);

/*
 * Conditions, numbers that kernels set (cudaGraphSetConditional()), and what is done as they say.
 * What is queued between the begin and the end of a choice is one of its bodies', which
 * softgpu_choice_body() says, at first body 0: kernels, copies, fills and choices. After the end
 * they are run as often as the condition says, CUgraphConditionalNodeType, in the order of the
 * stream. CUDA_ERROR_INVALID_VALUE: there is no such condition.
 */
CUresult softgpu_condition_create(struct softgpu *gpu, uint64_t *condition);
/* Waits for nothing: it goes after the work queued before. No choice that is begun has it. */
void softgpu_condition_destroy(struct softgpu *gpu, uint64_t condition);
/* Queued. */
CUresult softgpu_condition_set(struct softgpu *gpu, uint64_t condition, uint32_t value,
			       struct softgpu_stream *stream);
CUresult softgpu_choice_begin(struct softgpu *gpu, uint64_t condition,
			      CUgraphConditionalNodeType type, unsigned bodies);
void softgpu_choice_body(struct softgpu *gpu, unsigned body);
CUresult softgpu_choice_end(struct softgpu *gpu, struct softgpu_stream *stream);

/*
 * What kernels have printed, on standard output (0) or with assertions on standard error (1),
 * since it was last taken: up to @room bytes of it, and how many. It is there when the kernel is
 * done.
 */
bool softgpu_has_text(const struct softgpu *gpu);
size_t softgpu_take_text(struct softgpu *gpu, unsigned stream, char *text, size_t room);

/*
 * CUDA_ERROR_UNSUPPORTED_LIMIT: the soft GPU has none of this. CUDA_ERROR_INVALID_VALUE: it is
 * too late, or too much.
 */
CUresult softgpu_limit_get(struct softgpu *gpu, CUlimit limit, size_t *value);
CUresult softgpu_limit_set(struct softgpu *gpu, CUlimit limit, size_t value);

/*
 * Arrays in the driver's terms. @levels: 0, or how many an array with mipmap levels has,
 * which are arrays as well and live as long as it. Destroying waits for nothing.
 */
CUresult softgpu_array_create(struct softgpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			      unsigned levels, struct softgpu_array **array);
CUresult softgpu_array_destroy(struct softgpu *gpu, struct softgpu_array *array);
CUresult softgpu_array_level(struct softgpu_array *array, unsigned level,
			     struct softgpu_array **part);
/* Device memory that it takes, with its levels. */
uint64_t softgpu_array_bytes(const struct softgpu_array *array);

/*
 * Objects by which kernels read textures and reach surfaces; arrays by the driver's names for
 * them. @view: of what part of an array, read as what; NULL: all of it. Destroying waits for
 * nothing, and takes what was created.
 */
CUresult softgpu_texture_create(struct softgpu *gpu, const CUDA_RESOURCE_DESC *resource,
				const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
				uint64_t *object);
CUresult softgpu_surface_create(struct softgpu *gpu, struct softgpu_array *array, uint64_t *object);
CUresult softgpu_texture_destroy(struct softgpu *gpu, uint64_t object);

/*
 * Queues the copy of a box between arrays (struct softgpu_array, by the name of CUarray), device
 * memory and host memory, which stays until it is done; with @keep, a source in the host's
 * memory is copied before return.
 */
CUresult softgpu_copy_box(struct softgpu *gpu, const CUDA_MEMCPY3D *box, int keep,
			  struct softgpu_stream *stream);

/*
 * A descriptor that becomes readable (an eventfd) when some command completes
 * after softgpu_arm(). A waiter arms, queries once more, and sleeps on it; one
 * that does not sleep pays nothing.
 */
int softgpu_completion_fd(const struct softgpu *gpu);
void softgpu_arm(struct softgpu *gpu);

#endif
