/*
 * Copies that are too large for a message: they go in pieces through staging chunks, which the
 * host keeps registered with the GPU.
 *
 * Threads: the caller's lane is the caller's.
 */
#ifndef FGV_CLIENT_TRANSFER_H
#define FGV_CLIENT_TRANSFER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;

/*
 * A place on the device as the operations have it: in an array bytes, row and slice; with
 * no array (0) an address, the pitch of its rows and the rows of a slice.
 */
struct fgv_place {
	uint32_t array;
	uint64_t at[3];
};

/* The same in the program's memory. */
struct fgv_rows {
	uint8_t *base;
	uint64_t pitch;
	uint64_t rows;
};

static inline uint64_t fgv_box_bytes(const uint64_t box[3])
{
	return box[0] * box[1] * box[2];
}

/* Whether @box at @place is one row of memory, for which there are simpler operations. */
static inline bool fgv_place_is_row(const struct fgv_place *place, const uint64_t box[3])
{
	return !place->array && box[1] == 1 && box[2] == 1;
}

/* Row @y and slice @z from @at on. */
static inline uint8_t *fgv_rows_at(const struct fgv_rows *rows, const uint64_t at[3], uint64_t y,
				   uint64_t z)
{
	return rows->base + at[0] + ((at[2] + z) * rows->rows + at[1] + y) * rows->pitch;
}

/*
 * Copies @box, bytes, rows and slices of any size, none of them 0, between the program's memory
 * and the device, ordered in @stream (the host's handle). What goes in has left the program's
 * memory on return, but not the window; what comes out is there on return.
 */
CUresult fgv_transfer_in(struct fgv_lane *lane, const struct fgv_place *to,
			 const struct fgv_rows *from, const uint64_t box[3], uint32_t stream);
/* The same for what fits in a chunk, if there is one to be had without a wait. */
bool fgv_transfer_try_in(struct fgv_lane *lane, const struct fgv_place *to,
			 const struct fgv_rows *from, const uint64_t box[3], uint32_t stream,
			 CUresult *res);
CUresult fgv_transfer_out(struct fgv_lane *lane, const struct fgv_rows *to,
			  const struct fgv_place *from, const uint64_t box[3], uint32_t stream);

#endif
