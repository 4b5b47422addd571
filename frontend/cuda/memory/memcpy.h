/*
 * Copying between pointers, which say by themselves where they point. CUDA_ERROR_INVALID_VALUE
 * where nothing can be there, or the end of an allocation is passed.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_MEMCPY_H
#define FGV_CUDA_MEMCPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* SHARED: of the program, and seen by the GPU. */
enum fgv_side { FGV_SIDE_HOST, FGV_SIDE_SHARED, FGV_SIDE_DEVICE };

/* Which ends of a copy must be the device's; of others their pointers decide. */
#define FGV_MEMCPY_TO_DEVICE   1u
#define FGV_MEMCPY_FROM_DEVICE 2u

/*
 * Copies as cuMemcpyAsync() does: to or from pageable memory, that has copied or staged everything
 * when it returns; between two places on the device, or of host memory that it sees, it returns at
 * once. With @wait the program may use its memory, of whatever kind, on return.
 */
CUresult fgv_memcpy_run(void *dst, const void *src, size_t count, unsigned wanted, CUstream stream,
			bool wait);

/*
 * For the core: which side [@ptr, @ptr + @count) is on, where the device's is wanted or not. False
 * if it goes past the end of an allocation. *@ask becomes true where the address is not known
 * here, so that the GPU must say if it is right; it is never made false. *@device becomes the
 * ordinal of the device that has it, where that is known; it comes with the copy's.
 */
bool fgv_memcpy_side(const void *ptr, size_t count, bool wanted, enum fgv_side *side, bool *ask,
		     uint32_t *device);

#endif
