/*
 * Copies between the program's own memory, which the host can't see, and the device.
 *
 * Threads: the caller's lane is the caller's.
 */
#ifndef FGV_CLIENT_COPY_H
#define FGV_CLIENT_COPY_H

#include <cuda.h>
#include <stdint.h>

struct fgv_lane;

/*
 * Copies @len bytes at @from to device address @to, ordered in @stream (the host's
 * handle). @from may be changed on return. Up to FGV_DATA_MAX bytes are only posted;
 * of more, the last has left the window on return.
 */
CUresult fgv_copy_in(struct fgv_lane *lane, uint64_t to, const void *from, uint64_t len,
		     uint32_t stream);

/* Copies @len bytes at device address @from to @to, and returns when they are there. */
CUresult fgv_copy_out(struct fgv_lane *lane, void *to, uint64_t from, uint64_t len,
		      uint32_t stream);

#endif
