/*
 * Device memory at addresses where this process has nothing of its own (addrmap.h).
 *
 * Threads: any; the lane is the caller's.
 */
#ifndef FGV_CUDA_DEVMEM_H
#define FGV_CUDA_DEVMEM_H

#include <cuda.h>

#include "frontend/cuda/memory/addrmap.h"

struct fgv_lane;

/* @bytes, more than 0, known to the address map as @kind. The map's owner frees it. */
CUresult fgv_devmem_alloc(struct fgv_lane *lane, uint64_t bytes, enum fgv_range_kind kind,
			  uint64_t *address);

#endif
