/*
 * Where a stream of launches is cut into sequences: by what was launched alone, so that a program
 * that does the same again is cut at the same places, wherever it was interrupted meanwhile.
 *
 * Each launch has a value, a rolling hash over the last FGV_BATCH_WINDOW shapes. A sequence ends
 * when the greatest value in it (the first, of equals) is FGV_BATCH_BEHIND launches ago: the
 * asymmetric extremum of Zhang et al., "AE: An Asymmetric Extremum Content Defined Chunking
 * Algorithm" (INFOCOM 2015). In a loop of P launches the greatest value comes once in P; so a
 * sequence is as long as the loop, or as a few of its turns where it is short.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_CUT_H
#define FGV_VGPU_BATCH_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/vgpu/batch_row.h"

#define FGV_BATCH_WINDOW  32  /* launches */
#define FGV_BATCH_BEHIND  32  /* so a sequence that is cut by content has one more at least */
#define FGV_BATCH_LONGEST 128 /* launches of a sequence */

/* All zero: nothing is known of what came before. */
struct fgv_batch_cut {
	uint32_t count; /* launches since the last cut */
	uint32_t top_at;
	uint64_t hash;	 /* of their shapes */
	uint64_t top;	 /* the greatest value of theirs, launch number top_at */
	uint64_t window; /* rolling hash */
	uint32_t at;	 /* where the oldest of these is */
	uint64_t shapes[FGV_BATCH_WINDOW];
};

uint64_t fgv_batch_hash_shape(const struct fgv_batch_shape *shape);

/*
 * There is one more launch. True: it is the last of its sequence; then count and hash are those of
 * the sequence until fgv_batch_cut_begin().
 */
bool fgv_batch_cut_add(struct fgv_batch_cut *cut, const struct fgv_batch_shape *shape);

/* A new sequence begins behind the last launch. */
static inline void fgv_batch_cut_begin(struct fgv_batch_cut *cut)
{
	cut->count = 0;
	cut->hash = 0;
}

/* A sequence of these has gone by, and a new one begins. */
void fgv_batch_cut_skip(struct fgv_batch_cut *cut, const struct fgv_batch_row *row);

#endif
