/*
 * Chains: rows of 32, 16, 8 and 4 launches that are made once for a stream and take any launches.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_CHAIN_H
#define FGV_VGPU_BATCH_CHAIN_H

#include "backend/vgpu/batch_row.h"

#define FGV_BATCH_SIZES	   4 /* of chains: 4, 8, 16 and 32 launches */
#define FGV_BATCH_SMALLEST 4
#define FGV_BATCH_TURNS	   2 /* chains of each size, in turns: one runs while one is filled in */

/* Of one stream. */
struct fgv_batch_chains {
	uint8_t turn[FGV_BATCH_SIZES];
	struct fgv_batch_row *rows[FGV_BATCH_SIZES][FGV_BATCH_TURNS];
};

/* How many of the first @count launches went to the driver as chains. Stops where it fails. */
uint32_t fgv_batch_chains_run(struct fgv_session *session, struct fgv_batch_chains *chains,
			      struct fgv_gpu_stream *stream,
			      const struct fgv_batch_launch *launches, uint32_t count);
void fgv_batch_chains_forget(struct fgv_session *session, struct fgv_batch_chains *chains);

#endif
