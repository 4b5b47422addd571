/*
 * How much somebody has used a GPU in the last second: a ring of parts of a twentieth of it.
 * Each part says which one it is, so one that is too old need not be cleared, and adding touches
 * one cache line. A part counts up to 4.29 s. Fixed size, no allocation; all zero is one that has
 * used nothing. Times are of one clock that does not go back. One thread at a time.
 */
#ifndef FGV_SCHEDULER_RECENT_H
#define FGV_SCHEDULER_RECENT_H

#include <stdint.h>

#define FGV_RECENT_NS	   1000000000ull
#define FGV_RECENT_PARTS   20
#define FGV_RECENT_PART_NS (FGV_RECENT_NS / FGV_RECENT_PARTS)

struct fgv_recent {
	struct {
		uint32_t number; /* since time began, wrapping after 6.8 years */
		uint32_t used_ns;
	} part[FGV_RECENT_PARTS + 1]; /* the oldest is partly out of the second */
};

/* @used_ns were used between @from_ns and @to_ns, evenly. */
void fgv_recent_add(struct fgv_recent *recent, uint64_t used_ns, uint64_t from_ns, uint64_t to_ns);

/* Has the processor fetch what an addition up to @now_ns will touch. */
void fgv_recent_fetch(const struct fgv_recent *recent, uint64_t now_ns);

/* Adds what @from has of the second before @now_ns. */
void fgv_recent_merge(struct fgv_recent *recent, const struct fgv_recent *from, uint64_t now_ns);

/* What was used in the second before @now_ns. */
uint64_t fgv_recent_ns(const struct fgv_recent *recent, uint64_t now_ns);

#endif
