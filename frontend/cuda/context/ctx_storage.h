/*
 * What libraries keep in a context, each under a key of its own, until the context ends:
 * every embedded copy of the CUDA runtime keeps its state there.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_CTX_STORAGE_H
#define FGV_CUDA_CTX_STORAGE_H

#include <cuda.h>

struct fgv_ctx_storage_entry;

/* Of one context; zeroed at first. */
struct fgv_ctx_storage {
	struct fgv_ctx_storage_entry *first;
};

/* Called once when the context ends, without locks. */
typedef void (*fgv_ctx_storage_end)(CUcontext context, void *key, void *value);

/* In the place of what is there under @key. @end may be NULL. */
CUresult fgv_ctx_storage_put(struct fgv_ctx_storage *storage, void *key, void *value,
			     fgv_ctx_storage_end end);
/* CUDA_ERROR_INVALID_HANDLE: nothing is there. Its end is not called. */
CUresult fgv_ctx_storage_remove(struct fgv_ctx_storage *storage, void *key);
CUresult fgv_ctx_storage_get(struct fgv_ctx_storage *storage, void *key, void **value);

/* Takes all out, and calls the end of each; it was in @context. */
void fgv_ctx_storage_drain(struct fgv_ctx_storage *storage, CUcontext context);

#endif
