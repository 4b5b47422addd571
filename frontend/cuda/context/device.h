/*
 * What the program may know about its GPU, asked for once, with the first lane.
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

/* NULL: not known yet; whoever has entered the context (context.h) knows it. */
const struct fgv_device_info *fgv_device_info(void);

/* An attribute, 0 if the host does not know it. */
int fgv_device_attribute(const struct fgv_device_info *info, CUdevice_attribute attribute);

/* Its compute capability: 90 for 9.0. */
unsigned fgv_device_sm(const struct fgv_device_info *info);

/* Whether the host knows it. */
int fgv_device_has_attribute(const struct fgv_device_info *info, int attribute);

#endif
