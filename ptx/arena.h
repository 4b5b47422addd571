/* The memory of one module; see arena.c. Private to ptx/. */
#ifndef FGV_PTX_ARENA_H
#define FGV_PTX_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_arena;

/* It has @max bytes at most. */
struct ptx_arena *fgv_ptx_arena_create(size_t max);
void fgv_ptx_arena_destroy(struct ptx_arena *arena);
/* Zeroed, aligned to 16 bytes; NULL where there is no memory, or not so much left. */
void *fgv_ptx_arena_get(struct ptx_arena *arena, size_t size);
/* The one copy of these bytes, NUL-terminated; NULL where there is no memory. */
const char *fgv_ptx_arena_intern(struct ptx_arena *arena, const char *text, size_t length);
/* Whether @part is anywhere in any of its strings. */
bool fgv_ptx_arena_mentions(const struct ptx_arena *arena, const char *part);

#endif
