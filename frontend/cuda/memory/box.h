/*
 * Copies of boxes, of bytes, rows and slices, between arrays and memory in rows.
 *
 * CUDA_ERROR_INVALID_VALUE for what does not fit, CUDA_ERROR_INVALID_HANDLE for what is no array or
 * stream.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_BOX_H
#define FGV_CUDA_BOX_H

#include <cuda.h>
#include <stdbool.h>

/* In which stream, and whether the program may use its memory, of whatever kind, on return. */
struct fgv_when {
	CUstream stream;
	bool wait;
};

/*
 * Copies as one of memory does (memcpy.h). Memory of the type CU_MEMORYTYPE_DEVICE has to be on the
 * device, any other is where its address says.
 */
CUresult fgv_box_copy(const CUDA_MEMCPY3D *box, struct fgv_when when);

/* A rectangle as a box. */
static inline CUDA_MEMCPY3D fgv_box_of_2d(const CUDA_MEMCPY2D *p)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->Height,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->Height,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = 1,
	};
}

#endif
