/*
 * Values in memory, written and waited for in the order of a stream. The host looks at what is
 * waited for, so that a value that never comes keeps nothing of the GPU.
 *
 * CUDA_ERROR_INVALID_VALUE for what is no memory of the program's, managed, or not aligned. A wait
 * can't be captured.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_VALUE_H
#define FGV_CUDA_VALUE_H

#include <cuda.h>
#include <stdint.h>

struct fgv_value {
	CUdeviceptr address;
	uint64_t value;
	unsigned width; /* bytes: 4 or 8 */
	unsigned flags; /* CUstreamWaitValue_flags or CUstreamWriteValue_flags */
};

CUresult fgv_value_wait(const struct fgv_value *value, CUstream stream);
CUresult fgv_value_write(const struct fgv_value *value, CUstream stream);
/* All in this order; none where one of them can't be. @flags: none are known. */
CUresult fgv_value_batch(const CUstreamBatchMemOpParams *list, unsigned count, unsigned flags,
			 CUstream stream);

#endif
