/*
 * What the program may know about its GPUs, of each asked for once, with the first lane of it.
 * Where nothing else is said it is the one on which the calling thread works.
 * Everything about properties, attributes and limits is answered from here.
 *
 * Threads: any. What fgv_device_info() gives never changes.
 */
#ifndef FGV_CUDA_DEVICE_H
#define FGV_CUDA_DEVICE_H

#include <cuda.h>

#include "api/wire.h"

/* Takes a lane for this thread, and asks for the description if it is not known. */
CUresult fgv_device_learn(void);

/* The description; without the GPU, once it is known. */
CUresult fgv_device_know(const struct fgv_device_info **info);

/* The same of another device than the thread's. The session has one with this ordinal. */
CUresult fgv_device_know_of(uint32_t ordinal, const struct fgv_device_info **info);
const struct fgv_device_info *fgv_device_info_of(uint32_t ordinal);

/* NULL: not known yet; whoever has entered the context (context.h) knows it. */
const struct fgv_device_info *fgv_device_info(void);

/* From now on the thread works on device @ordinal, which the session has. */
void fgv_device_select(uint32_t ordinal);

/* An attribute, 0 if the host does not know it. */
int fgv_device_attribute(const struct fgv_device_info *info, CUdevice_attribute attribute);

/* Its compute capability: 90 for 9.0. */
unsigned fgv_device_sm(const struct fgv_device_info *info);

/* Whether the host knows it. */
int fgv_device_has_attribute(const struct fgv_device_info *info, int attribute);

#endif
