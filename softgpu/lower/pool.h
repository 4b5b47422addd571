/*
 * Memory that is given back all at once, and a map from names to pointers that lives in it.
 * One thread at a time.
 */
#ifndef FGV_SOFTGPU_LOWER_POOL_H
#define FGV_SOFTGPU_LOWER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fgv_budget;

struct pool {
	struct pool_chunk *chunks;
	struct fgv_budget *budget; /* what it takes is taken of this; NULL: of none */
};

void fgv_softgpu_pool_fini(struct pool *pool);
/* Zeroed, aligned to 64 bytes; NULL where there is none, or none left of its budget. */
void *fgv_softgpu_pool_get(struct pool *pool, size_t bytes);
char *fgv_softgpu_pool_name(struct pool *pool, const char *name);

/* Zero-initialised is empty. Names are kept by reference. */
struct map {
	struct map_entry {
		const char *name;
		void *value;
	} * entries;
	uint32_t count;
	uint32_t capacity;
};

void *fgv_softgpu_map_find(const struct map *map, const char *name, size_t length);
/* Replaces what was there. False: no memory. */
bool fgv_softgpu_map_put(struct pool *pool, struct map *map, const char *name, void *value);

#endif
