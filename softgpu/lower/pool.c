/* See pool.h. A map that grows leaves its old table in the pool. */
#include "softgpu/lower/pool.h"

#include <stdlib.h>
#include <string.h>

#include "common/budget.h"

#define CHUNK_BYTES 32768
#define ALIGNMENT   64

struct pool_chunk {
	struct pool_chunk *next;
	size_t size;
	size_t used;
	_Alignas(ALIGNMENT) char bytes[];
};

void fgv_softgpu_pool_fini(struct pool *pool)
{
	while (pool->chunks) {
		struct pool_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		fgv_budget_give(pool->budget, sizeof(*chunk) + chunk->size);
		free(chunk);
	}
}

static struct pool_chunk *add_chunk(struct pool *pool, size_t bytes)
{
	size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	struct pool_chunk *chunk;

	if (!fgv_budget_take(pool->budget, sizeof(*chunk) + size))
		return NULL;
	chunk = aligned_alloc(ALIGNMENT, sizeof(*chunk) + size);
	if (!chunk) {
		fgv_budget_give(pool->budget, sizeof(*chunk) + size);
		return NULL;
	}
	chunk->next = pool->chunks;
	chunk->size = size;
	chunk->used = 0;
	pool->chunks = chunk;
	return chunk;
}

void *fgv_softgpu_pool_get(struct pool *pool, size_t bytes)
{
	struct pool_chunk *chunk = pool->chunks;
	void *p;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!chunk || chunk->size - chunk->used < bytes)
		chunk = add_chunk(pool, bytes);
	if (!chunk)
		return NULL;
	p = chunk->bytes + chunk->used;
	chunk->used += bytes;
	return memset(p, 0, bytes);
}

char *fgv_softgpu_pool_name(struct pool *pool, const char *name)
{
	size_t size = strlen(name) + 1;
	char *copy = fgv_softgpu_pool_get(pool, size);

	return copy ? memcpy(copy, name, size) : NULL;
}

static uint32_t hash(const char *name, size_t length)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static struct map_entry *find_place(const struct map *map, const char *name, size_t length)
{
	uint32_t i = hash(name, length) & (map->capacity - 1);

	while (map->entries[i].name &&
	       (strncmp(map->entries[i].name, name, length) || map->entries[i].name[length]))
		i = (i + 1) & (map->capacity - 1);
	return &map->entries[i];
}

void *fgv_softgpu_map_find(const struct map *map, const char *name, size_t length)
{
	return map->capacity ? find_place(map, name, length)->value : NULL;
}

static bool grow(struct pool *pool, struct map *map)
{
	struct map bigger = {.capacity = map->capacity ? map->capacity * 2 : 8};

	bigger.entries = fgv_softgpu_pool_get(pool, bigger.capacity * sizeof(*bigger.entries));
	if (!bigger.entries)
		return false;
	for (uint32_t i = 0; i < map->capacity; i++) {
		if (map->entries[i].name)
			*find_place(&bigger, map->entries[i].name, strlen(map->entries[i].name)) =
				map->entries[i];
	}
	bigger.count = map->count;
	*map = bigger;
	return true;
}

bool fgv_softgpu_map_put(struct pool *pool, struct map *map, const char *name, void *value)
{
	struct map_entry *entry;

	if (map->count * 2 >= map->capacity && !grow(pool, map))
		return false;
	entry = find_place(map, name, strlen(name));
	if (!entry->name)
		map->count++;
	entry->name = name;
	entry->value = value;
	return true;
}
