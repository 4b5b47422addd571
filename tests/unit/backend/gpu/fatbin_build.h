/*
 * Makes fat binaries for tests, as nvcc does: a container, and entries put into it one
 * by one, packed or not.
 */
#ifndef FGV_TESTS_FATBIN_BUILD_H
#define FGV_TESTS_FATBIN_BUILD_H

#include <stddef.h>
#include <stdint.h>
#include "backend/gpu/fatbin.h"

struct fatbin {
	uint8_t *bytes;
	size_t len;
	size_t container; /* where the one being filled begins */
};

/* What is different from one entry to another. */
struct fatbin_entry {
	unsigned kind;
	unsigned sm;
	int is_arch_specific;
	enum fgv_fatbin_packing packing;
	const void *data;
	size_t len;
};

void fatbin_init(struct fatbin *fatbin);
void fatbin_fini(struct fatbin *fatbin);

/* Begins another container, behind those there are. */
void fatbin_begin(struct fatbin *fatbin);
/* Adds an entry to the container begun last. */
void fatbin_add(struct fatbin *fatbin, const struct fatbin_entry *entry);
/* Adds PTX text for sm_70, not packed. */
void fatbin_add_ptx(struct fatbin *fatbin, const char *text);

#endif
