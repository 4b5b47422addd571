/*
 * How many blocks of a kernel run at once on a multiprocessor: computed here, by the calculator
 * that the toolkit ships as a header.
 *
 * CUDA_ERROR_INVALID_VALUE for a missing result or what is not positive; or what loading the
 * kernel ends with.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_OCCUPANCY_H
#define FGV_CUDA_OCCUPANCY_H

#include <cuda.h>
#include <stddef.h>

struct fgv_device_info;
struct fgv_kernel;

/* Blocks of @block_size threads and so many bytes of dynamic shared memory; CUoccupancy_flags. */
CUresult fgv_occupancy_max_blocks(struct fgv_kernel *kernel, int block_size, size_t shared_bytes,
				  unsigned flags, int *blocks);

/* The dynamic shared memory that each of so many blocks can have. */
CUresult fgv_occupancy_max_shared(struct fgv_kernel *kernel, int blocks, int block_size,
				  size_t *bytes);

/*
 * The block size with the best occupancy, at most @limit unless that is 0, and how many such blocks
 * fill the device. Dynamic shared memory is what @shared_of says of a block size, or NULL:
 * @shared_bytes.
 */
CUresult fgv_occupancy_best_block(struct fgv_kernel *kernel, CUoccupancyB2DSize shared_of,
				  size_t shared_bytes, int limit, unsigned flags, int *grid_size,
				  int *block_size);

/* For the core: the same as fgv_occupancy_max_blocks() for a kernel that is known in full. */
CUresult fgv_occupancy_of(const struct fgv_kernel *kernel, int block_size, size_t shared_bytes,
			  int *blocks);

#endif
