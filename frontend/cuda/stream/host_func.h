/*
 * Functions of the program in the order of a stream. They are called by a thread of this library,
 * and may call nothing of CUDA.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_HOST_FUNC_H
#define FGV_CUDA_HOST_FUNC_H

#include <cuda.h>
#include <stdbool.h>

#include "frontend/client/recorder.h"

/* Has @fn called once what is in the stream now is done, unless there was an error. */
CUresult fgv_host_func_launch(CUstream stream, CUhostFn fn, void *data);

/* The same for @callback, which is told of errors; not in a stream that is being captured. */
CUresult fgv_host_func_add_callback(CUstream stream, CUstreamCallback callback, void *data,
				    unsigned flags);

/* For the core: as fgv_host_func_launch(), in a stream by the host's handle. */
CUresult fgv_host_func_start(struct fgv_lane *lane, uint32_t stream, CUhostFn fn, void *data);

/* For the core: which function @record calls; false if it does something else. */
bool fgv_host_func_describe(const struct fgv_record *record, CUhostFn *fn, void **data);

#endif
