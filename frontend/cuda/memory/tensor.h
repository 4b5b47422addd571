/*
 * Tensor maps: by which kernels fetch boxes of memory (TMA). Their 128 bytes are the driver's
 * business, so the host's driver makes them, and what it made of which arguments is remembered:
 * cuBLAS asks for the same maps with each multiplication.
 *
 * What is wrong with a shape the host says; only what nothing can be made of is refused here, with
 * CUDA_ERROR_INVALID_VALUE.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_TENSOR_H
#define FGV_CUDA_TENSOR_H

#include <cuda.h>

#include "api/wire.h"

/* What @shape has beyond its rank is 0. @map must be aligned to 64 bytes. */
CUresult fgv_tensor_encode(CUtensorMap *map, const struct fgv_tensor_shape *shape);
CUresult fgv_tensor_replace(CUtensorMap *map, CUdeviceptr address);

#endif
