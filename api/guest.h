/*
 * What the generated guest stubs (gpu_guest.h) need of a lane. The frontend's client
 * implements it; only the stubs call it, and what uses a fgv_begin_ stub.
 *
 * Threads: a lane belongs to one thread. Between fgv_lane_begin and fgv_lane_commit
 * that thread does nothing else with the lane.
 *
 * A session that has ended keeps its lanes usable: begin hands out memory that leads
 * nowhere, commit counts on, wait and status say why the session ended. So a stub
 * checks once, at its end.
 */
#ifndef FGV_API_GUEST_H
#define FGV_API_GUEST_H

#include <cuda.h>
#include <stdint.h>

struct fgv_lane;

/*
 * Opens a request of operation @op. Returns room for its message of @len bytes,
 * aligned to 8, valid until fgv_lane_commit; NULL only if len > FGV_MESSAGE_MAX, and
 * then nothing is open.
 */
void *fgv_lane_begin(struct fgv_lane *lane, uint16_t op, uint32_t len);

/* Posts the request that fgv_lane_begin opened. Returns its call number. */
uint32_t fgv_lane_commit(struct fgv_lane *lane);

/*
 * Waits for the reply to request @call of this lane and returns its status, or the
 * code of a session that has ended. Copies the reply's @reply_len bytes to @reply only
 * on CUDA_SUCCESS; a successful reply of another length is CUDA_ERROR_UNKNOWN.
 */
CUresult fgv_lane_wait(struct fgv_lane *lane, uint32_t call, void *reply, uint32_t reply_len);

/* CUDA_SUCCESS, or the code of a session that has ended. Does not wait. */
CUresult fgv_lane_status(struct fgv_lane *lane);

#endif
