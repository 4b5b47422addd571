/*
 * The guest's allocator for the arena: bulk data, pinned memory, staging chunks.
 * All its bookkeeping lies in the guest's own memory; the host only ever sees
 * (offset, length).
 *
 * Threads: any; one mutex inside (process-local).
 */
#ifndef FGV_SHMRING_ARENA_H
#define FGV_SHMRING_ARENA_H

#include <stdint.h>

struct fgv_arena;

/* Manages [off, off + len) of a window; both multiples of the page size. NULL: no memory. */
struct fgv_arena *fgv_arena_create(uint64_t off, uint64_t len);
void fgv_arena_destroy(struct fgv_arena *arena);

/* Whole pages. 0 and *off, or -ENOMEM when no gap is large enough, -EINVAL for 0 bytes. */
int fgv_arena_alloc(struct fgv_arena *arena, uint64_t bytes, uint64_t *off);
/* -EINVAL if nothing was allocated at @off. */
int fgv_arena_free(struct fgv_arena *arena, uint64_t off);
/* The allocation that holds offset @off: 0 with its start and length, or -ENOENT. */
int fgv_arena_find(struct fgv_arena *arena, uint64_t off, uint64_t *start, uint64_t *bytes);

#endif
