/*
 * Handles of this process's own for streams and events, by which the host makes what is posted to
 * it: only when there are more of them than ever is it asked whether the VM has room for some more,
 * and that is where creating one fails.
 *
 * Threads: any; the lane is the caller's.
 */
#ifndef FGV_CUDA_OWN_H
#define FGV_CUDA_OWN_H

#include <cuda.h>
#include <stdint.h>

#include "api/wire.h"

struct fgv_lane;

/* A handle for what the caller makes next. CUDA_ERROR_OUT_OF_MEMORY, or why the host says no. */
CUresult fgv_own_take(struct fgv_lane *lane, enum fgv_own_kind kind, uint32_t *handle);

/* What it named has been destroyed. */
void fgv_own_give(struct fgv_lane *lane, enum fgv_own_kind kind, uint32_t handle);

/* For the reset of a device alone: there are none left, and no room is kept. */
void fgv_own_drain(struct fgv_lane *lane);

#endif
