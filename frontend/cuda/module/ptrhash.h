/*
 * A hash table from pointers to pointers, for lookups on the way of a launch: readers
 * take no lock and write nothing. Tables that were outgrown are kept, as somebody may
 * be reading them; together they are no larger than the present one, unless a program
 * loads and unloads libraries all the time, which then costs it some 30 bytes for
 * each kernel that was ever registered.
 *
 * Threads: any for fgv_ptrhash_find(); one at a time for the others, which keep values
 * alive as long as somebody may have found them.
 */
#ifndef FGV_CUDA_PTRHASH_H
#define FGV_CUDA_PTRHASH_H

#include <stddef.h>

struct fgv_ptrhash_table;

/* Zeroed is empty. */
struct fgv_ptrhash {
	struct fgv_ptrhash_table *table; /* atomic */
};

/* NULL if there is none. */
void *fgv_ptrhash_find(const struct fgv_ptrhash *hash, const void *key);

/* Adds or replaces; neither may be NULL. -ENOMEM. */
int fgv_ptrhash_set(struct fgv_ptrhash *hash, const void *key, void *value);

void fgv_ptrhash_remove(struct fgv_ptrhash *hash, const void *key);

#endif
