/*
 * When the work that was let through will be done, as the GPU does it: in the order of each
 * stream, streams side by side as far as there is room, copies beside kernels. The end of all
 * work is a makespan, never a sum.
 *
 * Times are predictions, on a line of their own: a piece of work begins where its stream ends
 * and where its engine has room, whatever the clock says. What is known to be done moves the
 * line's beginning. Where streams meet in other ways than by events and the legacy stream
 * (kernels that wait for each other through memory), the prediction is too short.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_OVERLAP_H
#define FGV_VGPU_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/vgpu/handles.h"

/* Parts of an engine, which has room for all of them at any time; the smallest is what the most kernels at once leave to each. */
#define FGV_SHARE_ALL 128u

struct fgv_overlap {
	bool is_serial;	      /* the GPU does one thing at a time */
	uint64_t done_ns;     /* what is known to be done ends here at the latest */
	uint64_t ends_ns;     /* all work ends here; at least done_ns */
	uint64_t legacy_ns;   /* the legacy stream's work ends here */
	uint64_t blocking_ns; /* so does that of every stream that waits for it, or it for them */
	uint64_t engine_ns[FGV_ENGINES]; /* each engine would be done, were it always full */
};

struct fgv_piece {
	struct fgv_object *stream; /* NULL: the legacy one */
	enum fgv_engine engine;
	uint32_t share; /* of the engine, 1 to FGV_SHARE_ALL */
	uint64_t ns;	/* by itself */
};

/* Where all work would end with @piece. */
uint64_t fgv_overlap_with(const struct fgv_overlap *overlap, const struct fgv_piece *piece);

/* @piece has gone to the GPU. By how much all work ends later. */
uint64_t fgv_overlap_add(struct fgv_overlap *overlap, const struct fgv_piece *piece);

/* All work that ends by @until_ns is done. */
void fgv_overlap_done(struct fgv_overlap *overlap, uint64_t until_ns);

/* @event was recorded in @stream, and what comes in @stream waits for @event. NULL: legacy. */
void fgv_overlap_record(struct fgv_overlap *overlap, const struct fgv_object *stream,
			struct fgv_object *event);
void fgv_overlap_wait(struct fgv_overlap *overlap, struct fgv_object *stream,
		      const struct fgv_object *event);

/* Whether what comes in @stream waits for work that is not known to be done. */
bool fgv_overlap_has_work(const struct fgv_overlap *overlap, const struct fgv_object *stream);

/* How much work is not known to be done. */
static inline uint64_t fgv_overlap_ahead_ns(const struct fgv_overlap *overlap)
{
	return overlap->ends_ns - overlap->done_ns;
}

#endif
