/*
 * A histogram of durations: eight buckets per power of two from 1 µs to 2^32 µs (71
 * minutes), so that a quantile read from it is at most one eighth too high. Fixed size, no
 * allocation, adding is a few instructions. Counts saturate.
 */
#ifndef FGV_SCHEDULER_HIST_H
#define FGV_SCHEDULER_HIST_H

#include <stdint.h>

#define FGV_HIST_STEPS	 8 /* buckets per power of two */
#define FGV_HIST_BUCKETS (32 * FGV_HIST_STEPS)

struct fgv_hist {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
	uint32_t bucket[FGV_HIST_BUCKETS];
};

void fgv_hist_add(struct fgv_hist *h, uint64_t ns);

/* Has the processor fetch what an addition of @ns will touch. */
void fgv_hist_fetch(const struct fgv_hist *h, uint64_t ns);

/* Adds the samples of @from to @h. */
void fgv_hist_merge(struct fgv_hist *h, const struct fgv_hist *from);

/* The upper edge of @bucket, in ns; the last one has none and gives UINT64_MAX. */
uint64_t fgv_hist_edge_ns(unsigned int bucket);

/* The duration that @permille of the samples do not exceed; 0 of an empty histogram. */
uint64_t fgv_hist_quantile_ns(const struct fgv_hist *h, unsigned int permille);

#endif
