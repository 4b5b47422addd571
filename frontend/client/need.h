/* What the program says that it needs of a GPU, by the variable FAIRGV_NEED: for its placement. */
#ifndef FGV_CLIENT_NEED_H
#define FGV_CLIENT_NEED_H

#include "api/wire.h"
#include "frontend/client/transport.h"

/*
 * "SIZE" or "SIZE:BLOCKSxTHREADS", as "2G" or "512M:1024x256": memory, and the blocks that its
 * kernels have at once, of so many threads. All 0 where the variable is not set or empty. Any other
 * text is CUDA_ERROR_INVALID_VALUE.
 */
CUresult fgv_need_read(const struct fgv_failure *failure, struct fgv_msg_need *need);

#endif
