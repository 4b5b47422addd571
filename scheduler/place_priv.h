/* What the files of placement share (place.h). */
#ifndef FGV_SCHEDULER_PLACE_PRIV_H
#define FGV_SCHEDULER_PLACE_PRIV_H

#include "scheduler/place.h"

struct fgv_place_sm {
	uint8_t blocks, warps; /* taken */
};

struct fgv_place_state {
	struct fgv_place_gpu has;
	struct fgv_place_use use;
	uint64_t load;
	uint32_t next_sm; /* where the next block is tried first */
	struct fgv_place_sm sms[FGV_PLACE_SMS_MAX];
};

struct fgv_place {
	size_t count;
	uint32_t next_gpu; /* of `cores` */
	struct fgv_place_state gpus[FGV_PLACE_GPUS_MAX];
};

/* What the need comes to on this GPU: a block's warps, and blocks that it holds at once. */
uint32_t fgv_place_block_warps(const struct fgv_place_gpu *has, const struct fgv_place_need *need);
uint64_t fgv_place_blocks(const struct fgv_place_gpu *has, const struct fgv_place_need *need);

/*
 * Gives @blocks of @warps each to the multiprocessors in turn, from the next one on, each one at a
 * time as long as it has room: @gets says how many each got, and *@next_sm which is next. How
 * many were given.
 */
uint64_t fgv_place_spread(const struct fgv_place_state *gpu, uint32_t warps, uint64_t blocks,
			  uint8_t gets[FGV_PLACE_SMS_MAX], uint32_t *next_sm);

#endif
