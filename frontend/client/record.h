/*
 * Doing what was recorded (recorder.h).
 *
 * Threads: the lane is the caller's; nobody else uses the records meanwhile.
 */
#ifndef FGV_CLIENT_RECORD_H
#define FGV_CLIENT_RECORD_H

#include <cuda.h>
#include <stdint.h>

#include "frontend/client/recorder.h"

/* Does what the records say, in @stream, in their order, until one fails. */
CUresult fgv_records_run(struct fgv_lane *lane, struct fgv_record *first, uint32_t stream);

#endif
