/*
 * Addresses behind those of the device's own memory, and chunks of memory that are mapped there. Of
 * what is mapped workers know what is among the host's ranges (memory.h).
 *
 * Threads: the dispatcher's; fgv_softgpu_space_hide() is an executor's.
 */
#ifndef FGV_SOFTGPU_SPACE_H
#define FGV_SOFTGPU_SPACE_H

#include <bsd/sys/tree.h>
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define SPACE_GRANULE (2ull << 20)

struct memory;

struct space_range {
	RB_ENTRY(space_range) node;
	uint64_t address; /* of a chunk, an offset */
	uint64_t bytes;
	/* Of mappings alone: */
	bool is_shown;
	bool is_view;	    /* of what another space has mapped */
	uint64_t hidden_by; /* number of the command; 0: none yet */
	/* Of chunks alone: the file that each has to itself; -1: it is a part of the space's. */
	int fd;
};

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
void fgv_softgpu_space_fini(struct space *space);

/* False, and NULL below: there is no room, or no memory. As softgpu_reserve(). */
bool fgv_softgpu_space_reserve(struct space *space, uint64_t bytes, uint64_t alignment,
			       uint64_t hint, uint64_t *address);
void fgv_softgpu_space_unreserve(struct space *space, uint64_t address);

/* A chunk, all zero, and back. */
struct space_range *fgv_softgpu_space_take(struct space *space, uint64_t bytes);
void fgv_softgpu_space_give(struct space *space, struct space_range *chunk);
/*
 * One with a file to itself, which can neither shrink nor grow; or what such a file of another
 * process is, NULL where @fd, which stays the caller's, is none of @bytes.
 */
struct space_range *fgv_softgpu_space_take_file(uint64_t bytes);
struct space_range *fgv_softgpu_space_take_given(int fd, uint64_t bytes);

bool fgv_softgpu_space_map(struct space *space, uint64_t address, uint64_t bytes, uint64_t offset,
			   const struct space_range *chunk);
/* The mapping that begins there. */
struct space_range *fgv_softgpu_space_find(struct space *space, uint64_t address);
/* What was mapped is hidden. */
void fgv_softgpu_space_forget(struct space *space, struct space_range *mapping);

/* The same of what another space has mapped, and shows. */
bool fgv_softgpu_space_view(struct space *space, uint64_t address, uint64_t bytes);

/* From now on all mappings of a span are found. */
CUresult fgv_softgpu_space_show(struct space *space, struct memory *memory, uint64_t address,
				uint64_t bytes);
/* Nothing finds a mapping any more, nor, unless it is a view, is there one. */
void fgv_softgpu_space_hide(struct memory *memory, uint64_t address, uint64_t bytes, bool is_view);

#endif
