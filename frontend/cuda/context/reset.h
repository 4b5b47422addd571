/*
 * Giving everything of this process on the GPU back.
 *
 * Threads: any; others must not use what they lose.
 */
#ifndef FGV_CUDA_RESET_H
#define FGV_CUDA_RESET_H

#include <cuda.h>

struct fgv_lane;

/*
 * The session stays; what the process has there goes, after the work that uses it. After a sticky
 * error too, but then every later call fails (client/session.h). @also gives back what a face has
 * beyond the core; NULL: nothing.
 */
CUresult fgv_reset_device(void (*also)(struct fgv_lane *lane));

#endif
