/*
 * Copies between the program's own memory, which the host can't see, and the device.
 *
 * Where the lane has a recorder (record.h) they are kept by it; the program's memory is
 * read and written when they are done.
 *
 * Threads: the caller's lane is the caller's.
 */
#ifndef FGV_CUDA_COPY_H
#define FGV_CUDA_COPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "frontend/client/transfer.h"

struct fgv_lane;
struct fgv_record;

/*
 * Copies @len bytes at @from to device address @to, ordered in @stream (the host's
 * handle). @from may be changed on return; the copy is only posted then.
 */
CUresult fgv_copy_in(struct fgv_lane *lane, uint64_t to, const void *from, uint64_t len,
		     uint32_t stream);

/* Copies @len bytes at device address @from to @to, and returns when they are there. */
CUresult fgv_copy_out(struct fgv_lane *lane, void *to, uint64_t from, uint64_t len,
		      uint32_t stream);

/*
 * The same for @box: bytes, rows and slices, none of which is 0 and whose product does not
 * overflow. What lies between rows is neither read nor written.
 */
CUresult fgv_copy_box_in(struct fgv_lane *lane, const struct fgv_place *to,
			 const struct fgv_rows *from, const uint64_t box[3], uint32_t stream);
CUresult fgv_copy_box_out(struct fgv_lane *lane, const struct fgv_rows *to,
			  const struct fgv_place *from, const uint64_t box[3], uint32_t stream);

/* The same between two places of the program, once the work queued in @stream is done. */
CUresult fgv_copy_host(struct fgv_lane *lane, void *to, const void *from, uint64_t len,
		       uint32_t stream);

struct fgv_copy_sides {
	void *to;
	void *from;
	uint64_t len;
};

/* From where to where @record copies; false if it does something else. */
bool fgv_copy_describe(const struct fgv_record *record, struct fgv_copy_sides *sides);

#endif
