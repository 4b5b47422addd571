/*
 * Addresses behind those of the device's own memory, where chunks of memory are mapped. Of what is
 * mapped workers know what is among the host's ranges (memory.h).
 *
 * Threads: the dispatcher's; fgv_softgpu_space_hide() is the executor's.
 */
#ifndef FGV_SOFTGPU_SPACE_H
#define FGV_SOFTGPU_SPACE_H

#include <bsd/sys/tree.h>
#include <stdint.h>

struct memory;
struct space_range;
RB_HEAD(space_tree, space_range);

struct space {
	uint64_t base, end;
	struct space_tree reservations, mappings;
	unsigned mappings_count;
	int fd; /* what chunks are parts of: as large as the space, of which pages in use exist */
	struct space_tree chunks;
};

/* Where there is no room there are no chunks. */
void fgv_softgpu_space_init(struct space *space, uint64_t base, uint64_t end);
/* Gives all addresses back; chunks are the caller's. */
void fgv_softgpu_space_fini(struct space *space);
/* Nothing finds a mapping any more, nor is there one. */
void fgv_softgpu_space_hide(struct memory *memory, uint64_t address, uint64_t bytes);

#endif
