/*
 * Functions of the program in the order of a stream.
 */
#ifndef FGV_LIBCUDART_HOST_FUNC_H
#define FGV_LIBCUDART_HOST_FUNC_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "frontend/client/recorder.h"

/* Has @fn called by a thread of this library once what is in the stream now is done. */
CUresult fgv_host_func_start(struct fgv_lane *lane, uint32_t stream, cudaHostFn_t fn, void *data);

/* Which function @record calls; false if it does something else. */
bool fgv_host_func_describe(const struct fgv_record *record, struct cudaHostNodeParamsV2 *params);

#endif
