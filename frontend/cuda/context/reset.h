/*
 * Giving everything of this process on the GPU back.
 *
 * Threads: any; others must not use what they lose.
 */
#ifndef FGV_CUDA_RESET_H
#define FGV_CUDA_RESET_H

#include <cuda.h>

/*
 * The session stays; what the process has there goes, after the work that uses it. After a sticky
 * error too, but then every later call fails (client/session.h).
 */
CUresult fgv_reset_device(void);

#endif
