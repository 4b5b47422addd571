/*
 * The heap of kernels' malloc and free: a part of device memory, made when a program that
 * uses it is loaded, and then as large as cudaLimitMallocHeapSize was.
 *
 * Threads: the dispatcher makes it; workers allocate and free.
 */
#ifndef FGV_SOFTGPU_HEAP_H
#define FGV_SOFTGPU_HEAP_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "softgpu/memory.h"

#define FGV_HEAP_BYTES (8u << 20) /* unless a limit is set */

struct heap {
	pthread_mutex_t lock;
	uint64_t bytes; /* as it is or will be */
	uint64_t base;	/* 0: not made yet */
	uint32_t *tags; /* of each granule, see heap.c */
	uint32_t granules;
	uint32_t next; /* where the search for room goes on: a chunk's first granule */
};

void fgv_softgpu_heap_init(struct heap *heap);
void fgv_softgpu_heap_fini(struct heap *heap);
/* Makes it, unless it is there. */
CUresult fgv_softgpu_heap_need(struct heap *heap, struct memory *memory);
/* CUDA_ERROR_INVALID_VALUE: it is there already, or could not be. */
CUresult fgv_softgpu_heap_resize(struct heap *heap, uint64_t bytes);
/* An address aligned to 16 bytes; 0: no room. */
uint64_t fgv_softgpu_heap_alloc(struct heap *heap, uint64_t bytes);
/* False: nothing was allocated there. 0 is nothing to free. */
bool fgv_softgpu_heap_free(struct heap *heap, uint64_t address);

#endif
