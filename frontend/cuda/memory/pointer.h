/*
 * What a pointer points to, answered from the address map.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_POINTER_H
#define FGV_CUDA_POINTER_H

#include <cuda.h>
#include <stdbool.h>

#include "frontend/cuda/memory/addrmap.h"

struct fgv_pointer {
	bool is_known;	   /* of the GPU's memory, or seen by it; else nothing else is set */
	CUmemorytype type; /* of managed memory CU_MEMORYTYPE_UNIFIED */
	bool is_host;	   /* a host address too */
	int ordinal;	   /* of its device */
	struct fgv_range_view range; /* the allocation */
};

/* CUDA_SUCCESS wherever it points; the session's code. */
CUresult fgv_pointer_describe(CUdeviceptr pointer, struct fgv_pointer *found);

#endif
