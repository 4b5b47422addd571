/*
 * The memory of one module: chunks that only grow, and a table of its strings so
 * that each is kept once. Both belong to the module and to the thread that uses it.
 */
#include "ptx/arena.h"

#include <stdlib.h>
#include <string.h>

#include "common/budget.h"

#define CHUNK_BYTES 65536
#define ALIGNMENT   16

struct chunk {
	struct chunk *next;
	size_t size;
	size_t used;
	_Alignas(ALIGNMENT) char bytes[];
};

struct string {
	struct string *next; /* same bucket */
	uint64_t hash;
	size_t length;
	char text[];
};

struct ptx_arena {
	struct fgv_budget budget;
	struct chunk *chunks;
	struct string **buckets;
	size_t buckets_count; /* a power of two */
	size_t strings_count;
};

struct ptx_arena *fgv_ptx_arena_create(size_t max)
{
	struct ptx_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	arena->budget.max = max;
	arena->buckets_count = 256;
	arena->buckets = calloc(arena->buckets_count, sizeof(*arena->buckets));
	if (!arena->buckets) {
		free(arena);
		return NULL;
	}
	return arena;
}

void fgv_ptx_arena_destroy(struct ptx_arena *arena)
{
	if (!arena)
		return;
	while (arena->chunks) {
		struct chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free(chunk);
	}
	free(arena->buckets);
	free(arena);
}

static struct chunk *add_chunk(struct ptx_arena *arena, size_t size)
{
	size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
	struct chunk *chunk;

	if (!fgv_budget_take(&arena->budget, sizeof(*chunk) + bytes))
		return NULL;
	chunk = malloc(sizeof(*chunk) + bytes);
	if (!chunk)
		return NULL;
	chunk->size = bytes;
	chunk->used = 0;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

void *fgv_ptx_arena_get(struct ptx_arena *arena, size_t size)
{
	struct chunk *chunk = arena->chunks;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!chunk || chunk->size - chunk->used < size)
		chunk = add_chunk(arena, size);
	if (!chunk)
		return NULL;
	p = chunk->bytes + chunk->used;
	chunk->used += size;
	return memset(p, 0, size);
}

static uint64_t hash_bytes(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return hash ^ hash >> 32;
}

/* Twice the buckets; when memory lacks, the table only gets slower. */
static void grow(struct ptx_arena *arena)
{
	size_t count = arena->buckets_count * 2;
	struct string **buckets;

	if (!fgv_budget_take(&arena->budget, arena->buckets_count * sizeof(*buckets)))
		return;
	buckets = calloc(count, sizeof(*buckets));
	if (!buckets)
		return;
	for (size_t i = 0; i < arena->buckets_count; i++) {
		while (arena->buckets[i]) {
			struct string *s = arena->buckets[i];

			arena->buckets[i] = s->next;
			s->next = buckets[s->hash & (count - 1)];
			buckets[s->hash & (count - 1)] = s;
		}
	}
	free(arena->buckets);
	arena->buckets = buckets;
	arena->buckets_count = count;
}

const char *fgv_ptx_arena_intern(struct ptx_arena *arena, const char *text, size_t length)
{
	uint64_t hash = hash_bytes(text, length);
	struct string *s = arena->buckets[hash & (arena->buckets_count - 1)];

	for (; s; s = s->next) {
		if (s->hash == hash && s->length == length && !memcmp(s->text, text, length))
			return s->text;
	}
	s = fgv_ptx_arena_get(arena, sizeof(*s) + length + 1);
	if (!s)
		return NULL;
	memcpy(s->text, text, length);
	s->hash = hash;
	s->length = length;
	if (++arena->strings_count > arena->buckets_count)
		grow(arena);
	s->next = arena->buckets[hash & (arena->buckets_count - 1)];
	arena->buckets[hash & (arena->buckets_count - 1)] = s;
	return s->text;
}

bool fgv_ptx_arena_mentions(const struct ptx_arena *arena, const char *part)
{
	for (size_t i = 0; i < arena->buckets_count; i++) {
		for (const struct string *s = arena->buckets[i]; s; s = s->next) {
			if (strstr(s->text, part))
				return true;
		}
	}
	return false;
}
