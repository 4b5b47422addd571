/*
 * What was used in a window of time that slides with the clock. The time is divided into
 * parts; a part counts as long as the window touches it, so the sum is never less than what
 * was really used in the window, and more only by what the oldest part had.
 *
 * Times are nanoseconds of one clock that does not go back. One thread at a time.
 */
#ifndef FGV_SCHEDULER_WINDOW_H
#define FGV_SCHEDULER_WINDOW_H

#include <stdint.h>

#define FGV_WINDOW_PARTS 512
#define FGV_WINDOW_MAX_S 2000 /* a part's use is 32 bits */

struct fgv_window {
	uint64_t part_ns; /* the length of one */
	uint64_t newest;  /* the number of the part that time has reached */
	uint64_t sum_ns;
	uint32_t used_ns[FGV_WINDOW_PARTS + 1]; /* by the number modulo the ring's length */
};

/* @length_ns: at least 1 and at most FGV_WINDOW_MAX_S. */
void fgv_window_init(struct fgv_window *window, uint64_t length_ns);

/* @used_ns were used up to @now_ns, without a break. */
void fgv_window_add(struct fgv_window *window, uint64_t used_ns, uint64_t now_ns);

/* An upper bound of what was used in the window that ends at @now_ns. */
uint64_t fgv_window_used(struct fgv_window *window, uint64_t now_ns);

/* From when on less than @cap_ns, at least 1, is used, if nothing more is; @now_ns: already. */
uint64_t fgv_window_below(struct fgv_window *window, uint64_t cap_ns, uint64_t now_ns);

#endif
