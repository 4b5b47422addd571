/*
 * Open addressing with linear probing. A slot's key is written once, after its value,
 * and never changes; a removed key keeps its slot, with no value, until the table is
 * made anew. A table is made anew when two thirds of its slots have a key.
 */
#include "frontend/cuda/module/ptrhash.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define SIZE_MIN 64

struct slot {
	const void *key; /* atomic; NULL: never used */
	void *value;	 /* atomic; NULL: removed */
};

struct fgv_ptrhash_table {
	struct fgv_ptrhash_table *older;
	size_t size; /* a power of two */
	size_t keys;
	struct slot slots[];
};

/* The golden ratio's bits spread what is aligned; the upper half is the better one. */
static size_t place(const struct fgv_ptrhash_table *table, const void *key)
{
	return (size_t)(((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 32) & (table->size - 1);
}

/* The slot of @key, or the empty one where it would be. */
static struct slot *probe(struct fgv_ptrhash_table *table, const void *key)
{
	for (size_t i = place(table, key);; i = (i + 1) & (table->size - 1)) {
		/* Pairs with the release in add(): the slot's first value is there. */
		const void *found = __atomic_load_n(&table->slots[i].key, __ATOMIC_ACQUIRE);

		if (found == key || !found)
			return &table->slots[i];
	}
}

void *fgv_ptrhash_find(const struct fgv_ptrhash *hash, const void *key)
{
	/* Pairs with the release in renew(). */
	struct fgv_ptrhash_table *table = __atomic_load_n(&hash->table, __ATOMIC_ACQUIRE);
	struct slot *slot;

	if (!table || !key)
		return NULL;
	slot = probe(table, key);
	/* Pairs with the release in fgv_ptrhash_set(): what it points to is complete. */
	return __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);
}

static void add(struct fgv_ptrhash_table *table, const void *key, void *value)
{
	struct slot *slot = probe(table, key);

	__atomic_store_n(&slot->value, value, __ATOMIC_RELEASE);
	if (slot->key)
		return;
	__atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
	table->keys++;
}

static size_t count_values(const struct fgv_ptrhash_table *table)
{
	size_t count = 0;

	for (size_t i = 0; table && i < table->size; i++)
		count += table->slots[i].value != NULL;
	return count;
}

static int renew(struct fgv_ptrhash *hash)
{
	struct fgv_ptrhash_table *old = hash->table;
	size_t values = count_values(old);
	size_t size = SIZE_MIN;
	struct fgv_ptrhash_table *table;

	while (size < values * 3)
		size *= 2;
	table = calloc(1, sizeof(*table) + size * sizeof(table->slots[0]));
	if (!table)
		return -ENOMEM;
	table->size = size;
	table->older = old;
	for (size_t i = 0; old && i < old->size; i++) {
		if (old->slots[i].value)
			add(table, old->slots[i].key, old->slots[i].value);
	}
	__atomic_store_n(&hash->table, table, __ATOMIC_RELEASE);
	return 0;
}

int fgv_ptrhash_set(struct fgv_ptrhash *hash, const void *key, void *value)
{
	int err;

	if (!hash->table || hash->table->keys * 3 >= hash->table->size * 2) {
		err = renew(hash);
		if (err)
			return err;
	}
	add(hash->table, key, value);
	return 0;
}

void fgv_ptrhash_remove(struct fgv_ptrhash *hash, const void *key)
{
	struct slot *slot;

	if (!hash->table)
		return;
	slot = probe(hash->table, key);
	if (slot->key)
		__atomic_store_n(&slot->value, NULL, __ATOMIC_RELEASE);
}
