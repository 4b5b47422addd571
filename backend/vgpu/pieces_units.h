/*
 * Small allocations in one block of memory that may move; for pieces.c alone.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_PIECES_UNITS_H
#define FGV_VGPU_PIECES_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define FGV_UNIT_BYTES 512

struct fgv_piece_units {
	uint32_t live;	/* units that allocations have */
	uint32_t count; /* of all */
	bool has_freed; /* some were freed, and are not free again */
	uint64_t *taken, *freed, *closed; /* bits; those freed: behind the fence, and before it */
};

/* Of a block of @bytes, whole words of units; NULL where memory is short. */
struct fgv_piece_units *fgv_piece_units_create(uint64_t bytes);
void fgv_piece_units_destroy(struct fgv_piece_units *units);

/* Where an allocation of @bytes lies in the block; -ENOSPC. */
int fgv_piece_units_take(struct fgv_piece_units *units, uint64_t bytes, uint64_t *offset);
/* It is free again when it has been closed, and then collected. */
void fgv_piece_units_free(struct fgv_piece_units *units, uint64_t offset, uint64_t bytes);
void fgv_piece_units_close(struct fgv_piece_units *units);
void fgv_piece_units_collect(struct fgv_piece_units *units);

#endif
