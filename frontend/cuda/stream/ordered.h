/*
 * Allocating and freeing memory in the order of streams. Memory may be used as soon as it is
 * allocated, on this device by all streams.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_ORDERED_H
#define FGV_CUDA_ORDERED_H

#include <cuda.h>
#include <stddef.h>

/*
 * From @pool, NULL for the current one; in a stream that is being captured, from the graph. No
 * bytes have no address. CUDA_ERROR_INVALID_VALUE for what is no pool.
 */
CUresult fgv_ordered_alloc(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);
/* Of a pool, a graph, or any of the device's. CUDA_ERROR_INVALID_VALUE where none begins. */
CUresult fgv_ordered_free(CUdeviceptr address, CUstream stream);

#endif
