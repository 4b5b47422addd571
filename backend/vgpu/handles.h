/*
 * The objects of a session, and the handles by which the guest names them. A handle
 * is an index and a generation, never a pointer: whatever number the guest sends names
 * either a living object of the right kind or nothing. 0 is never a handle. Some streams and events
 * have handles of the guest's own, with FGV_OWN_BIT, which no other handle has.
 *
 * An object lives as long as it has references: the table's, until its handle is
 * removed, and one of each wait that needs it. Putting the last one destroys what the
 * object stands for.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_HANDLES_H
#define FGV_VGPU_HANDLES_H

#include <stdbool.h>
#include "api/host.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/engine.h"
#include "backend/vgpu/quota.h"

/* Of one session at a time. */
#define FGV_MODULES_MAX	  4096
#define FGV_FUNCTIONS_MAX 65536
#define FGV_STREAMS_MAX	  4096
#define FGV_EVENTS_MAX	  65536
#define FGV_ARRAYS_MAX	  65536
#define FGV_TEXTURES_MAX  65536
#define FGV_GRAPHS_MAX	  16384
#define FGV_MEMORIES_MAX  131072

struct fgv_image;
struct fgv_sliced;

struct fgv_object {
	enum fgv_kind kind;
	uint32_t handle; /* 0 once it is removed */
	uint32_t refs;
	struct fgv_charge charge; /* what it takes of the GPU's memory */
	union {
		struct {
			struct fgv_gpu_module *gpu;
			struct fgv_object *functions; /* that were asked for */
			uint64_t image_bytes;
			uint64_t content; /* fgv_kernels_image(); 0: it is not wanted */
			struct fgv_image *image; /* to slice kernels of; NULL: it is not kept */
		} module;
		struct {
			struct fgv_gpu_function *gpu;
			struct fgv_object *module;
			struct fgv_object *next; /* of the same module */
			uint64_t content;	 /* fgv_kernels_name() */
			uint32_t param_count;
			uint32_t args_len;    /* of all parameters, each padded to 8 */
			uint32_t local_bytes; /* of each thread */
			uint32_t *param_sizes;
			struct fgv_sliced *sliced; /* NULL: it never runs in parts */
		} function;
		struct fgv_gpu_stream *stream;
		struct fgv_gpu_event *event;
		struct {
			struct fgv_gpu_array *gpu;
			struct fgv_object *levels; /* that were asked for; of one, the next */
			uint32_t levels_count;	   /* 0: not mipmapped */
			bool is_part;		   /* a level of another */
		} array;
		struct {
			uint64_t number; /* what kernels get */
			bool is_surface;
		} texture;
		struct fgv_graph *graph;
		struct {
			struct fgv_gpu_memory *gpu;
			uint64_t bytes;
			bool is_shared; /* by @key, and charged where that is kept */
			struct fgv_key key;
		} memory;
	};
	bool is_own;	  /* its handle is the guest's own */
	bool is_blocking; /* a stream that waits for the legacy one */
	bool is_urgent;	  /* a stream with a priority of its own */
	uint64_t ends_ns; /* of a stream, its work; of an event, what it was recorded behind
			     (overlap.h) */
	/* Of a stream, its last work; of an event, what it was recorded behind (engines.h). */
	struct fgv_place place;
	enum fgv_engine engine; /* of a stream, that of its last work */
	/* Marks of stall.h, on streams, events and graphs; on events alone. */
	uint64_t stalled;
	uint64_t awaited;
};

struct fgv_handle_slot {
	struct fgv_object *object; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

/* Free slots are used again in the order in which they became free. */
struct fgv_handle_table {
	struct fgv_handle_slot *slots;
	uint32_t count, capacity, limit;
	uint32_t free_head, free_tail;
};

/* Those with handles of the guest's own, by their indices. */
struct fgv_own_table {
	struct fgv_object **objects;
	uint32_t capacity, limit;
};

struct fgv_handles {
	struct fgv_handle_table tables[FGV_KINDS];
	struct fgv_own_table own[FGV_KINDS];
};

void fgv_handles_init(struct fgv_handles *handles);
/* Frees the tables; the objects are the caller's (fgv_handles_next()). */
void fgv_handles_fini(struct fgv_handles *handles);

/*
 * A new object with a handle and one reference, the table's; zero otherwise. NULL: the
 * session has as many of this kind as it may, or there is no memory.
 */
struct fgv_object *fgv_handles_add(struct fgv_handles *handles, enum fgv_kind kind);

/*
 * The same with a handle of the guest's own, whatever that is: -EINVAL where it can't be one, or
 * names, but for its generation, an object that there is. -ENOMEM.
 */
int fgv_handles_add_own(struct fgv_handles *handles, enum fgv_kind kind, uint32_t handle,
			struct fgv_object **object);

/* The object that @handle names, or NULL. */
struct fgv_object *fgv_handles_find(const struct fgv_handles *handles, enum fgv_kind kind,
				    uint32_t handle);

/* From now on @object's handle names nothing. The table's reference is the caller's to put. */
void fgv_handles_remove(struct fgv_handles *handles, struct fgv_object *object);

/*
 * The next object of @kind, or NULL: *@at starts as 0 and is moved on. The one that was
 * given may be removed.
 */
struct fgv_object *fgv_handles_next(const struct fgv_handles *handles, enum fgv_kind kind,
				    uint32_t *at);

static inline void fgv_object_get(struct fgv_object *object)
{
	object->refs++;
}

/* True if that was the last reference: destroy what it stands for, then free() it. */
static inline bool fgv_object_put(struct fgv_object *object)
{
	return --object->refs == 0;
}

#endif
