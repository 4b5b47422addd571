/*
 * Streams, events and graphs as the program holds them. What it gets is not a pointer but a
 * number that no user-space address can be: a tag, the kind, an index and a
 * generation. So any value that it hands in, even one long destroyed, is found out
 * by looking into a table.
 *
 * Threads: any. Looking up takes no lock; creating and destroying do. Using an object
 * while another thread destroys it is the program's mistake, and gives the right or an
 * invalid handle.
 */
#ifndef FGV_CUDA_OBJECT_H
#define FGV_CUDA_OBJECT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fgv_object_kind {
	FGV_OBJECT_STREAM = 1,
	FGV_OBJECT_EVENT = 2,
	FGV_OBJECT_GRAPH = 3,
	FGV_OBJECT_NODE = 4,
	FGV_OBJECT_EXEC = 5,
	FGV_OBJECT_USER = 6,
	FGV_OBJECT_ARRAY = 8,
	FGV_OBJECT_MIPMAPPED = 9,
	FGV_OBJECT_CONTEXT = 10,
	FGV_OBJECT_LIBRARY = 14,
	FGV_OBJECT_LINK = 15,
};

struct fgv_object_info {
	uint32_t handle; /* the host's */
	uint32_t flags;	 /* as created */
	int32_t priority;
	uint32_t device; /* the ordinal of that on which the thread worked that made it */
	void *data;	 /* what else its kind keeps of it; whoever destroys it gets it back */
	/* What the thread that made it worked in (ctx.h); NULL: none, which is as the primary one.
	 */
	CUcontext context;
};

/* What the program shall hold for @info, which says neither device nor context; NULL: no memory. */
void *fgv_object_create(enum fgv_object_kind kind, const struct fgv_object_info *info);

/* False if @object is none of @kind. */
bool fgv_object_find(enum fgv_object_kind kind, const void *object, struct fgv_object_info *info);

/* Whether @object is, or once was, one of @kind. */
bool fgv_object_was(enum fgv_object_kind kind, const void *object);

/* As fgv_object_find(), and makes @object invalid; of several threads, one succeeds. */
bool fgv_object_destroy(enum fgv_object_kind kind, const void *object,
			struct fgv_object_info *info);

/* Destroys all of @kind, calling @each with what it was. */
void fgv_object_drain(enum fgv_object_kind kind, uint32_t device,
		      void (*each)(const struct fgv_object_info *info, void *arg), void *arg);

/* What lives in this process alone has its address in the place of handle and flags. */
static inline void *fgv_object_create_for(enum fgv_object_kind kind, const void *address)
{
	uint64_t v = (uint64_t)(uintptr_t)address;
	struct fgv_object_info info = {.handle = (uint32_t)v, .flags = (uint32_t)(v >> 32)};

	return fgv_object_create(kind, &info);
}

/* NULL if @object is none of @kind. */
static inline void *fgv_object_address(enum fgv_object_kind kind, const void *object)
{
	struct fgv_object_info info;

	if (!fgv_object_find(kind, object, &info))
		return NULL;
	return (void *)(uintptr_t)((uint64_t)info.flags << 32 | info.handle);
}

#endif
