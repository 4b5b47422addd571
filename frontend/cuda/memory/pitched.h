/*
 * Memory in rows.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_PITCHED_H
#define FGV_CUDA_PITCHED_H

#include <cuda.h>
#include <stddef.h>

/*
 * @rows rows of at least @width bytes, *@pitch apart; fgv_memory_free() frees them. No bytes have
 * no address. CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE; what captures do not allow.
 */
CUresult fgv_pitched_alloc(CUdeviceptr *address, size_t *pitch, size_t width, size_t rows);

#endif
