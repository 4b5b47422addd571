/*
 * Contexts: the primary one of each device, and those that programs create; which of them each
 * thread works in; and whether the driver has been initialized at all.
 *
 * A session has one context on the GPU, which all of these share: what one of them does
 * wrong ends them all, and memory of one can be used in another. The program sees them apart
 * nevertheless: each has its handle and id, its flags and settings, its storage, and an end.
 *
 * What the program holds is a number in the table of objects. So one that is destroyed is told from
 * one that never was: CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT. The primary
 * context keeps its handle while it is inactive, that is, while nobody retains it.
 *
 * Threads: any; a stack is the calling thread's. A context must not be destroyed while
 * another thread asks for it by its handle.
 */
#ifndef FGV_CUDA_CTX_H
#define FGV_CUDA_CTX_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "frontend/cuda/context/ctx_stack.h"
#include "frontend/cuda/context/ctx_storage.h"

struct fgv_ctx {
	CUcontext handle;
	uint64_t id; /* of the process's life, from 1 */
	CUdevice device;
	uint32_t api_version;
	bool is_primary;
	uint32_t active; /* atomic: it can be used */
	uint32_t flags;	 /* atomic: enum CUctx_flags */
	uint32_t cache;	 /* atomic: a CUfunc_cache */
	uint32_t banks;	 /* atomic: a CUsharedconfig */
	/* Those of ctx.c's mutex. */
	bool is_implied;      /* a face that knows no contexts has retained it */
	uint32_t uses;	      /* how often the primary is retained, another attached */
	struct fgv_ctx *next; /* of those that are destroyed */
	struct fgv_ctx_storage storage;
};

/* What contexts of the older interface say of themselves, and what those of the newer. */
#define FGV_CTX_API_OLD 3010
#define FGV_CTX_API	3020

/* Connects to the GPU. The first success is for good, but for the children of a fork. */
CUresult fgv_ctx_init(void);

/* CUDA_ERROR_NOT_INITIALIZED before fgv_ctx_init(), and in the child of a fork after it. */
CUresult fgv_ctx_status(void);

/* What @handle names, active or not; NULL: what the thread works in. 201, 709. */
CUresult fgv_ctx_find(CUcontext handle, struct fgv_ctx **context);

/* What the thread works in, if it can be used. 3, 201, 709. */
CUresult fgv_ctx_current(struct fgv_ctx **context);

/* Of the thread's stack (ctx_stack.h), where only what is checked comes. */
CUresult fgv_ctx_push(CUcontext handle);
CUresult fgv_ctx_pop(CUcontext *handle);
/* In the place of the top; NULL takes that away. */
CUresult fgv_ctx_set(CUcontext handle);

/*
 * For a face that knows no contexts: from now on, a thread that has none works in the primary one
 * as soon as it needs one, and that is retained for good. It is the core that calls
 * fgv_ctx_bind() then.
 */
void fgv_ctx_imply(void);
CUresult fgv_ctx_bind(void);
/* The same in the primary one of @device, whatever the thread works in. */
CUresult fgv_ctx_bind_to(CUdevice device);

/*
 * What gives back all that the process has on a GPU: called when the last of the contexts of
 * a device ends. For reset.c, which knows all of it, and lies above.
 */
void fgv_ctx_set_last_end(CUresult (*give_back)(uint32_t device));

/* A context of @device, which becomes the thread's. */
CUresult fgv_ctx_create(CUdevice device, unsigned flags, uint32_t api_version, CUcontext *handle);
/* Not the primary one. */
CUresult fgv_ctx_destroy(CUcontext handle);
/* One use more or less of the context; without any it is destroyed. */
CUresult fgv_ctx_attach(struct fgv_ctx *context);
CUresult fgv_ctx_detach(CUcontext handle);

/* Whether a context may have these flags. */
bool fgv_ctx_are_flags(unsigned flags);
CUresult fgv_ctx_set_flags(struct fgv_ctx *context, unsigned flags);

/* The primary context, active or not. @device is one of the session's. */
CUresult fgv_ctx_primary(CUdevice device, struct fgv_ctx **context);
CUresult fgv_ctx_retain(CUdevice device, CUcontext *handle);
CUresult fgv_ctx_release(CUdevice device);
CUresult fgv_ctx_reset(CUdevice device);

static inline bool fgv_ctx_is_active(const struct fgv_ctx *context)
{
	return __atomic_load_n(&context->active, __ATOMIC_ACQUIRE);
}

#endif
