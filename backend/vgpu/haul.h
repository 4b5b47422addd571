/*
 * Moves bytes between the GPU and memory of the host that is not pinned, fast: through pinned
 * slots, each filled or emptied by a thread of its own, while the GPU copies others.
 *
 * Threads: the dispatcher's, which never waits for anything here, but in fgv_haul_fini() for the
 * threads, each of which then ends with the slot that it is at, and for the GPU's copies.
 */
#ifndef FGV_VGPU_HAUL_H
#define FGV_VGPU_HAUL_H

#include <stdbool.h>
#include "backend/gpu/gpu_ops.h"

#define FGV_HAUL_SLOT_BYTES (8ull << 20)
#define FGV_HAUL_SLOTS	    12

struct fgv_haul;

enum fgv_haul_way { FGV_HAUL_OUT, FGV_HAUL_IN }; /* of the GPU, and into it */

/* Where what is next lies, FGV_HAUL_SLOT_BYTES at most. */
struct fgv_haul_part {
	uint64_t address; /* on the GPU */
	uint8_t *bytes;
	size_t len;
};

/*
 * What is to be moved next, in @part: CUDA_SUCCESS; CUDA_ERROR_NOT_FOUND: that was all; another
 * code: it goes on later, or fails.
 */
typedef CUresult fgv_haul_next(void *arg, struct fgv_haul_part *part);

/* CUDA_ERROR_OUT_OF_MEMORY: of the host. */
CUresult fgv_haul_init(struct fgv_haul **haul, struct fgv_gpu *gpu, enum fgv_haul_way way);
/* NULL is allowed. */
void fgv_haul_fini(struct fgv_haul *haul);

/*
 * Goes on: with what @next says, where there is a free slot, and with what has been moved in part.
 * *@moved: how much has changed. CUDA_ERROR_NOT_FOUND: all has arrived. CUDA_SUCCESS or @next's
 * code: go on; another: the GPU's.
 */
CUresult fgv_haul_turn(struct fgv_haul *haul, fgv_haul_next *next, void *arg, unsigned *moved);

/* How many parts have arrived, of those in the order in which they were begun, before the first
 * that has not. */
uint64_t fgv_haul_arrived(const struct fgv_haul *haul);

/* Goes on with what has been begun, and begins nothing. True: there is none. */
bool fgv_haul_settle(struct fgv_haul *haul);

#endif
