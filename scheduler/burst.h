/*
 * Bursts of kernels, and the quota that fits them (Gemini, section 3.5.2): a burst is what a
 * client uses from when it begins to want the GPU until it has nothing more to do. Bursts
 * with a short break between them are one. The estimate of the next burst is the mean of the
 * 90th percentile of the recent ones and the last; a quota moves half of the way to it.
 *
 * One thread at a time.
 */
#ifndef FGV_SCHEDULER_BURST_H
#define FGV_SCHEDULER_BURST_H

#include <stdint.h>

#define FGV_BURST_RECENT 16

struct fgv_burst {
	uint64_t running_ns; /* of the burst that has not ended, or may go on */
	uint64_t paused_ns;  /* when the client became idle */
	uint64_t recent_ns[FGV_BURST_RECENT];
	uint64_t sum_ns;  /* of those */
	uint64_t count;	  /* of bursts that have ended */
	uint64_t last_ns; /* the last of them */
	uint64_t quota_ns;
};

/* @quota_ns: as long as nothing is known. */
void fgv_burst_init(struct fgv_burst *burst, uint64_t quota_ns);

/* The client has become idle; wants the GPU again; has used it. */
void fgv_burst_pause(struct fgv_burst *burst, uint64_t now_ns);
void fgv_burst_resume(struct fgv_burst *burst, uint64_t now_ns);
void fgv_burst_used(struct fgv_burst *burst, uint64_t used_ns);

/* The quota of its next token, between @min_ns and @max_ns. */
uint64_t fgv_burst_quota(struct fgv_burst *burst, uint64_t min_ns, uint64_t max_ns);

#endif
