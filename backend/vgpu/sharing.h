/*
 * Memory that a session shares with other programs of its VM (docs/design/0010-ipc.md), by way of
 * the VM's keeper (images/keeper.h). What it has exported and imported has keys; as long as it
 * has one of these, so often as it got it, the keeper counts it among those that have the memory.
 *
 * It is charged there from then on, and to no session.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_SHARING_H
#define FGV_VGPU_SHARING_H

#include <cuda.h>
#include <stdbool.h>
#include <sys/queue.h>
#include "backend/shared.h"

/* Of one session in its life. */
#define FGV_WORDS_PAGES_MAX 1024

struct fgv_gpu;
struct fgv_gpu_memory;
struct fgv_images;
struct fgv_sharing_use;

struct fgv_sharing {
	struct fgv_images *keeper; /* NULL: nothing is shared */
	struct fgv_gpu *gpu;
	uint32_t number; /* of the GPU, among the VM's */
	uint32_t pages;	 /* of words, until the session's end */
	LIST_HEAD(, fgv_sharing_use) uses;
};

/* @keeper: the session's, whichever of its parts this is for. From now on memory can be shared. */
void fgv_sharing_init(struct fgv_sharing *sharing, struct fgv_images *keeper, struct fgv_gpu *gpu,
		      uint32_t number);
/* Frees the bookkeeping; the keeper knows by itself when a session has ended. */
void fgv_sharing_fini(struct fgv_sharing *sharing);

/*
 * CUDA_ERROR_NOT_SUPPORTED where nothing is shared; CUDA_ERROR_OUT_OF_MEMORY where the VM has as
 * many as it may; CUDA_ERROR_OPERATING_SYSTEM where there is no keeper.
 */
CUresult fgv_sharing_export(struct fgv_sharing *sharing, struct fgv_gpu_memory *memory,
			    uint64_t bytes, struct fgv_key *key);
/* The same; CUDA_ERROR_INVALID_HANDLE: there is none; CUDA_ERROR_INVALID_DEVICE: of another GPU. */
CUresult fgv_sharing_import(struct fgv_sharing *sharing, const struct fgv_key *key,
			    struct fgv_gpu_memory **memory, uint64_t *bytes);
/* What either gave has been released. */
void fgv_sharing_drop(struct fgv_sharing *sharing, const struct fgv_key *key);

/*
 * A page of words that other sessions may have, all zero, and one that another has made; mapped,
 * for the caller to unmap. As the above.
 */
CUresult fgv_sharing_make_words(struct fgv_sharing *sharing, struct fgv_key *key, void **page);
CUresult fgv_sharing_open_words(struct fgv_sharing *sharing, const struct fgv_key *key,
				void **page);

#endif
