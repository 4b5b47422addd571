/*
 * Filling memory. CUDA_ERROR_INVALID_VALUE for what is no device memory, or goes past the end of
 * an allocation.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_FILL_H
#define FGV_CUDA_FILL_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first @count elements of each of so many rows, which are @pitch bytes apart. */
struct fgv_fill {
	CUdeviceptr address;
	size_t pitch; /* of one row anything that it fits in */
	uint32_t value;
	uint32_t element; /* bytes: 1, 2 or 4 */
	size_t count;
	size_t rows;
};

/* With @wait the program sees it on return, where it sees the memory. */
CUresult fgv_fill_run(const struct fgv_fill *fill, CUstream stream, bool wait);

#endif
